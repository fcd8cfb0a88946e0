//! Ways out of a portal: what must hold where the callee begins, where the caller goes on, and where the
//! runtime finds a stack.

use super::{Checked, Checker, Mark, Path, RBP, RSP, Reason, Val, Where};
use crate::fault::{ARGS, Door, PRESERVED, REENTERED, TAKEN, Way, record};
use crate::isa::x86_64::decode::Memory;
use crate::spec::{Stack, State as Kept};

impl Checker<'_> {
    /// All that must hold where the callee begins.
    pub(super) fn entry(&self, path: &Path) -> Checked<()> {
        let word =
            |at: i32| path.words.iter().rev().find(|(p, _)| *p == (Where::Callee, at)).map(|(_, v)| *v);
        let caller = |val: Option<Val>| matches!(val, Some(Val::At(Where::Caller, _)));
        let callee = self.callee();
        if path.nested != (self.c.way != Way::In) {
            return Err(Reason::Depth);
        }
        match self.c.way {
            Way::In => {
                let framed = path.regs[RSP] == Val::At(Where::Callee, -8) && caller(word(-8));
                if !framed {
                    return Err(Reason::Frame);
                }
                if path.gs != Some(Way::In) {
                    return Err(Reason::SegmentBase);
                }
            }
            Way::Across => {
                let host = word(-8) == Some(Val::At(Where::Process, 0));
                if path.regs[RSP] != Val::At(Where::Callee, -16) || !host || !caller(word(-16)) {
                    return Err(Reason::Frame);
                }
                if path.gs != Some(Way::In) || path.current != Some(Mark::Linked) || !path.alive {
                    return Err(Reason::SegmentBase);
                }
                self.published(path)?;
            }
            Way::Out => {
                if !matches!(path.regs[RSP], Val::At(Where::Process, at) if at % 16 == 0) {
                    return Err(Reason::StackPointer);
                }
                if !path.room {
                    return Err(Reason::Room);
                }
                self.published(path)?;
            }
        }
        if path.inside != Some(if self.c.way == Way::Out { 0 } else { TAKEN }) {
            return Err(Reason::Inside);
        }
        if self.c.way != Way::Out && path.regs[RBP] != Val::Field(callee, record::DATA) {
            return Err(Reason::DataStack);
        }
        if self.c.caller_control && path.plain != [true; 2] {
            return Err(Reason::Control);
        }
        if self.c.caller_x87 && !(path.exceptions && path.emptied) {
            return Err(Reason::Control);
        }
        if self.c.hide && self.c.x87 && self.c.way != Way::Out && !(path.exceptions && path.zeroed) {
            return Err(Reason::Control);
        }
        self.arguments(path)?;
        if (self.door.state == Kept::Full || self.c.hide) && self.c.way != Way::Out {
            if !self.scrubbed(path) {
                return Err(Reason::Vectors);
            }
            let open = |r: u8| matches!(r as usize, RSP | RBP) || ARGS[..self.door.args.len()].contains(&r);
            if let Some(r) = (0..16).find(|r| !open(*r) && path.regs[*r as usize] != Val::Const(0)) {
                return Err(Reason::Hidden(r));
            }
        }
        Ok(())
    }

    /// The caller's record says where a call back in begins; what it has said before lies there.
    fn published(&self, path: &Path) -> Checked<()> {
        let field = |f: i32| path.fields.iter().rev().find(|(p, _)| *p == (Mark::Own, f)).map(|(_, v)| *v);
        let Some(Val::At(Where::Caller, at)) = field(record::TOP) else { return Err(Reason::Record) };
        let before = |at: i32, f: i32| {
            let word = path.words.iter().rev().find(|(p, _)| *p == (Where::Caller, at));
            word.is_some_and(|(_, v)| *v == Val::Field(Mark::Own, f))
        };
        let data = field(record::DATA) == Some(Val::Initial(RBP as u8));
        let kept = before(at, record::DATA) && before(at + 8, record::TOP);
        if data && kept { Ok(()) } else { Err(Reason::Record) }
    }

    fn arguments(&self, path: &Path) -> Checked<()> {
        let mut word = 0;
        for (i, letter) in self.door.args.iter().enumerate() {
            let holds = path.regs[ARGS[i] as usize];
            let own = match self.c.way {
                Way::In => Mark::Current,
                _ => Mark::Own,
            };
            let right = if Door::is_word(*letter) {
                word += 1;
                match self.door.lends() {
                    true => holds == Val::Lent(i as u8),
                    false => holds == Val::Initial(ARGS[word - 1]),
                }
            } else {
                let plain = match letter {
                    b'c' => holds == Val::Const(self.c.constant),
                    b'=' => holds == Val::Const(self.c.index.into()),
                    b'a' if self.c.way == Way::Out => holds == Val::Field(Mark::Own, record::DOMAIN),
                    b'a' => holds == Val::Const(self.c.caller.into()),
                    b'd' => {
                        holds == Val::Field(own, record::THREAD_ID)
                            || holds == Val::Field(Mark::Fresh, record::THREAD_ID)
                    }
                    b'h' => holds == Val::Time,
                    _ => holds == Val::Const(0),
                };
                plain || (self.door.lends() && holds == Val::Lent(i as u8))
            };
            if !right {
                return Err(Reason::Argument(i as u8));
            }
        }
        Ok(())
    }

    /// The stack that was taken is in the queue, what was lent is given back, and the frame is gone.
    pub(super) fn returned(&self, path: &Path) -> bool {
        let queued = |v: &((Mark, i32), Val)| v.0.1 == record::QUEUE && self.mark(v.1) == Some(Mark::Fresh);
        let fresh = self.door.stack == Stack::New && self.c.way != Way::Out;
        (!self.door.lends() || path.given_back)
            && (!path.called || path.cleared)
            && (path.called || path.lent == Some(false))
            && (!fresh || path.fields.iter().any(queued))
    }

    /// A call that may not be made: nothing has happened but for the status.
    fn refused(&self, path: &Path) -> Checked<()> {
        let same = PRESERVED.into_iter().chain([RBP as u8]).all(|r| path.regs[r as usize] == Val::Initial(r));
        let quiet = path.regs[RSP] == Val::At(Where::Caller, 0)
            && path.words.is_empty()
            && path.fields.is_empty()
            && path.current.is_none();
        let told = path.regs[0] == Val::Const(0) && path.regs[2] == Val::Const(REENTERED.into());
        if same && quiet && told { Ok(()) } else { Err(Reason::Changed) }
    }

    /// A fault on the account of the domain that calls out: as if the portal had not begun, which it may do
    /// once more.
    pub(super) fn fault(&self, path: &Path) -> Checked<()> {
        let quiet = path.regs[RSP] == Val::At(Where::Caller, 0)
            && path.fields.is_empty()
            && path.current.is_none()
            && path.inside == Some(TAKEN);
        if self.c.way != Way::In && !path.called && !path.nested && quiet && path.regs[10] == Val::Start {
            Ok(())
        } else {
            Err(Reason::Changed)
        }
    }

    /// All that must hold where the caller goes on.
    pub(super) fn leave(&self, path: &Path) -> Checked<()> {
        if self.c.way == Way::In && path.inside.is_none() {
            return self.refused(path);
        }
        if path.inside != Some(if self.c.way == Way::In { 0 } else { TAKEN }) {
            return Err(Reason::Inside);
        }
        let (way, full) = (self.c.way, self.door.state == Kept::Full);
        let failed = path.lent == Some(false);
        if !path.called && !failed {
            return Err(Reason::Call);
        }
        if path.regs[RSP] != Val::At(Where::Caller, 0) && path.regs[RSP] != Val::Field(Mark::Own, record::TOP)
        {
            return Err(Reason::StackPointer);
        }
        let kept = |r: usize| path.regs[r] == Val::Initial(r as u8);
        let preserved = PRESERVED.into_iter().chain((way != Way::Out).then_some(RBP as u8));
        if let Some(r) = preserved.into_iter().find(|r| !kept(*r as usize)) {
            return Err(Reason::Preserved(r));
        }
        let results = match failed {
            true => path.regs[0] == Val::Const(0) || path.regs[0] == Val::Any,
            false => {
                matches!(path.regs[0], Val::Result(0) | Val::Any) && self.door.lends()
                    || path.regs[0] == Val::Result(0)
            }
        };
        let status = match path.regs[2] {
            Val::Const(0) => !failed,
            Val::LendStatus => failed,
            _ => false,
        };
        if !results {
            return Err(Reason::Result);
        }
        if !status {
            return Err(Reason::Status);
        }
        if way != Way::Out && path.called && !path.cleared {
            return Err(Reason::Outstanding);
        }
        if self.door.lends() && !path.given_back {
            return Err(Reason::Call);
        }
        if path.nested {
            return Err(Reason::Depth);
        }
        if way != Way::In {
            self.unpublished(path)?;
            if path.gs != Some(Way::Out) || path.current.is_some_and(|m| m != Mark::OwnHome) || path.stale {
                return Err(Reason::SegmentBase);
            }
        }
        let fresh = self.door.stack == Stack::New && way != Way::Out;
        let queued = |v: &((Mark, i32), Val)| v.0.1 == record::QUEUE && self.mark(v.1) == Some(Mark::Fresh);
        if fresh && !path.fields.iter().any(queued) {
            return Err(Reason::Queue);
        }
        if (self.c.control && way != Way::Out || self.c.caller_control) && !path.controls {
            return Err(Reason::Control);
        }
        if self.c.x87 && way != Way::Out && path.called && !(path.exceptions && path.emptied) {
            return Err(Reason::Control);
        }
        let left = self.c.hide && self.c.caller_x87 && (way == Way::Out || way == Way::Across && self.c.x87);
        if left && path.called && !(path.exceptions && path.zeroed) {
            return Err(Reason::Control);
        }
        if full || (self.c.hide && way != Way::In) {
            if !self.scrubbed(path) {
                return Err(Reason::Vectors);
            }
            let hidden = [1u8, 6, 7, 8, 9, 10, 11];
            if let Some(r) = hidden.into_iter().find(|r| path.regs[*r as usize] != Val::Const(0)) {
                return Err(Reason::Hidden(r));
            }
        }
        Ok(())
    }

    fn unpublished(&self, path: &Path) -> Checked<()> {
        let back = |f: i32| {
            let last = path.fields.iter().rev().find(|(p, _)| *p == (Mark::Own, f));
            last.is_none_or(|(_, v)| *v == Val::Field(Mark::Own, f))
        };
        if back(record::TOP) && back(record::DATA) { Ok(()) } else { Err(Reason::Record) }
    }

    /// To the runtime, for a stack: as if the portal had not begun.
    pub(super) fn jump(&self, path: &Path, at: Memory) -> Checked<()> {
        if self.pool(at)? != self.c.no_stack || path.called || self.c.way == Way::Out {
            return Err(Reason::Call);
        }
        let told = match self.c.way {
            Way::In => path.regs[11] == Val::Const(self.c.callee_slot.into()),
            _ => path.regs[11] == Val::Mark(Mark::Own) && path.regs[0] == Val::Const(self.c.link.into()),
        };
        let same = ARGS
            .into_iter()
            .chain(PRESERVED)
            .chain([RBP as u8])
            .all(|r| path.regs[r as usize] == Val::Initial(r));
        // Across, the runtime makes the caller's home current again.
        let current = path.current.is_none() || path.current == Some(Mark::Linked);
        let quiet = path.regs[RSP] == Val::At(Where::Caller, 0)
            && path.fields.is_empty()
            && current
            && !path.nested
            && path.inside == Some(TAKEN);
        if told && same && quiet && path.regs[10] == Val::Start { Ok(()) } else { Err(Reason::Changed) }
    }
}
