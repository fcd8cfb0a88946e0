//! What portal code may read and write: stacks in use, fields of records, the current mark.
//!
//! A place is known by the value that leads to it, and holds what was last stored there on this path; what
//! nobody has stored is what it was at the start. Any other place is refused.

use super::{Checked, Checker, Mark, Path, RSP, Reason, Val, Where};
use crate::fault::{TAKEN, Way, record};
use crate::isa::x86_64::decode::Memory;
use crate::spec::Stack;

impl Checker<'_> {
    /// The callee's stack: fresh, or the thread's own there.
    pub(super) fn callee(&self) -> Mark {
        match (self.door.stack, self.c.way) {
            (Stack::New, _) => Mark::Fresh,
            (_, Way::In) => Mark::Current,
            _ => Mark::Linked,
        }
    }

    pub(super) fn mark(&self, val: Val) -> Option<Mark> {
        match val {
            Val::Mark(mark) => Some(mark),
            Val::Field(Mark::Own, record::HOME) => Some(Mark::OwnHome),
            Val::Field(Mark::Fresh | Mark::Linked, record::HOME) => Some(Mark::CalleeHome),
            Val::Field(Mark::Current | Mark::Linked, record::QUEUE) => Some(Mark::Fresh),
            _ => None,
        }
    }

    pub(super) fn place(&self, val: Val, disp: i32) -> Option<(Where, i32)> {
        match val {
            Val::At(place, at) => Some((place, at + disp)),
            Val::Field(mark, record::TOP) if mark == self.callee() => Some((Where::Callee, disp)),
            Val::Field(Mark::Own, record::TOP) => Some((Where::Outer, disp)),
            _ => None,
        }
    }

    pub(super) fn load(&self, path: &Path, memory: Memory) -> Checked<Val> {
        match memory {
            // Not before it is out of reach of signal handlers.
            Memory::Thread(disp)
                if disp == self.c.current && self.c.way == Way::In && path.inside == Some(TAKEN) =>
            {
                Ok(Val::Mark(Mark::Current))
            }
            Memory::Base { base, disp } => {
                let base = path.regs[base as usize];
                if base == Val::Links && disp == i32::from(self.c.link) * 8 {
                    return Ok(Val::Mark(Mark::Linked));
                }
                if let Some(mark) = self.mark(base) {
                    let field = disp + record::BYTES - 1;
                    if !(0..record::BYTES).contains(&field) {
                        return Err(Reason::Memory);
                    }
                    if mark == Mark::OwnHome && field == record::LINKS {
                        return Ok(Val::Links);
                    }
                    let known = path.fields.iter().rev().find(|(f, _)| *f == (mark, field));
                    return Ok(known.map_or(Val::Field(mark, field), |(_, val)| *val));
                }
                match self.place(base, disp) {
                    // The frame by which the caller was entered: the process's stack pointer.
                    Some((Where::Outer, -8)) => Ok(Val::At(Where::Process, 0)),
                    Some(place) => {
                        let known = path.words.iter().rev().find(|(p, _)| *p == place);
                        Ok(known.map_or(Val::Any, |(_, val)| *val))
                    }
                    None => Err(Reason::Memory),
                }
            }
            _ => Err(Reason::Memory),
        }
    }

    pub(super) fn store(&self, path: &mut Path, memory: Memory, val: Val) -> Checked<()> {
        match memory {
            Memory::Thread(disp) if disp == self.c.current => {
                let twice = path.current.is_some() && !path.called;
                if path.inside != Some(TAKEN) || twice {
                    return Err(Reason::Inside);
                }
                path.current = Some(self.mark(val).ok_or(Reason::Memory)?);
                path.stale = false;
                Ok(())
            }
            Memory::Base { base, disp } => {
                let base = path.regs[base as usize];
                if let Some(mark) = self.mark(base) {
                    let field = disp + record::BYTES - 1;
                    let allowed = matches!((mark, field), (Mark::Own, record::TOP | record::DATA))
                        || (field == record::QUEUE && mark != Mark::Own && mark != Mark::OwnHome);
                    if !allowed {
                        return Err(Reason::Memory);
                    }
                    return path.fields.try_push(((mark, field), val)).map_err(|_| Reason::Memory);
                }
                let place = self.place(base, disp).filter(|(place, at)| *place != Where::Outer && *at < 0);
                let place = place.ok_or(Reason::Memory)?;
                path.words.try_push((place, val)).map_err(|_| Reason::Memory)
            }
            _ => Err(Reason::Memory),
        }
    }

    pub(super) fn push(&self, path: &mut Path, val: Val) -> Checked<()> {
        let Val::At(place, at) = path.regs[RSP] else { return Err(Reason::StackPointer) };
        path.regs[RSP] = Val::At(place, at - 8);
        path.words.try_push(((place, at - 8), val)).map_err(|_| Reason::Memory)
    }

    pub(super) fn pop(&self, path: &mut Path) -> Checked<Val> {
        let val = self.load(path, Memory::Base { base: RSP as u8, disp: 0 })?;
        let Val::At(place, at) = path.regs[RSP] else { return Err(Reason::StackPointer) };
        path.regs[RSP] = Val::At(place, at + 8);
        Ok(val)
    }
}
