//! What words of memory hold, and which may be written: the frame, the pool, those of the connection.

use super::Reason;
use super::leg::{MAX_FRAME, Verifier};
use super::machine::Machine;
use super::state::{State, done};
use super::value::*;
use super::window::fact;
use crate::hardware::Shape;
use pebble_abi::thread;

impl<M: Machine> Verifier<'_, M> {
    /// What a double word at `base + imm` holds, if it may be read.
    #[inline(always)]
    pub(super) fn load(&mut self, s: &State, base: Value, imm: i64) -> Option<Value> {
        let Value(kind, n) = base;
        if kind != Kind::Top {
            return self.load_elsewhere(s, base, imm);
        }
        let offset = i64::from(n) + imm;
        if offset == 0 {
            return Some(Value(Kind::ReturnCode, 0));
        }
        self.kept(s, frame_word(offset)?)
    }

    /// What this frame word holds, if the call leg has written it.
    #[inline(always)]
    pub(super) fn kept(&self, s: &State, word: usize) -> Option<Value> {
        s.stored.has(word).then(|| self.room.frame.get(word))
    }

    /// Whatever lies outside the frame.
    #[inline(never)]
    fn load_elsewhere(&mut self, s: &State, base: Value, imm: i64) -> Option<Value> {
        let Value(kind, n) = base;
        let offset = i64::from(n) + imm;
        match kind {
            Kind::Code => {
                let at = usize::try_from(offset).ok().filter(|at| at % 8 == 0)?;
                // The caller's address space lies before the return leg.
                if self.returning && self.pushed.is_some_and(|pushed| pushed.ret_at == at + 16) {
                    return Some(Value(Kind::Pool, at as i32));
                }
                let (first, last) = self.pool.unwrap_or((at, at));
                self.pool = Some((first.min(at), last.max(at)));
                Some(Value(Kind::Pool, at as i32))
            }
            Kind::Const => self.load_fixed(s, base, imm),
            Kind::Pool => self.load_shared(s, self.double_word(n as usize)?.wrapping_add_signed(imm)),
            Kind::Head if !self.returning && imm == 0 => Some(Value(Kind::HeadNext, 0)),
            Kind::Desc if !self.returning => match imm {
                0 => Some(Value(Kind::DescNext, 0)),
                8 => Some(Value(Kind::DescStack, 0)),
                _ => None,
            },
            Kind::NextBlock if imm == thread::SAVED_TOP as i64 => Some(Value(Kind::NextTop, 0)),
            Kind::NextBlock => {
                let x = *M::REGISTERS.in_block.get(block_word(imm)?)?;
                Some(Value(Kind::NextRegister, i32::from(x)))
            }
            Kind::ReturnCode if n == 0 && imm == -8 => Some(Value(Kind::Description, 0)),
            Kind::NextTop if imm == 0 => Some(Value(Kind::ReturnCode, 1)),
            Kind::Control | Kind::TablePage => M::load(self, s, base, imm),
            _ => self.window_load(s, base, imm),
        }
    }

    /// Words that all portals may read.
    fn load_fixed(&self, s: &State, base: Value, imm: i64) -> Option<Value> {
        M::load(self, s, Value(base.0, (i64::from(base.1) + imm) as i32), 0)
    }

    /// Words of the connection, each read before it is changed.
    fn load_shared(&self, s: &State, address: u64) -> Option<Value> {
        let (kind, changed) = if Some(address) == self.queue {
            let there = !self.returning && s.knows(fact::STACK);
            (if there { Kind::Desc } else { Kind::Head }, done::TAKEN | done::GIVEN)
        } else if Some(address) == self.semaphore {
            (Kind::SemRead, done::SEMAPHORE)
        } else if Some(address) == self.counter {
            (Kind::CountRead, done::COUNTED)
        } else {
            return self.control_load(s, address);
        };
        (s.done & changed == 0).then_some(Value(kind, 0))
    }

    /// A store of `value` at `base + imm`, if it may be made.
    #[inline(always)]
    pub(super) fn store(&mut self, s: &mut State, base: Value, imm: i64, value: Value) -> Result<(), Reason> {
        let Value(kind, n) = base;
        match kind {
            Kind::Top => self.store_frame(s, i64::from(n) + imm, value),
            _ => self.store_elsewhere(s, base, imm, value),
        }
    }

    #[inline(never)]
    fn store_elsewhere(&self, s: &mut State, base: Value, imm: i64, value: Value) -> Result<(), Reason> {
        let Value(kind, n) = base;
        let did = match kind {
            Kind::SlotEntry | Kind::Slot | Kind::Leaf | Kind::TableWord => {
                return self.window_store(s, base, imm, value);
            }
            Kind::Pool => {
                let address = self.double_word(n as usize).ok_or(Reason::Store)?.wrapping_add_signed(imm);
                if matches!(value.0, Kind::SlotNext | Kind::Slot | Kind::MovedBy) {
                    return self.control_store(s, address, value);
                }
                self.store_shared(address, value)
            }
            Kind::Desc if self.returning && imm == 0 && value.0 == Kind::Head => Some(done::LINKED),
            Kind::Block if self.shape == Shape::Switch => return store_block::<M>(s, imm, value),
            _ => None,
        };
        match did {
            Some(what) if s.done & what == 0 => {
                s.done |= what;
                Ok(())
            }
            _ => Err(Reason::Store),
        }
    }

    fn store_shared(&self, address: u64, value: Value) -> Option<u16> {
        match value.0 {
            Kind::DescNext if Some(address) == self.queue => Some(done::TAKEN),
            Kind::Desc if Some(address) == self.queue && self.returning => Some(done::GIVEN),
            Kind::SemNext if Some(address) == self.semaphore => Some(done::SEMAPHORE),
            Kind::CountNext if Some(address) == self.counter => Some(done::COUNTED),
            _ => None,
        }
    }

    /// Frame words are written by the call leg, once each. What changes behind a call's back is not kept in
    /// them. That there is room is seen to by the branch that asks, and by who leaves without having asked.
    #[inline(always)]
    pub(super) fn store_frame(&mut self, s: &mut State, offset: i64, value: Value) -> Result<(), Reason> {
        let word = frame_word(offset).filter(|word| *word < self.frame_words).ok_or(Reason::Store)?;
        if s.leads == 0 && !value.0.lasts() || !s.stored.add(word) {
            return Err(Reason::Store);
        }
        self.room.frame.set(word, value);
        Ok(())
    }
}

/// Index of the frame word at this offset from the top before the push.
#[inline(always)]
fn frame_word(offset: i64) -> Option<usize> {
    let bytes = (offset as usize).wrapping_sub(8);
    (bytes.is_multiple_of(8) && bytes < MAX_FRAME * 8).then_some(bytes / 8)
}

/// Index of the preserved register kept at this offset of a thread block.
fn block_word(offset: i64) -> Option<usize> {
    let word = usize::try_from(offset - thread::SAVED_REGS as i64).ok()?;
    (word % 8 == 0).then_some(word / 8)
}

/// The switch keeps the old thread's top and preserved registers in its block.
fn store_block<M: Machine>(s: &mut State, offset: i64, value: Value) -> Result<(), Reason> {
    let (bit, expected) = if offset == thread::SAVED_TOP as i64 {
        (0, Value(Kind::Top, 0))
    } else {
        let word = block_word(offset).ok_or(Reason::Store)?;
        (word + 1, own(usize::from(*M::REGISTERS.in_block.get(word).ok_or(Reason::Store)?)))
    };
    if value != expected {
        return Err(Reason::SavedThread);
    }
    s.block |= 1 << bit;
    Ok(())
}
