//! Parking: a thread waits in the scheduler, and holds nothing, until a server wakes it.
//!
//! **Problem.** A server whose entry waits holds a stack of its queue meanwhile: as many clients that wait as
//! there are stacks keep everybody else out. **Strategy.** The entry says that the server *will wake* the
//! thread, and ends with status `WAIT`; the client's library *parks* the thread and calls again when it has
//! been woken. What is noted here is one word a thread, so nobody runs out of anything.
//!
//! **Invariants:**
//! * no wake-up is lost: one that comes before the thread parks is kept, and the next
//!   [`park`](Scheduler::park) returns at once;
//! * a thread is woken by the server that has said so, or by the end of that
//!   ([`domain_abort`](Scheduler::domain_abort)), and by nobody else;
//! * a thread to which nobody has said so does not wait.

use crate::*;

/// For each thread 0, the server that will wake it, or [`WOKEN`].
pub(crate) type Promises = [u16; MAX_THREADS];

const WOKEN: u16 = u16::MAX;

impl<const EDF: bool> Scheduler<EDF> {
    /// The domain `server` will wake the running thread, whose number this is.
    pub fn will_wake(&mut self, server: Asid) -> i64 {
        let me = self.current.head;
        self.promises[me as usize] = server.get() as u8 as u16;
        me.into()
    }

    /// Waits until the thread is woken. `caller` is the domain that called, not 0. 0; `-EINTR`: caught by
    /// [`domain_abort`](Self::domain_abort) or [`thread_abort`](Self::thread_abort); `-EPERM`: no other
    /// thread is ready.
    pub fn park(&mut self, caller: Asid, now: u64) -> Decision {
        let me = self.begin();
        if matches!(self.promises[me as usize], 0 | WOKEN) {
            self.promises[me as usize] = 0;
            return self.decide(me, 0, now);
        }
        if self.doomed.has(me) {
            return self.decide(me, -EINTR, now);
        }
        if self.is_last() {
            return self.decide(me, -EPERM, now);
        }
        self.stop_being_ready(me);
        self.set_waiting(me, PARKED, caller);
        self.decide(me, 0, now)
    }

    /// The domain `server` wakes a thread, if it has said that it will. 0.
    pub fn unpark(&mut self, server: Asid, tid: ThreadId, now: u64) -> Decision {
        let me = self.begin();
        if let Some(t) = self.thread(tid) {
            self.keep_promise(server.get() as u8, t);
        }
        self.decide(me, 0, now)
    }

    /// What the server has said to `t` comes true. Whether it was parked, and is ready now.
    pub(crate) fn keep_promise(&mut self, server: u8, t: u8) -> bool {
        if server == NOBODY || self.promises[t as usize] != server.into() {
            return false;
        }
        let parked = self.state(t) == State::Parked;
        self.promises[t as usize] = if parked { 0 } else { WOKEN };
        if parked {
            self.make_ready(t);
        }
        parked
    }
}
