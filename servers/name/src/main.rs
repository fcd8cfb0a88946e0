//! The name server's component: entries around [`Registry`], one lock.
//!
//! It takes over from the image builder at the first request: the rules of the system's manifest, the names
//! of the domains that are there from the start, and their interfaces, whose numbers are their positions in
//! the boot information. The lock's semaphore comes from the image too: the portal manager calls with its own
//! lock held, so nobody here may ask it for one.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use alloc::vec::Vec;
use pebble::abi::errno::{self, Errno};
use pebble::abi::link::{pack, unpack};
use pebble::abi::{capability, map};
use pebble::handover::{Bytes, Handover};
use pebble::link::More;
use pebble::region;
use pebble::sync::Lock;
use pebble_boot::rules::{Client, RuleSet};
use pebble_boot::{Policy, Verdict};
use pebble_name::{Entry, Error, Registry};

pebble::import! {
    LOCK = "semaphore.name";
    HOLDS = "?cap.holds";
    GRANT = "?cap.grant";
}
pebble::interfaces!();
pebble::replaceable!(STATE: State, Vec::new());
pebble::component!(main);

/// No thread of its own.
fn main() -> i64 {
    0
}

struct State {
    registry: Registry<'static>,
    /// Whether the boot information is in.
    ready: bool,
}

static STATE: Lock<State> = Lock::new(State { registry: Registry::new(), ready: false });

/// Format 2: two rule sets of each domain (16 bytes each), then names: three words, interface and owner in a
/// fourth; little-endian.
const FORMAT: u64 = 2;
const SETS: usize = map::MAX_DOMAINS * 32;

impl Handover for State {
    type Bytes = Vec<u8>;

    fn save(&self, _: u64, bytes: &mut Vec<u8>) -> Result<u64, Errno> {
        let mut room = self
            .registry
            .clients()
            .flat_map(|c| [c.named, c.holds])
            .all(|set| Bytes::append(bytes, &set.to_le_bytes()));
        for Entry { name: [a, b, c], interface, owner } in self.registry.names() {
            let words = [a, b, c, u64::from(interface) | u64::from(owner) << 32];
            room &= Bytes::append(bytes, words.map(u64::to_le_bytes).as_flattened());
        }
        if room { Ok(FORMAT) } else { Err(errno::ENOMEM) }
    }

    fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), Errno> {
        let (sets, names) = bytes.split_at_checked(SETS).filter(|_| format == FORMAT).ok_or(errno::EINVAL)?;
        if take_over(&mut self.registry).is_none() || !names.len().is_multiple_of(32) {
            return Err(errno::EINVAL);
        }
        let clients = sets.as_chunks::<32>().0.iter().map(|sets| {
            let mut sets = sets.as_chunks().0.iter().map(|set| u128::from_le_bytes(*set));
            Client { named: sets.next().unwrap_or(0), holds: sets.next().unwrap_or(0) }
        });
        let names = names.as_chunks::<32>().0.iter().map(|entry| {
            let mut words = entry.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word));
            let [a, b, c, rest] = core::array::from_fn(|_| words.next().unwrap_or(0));
            Entry { name: [a, b, c], interface: rest as u32, owner: (rest >> 32) as u16 }
        });
        self.registry.restore(names, clients).map_err(Error::errno)?;
        self.ready = true;
        Ok(())
    }
}

/// One request; its result is the word that goes back. Without valid rules nothing is answered.
fn request(work: impl FnOnce(&mut Registry<'static>) -> Result<u64, Error>) -> i64 {
    STATE.use_semaphore(LOCK.index());
    let mut state = STATE.lock();
    if !state.ready {
        if take_over(&mut state.registry).is_none() {
            return -errno::EIO;
        }
        state.ready = true;
    }
    work(&mut state.registry).map_or_else(|error| -error.errno(), |value| value as i64)
}

#[cold]
fn take_over(registry: &mut Registry<'static>) -> Option<()> {
    let Policy { domains, interfaces, rules } = pebble_boot::beginning(region::boot_info()).ok()?;
    registry.policy(Box::leak(rules.into_boxed_slice())).ok()?;
    for domain in domains {
        registry.domain(domain.asid, &domain.name).ok()?;
    }
    for (number, interface) in (0..).zip(interfaces) {
        // A name that no client could spell is nobody's loss.
        if let Some(name) = pack(&interface.name) {
            let _ = registry.register(interface.asid, name, number);
        }
    }
    Some(())
}

/// A number that names no domain becomes one that the registry refuses.
fn asid(word: u64) -> u16 {
    u16::try_from(word).unwrap_or(u16::MAX)
}

/// Where a capability decides, its manager is asked without the lock. Whose: that of the domain for which the
/// portal is opened, which is not the client when this is a controller that opens on behalf.
extern "C" fn lookup(client: u64, a: u64, b: u64, c: u64, holder: u64) -> i64 {
    let mut wants = None;
    let found = request(|r| {
        let found = r.lookup(asid(client), [a, b, c]);
        if let Err(Error::Wants(rule, interface)) = found {
            wants = Some((rule, interface));
        }
        found.map(u64::from)
    });
    match wants {
        Some((rule, interface)) if holds(holder, capability::NAME, rule, capability::OPEN) => {
            interface.into()
        }
        _ => found,
    }
}

/// As calls of the capability manager carry it.
const TRANSFERABLE: u64 = 1 << 16;

fn holds(client: u64, kind: u16, rule: u16, right: u16) -> bool {
    HOLDS.bound() && HOLDS.call([client, kind.into(), rule.into(), right.into()]) == Ok(1)
}

/// A first capability, if the rule was found: its holder's name for it.
fn grant(client: u64, kind: u16, rule: i64, rights: u16) -> i64 {
    if rule < 0 {
        return rule;
    }
    if (0..16).map(|n| rights & 1 << n).any(|right| right != 0 && holds(client, kind, rule as u16, right)) {
        return -errno::EEXIST;
    }
    let strength = u64::from(rights) | TRANSFERABLE;
    GRANT.call([client, kind.into(), rule as u64, strength]).unwrap_or(-errno::EIO)
}

/// For first holders: a capability to open this name, and whatever else its rule is about. Their name for it.
extern "C" fn capability(client: u64, a: u64, b: u64, c: u64) -> i64 {
    let rule = request(|r| r.first_holder(asid(client), [a, b, c]).map(u64::from));
    grant(client, capability::NAME, rule, capability::OPEN)
}

/// A set of rules out of its words.
fn set(low: u64, high: u64) -> RuleSet {
    u128::from(low) | u128::from(high) << 64
}

/// For servers of what rules are about, by kind in bits 32 to 47: the rights at what this set is about, of
/// the domain in bits 16 to 31; that in bits 0 to 15, through which it calls, has no fewer by the rules, and
/// needs no capabilities. 0: none.
extern "C" fn rights(who: u64, low: u64, high: u64) -> i64 {
    let (caller, subject, kind) = (who & 0xffff, who >> 16 & 0xffff, (who >> 32) as u16);
    let mut rights = capability::ALL;
    for client in [caller, subject] {
        let mut said = (Verdict::Refuse, 0);
        let known = request(|r| r.says(asid(client), set(low, high)).map(|says| said = says).map(|()| 0));
        rights &= match said {
            _ if known < 0 => return known,
            (Verdict::Allow, _) => capability::ALL,
            (Verdict::Refuse, _) => 0,
            (Verdict::Capability, rule) => {
                let held = [1, 2].map(|right| if holds(subject, kind, rule, right) { right } else { 0 });
                held[0] | held[1]
            }
        };
        if caller == subject {
            break;
        }
    }
    rights.into()
}

/// For the same: a first capability for a domain, given as for [`rights`], with all rights.
extern "C" fn first(who: u64, low: u64, high: u64) -> i64 {
    let client = who >> 16 & 0xffff;
    let rule = request(|r| r.first(asid(client), set(low, high)).map(u64::from));
    grant(client, (who >> 32) as u16, rule, capability::ALL)
}

extern "C" fn register(owner: u64, a: u64, b: u64, c: u64, interface: u64) -> i64 {
    request(|r| r.register(asid(owner), [a, b, c], interface as u32).map(|()| 0))
}

/// The domain is dead.
extern "C" fn withdraw(owner: u64) -> i64 {
    request(|r| Ok(r.gone(asid(owner)) as u64))
}

extern "C" fn pass(interface: u64, owner: u64) -> i64 {
    request(|r| r.pass(interface as u32, asid(owner)).map(|()| 0))
}

extern "C" fn domain(number: u64, a: u64, b: u64) -> i64 {
    let mut bytes = [0; 16];
    let len = unpack(&[a, b], &mut bytes);
    let name = core::str::from_utf8(&bytes[..len]).unwrap_or("");
    request(|r| r.domain(asid(number), name).map(|()| 0))
}

/// The interface; its name, its domain with the position to ask for next in bits 16 and up.
extern "C" fn list(position: u64, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    request(|r| {
        let from = usize::try_from(position).unwrap_or(usize::MAX);
        let (at, entry) = r.list(from).ok_or(Error::Unknown)?;
        let [a, b, c] = entry.name;
        *more = [a, b, c, u64::from(entry.owner) | (at as u64 + 1) << 16];
        Ok(entry.interface.into())
    })
}
