//! Threads: a block, a stack, and the frame through which the scheduler's first switch starts them.

use crate::space::leaf_slot;
use crate::stacks::IMAGE_STACK;
use crate::{Answer, Machine, RESERVE_THREADS, State, Thread, Vm};
use core::num::NonZeroU16;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{self, PAGE};
use pebble_abi::share;
use pebble_abi::words::{Asid, ThreadId, VirtAddr};
use pebble_arch::{self as arch, Arch, Leaf};

/// Slot of a stack that stays until its domain dies.
pub(crate) const NO_STACK: u8 = 0xff;

/// What the scheduler must be told of a new thread, whose block is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    pub tid: u16,
    pub priority: u8,
    pub home: u16,
    /// Its family's number, or 0.
    pub family: u8,
}

impl<M: Machine> Vm<M> {
    /// A further thread of a domain, at its own request. `priority` 0: `inherited`, that of the calling
    /// thread. None is above the domain's.
    pub fn thread_create(
        &mut self,
        home: Asid,
        inherited: u64,
        VirtAddr(entry): VirtAddr,
        argument: u64,
        priority: u64,
    ) -> Result<Start, Errno> {
        let home = self.alive(home)?;
        let most = u64::from(self.domain(home).priority);
        // Nor is a program's below: preempted inside a server by its own siblings, it would hold the server's
        // lock for good.
        let least = if self.domain(home).boot { 0 } else { most };
        let priority = if priority == 0 { inherited.clamp(least, most) } else { priority };
        if !(least..=most).contains(&priority) {
            return Err(errno::EPERM);
        }
        self.thread(home, entry, argument, priority as u8, false)
    }

    /// A thread in a domain that somebody else has made. `priority` 0: the domain's.
    pub fn thread_spawn(
        &mut self,
        home: Asid,
        VirtAddr(entry): VirtAddr,
        argument: u64,
        priority: u64,
    ) -> Result<Start, Errno> {
        let home = self.program(home)?;
        let most = u64::from(self.domain(home).priority);
        if priority > most {
            return Err(errno::EPERM);
        }
        let priority = if priority == 0 { most } else { priority };
        self.thread(home, entry, argument, priority as u8, true)
    }

    fn thread(
        &mut self,
        home: u16,
        entry: u64,
        argument: u64,
        priority: u8,
        first: bool,
    ) -> Result<Start, Errno> {
        let number = self.thread_number(home, entry)?;
        let (slot, sp) = self.new_stack(home, IMAGE_STACK, first)?;
        let thread = self.thread_on(home, number, [entry, argument, sp], priority, slot);
        if thread.is_err() {
            self.drop_stack(home, slot);
        }
        thread
    }

    /// A free one, if the domain may have a further thread.
    pub(crate) fn thread_number(&self, home: u16, entry: u64) -> Result<usize, Errno> {
        let d = self.domain(home);
        if !(1..map::USER_END).contains(&entry) {
            return Err(errno::EFAULT);
        }
        let reserve = if d.boot { 0 } else { RESERVE_THREADS };
        let (mut busy, mut its) = (0, 0);
        for other in self.numbers().map(|asid| self.domain(asid)) {
            busy += usize::from(other.threads);
            its += if other.family == d.family { usize::from(other.threads) } else { 0 };
        }
        if d.threads >= d.thread_limit || busy + reserve >= map::MAX_THREADS {
            return Err(errno::EAGAIN);
        }
        share::THREADS.grant(d.family.into(), its, busy, 1)?;
        let word = self.busy.iter().position(|bits| *bits != u64::MAX).ok_or(errno::EAGAIN)?;
        Ok(word * 64 + self.busy[word].trailing_ones() as usize)
    }

    /// A thread with a number that is [free](Self::thread_number), on a stack that exists.
    pub(crate) fn thread_on(
        &mut self,
        home: u16,
        n: usize,
        start: [u64; 3],
        priority: u8,
        slot: u8,
    ) -> Result<Start, Errno> {
        let block = self.block(home, n as u16)?;
        let (code, d) = (self.common()?.code, *self.domain(home));
        let [entry, argument, stack] = start;
        let start = arch::Start {
            tid: n as u16,
            home,
            root: d.root(),
            float: d.float,
            entry,
            argument,
            stack,
            thread_end: code.thread_end,
            trap_return: code.trap_return[usize::from(d.float)],
        };
        for (at, word) in start.words::<M::Arch>() {
            self.machine.write(block + at, word);
        }
        self.threads[n] = Thread { home: NonZeroU16::new(home), slot, block: true };
        self.busy[n / 64] |= 1 << (n % 64);
        self.domain_mut(home).threads += 1;
        Ok(Start { tid: n as u16, priority, home, family: self.domain(home).family })
    }

    /// The thread's block, zeroed and charged to its home. One that was never there before becomes visible to
    /// the nucleus and the portal manager: it was no valid translation so far, so there is nothing to flush
    /// but what hardware may remember of invalid ones, which this board's does not.
    fn block(&mut self, home: u16, tid: u16) -> Answer {
        let slot = leaf_slot(self.common()?.kernel_l0[0], map::thread_va(tid));
        if self.threads[tid as usize].block {
            if self.charge(home) >= self.domain(home).limit.into() {
                return Err(errno::ENOMEM);
            }
            self.charge_more(home, 1);
            let block = self.block_page(slot, tid);
            self.machine.zero_page(block);
            return Ok(block);
        }
        let window = map::PM_THREADS_VA + u64::from(tid) * PAGE;
        if let Some(portal_manager) = self.living(self.portal_manager) {
            self.make_l0(portal_manager, window)?;
        }
        let block = self.take(home)?;
        self.machine.write(slot, M::Arch::leaf(block, Leaf::NUCLEUS_RW));
        self.window(self.portal_manager, window, block)?;
        Ok(block)
    }

    /// The page of a block that there is; `slot`: its entry, where tables say.
    pub(crate) fn block_page(&self, slot: u64, tid: u16) -> u64 {
        let fixed = M::Arch::fixed(map::thread_va(tid));
        fixed.unwrap_or_else(|| M::Arch::address(self.machine.read(slot)))
    }

    /// A thread that has exited, or never started: its number and block may be used again, its stack too if
    /// its home lives. Answers with its home.
    pub fn thread_free(&mut self, tid: ThreadId) -> Answer {
        let n = tid.below(map::MAX_THREADS).ok_or(errno::ESRCH)?;
        let Thread { home, slot, .. } = self.threads[n];
        let home = home.ok_or(errno::ESRCH)?.get();
        self.threads[n].home = None;
        self.busy[n / 64] &= !(1 << (n % 64));
        if self.domain(home).state == State::Alive && slot != NO_STACK {
            self.drop_stack(home, slot);
        }
        let d = self.domain_mut(home);
        d.threads = d.threads.saturating_sub(1);
        self.charge_more(home, -1);
        Ok(home.into())
    }

    /// Which threads have a block, by number.
    pub fn thread_bits(&self) -> [u64; 4] {
        self.busy
    }
}
