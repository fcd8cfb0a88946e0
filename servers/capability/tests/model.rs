//! The table against the model, with portal code played by a literal transcription of its template.

use pebble_abi::capability::*;
use pebble_abi::errno::{self, Errno};
use pebble_abi::share::CAPABILITIES;
use pebble_abi::words::Asid;
use pebble_capability::model::{Actors, Model};
use pebble_capability::{Capability, Flags, Manager, Table};
use proptest::prelude::*;

struct Memory(Vec<[u64; 4]>);

impl Memory {
    fn new() -> Self {
        let next = |n: u64| (n + 1) % NODES as u64 * NODE_BYTES;
        Memory((0..NODES as u64).map(|n| [0, 0, 0, next(n)]).collect())
    }
}

impl Table for Memory {
    fn read(&self, node: usize, word: usize) -> u64 {
        self.0[node][word]
    }

    fn write(&mut self, node: usize, word: usize, value: u64) {
        self.0[node][word] = value;
    }

    fn exchange_head(&mut self, old: u64, new: u64) -> bool {
        let same = self.0[0][NEXT] == old;
        if same {
            self.0[0][NEXT] = new;
        }
        same
    }
}

/// What the template of `k` does, word for word.
fn pass(table: &mut impl Table, caller: u16, name: u64, callee: u16) -> Result<u16, Errno> {
    let node = name as usize % NODES;
    let word = table.read(node, HOLDER);
    if word & !ONCE != u64::from(caller) | VALID | TRANSFER {
        return Err(errno::EACCES);
    }
    let new = (table.read(0, NEXT) / NODE_BYTES) as usize % NODES;
    if new == 0 {
        return Err(errno::EACCES);
    }
    table.write(0, NEXT, table.read(new, NEXT));
    table.write(new, TOKEN, table.read(node, TOKEN));
    table.write(new, PARENT, node as u64 * NODE_BYTES + ROOT);
    table.write(new, HOLDER, word & !0xffff | u64::from(callee));
    if word & ONCE != 0 {
        table.write(node, HOLDER, 0);
    }
    Ok(new as u16)
}

struct Host(Manager<Memory>);

fn asid(who: usize) -> u16 {
    10 + who as u16
}

impl Actors for Host {
    fn create(
        &mut self,
        who: usize,
        kind: u64,
        object: u64,
        rights: u16,
        flags: Flags,
    ) -> Result<u16, Errno> {
        self.0.create(asid(who).into(), kind, object, rights, flags)
    }

    fn derive(&mut self, who: usize, name: u64, rights: u16, flags: Flags) -> Result<u16, Errno> {
        self.0.derive(asid(who).into(), name, rights, flags)
    }

    fn pass(&mut self, who: usize, name: u64, to: usize) -> Result<u16, Errno> {
        // Names that are no node's number alias one, which is harmless and must not look like success to the
        // model.
        if name >= NODES as u64 {
            return Err(errno::EACCES);
        }
        pass(&mut self.0.table, asid(who), name, asid(to))
    }

    fn consume(&mut self, who: usize, name: u64, rights: u16) -> Result<(), Errno> {
        self.0.consume(asid(who).into(), name, rights)
    }

    fn revoke(&mut self, who: usize, name: u64) -> Result<(), Errno> {
        self.0.revoke(asid(who).into(), name)
    }

    fn drop(&mut self, who: usize, name: u64) -> Result<(), Errno> {
        self.0.discard(asid(who).into(), name)
    }

    fn look(&mut self, who: usize, name: u64) -> Result<Capability, Errno> {
        let c = self.0.look(asid(who).into(), name)?;
        Ok(Capability { object: c.object & 0xffff, ..c })
    }
}

fn history(seed: u64, steps: u64) -> (Model, Host) {
    let (mut model, mut host) = (Model::new(6, seed), Host(Manager::new(Memory::new())));
    let outcome = model.run(&mut host, steps);
    assert_eq!(outcome, Ok(()), "seed {seed}");
    let used = host.0.count().used;
    assert_eq!(model.check(&mut host, used), Ok(()), "seed {seed}");
    (model, host)
}

#[test]
fn a_million_steps_agree_with_the_model() {
    let (mut done, mut refused) = (0, 0);
    for seed in 1..=10 {
        let (model, _) = history(seed, 100_000);
        done += model.done;
        refused += model.refused;
    }
    assert_eq!(done + refused, 1_000_000);
    // A history of refusals alone would show nothing, nor one of successes alone.
    assert!(done > 400_000 && refused > 100_000, "{done} done, {refused} refused");
}

/// The one that the machine runs (`tests/capability-test`): long enough for tombstones to fill the table many
/// times over.
#[test]
fn the_history_of_the_machine() {
    history(19_990_606, 1_000_000);
}

#[test]
fn a_full_table_says_so_and_recovers() {
    let mut m = Manager::new(Memory::new());
    let flags = Flags { transfer: true, once: false };
    // The image's.
    m.belongs(Asid(1), 0);
    let root = m.create(Asid(1), 256, 1, 7, flags).unwrap();
    for _ in 2..NODES {
        m.derive(Asid(1), root.into(), 7, flags).unwrap();
    }
    assert_eq!(m.derive(Asid(1), root.into(), 7, flags), Err(errno::ECAPABILITIES));
    assert_eq!(pass(&mut m.table, 1, root.into(), 2), Err(errno::EACCES));
    m.revoke(Asid(1), root.into()).unwrap();
    assert_eq!(m.count().used, 1);
    assert_eq!(m.count().free, NODES as u64 - 2);
    m.derive(Asid(1), root.into(), 7, flags).unwrap();
}

#[test]
fn a_family_leaves_nodes_to_others() {
    let mut m = Manager::new(Memory::new());
    let flags = Flags { transfer: true, once: false };
    // Domains 1 and 2 are a family; 3 and 4 have one each.
    m.belongs(Asid(1), 1);
    m.belongs(Asid(2), 1);
    let root = u64::from(m.create(Asid(1), 256, 1, 7, flags).unwrap());
    let had = (1..).find(|_| m.derive(Asid(1), root, 7, flags).is_err()).unwrap();
    assert_eq!(had, CAPABILITIES.family);
    assert_eq!(m.create(Asid(2), 256, 1, 7, flags), Err(errno::ECAPABILITIES));
    assert!(m.create(Asid(3), 256, 1, 7, flags).is_ok());
    // Portal code asks nobody.
    while pass(&mut m.table, 1, root, 2).is_ok() {}
    assert_eq!(m.count().free, 0);
    assert_eq!(m.unknown(Asid(4)), Some(Asid(4)));
    let other = u64::from(m.create(Asid(4), 256, 1, 7, flags).unwrap());
    assert!(pass(&mut m.table, 4, other, 3).is_ok());
    assert_eq!(m.count().used, CAPABILITIES.family as u64 + 3);
    assert_eq!(m.create(Asid(1), 256, 1, 7, flags), Err(errno::ECAPABILITIES));
    assert!(m.look(Asid(1), root).is_ok(), "what it had first it has");
    m.revoke(Asid(1), root).unwrap();
    assert!(m.create(Asid(2), 256, 1, 7, flags).is_ok());
    // One that is dead is nobody's, nor is its number.
    m.forget(Asid(1));
    assert_eq!(m.create(Asid(1), 256, 1, 7, flags).map(|name| name > 0), Ok(true));
}

#[test]
fn what_portal_code_took_beyond_a_share_comes_back() {
    let mut m = Manager::new(Memory::new());
    let flags = Flags { transfer: true, once: false };
    m.belongs(Asid(1), 1);
    m.belongs(Asid(2), 1);
    let root = m.create(Asid(1), 256, 1, 7, flags).unwrap();
    while pass(&mut m.table, 1, root.into(), 2).is_ok() {}
    assert_eq!(m.unknown(Asid(3)), Some(Asid(3)));
    m.belongs(Asid(3), 3);
    assert_eq!(m.unknown(Asid(3)), None);
    assert!(m.create(Asid(3), 256, 1, 7, flags).is_ok());
    assert_eq!(m.count().used, CAPABILITIES.family as u64 + 1);
}

/// Families that make all that they get are refused in the end, each: none lives on what is taken from itself.
#[test]
fn whoever_has_its_part_is_refused() {
    let mut m = Manager::new(Memory::new());
    let flags = Flags { transfer: true, once: false };
    for asid in 1..=4 {
        m.belongs(Asid(asid), asid as u16);
    }
    let mut take = |asid: u64| {
        (0..NODES).find(|_| m.create(Asid(asid), 256, 1, 7, flags).is_err()).expect("it is refused")
    };
    let had = [1, 2, 3].map(&mut take);
    assert_eq!(had[0], CAPABILITIES.family);
    // What the first had beyond an even part went to the last; that none lost what it has since.
    let part = (CAPABILITIES.all - CAPABILITIES.kept()) / 3;
    assert!(had[1..].iter().all(|had| had.abs_diff(part) < 100), "{had:?}, of {part}");
    assert_eq!([1, 2, 3].map(&mut take), [0; 3]);
    assert!(take(4) >= CAPABILITIES.least);
}

#[test]
fn families_that_took_all_share_what_is_not_kept_for_others() {
    let mut m = Manager::new(Memory::new());
    let flags = Flags { transfer: true, once: false };
    for asid in 1..=5 {
        m.belongs(Asid(asid), asid as u16);
    }
    let roots: Vec<_> =
        (1..=3).map(|asid| u64::from(m.create(Asid(asid), 256, 1, 7, flags).unwrap())).collect();
    // Portal code asks nobody, until there is none.
    for n in 0.. {
        let asid = 1 + n % 3;
        if pass(&mut m.table, asid, roots[usize::from(asid) - 1], asid).is_err() {
            break;
        }
    }
    assert_eq!(m.count().free, 0);
    for _ in 0..CAPABILITIES.least {
        assert!(m.create(Asid(4), 256, 1, 7, flags).is_ok());
    }
    assert!(m.create(Asid(5), 256, 1, 7, flags).is_ok());
    assert!(
        (1..=3).zip(&roots).all(|(asid, root)| m.look(Asid(asid), *root).is_ok()),
        "what they had first they have"
    );
}

#[test]
fn tombstones_are_buried_when_nodes_run_out() {
    let mut m = Manager::new(Memory::new());
    let once = Flags { transfer: true, once: true };
    let mut name = m.create(Asid(1), 256, 1, 7, once).unwrap();
    for n in 0..10 * NODES {
        let (from, to) = if n % 2 == 0 { (1, 2) } else { (2, 1) };
        name = match pass(&mut m.table, from, name.into(), to) {
            Ok(name) => name,
            Err(_) => {
                // Portal code does not bury; the next request does.
                let other = m.create(Asid(3), 256, 1, 7, once).unwrap();
                m.discard(Asid(3), other.into()).unwrap();
                pass(&mut m.table, from, name.into(), to).unwrap()
            }
        };
    }
    assert_eq!(m.count().used, 1);
    // Where it has been nobody has it any more.
    assert_eq!((1..3).filter(|d| m.look(Asid(*d), name.into()).is_ok()).count(), 1);
}

proptest! {
    /// After a death nothing names the dead: neither as holder nor as maker.
    #[test]
    fn the_dead_leave_nothing(seed in 1u64.., who in 0usize..6) {
        let (_, mut host) = history(seed, 500);
        let before = host.0.count();
        host.0.forget(asid(who).into());
        for node in 1..NODES {
            let word = host.0.table.read(node, HOLDER);
            let (kind, _, object) = token_parts(host.0.table.read(node, TOKEN));
            let made = kind >= FIRST_USER_KIND && object >> 16 == u32::from(asid(who));
            let named = word & VALID != 0 && word as u16 == asid(who);
            prop_assert!(!made && !named, "node {}", node);
        }
        let after = host.0.count();
        prop_assert_eq!(after.used + after.free + after.tombstones, before.used + before.free + before.tombstones);
    }

    /// Rights of whatever exists come from a token that its maker made so strong.
    #[test]
    fn nothing_grows(seed in 1u64..) {
        let (_, host) = history(seed, 300);
        let t = &host.0.table;
        for node in 1..NODES {
            let (kind, rights, object) = token_parts(t.read(node, TOKEN));
            let parent = (t.read(node, PARENT) / NODE_BYTES) as usize;
            if t.read(node, HOLDER) & VALID != 0 && parent != 0 {
                let (k, r, o) = token_parts(t.read(parent, TOKEN));
                prop_assert!(k == kind && o == object && rights & !r == 0, "node {}", node);
            }
        }
    }
}
