//! Random histories of programs that write to all that they may write to, while the idle thread zeroes pages:
//! whatever is mapped anew is zero, or a copy of the parent's.

use crate::windows::*;
use crate::world::*;
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, ThreadId, VirtAddr};
use pebble_vm::Machine;
use proptest::prelude::*;
use std::collections::BTreeMap;

const W: u64 = 4;
const U: u64 = 16;
const FIRST: u64 = 5;

/// Pages of programs as they were seen last: where, and which.
type Seen = BTreeMap<(u16, u64), u64>;

struct History {
    w: World,
    seen: Seen,
}

impl History {
    /// What a living program owns and can read, but for its stacks' copies and what was lent to it: pages,
    /// twice if they are in a buffer.
    fn pages(&self) -> Seen {
        let mut pages = Seen::new();
        for asid in (FIRST as u16..16).filter(|asid| self.w.state(*asid) == 1) {
            let own = |va: &u64, entry: &u64| *va >= map::STARTUP_VA && entry & (U | MARKS) == U;
            let view = self.w.view(asid).into_iter().filter(|(va, entry)| own(va, entry));
            pages.extend(view.map(|(va, entry)| ((asid, va), pa(entry))));
        }
        pages
    }

    fn page(&self, pa: u64) -> Vec<u64> {
        (pa..pa + PAGE).step_by(8).map(|at| self.w.vm.machine.read(at)).collect()
    }

    /// After each step: nobody sees in a page that was not there before what somebody has written.
    fn look(&mut self, what: &str, parent: Option<u16>) {
        self.w.check();
        let pages = self.pages();
        for ((asid, va), pa) in pages.iter().filter(|(at, pa)| self.seen.get(at) != Some(pa)) {
            let copied = parent.and_then(|parent| self.seen.get(&(parent, *va)));
            let wanted = copied.map_or(vec![0; 512], |pa| self.page(*pa));
            assert!(self.page(*pa) == wanted, "{what}: {asid} sees old contents at {va:#x}");
        }
        self.seen = pages;
        // Through windows too, of which one may be open for too long.
        for asid in FIRST as u16..16 {
            if self.w.state(asid) != 1 {
                continue;
            }
            let written = |va: &u64, entry: &u64| *va >= map::STARTUP_VA && entry & (U | W) == U | W;
            for (_, entry) in self.w.view(asid).into_iter().filter(|(va, entry)| written(va, entry)) {
                for at in (pa(entry)..pa(entry) + PAGE).step_by(8) {
                    self.w.vm.machine.write(at, 0x5ec2_e700 | u64::from(asid));
                }
            }
        }
    }

    fn apply(&mut self, (what, d, n): (u8, u64, u64)) -> Option<u16> {
        let pages = (n % 24) as i64 - 8;
        let other = FIRST + n % 6;
        match what {
            0..3 => {
                if let Ok(at) = self.w.vm.sbrk(Asid(d), pages * PAGE as i64) {
                    self.w.touch(d as u16, at, n % 32);
                }
            }
            3 => _ = self.w.vm.buffer(Asid(d), n % 5),
            4 => _ = self.w.vm.buffer_free(Asid(d), VirtAddr(map::BUFFERS_VA + n % 3 * map::BUFFER_STRIDE)),
            5 => _ = self.w.vm.thread_create(Asid(d), 12, VirtAddr(HEAP), 0, 0),
            6 => _ = self.w.vm.thread_free(ThreadId(n % 8)),
            7 if self.w.state(d as u16) == 1 => _ = self.w.vm.domain_kill(Asid(d)),
            // Not as long as threads may return.
            7 if self.w.calls.iter().all(|l| ![l.caller, l.callee].contains(&(d as u16))) => {
                _ = self.w.vm.domain_free(Asid(d));
            }
            8 => _ = program(&mut self.w),
            9 if n % 4 == 0 => {
                let child = self.w.vm.domain_create(0, 400, 12, 8).ok()?;
                let (mut from, sp) = (0, map::stack_top(d as u16, 0));
                while let Ok(next @ 1..) = self.w.vm.fork(Asid(d), Asid(child), VirtAddr(sp), VirtAddr(from))
                {
                    from = next;
                }
                return Some(d as u16);
            }
            9..11 => {
                let at = self.w.page_of(d, n).filter(|at| *at < map::HEAP_END);
                if let Some(at) = at.filter(|_| self.w.state(other as u16) == 1) {
                    let _ = self.w.lend(d as u16, other as u16, b"wo"[(n % 2) as usize], at, 1);
                }
            }
            11 if !self.w.calls.is_empty() => _ = self.w.give_back(self.w.calls.len() - 1),
            _ => self.w.idle(n % 20),
        }
        None
    }
}

fn step() -> impl Strategy<Value = (u8, u64, u64)> {
    (0u8..20, FIRST..FIRST + 6, any::<u64>())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn what_is_mapped_anew_is_zero(steps in proptest::collection::vec(step(), 1..120)) {
        let mut h = History { w: World::new(), seen: Seen::new() };
        for _ in 0..3 {
            program(&mut h.w);
        }
        h.look("programs", None);
        for step in steps {
            let parent = h.apply(step);
            h.look(&format!("{step:?}"), parent);
        }
    }
}
