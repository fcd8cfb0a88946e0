//! Counts instructions where they belong, as a guest runs.
//!
//! Problem: who calls this tells which block of code begins, and how many instructions have been executed so
//! far. Strategy: what has been executed since the last block began is that block's. A block of user mode
//! counts for the node that runs ([`Flow`]). Privileged blocks count for themselves, and together, from trap
//! to trap's end, for the node into which they have led, or out of which.
//!
//! An instruction that faults is executed twice, or never, and has been counted already; so has one that the
//! emulator begins again since it touches a device. What gives it away is that the rest of its block is
//! missing.

use std::collections::HashMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use crate::counts::Counts;
use crate::flow::{Flow, Landing, Step};
use crate::{Block, BlockId, Event, Node, NodeId, Processor, Recording, Region, Short};

/// Readings of the counter that are remembered.
const MOST_READINGS: usize = 1024;
const REGISTERS: usize = 32;

/// What is recorded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// From reset on; else from where user mode first reads the counter, as the shell does when it has
    /// started, if it ever does.
    pub start: bool,
    /// Events, at most.
    pub events: usize,
}

/// A block, as the emulator finds it.
pub struct Code<'a> {
    pub address: u64,
    pub bytes: &'a [u8],
    /// Instructions in it.
    pub length: u64,
    /// All of the page in which it begins.
    pub page: &'a [u8],
}

struct Known {
    region: Region,
    address: u64,
    length: u64,
    page: u64,
    /// Ends with the way out into user mode.
    leaves: bool,
}

/// Where the block that has ended leads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    User,
    /// To user mode, perhaps: an interrupt may be there first.
    Leaving,
    Privileged,
}

#[derive(Default)]
struct Counted {
    calls: u64,
    legs: u64,
    short: u64,
    blocks: Counts,
}

pub struct Recorder {
    processor: Processor,
    scope: Scope,
    index: HashMap<u64, BlockId>,
    known: Vec<Known>,
    blocks: Vec<Block>,
    flow: Flow,
    nodes: Vec<Counted>,
    privileged: Counts,
    shorts: HashMap<u64, (u64, u64)>,
    outside: u64,
    events: Vec<Event>,
    lost: u64,
    readings: Vec<u64>,
    /// What portal code has loaded into its registers.
    loaded: [u64; REGISTERS],
    running: Option<BlockId>,
    /// The counter when that has begun.
    since: u64,
    /// Instructions from reset, up to the running block; and those before the recording.
    executed: u64,
    before: u64,
    /// Of the running block, those that were counted in the middle of it.
    counted_already: u64,
    /// Privileged instructions since the trap, and what they are to be called if they lead nowhere.
    leg: u64,
    way: Option<(Region, u64)>,
}

fn hash(what: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

impl Recorder {
    pub fn new(processor: Processor, scope: Scope) -> Recorder {
        Recorder {
            processor,
            scope,
            index: HashMap::new(),
            known: Vec::new(),
            blocks: Vec::new(),
            flow: Flow::default(),
            nodes: Vec::new(),
            privileged: Counts::default(),
            shorts: HashMap::new(),
            outside: 0,
            events: Vec::new(),
            lost: 0,
            readings: Vec::new(),
            loaded: [0; REGISTERS],
            running: None,
            since: 0,
            executed: 0,
            before: 0,
            counted_already: 0,
            leg: 0,
            way: None,
        }
    }

    pub fn processor(&self) -> &Processor {
        &self.processor
    }

    /// The emulator has found code. It may have found the same before.
    pub fn find(&mut self, code: &Code) -> BlockId {
        let region = self.processor.region(code.address);
        let user = region == Region::User;
        // Pages of portal code change all the time.
        let page = if user { hash(code.page) } else { 0 };
        let number = hash((code.address, code.bytes, page));
        if let Some(id) = self.index.get(&number) {
            return *id;
        }
        let id = BlockId::new(self.known.len());
        let leaves = !user && self.processor.leaves(code.bytes);
        self.known.push(Known { region, address: code.address, length: code.length, page, leaves });
        let bytes = if user { code.bytes.to_vec() } else { Vec::new() };
        self.blocks.push(Block { address: code.address, region, bytes });
        self.index.insert(number, id);
        id
    }

    /// A block begins; the counter of all instructions.
    pub fn begin(&mut self, id: BlockId, counter: u64) {
        let before = self.settle(counter);
        let Known { region, address, page, .. } = self.known[id.index()];
        match (before, region) {
            (Before::User, Region::User) => {}
            (_, Region::User) => self.land(Some(Landing { address, page })),
            (before, _) => {
                if before == Before::Leaving {
                    self.land(None);
                }
                if before != Before::Privileged {
                    self.flow.trap();
                    (self.leg, self.way) = (0, None);
                }
                if self.way.is_none_or(|(first, _)| first != Region::Portal && region == Region::Portal) {
                    self.way = Some((region, self.processor.early(region, address)));
                }
            }
        }
        self.running = Some(id);
    }

    /// Counts what has been executed of the running block.
    fn settle(&mut self, counter: u64) -> Before {
        let Some(id) = self.running else {
            self.since = counter;
            return Before::Privileged;
        };
        let Known { region, length, leaves, .. } = self.known[id.index()];
        let passed = counter - std::mem::replace(&mut self.since, counter);
        let cut = passed + std::mem::take(&mut self.counted_already) < length;
        let count = passed.saturating_sub(u64::from(cut));
        self.executed += count;
        let user = region == Region::User;
        if !user {
            self.leg += count;
        }
        let before = match user {
            true => Before::User,
            false if leaves && !cut => Before::Leaving,
            false => Before::Privileged,
        };
        match self.flow.node() {
            _ if !user => self.privileged.add(id, count),
            Some(node) => self.counted(node).blocks.add(id, count),
            None => self.outside += count,
        }
        before
    }

    fn counted(&mut self, node: NodeId) -> &mut Counted {
        if self.nodes.len() <= node.index() {
            self.nodes.resize_with(node.index() + 1, Counted::default);
        }
        &mut self.nodes[node.index()]
    }

    /// User mode goes on; `None`: it would, but for an interrupt.
    fn land(&mut self, at: Option<Landing>) {
        let step = self.flow.land(at);
        let leg = std::mem::take(&mut self.leg);
        match (step, self.flow.node()) {
            (Step::Entered(node), _) => {
                let counted = self.counted(node);
                counted.calls += 1;
                counted.legs += leg;
            }
            (Step::Left(node), _) => self.counted(node).legs += leg,
            (Step::Stayed, Some(node)) => {
                self.counted(node).short += leg;
                if let Some((_, address)) = self.way {
                    let (times, instructions) = self.shorts.entry(address).or_default();
                    (*times, *instructions) = (*times + 1, *instructions + leg);
                }
            }
            (Step::Stayed, None) => self.outside += leg,
        }
        let (Some(thread), Some(node)) = (self.flow.thread(), self.flow.node()) else { return };
        if step == Step::Stayed {
            return;
        }
        if self.events.len() < self.scope.events {
            self.events.push(Event { time: self.executed - self.before, thread, node });
        } else {
            self.lost += 1;
        }
    }

    /// Privileged code has touched a word.
    pub fn touch(&mut self, address: u64, store: bool) {
        self.flow.touch(address, store);
    }

    /// Portal code has loaded a word into a register.
    pub fn load(&mut self, register: u8, value: u64) {
        self.loaded[usize::from(register) % REGISTERS] = value;
    }

    /// Portal code enters the address space that the register names.
    pub fn enter(&mut self, register: u8) {
        let space = self.loaded[usize::from(register) % REGISTERS];
        self.flow.enter(self.processor.asid(space));
    }

    /// User mode reads the counter of instructions.
    pub fn reading(&mut self, counter: u64) {
        let now = self.executed + (counter - self.since);
        if self.readings.len() < MOST_READINGS {
            self.readings.push(now);
        }
        if self.readings.len() == 1 && !self.scope.start {
            self.restart(now, counter);
        }
    }

    /// What has been counted was the start of the system.
    fn restart(&mut self, now: u64, counter: u64) {
        self.counted_already = counter - self.since;
        (self.executed, self.before, self.since) = (now, now, counter);
        self.nodes.clear();
        self.privileged.clear();
        self.shorts.clear();
        (self.outside, self.lost) = (0, 0);
        self.events.clear();
        let at = self.flow.thread().zip(self.flow.node());
        self.events.extend(at.map(|(thread, node)| Event { time: 0, thread, node }));
    }

    /// The guest has ended.
    pub fn finish(mut self, counter: u64) -> Recording {
        self.settle(counter);
        self.outside += std::mem::take(&mut self.leg);
        let total = self.executed - self.before;
        let places = self.flow.places().to_vec();
        let nodes = places.into_iter().enumerate().map(|(n, place)| {
            let Counted { calls, legs, short, blocks } =
                self.nodes.get_mut(n).map(std::mem::take).unwrap_or_default();
            let (parent, domain, entry) = (place.parent, place.domain, place.entry);
            Node { parent, domain, entry, calls, legs, short, blocks: blocks.list() }
        });
        let shorts = self.shorts.into_iter();
        let mut shorts: Vec<_> =
            shorts.map(|(address, (times, instructions))| Short { address, times, instructions }).collect();
        shorts.sort_by_key(|short| short.address);
        Recording {
            before: self.before,
            total,
            outside: self.outside,
            domains: self.flow.domains().to_vec(),
            nodes: nodes.collect(),
            privileged: self.privileged.list(),
            shorts,
            events: self.events,
            lost: self.lost,
            readings: self.readings,
            blocks: self.blocks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pebble_abi::map;
    use pebble_arch::{Arch, Riscv64};

    const ALL: Scope = Scope { start: true, events: 3 };

    struct Guest {
        recorder: Recorder,
        counter: u64,
    }

    impl Guest {
        fn new(scope: Scope) -> Guest {
            let processor = Processor::named(Riscv64::PROCESSOR.name()).unwrap();
            Guest { recorder: Recorder::new(processor, scope), counter: 0 }
        }

        /// Executes so many instructions of a block.
        fn run(&mut self, address: u64, length: u64, executed: u64) {
            let bytes = length.to_le_bytes();
            let id = self.recorder.find(&Code { address, bytes: &bytes, length, page: &[] });
            self.recorder.begin(id, self.counter);
            self.counter += executed;
        }

        fn enter(&mut self, asid: u16) {
            self.recorder.load(28, Riscv64::space(asid, 0x8030_0000));
            self.recorder.enter(28);
        }

        /// By a portal at this place of the arena.
        fn call(&mut self, portal: u64, asid: u16) {
            self.run(map::NUCLEUS_VA, 7, 7);
            self.run(map::CODE_VA + portal, 30, 30);
            self.recorder.touch(map::thread_va(1) + 0x90, true);
            self.enter(asid);
        }

        fn back(&mut self, asid: u16) {
            self.run(map::NUCLEUS_VA, 7, 7);
            self.run(map::CODE_VA + 0x800, 22, 22);
            self.recorder.touch(map::thread_va(1) + 0x90, false);
            self.enter(asid);
        }

        fn boot(&mut self) {
            self.run(0x8000_0000, 5, 5);
            self.run(map::NUCLEUS_VA, 10, 10);
            self.recorder.touch(map::thread_va(1) + 0x190, false);
            self.enter(5);
        }

        fn finish(self) -> Recording {
            let recording = self.recorder.finish(self.counter);
            assert!(recording.is_even(), "{recording:?}");
            Recording::read(&recording.write().unwrap()).unwrap()
        }
    }

    #[test]
    fn every_instruction_counts_once() {
        let mut guest = Guest::new(ALL);
        guest.boot();
        guest.run(0x10000, 4, 4);
        guest.call(0, 6);
        guest.run(0x20000, 2, 2);
        guest.back(5);
        guest.run(0x10004, 3, 3);
        let recording = guest.finish();
        assert_eq!(recording.total, 15 + 4 + 37 + 2 + 29 + 3);
        let legs = |n: usize| (recording.nodes[n].calls, recording.nodes[n].legs, recording.nodes[n].own());
        assert_eq!([legs(0), legs(1)], [(1, 15, 7), (1, 66, 2)]);
        let privileged: u64 = recording.privileged.iter().map(|(_, count)| count).sum();
        assert_eq!(privileged, 15 + 66);
        let events: Vec<_> = recording.events.iter().map(|e| (e.time, e.thread, e.node.index())).collect();
        assert_eq!(events, [(15, 1, 0), (56, 1, 1), (87, 1, 0)]);
    }

    #[test]
    fn a_portal_that_leads_nowhere_has_a_name_of_its_own() {
        let mut guest = Guest::new(ALL);
        guest.boot();
        guest.run(0x10000, 4, 4);
        guest.run(map::NUCLEUS_VA, 7, 7);
        guest.run(map::CODE_VA + 0x40 | Riscv64::LATE, 5, 5);
        guest.run(0x10004, 4, 4);
        let recording = guest.finish();
        let Short { address, times, instructions } = recording.shorts[0];
        assert_eq!((address, times, instructions), (map::CODE_VA + 0x40, 1, 12));
        assert_eq!(recording.nodes[0].short, 12);
    }

    #[test]
    fn what_is_executed_again_counts_once() {
        let mut guest = Guest::new(ALL);
        guest.boot();
        // The third instruction faults.
        guest.run(0x10000, 4, 3);
        guest.call(0, 6);
        guest.run(0x20000, 2, 2);
        guest.back(5);
        guest.run(0x10008, 2, 2);
        assert_eq!(guest.finish().total, 15 + 2 + 37 + 2 + 29 + 2);
    }

    #[test]
    fn an_interrupt_may_come_before_the_first_instruction() {
        let mut guest = Guest::new(ALL);
        guest.boot();
        guest.run(0x10000, 4, 4);
        guest.call(0, 6);
        let leave = guest.recorder.find(&Code {
            address: map::CODE_VA + 0x78,
            bytes: &0x1020_0073_u32.to_le_bytes(),
            length: 1,
            page: &[],
        });
        guest.recorder.begin(leave, guest.counter);
        guest.counter += 1;
        // The interrupt, above the call's frame, and back out of it.
        guest.run(map::NUCLEUS_VA, 7, 7);
        guest.recorder.touch(map::thread_va(1) + 0x1a0, true);
        guest.enter(2);
        guest.run(0x30000, 9, 9);
        guest.run(map::NUCLEUS_VA, 7, 7);
        guest.recorder.touch(map::thread_va(1) + 0x1a0, false);
        guest.enter(6);
        guest.run(0x20000, 2, 2);
        guest.back(5);
        guest.run(0x10004, 3, 3);
        let recording = guest.finish();
        let node = |n: usize| {
            let node = &recording.nodes[n];
            (
                node.parent.map(NodeId::index),
                recording.domains[node.domain.index()].asid,
                node.entry,
                node.own(),
            )
        };
        let begun =
            [(None, 5, 0x10000, 7), (Some(0), 6, 0, 0), (Some(1), 2, 0x30000, 9), (Some(0), 6, 0x20000, 2)];
        assert_eq!([0, 1, 2, 3].map(node), begun);
    }

    #[test]
    fn the_start_of_the_system_can_be_left_out() {
        let mut guest = Guest::new(Scope { start: false, ..ALL });
        guest.boot();
        guest.run(0x10000, 10, 4);
        guest.recorder.reading(guest.counter);
        guest.counter += 6;
        guest.run(0x10020, 5, 5);
        guest.recorder.reading(guest.counter);
        let recording = guest.finish();
        assert_eq!((recording.before, recording.total), (19, 11));
        assert_eq!(recording.readings, [19, 30]);
        assert_eq!(recording.events.len(), 1);
    }

    #[test]
    fn events_are_bounded() {
        let mut guest = Guest::new(ALL);
        guest.boot();
        for _ in 0..3 {
            guest.run(0x10000, 4, 4);
            guest.call(0, 6);
            guest.run(0x20000, 2, 2);
            guest.back(5);
        }
        guest.run(0x10000, 4, 4);
        let recording = guest.finish();
        assert_eq!((recording.events.len(), recording.lost), (3, 4));
    }
}
