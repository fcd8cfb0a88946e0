//! For whom a call is made: found in the calling thread's invocation stack.
//!
//! From the caller downwards, whoever was entered by its own child in a call of a portal on behalf acts for that
//! child ([`crate::interposition`]). Who passes a call on is not who made it.

use crate::Machine;
use crate::frames::{self, Current};
use crate::manager::{Manager, is};
use crate::unwind::Leg;
use pebble_abi::errno::Errno;
use pebble_arch::Arch;

/// For whom a call is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subject {
    pub domain: u16,
    /// Who called the subject, whoever passed that on; or 0.
    pub origin: u16,
    /// Of the thread's frame by which the subject left.
    pub base: u64,
    /// The domain that made the call itself: the outermost controller, if the subject is another.
    pub caller: u16,
}

impl<A: Arch> Manager<A> {
    /// The subject of the call that the thread's top frame but `skip` made. `lax`: whatever portal was used,
    /// a controller that serves a child acts for it.
    pub fn subject(&self, machine: &impl Machine, current: Current, skip: usize, lax: bool) -> Subject {
        let mut subject = Subject::default();
        let (mut depth, mut further, mut client) = (0, true, None::<Leg>);
        frames::any::<A>(machine, current.tid, current, self.code.thread_end, |f| {
            depth += 1;
            if depth <= skip {
                return false;
            }
            if let Some(above) = client {
                // Who passes the call on is not who made it.
                client = self.passes(f, above).then(|| Leg::of(f));
                subject.origin = client.map_or(subject.origin, |leg| leg.domain);
                return client.is_none();
            }
            let first = depth == skip + 1;
            let child = self.controller(f.caller) == Some(f.callee);
            if first {
                subject.caller = f.caller;
            } else if !further || !child || f.callee != subject.domain {
                client = (f.callee == subject.domain).then(|| Leg::of(f));
                subject.origin = client.map_or(0, |leg| leg.domain);
                return client.is_none();
            }
            (subject.domain, subject.base) = (f.caller, f.base);
            further = lax || self.on_behalf(f.caller, f.index);
            false
        });
        subject
    }

    /// Whom the call is for that the caller was given, as far down as controllers serve children, and who
    /// made it. What the process server does for somebody is that one's.
    pub fn whose(&self, machine: &impl Machine, current: Current) -> Subject {
        let direct = self.subject(machine, current, 1, true);
        let deputed = if is(self.process, direct.caller) {
            self.subject(machine, current, 2, true)
        } else {
            Subject::default()
        };
        if deputed.domain != 0 { deputed } else { direct }
    }

    /// The semaphore whose P the subject has at this index; its outermost controller has the portal itself.
    pub fn semaphore_of(&mut self, subject: Subject, index: u64) -> Result<u16, Errno> {
        self.held(subject.domain, index)?;
        self.semaphore_at(subject.caller.into(), index)
    }
}
