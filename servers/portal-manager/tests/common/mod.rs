//! A fake machine, and a small system on it.

#![allow(dead_code)]

use pebble_abi::control::BEHALF;
use pebble_abi::errno::{self, Errno};
use pebble_abi::{map, sys, thread};
use pebble_arch::{Arch, Riscv64};
use pebble_boot::{BootInfo, CommonCode, Domain, Grant, Interface, Portal};
use pebble_portal::hardware::instance::Site;
use pebble_portal::hardware::{Connection, Shape, compile};
use pebble_portal_manager::frames::Current;
use pebble_portal_manager::{Goal, Machine, Slot};
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroU16;

pub const SCHEDULER: u16 = 1;
pub const SERVER: u16 = 2;
pub const MANAGER: u16 = 6;
pub const CLIENTS: [u16; 3] = [3, 4, 5];
pub const CODE_USED: u64 = 256;
pub const THREAD: u16 = 9;
/// Nobody: the thread that asks has no frames.
pub type Manager = pebble_portal_manager::Manager<Riscv64>;
pub const CURRENT: Current = Current { tid: THREAD + 1, top: map::thread_va(THREAD + 1) + thread::FRAMES };
pub const NONE: u64 = map::CODE_VA + 8;
pub const THREAD_END: u64 = map::CODE_VA + 16;

pub struct Fake {
    pub tables: BTreeMap<(u16, u16), u64>,
    pub code: Vec<u64>,
    pub threads: BTreeMap<(u16, u64), u64>,
    pub data: BTreeMap<u64, u64>,
    pub code_pages: u32,
    pub freed: Vec<u16>,
    pub stacks: u64,
    /// Whose stacks whom has been shown.
    pub shown: BTreeSet<(u16, u16)>,
    /// What other threads do before each of the next stores to `data`, the last first.
    pub meanwhile: Vec<fn(&mut BTreeMap<u64, u64>)>,
    /// Requests to other servers fail after so many.
    pub patience: u32,
}

impl Fake {
    pub fn new() -> Self {
        let mut threads = BTreeMap::new();
        for tid in [THREAD, THREAD + 1] {
            threads.insert((tid, thread::FRAMES), THREAD_END);
            threads.insert((tid, thread::SAVED_TOP), map::thread_va(tid) + thread::FRAMES);
        }
        let code = vec![0; map::CODE_BYTES as usize / 8];
        Fake {
            tables: BTreeMap::new(),
            code,
            threads,
            data: BTreeMap::new(),
            code_pages: 1,
            freed: vec![],
            stacks: 0,
            shown: BTreeSet::new(),
            meanwhile: vec![],
            patience: u32::MAX,
        }
    }

    pub fn code_word_at(&self, offset: u64) -> u64 {
        self.code_word(offset)
    }

    pub fn ask(&mut self) -> Result<(), Errno> {
        self.patience = self.patience.checked_sub(1).ok_or(errno::ENOMEM)?;
        Ok(())
    }

    fn others(&mut self) {
        if let Some(act) = self.meanwhile.pop() {
            act(&mut self.data);
        }
    }

    /// Thread 9 is in a call through the portal whose code begins here, and in those that it was in before.
    pub fn enter(&mut self, code: u64, ret: u64) {
        let words = self.code_word(code - map::CODE_VA + ret - 8) & 0xffff;
        let top = self.thread_word(THREAD, thread::SAVED_TOP) - map::thread_va(THREAD);
        let at = top + words * 8;
        self.threads.insert((THREAD, at), code + ret);
        self.threads.insert((THREAD, thread::SAVED_TOP), map::thread_va(THREAD) + at);
    }

    /// The VM manager takes back a domain's table; the next one with this number has an empty one.
    pub fn domain_free(&mut self, asid: u16) {
        self.tables.retain(|(of, _), _| *of != asid);
    }

    pub fn leave(&mut self) {
        self.threads.insert((THREAD, thread::SAVED_TOP), map::thread_va(THREAD) + thread::FRAMES);
    }
}

struct Place<'a>(&'a mut [u64]);

impl Site for Place<'_> {
    fn copy(&mut self, doubles: &[u64]) -> bool {
        self.0[..doubles.len()].copy_from_slice(doubles);
        true
    }
    fn set(&mut self, at: usize, double: u64) {
        self.0[at] = double;
    }
    fn get(&self, at: usize) -> u64 {
        self.0[at]
    }
}

impl Machine for Fake {
    fn set_table(&mut self, asid: u16, index: u16, word: u64) {
        self.tables.insert((asid, index), word);
    }
    fn set_dead_entry(&mut self, _: u16, _: u64) {}
    fn table(&self, asid: u16, index: u16) -> u64 {
        self.tables.get(&(asid, index)).copied().unwrap_or(NONE)
    }
    fn site(&mut self, offset: u64, doubles: usize) -> impl Site {
        assert!(
            offset + doubles as u64 * 8 <= u64::from(self.code_pages) * map::PAGE,
            "code beyond the arena's pages"
        );
        Place(&mut self.code[offset as usize / 8..][..doubles])
    }
    fn code_word(&self, offset: u64) -> u64 {
        self.code[offset as usize / 8]
    }
    fn threads(&self) -> impl Iterator<Item = u16> {
        [THREAD, THREAD + 1].into_iter()
    }
    fn thread_word(&self, tid: u16, offset: u64) -> u64 {
        self.threads.get(&(tid, offset)).copied().unwrap_or(0)
    }
    fn set_thread_word(&mut self, tid: u16, offset: u64, word: u64) {
        self.threads.insert((tid, offset), word);
    }
    fn data(&self, offset: u64) -> u64 {
        self.data.get(&offset).copied().unwrap_or(0)
    }
    fn set_data(&mut self, offset: u64, word: u64) {
        self.others();
        self.data.insert(offset, word);
    }
    fn exchange_data(&mut self, offset: u64, old: u64, new: u64) -> bool {
        self.others();
        let is = self.data(offset) == old;
        if is {
            self.data.insert(offset, new);
        }
        is
    }
    fn grow_code(&mut self, page: u32) -> Result<(), Errno> {
        self.ask()?;
        assert_eq!(page, self.code_pages);
        self.code_pages += 1;
        Ok(())
    }
    fn grow_table(&mut self, asid: u16, page: u32) -> Result<(), Errno> {
        self.ask()?;
        // Fresh: who had the number before had another table.
        let page = page as usize;
        self.tables
            .retain(|(a, index), _| *a != asid || usize::from(*index) / map::TABLE_ENTRIES_PER_PAGE != page);
        Ok(())
    }
    fn stack(&mut self, asid: u16) -> Result<u64, Errno> {
        self.ask()?;
        self.stacks += 1;
        Ok(map::stack_top(asid, self.stacks as usize % 32))
    }
    fn share_stacks(&mut self, host: u16, guest: u16) -> Result<(), Errno> {
        self.ask()?;
        self.shown.insert((host, guest));
        Ok(())
    }
    fn unshare_stacks(&mut self, host: u16, guest: u16) {
        self.shown.remove(&(host, guest));
    }
    fn space(&mut self, asid: u16) -> Result<u64, Errno> {
        self.ask()?;
        Ok(map::direct(0x8100_0000 + u64::from(asid) * 0x2000))
    }
    fn windows(&mut self, asid: u16) -> Result<u64, Errno> {
        self.ask()?;
        Ok(map::direct(0x8200_0000 + u64::from(asid) * 0x1000))
    }
    fn free_semaphore(&mut self, id: u16) {
        self.freed.push(id);
    }
}

/// Some of the portals that a domain is born with.
const BIRTH: [usize; 3] = [sys::SYS_YIELD, sys::SYS_SBRK, sys::SYS_PORTAL_CLOSE];

/// Its code is common.
fn birth(asid: u16, index: usize) -> Portal {
    Portal { asid, index: index as u16, interface: 5, ..Portal::default() }
}

pub fn view(asid: u16) -> pebble_portal::hardware::Domain {
    pebble_portal::hardware::Domain {
        asid,
        space: Riscv64::space(asid, 0x8100_0000 + u64::from(asid) * map::PAGE),
        ..Default::default()
    }
}

pub fn system() -> (Manager, Fake) {
    let domain = |asid: u16, name: &str| Domain {
        asid,
        name: name.into(),
        root: 0x8100_0000 + u64::from(asid) * map::PAGE,
        ..Domain::default()
    };
    let interface = |name: &str, asid, spec: &str| Interface {
        name: name.into(),
        asid,
        entry: 0x1_0000,
        spec: spec.into(),
    };
    let mut domains =
        vec![Domain { exclusive: true, fixed_stack: 0x2020_1000, ..domain(SCHEDULER, "scheduler") }];
    domains.push(domain(SERVER, "server"));
    domains.push(domain(MANAGER, "manager"));
    domains.extend(CLIENTS.map(|asid| domain(asid, "client")));
    let info = BootInfo {
        domains,
        interfaces: vec![
            interface("scheduler.p", SCHEDULER, "nmca"),
            interface("scheduler.v", SCHEDULER, "nmc"),
            interface("server.read", SERVER, "npci>4"),
            interface("server.write", SERVER, "npciiiii"),
            interface("server.trusted", SERVER, "smii"),
            interface("scheduler.yield", SCHEDULER, "nm"),
            interface("pm.behalf", MANAGER, "npciiiii>4"),
            interface("process.behalf", MANAGER, "npciiiii"),
        ],
        code: CommonCode {
            none: NONE,
            thread_end: THREAD_END,
            no_stack: [map::CODE_VA + 24; 2],
            ..CommonCode::default()
        },
        portals: CLIENTS.iter().flat_map(|asid| BIRTH.map(|index| birth(*asid, index))).collect(),
        code_used: CODE_USED,
        grants: vec![Grant { asid: SERVER, va: map::template_data_va(b'Z'), ..Grant::default() }],
        ..BootInfo::default()
    };
    let mut machine = Fake::new();
    let mut manager = Manager::new(&info).expect("boot information");
    manager.prepare(&mut machine).expect("common code");
    (manager, machine)
}

/// What each living domain holds is what has been counted.
fn check_counts(manager: &Manager) {
    // Whoever looks through all domains looks at each that there is.
    let open: usize = manager.domains.iter().map(|d| d.open).sum();
    assert_eq!(manager.stats()[0], open as u64, "a domain is not known");
    let mut held = BTreeMap::<u16, usize>::new();
    for (asid, domain) in
        manager.domains.iter().enumerate().filter(|(_, d)| d.alive && d.controller.is_none())
    {
        let behalf = domain.behalf.map(|first| usize::from(first.get()));
        let own = |index: &usize| behalf.is_none_or(|first| !(first..first + BEHALF.len()).contains(index));
        for slot in (sys::FIRST_FREE..domain.slots.len()).filter(own).map(|index| &domain.slots[index]) {
            let owner = slot.subject.map_or(asid as u16, NonZeroU16::get);
            *held.entry(owner).or_default() += usize::from(slot.goal != Goal::Free && slot.giver.is_none());
        }
    }
    for (asid, domain) in manager.domains.iter().enumerate().filter(|(_, d)| d.alive) {
        let held = held.get(&(asid as u16)).copied().unwrap_or(0);
        assert_eq!(domain.held, held, "portals of {asid}, whose controller is {:?}", domain.controller);
    }
}

/// A portal's code is what is compiled for it now, whatever became of others in its place. Not looked at: those
/// for domains below, those to the dead, windows and letters of servers.
fn check_code(manager: &Manager, machine: &Fake, asid: u16, index: usize, slot: &Slot) {
    let Goal::Interface(i) = slot.goal else { return };
    let pebble_portal_manager::Interface { asid: callee, entry, spec, name, .. } =
        &manager.interfaces[usize::from(i)];
    let [caller, callee] = [asid, *callee].map(|asid| &manager.domains[usize::from(asid)]);
    let special = spec.windows().next().is_some() || spec.templates().next().is_some();
    if !callee.alive || slot.subject.is_some() || name.is_empty() || special {
        return;
    }
    let c = Connection {
        caller: caller.view,
        callee: callee.view,
        entry: *entry,
        index: index as u16,
        constant: slot.constant,
        counter: slot.counter,
        ..Connection::default()
    };
    let code = compile(spec, Shape::Call, &c, Riscv64::PROCESSOR).expect("it was compiled");
    let wanted: Vec<u64> = code.doubles().collect();
    let found: Vec<u64> =
        (0..wanted.len() as u64).map(|n| machine.code_word_at(u64::from(slot.run.at) + n * 8)).collect();
    assert_eq!(found, wanted, "the code of {asid}:{index}");
}

/// Every table word leads where the slot says.
pub fn check(manager: &Manager, machine: &Fake) {
    check_counts(manager);
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for asid in 1..map::MAX_DOMAINS as u16 {
        let slots = &manager.domains[asid as usize].slots;
        for (index, slot) in (0..sys::FIRST_FREE.min(slots.len())).map(|index| (index, &slots[index])) {
            if slot.run.len > 0 && machine.tables.contains_key(&(asid, index as u16)) {
                runs.push((slot.run.at, slot.run.len));
                check_code(manager, machine, asid, index, slot);
            }
        }
        for (index, slot) in (sys::FIRST_FREE..slots.len()).map(|index| (index, &slots[index])) {
            let word = machine.tables.get(&(asid, index as u16)).copied();
            if slot.goal == Goal::Free {
                assert!(
                    word.is_none_or(|w| w < map::CODE_VA + CODE_USED + 64),
                    "freed slot {asid}:{index} leads to {word:x?}"
                );
            } else if slot.run.len > 0 {
                assert_eq!(word, Some(map::CODE_VA + u64::from(slot.run.at)));
                runs.push((slot.run.at, slot.run.len));
                check_code(manager, machine, asid, index, slot);
            }
        }
    }
    runs.sort();
    assert!(runs.windows(2).all(|w| w[0].0 + w[0].1 <= w[1].0), "two portals share code");
}
