//! Which thread runs, and in which domain, for whom.
//!
//! Problem: the plug-in sees no register. Strategy: it sees the addresses of what privileged code loads and
//! stores, and that is enough. Invocation stacks are in thread blocks, which have fixed addresses, and only
//! privileged code touches them there: so the page that was touched last is that of the running thread. The
//! address space that portal code enters has been loaded from memory just before. How it is entered, the
//! touched part of the stack tells:
//!
//! * what was stored there is a new frame: a call;
//! * if there were loads only, the highest of them is the top word, whose frame is being undone: a return;
//! * if there was neither, the frame stays, and another domain takes the place of the last: a tail portal.
//!
//! An interrupt may come before the first instruction of user mode. Then it is not known yet where a call
//! leads: the domain is there, as if it had been entered at address 0, until the interrupt is over.
//!
//! A thread of which nothing is known comes out of a frame that somebody else has made: it begins.
//!
//! Numbers of domains are used again. Another program is there when the page by which it is entered has other
//! contents than before.

use std::collections::HashMap;

use pebble_abi::{map, thread};

use crate::{Domain, DomainId, NodeId};

/// Ways through the system that are told apart. What leads further is counted where it comes from.
const MOST_NODES: usize = 1 << 16;

/// A node, without what it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub parent: Option<NodeId>,
    pub domain: DomainId,
    pub entry: u64,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    /// Address of its top word; 0: where the thread has begun.
    top: u64,
    node: NodeId,
}

/// How user mode goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Where it was.
    Stayed,
    /// In the domain that was called, or in which the thread begins.
    Entered(NodeId),
    /// In the caller's; the domain that was left.
    Left(NodeId),
}

/// The first code after a trap.
#[derive(Clone, Copy, Debug)]
pub struct Landing {
    pub address: u64,
    /// Tells the contents of its page from others.
    pub page: u64,
}

#[derive(Default)]
pub struct Flow {
    places: Vec<Place>,
    index: HashMap<Place, NodeId>,
    domains: Vec<Domain>,
    /// By the domain's number.
    alive: HashMap<u16, DomainId>,
    pages: HashMap<(DomainId, u64), u64>,
    stacks: HashMap<u16, Vec<Frame>>,
    thread: Option<u16>,
    /// Of what was touched since the last trap, the highest addresses.
    stored: Option<u64>,
    loaded: Option<u64>,
    space: Option<u16>,
}

impl Flow {
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    pub fn domains(&self) -> &[Domain] {
        &self.domains
    }

    pub fn thread(&self) -> Option<u16> {
        self.thread
    }

    /// Where the running thread is.
    pub fn node(&self) -> Option<NodeId> {
        Some(self.stacks.get(&self.thread?)?.last()?.node)
    }

    /// User mode is left.
    pub fn trap(&mut self) {
        (self.stored, self.loaded, self.space) = (None, None, None);
    }

    /// Privileged code has touched a word.
    pub fn touch(&mut self, address: u64, store: bool) {
        let threads = map::THREADS_VA..map::THREADS_VA + map::MAX_THREADS as u64 * map::PAGE;
        if !threads.contains(&address) {
            return;
        }
        let thread = ((address - map::THREADS_VA) / map::PAGE) as u16;
        if self.thread.replace(thread) != Some(thread) {
            (self.stored, self.loaded) = (None, None);
        }
        // Below are registers of threads that do not run.
        if address % map::PAGE >= thread::FRAMES {
            let highest = if store { &mut self.stored } else { &mut self.loaded };
            *highest = (*highest).max(Some(address));
        }
    }

    /// Privileged code has entered the address space of a domain.
    pub fn enter(&mut self, asid: u16) {
        self.space = Some(asid);
    }

    /// User mode goes on; `None`: it would, but for an interrupt.
    pub fn land(&mut self, at: Option<Landing>) -> Step {
        let (Some(asid), Some(thread)) = (self.space.take(), self.thread) else { return Step::Stayed };
        let mut stack = self.stacks.remove(&thread).unwrap_or_default();
        let step = match (self.stored, self.loaded) {
            (Some(top), _) => {
                stack.retain(|frame| frame.top < top);
                self.push(&mut stack, asid, at, top)
            }
            (None, Some(top)) => self.back(&mut stack, asid, at, top),
            (None, None) => {
                let top = stack.pop().map_or(0, |frame| frame.top);
                self.push(&mut stack, asid, at, top)
            }
        };
        self.stacks.insert(thread, stack);
        step
    }

    fn push(&mut self, stack: &mut Vec<Frame>, asid: u16, at: Option<Landing>, top: u64) -> Step {
        let domain = self.domain(asid, at);
        let parent = stack.last().map(|frame| frame.node);
        let node = self.node_at(Place { parent, domain, entry: at.map_or(0, |at| at.address) });
        // Whatever is below is where it has begun, for all that is known.
        stack.push(Frame { top: if parent.is_some() { top } else { 0 }, node });
        Step::Entered(node)
    }

    fn back(&mut self, stack: &mut Vec<Frame>, asid: u16, at: Option<Landing>, top: u64) -> Step {
        let left = stack.last().filter(|frame| frame.top >= top).map(|frame| frame.node);
        stack.retain(|frame| frame.top < top);
        let below = stack.last().map(|frame| self.places[frame.node.index()]);
        match (left, below) {
            (Some(left), Some(below)) if self.domains[below.domain.index()].asid == asid => {
                if let Some(at) = at.filter(|_| below.entry == 0) {
                    // The interrupt is over before which it could not begin.
                    let top = stack.pop().map_or(0, |frame| frame.top);
                    self.push(stack, asid, Some(at), top);
                }
                Step::Left(left)
            }
            _ => {
                stack.clear();
                self.push(stack, asid, at, 0)
            }
        }
    }

    fn domain(&mut self, asid: u16, at: Option<Landing>) -> DomainId {
        let known = self.alive.get(&asid).copied();
        let Some(at) = at else {
            return known.unwrap_or_else(|| self.new_domain(asid, 0));
        };
        let page = at.address / map::PAGE;
        let same = |id: &DomainId| self.pages.get(&(*id, page)).is_none_or(|known| *known == at.page);
        let same = known.filter(same);
        let id = same.unwrap_or_else(|| {
            let before = known.map_or(0, |id| self.domains[id.index()].before + 1);
            self.new_domain(asid, before)
        });
        self.pages.insert((id, page), at.page);
        id
    }

    fn new_domain(&mut self, asid: u16, before: u32) -> DomainId {
        let id = DomainId::new(self.domains.len());
        self.domains.push(Domain { asid, before });
        self.alive.insert(asid, id);
        id
    }

    fn node_at(&mut self, place: Place) -> NodeId {
        if let Some(node) = self.index.get(&place) {
            return *node;
        }
        if let Some(parent) = place.parent.filter(|_| self.places.len() >= MOST_NODES) {
            return parent;
        }
        let node = NodeId::new(self.places.len());
        self.places.push(place);
        self.index.insert(place, node);
        node
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Address of a word in a thread's block.
    fn word(thread: u16, offset: u64) -> u64 {
        map::thread_va(thread) + offset
    }

    fn at(address: u64) -> Landing {
        Landing { address, page: 1 }
    }

    struct Run(Flow);

    impl Run {
        /// A thread begins: its frame was made by somebody else.
        fn begin(&mut self, thread: u16, asid: u16, landing: Landing) -> Step {
            self.0.trap();
            self.0.touch(word(thread, thread::SAVED_TOP), false);
            self.0.touch(word(thread, 0x190), false);
            self.0.enter(asid);
            self.0.land(Some(landing))
        }

        fn call(&mut self, thread: u16, top: u64, asid: u16, address: u64) -> Step {
            self.0.trap();
            self.0.touch(word(thread, top - 8), true);
            self.0.touch(word(thread, top), true);
            self.0.enter(asid);
            self.0.land(Some(at(address)))
        }

        fn back(&mut self, thread: u16, top: u64, asid: u16) -> Step {
            self.0.trap();
            self.0.touch(word(thread, top), false);
            self.0.touch(word(thread, top - 8), false);
            self.0.enter(asid);
            self.0.land(Some(at(0x10004)))
        }

        fn asids(&self) -> Vec<u16> {
            let mut all = Vec::new();
            let mut node = self.0.node();
            while let Some(id) = node {
                let place = self.0.places[id.index()];
                all.push(self.0.domains[place.domain.index()].asid);
                node = place.parent;
            }
            all.reverse();
            all
        }
    }

    #[test]
    fn a_thread_is_followed_through_calls_and_back() {
        let mut run = Run(Flow::default());
        assert!(matches!(run.begin(1, 5, at(0x10000)), Step::Entered(_)));
        let first = run.call(1, 0x90, 6, 0x20000);
        assert!(matches!(first, Step::Entered(_)));
        run.call(1, 0xa0, 7, 0x30000);
        assert_eq!(run.asids(), [5, 6, 7]);
        assert!(matches!(run.back(1, 0xa0, 6), Step::Left(_)));
        let Step::Entered(first) = first else { panic!() };
        assert_eq!(run.back(1, 0x90, 5), Step::Left(first));
        assert_eq!(run.asids(), [5]);
        // The same once more is the same node.
        assert_eq!(run.call(1, 0x90, 6, 0x20000), Step::Entered(first));
        // What is settled on the way is no step.
        run.0.trap();
        assert_eq!(run.0.land(Some(at(0x20004))), Step::Stayed);
    }

    #[test]
    fn a_tail_portal_takes_the_place_of_the_last() {
        let mut run = Run(Flow::default());
        run.begin(1, 5, at(0x10000));
        run.call(1, 0x190, 2, 0x20000);
        run.0.trap();
        run.0.enter(3);
        run.0.land(Some(at(0x30000)));
        assert_eq!(run.asids(), [5, 3]);
        assert!(matches!(run.back(1, 0x190, 5), Step::Left(_)));
    }

    #[test]
    fn threads_are_switched_in_the_scheduler() {
        let mut run = Run(Flow::default());
        run.begin(1, 5, at(0x10000));
        run.begin(2, 6, at(0x10000));
        run.call(2, 0x90, 3, 0x20000);
        // From there: thread 2's registers are stored, thread 1's loaded, and its frame undone.
        run.0.trap();
        run.0.touch(word(2, thread::SAVED_REGS), true);
        run.begin(1, 5, at(0x10008));
        assert_eq!(run.asids(), [5]);
        run.0.trap();
        run.0.touch(word(1, thread::SAVED_REGS), true);
        assert!(matches!(run.back(2, 0x90, 6), Step::Left(_)));
        assert_eq!(run.asids(), [6]);
    }

    #[test]
    fn a_number_that_is_used_again_is_another_domain() {
        let mut run = Run(Flow::default());
        run.begin(1, 5, at(0x10000));
        run.begin(2, 5, at(0x10000));
        assert_eq!(run.0.domains().len(), 1);
        run.begin(1, 5, Landing { address: 0x10000, page: 2 });
        assert_eq!(run.0.domains()[1], Domain { asid: 5, before: 1 });
        // Whoever had the number of the thread before, and was deep in calls.
        run.call(1, 0x90, 3, 0x20000);
        run.begin(1, 6, at(0x10000));
        assert_eq!(run.asids(), [6]);
    }

    #[test]
    fn ways_without_end_are_bounded() {
        let mut run = Run(Flow::default());
        run.begin(1, 5, at(0x10000));
        for n in 0..2 * MOST_NODES as u64 {
            run.call(1, 0x90, 6, 0x20000 + n);
        }
        assert_eq!(run.0.places().len(), MOST_NODES);
    }
}
