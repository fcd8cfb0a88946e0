//! One pass over each leg of a portal with a small lattice.
//!
//! A [`Value`] says where the content of a register comes from; every instruction maps values to values, and
//! what has no rule becomes `Unknown`, which no exit, store or control register accepts. Offsets in the
//! invocation stack count from its top before the portal pushes, in both legs, so the return leg reads the
//! values that the call leg stored.
//!
//! * No joins: what a branch leads to lies behind the exit that falling through comes to, and nothing else
//!   leads there. So it is read at once, with a copy of the state, and what it did is forgotten. But for one
//!   kind of branch, which skips tests: what they leave in registers is forgotten, and nothing else may have
//!   changed.
//! * Frame words are written once, by the call leg, and stay what they are once the frame is pushed.
//! * What differs from connection to connection is a symbol of the pool ([`Hole`]), and is compared as such:
//!   what is proven holds whatever it stands for.
//! * The scheduler's steps with stack queues are read word by word ([`Machine::word_by_word`]).
//! * What exits demand is in [`super::exit`], what memory holds in [`super::memory`], what instructions mean
//!   in the processor's module.

use super::machine::Machine;
use super::state::{State, Words};
use super::value::*;
use super::way::{MAX_CHOICES, Ways};
use super::{Reason, Refusal};
use crate::hardware::Shape;
use crate::hardware::hole::{Facts, Hole};
use crate::hardware::ir::{self, Lent, lent};
use crate::hardware::template::Template;
use crate::spec::{MAX_TEMPLATES, MAX_WINDOWS, Spec, WindowKind};
use arrayvec::ArrayVec;
use core::marker::PhantomData;
use pebble_arch::{Arch, Mips64, Riscv64};

/// Largest frame: a trap in a domain with floating point.
pub(super) const MAX_FRAME: usize = {
    let (one, other) = (Riscv64::LAYOUT.all_words(true), Mips64::LAYOUT.all_words(true));
    if one > other { one } else { other }
};

/// What the frame looks like once the call leg has left.
#[derive(Clone, Copy)]
pub(super) struct Pushed {
    pub(super) words: usize,
    pub(super) ret_at: usize,
}

pub(super) struct Verifier<'a, M: Machine> {
    pub(super) words: &'a [u32],
    pub(super) spec: &'a Spec,
    pub(super) shape: Shape,
    pub(super) c: &'a Facts<'a>,
    /// A call that pushes its own frame; one that saves everything.
    pub(super) is_call: bool,
    pub(super) is_trap: bool,
    /// The leg being read is the return leg.
    pub(super) returning: bool,
    pub(super) semaphore: Option<u64>,
    pub(super) counter: Option<u64>,
    pub(super) queue: Option<u64>,
    /// So many words of a frame may be written now, and must be pushed; where there is always room for them.
    pub(super) frame_words: usize,
    pub(super) has_room: bool,
    pub(super) pushed: Option<Pushed>,
    /// First and last offset loaded from the leg's pool.
    pub(super) pool: Option<(usize, usize)>,
    pub(super) windows: ArrayVec<Lent, MAX_WINDOWS>,
    /// With the caller's word that each takes.
    pub(super) templates: ArrayVec<(u8, &'a Template), MAX_TEMPLATES>,
    /// Ways out of a refused call that were read: first offset, status code.
    pub(super) refusals: ArrayVec<(usize, u16), 4>,
    pub(super) room: &'a mut Room,
    pub(super) machine: PhantomData<M>,
}

/// What the verifier keeps beside its stack.
pub(super) struct Room {
    /// Read where [`State::stored`] has the word: what another portal has left says nothing.
    pub(super) frame: Values<MAX_FRAME>,
    /// Ways of the return leg that were chosen against, and are still to be read: first offset, choices so
    /// far, what is known there.
    pub(super) choices: ArrayVec<(usize, usize, State), MAX_CHOICES>,
}

impl Room {
    pub(super) const fn new() -> Self {
        Room { frame: Values::UNKNOWN, choices: ArrayVec::new_const() }
    }
}

pub(super) fn verify<M: Machine>(
    words: &[u32],
    spec: &Spec,
    shape: Shape,
    c: &Facts,
    room: &mut Room,
) -> Result<(), Refusal> {
    room.choices.clear();
    if let Shape::Short(short) = shape
        && let Some(verdict) = M::word_by_word(words, short)
    {
        return verdict;
    }
    let queue = (!c.callee.exclusive).then_some(Hole::Queue.symbol());
    let is_call = matches!(shape, Shape::Call | Shape::Wait(_) | Shape::Signal(_));
    let is_trap = matches!(shape, Shape::Interrupt | Shape::Exception | Shape::NoStack);
    let mut v = Verifier::<M> {
        words,
        spec,
        shape,
        c,
        is_call,
        is_trap,
        returning: false,
        semaphore: match shape {
            Shape::Wait(_) | Shape::Signal(_) => Some(Hole::Semaphore.symbol()),
            _ => None,
        },
        counter: (c.counted && is_call).then_some(Hole::Counter.symbol()),
        queue,
        frame_words: if is_trap { M::LAYOUT.all_words(c.caller.float) } else { 0 },
        has_room: is_trap || c.callee.exclusive,
        pushed: None,
        pool: None,
        windows: ArrayVec::new(),
        templates: ArrayVec::new(),
        refusals: ArrayVec::new(),
        room,
        machine: PhantomData,
    };
    if is_call {
        v.lendable().map_err(|reason| Refusal { at: 0, reason })?;
    }
    let mut call_end = v.leg(0, &mut State::new::<M>(Kind::Own, 0, c.caller.float), 0)?;
    if shape == Shape::ThreadExit {
        // Whoever names the entry comes no further; a thread's end comes in behind.
        if call_end != M::RAISED {
            return Err(Refusal { at: 0, reason: Reason::Jump });
        }
        // It ends in whatever domain it likes.
        call_end = v.leg(call_end, &mut State::new::<M>(Kind::Own, 0, true), 0)?;
    }
    let pool_at = (call_end + 7) & !7;
    let thread_end = shape == Shape::ThreadEnd;
    if thread_end {
        v.pushed = Some(Pushed { words: 0, ret_at: pool_at + 16 });
    }
    let Some(Pushed { words: frame, ret_at }) = v.pushed else {
        return v.check_pool(pool_at, words.len() * 4);
    };
    v.check_pool(pool_at, ret_at)?;
    v.check_description(ret_at, frame)?;
    v.pool = None;
    v.frame_words = 0;
    // The thread end is entered like a return leg, by threads of all domains, but leads on.
    v.returning = !thread_end;
    let origin = if thread_end { Kind::Own } else { Kind::Theirs };
    let mut start = State::new::<M>(origin, ret_at, !v.is_trap && c.callee.float);
    if v.returning {
        // After a switch the control register still has the old thread's top; the general one is right.
        start.top = UNKNOWN;
        start.set(M::REGISTERS.top as u8, Value(Kind::Top, frame as i32 * 8));
        start.stored = Words::below(frame);
    }
    if thread_end {
        // Its error entry is as good as its first instruction.
        if words.get(ret_at / 4) != words.get(ret_at / 4 + 1) {
            return Err(Refusal { at: ret_at, reason: Reason::FirstOfReturn });
        }
        let mut again = start;
        v.leg(ret_at + 4, &mut again, 0)?;
    }
    let first = if thread_end { ret_at } else { v.after_status(ret_at, &mut start)? };
    let end = v.leg(first, &mut start, 0)?;
    // One after the other and not one within the other: the portal manager's stacks are short.
    while let Some((at, depth, mut chosen)) = v.room.choices.pop() {
        if v.leg(at, &mut chosen, depth)? != end {
            return Err(Refusal { at, reason: Reason::Branch });
        }
    }
    match v.pool {
        None if end != words.len() * 4 => Err(Refusal { at: end, reason: Reason::Unreachable }),
        None => Ok(()),
        Some(_) => v.check_pool((end + 7) & !7, words.len() * 4),
    }
}

impl<M: Machine> Verifier<'_, M> {
    /// What the specification asks for can be had in this connection.
    fn lendable(&mut self) -> Result<(), Reason> {
        self.windows = lent(self.spec, self.c);
        self.frame_words = ir::frame_words(self.spec, self.c, &M::LAYOUT, &self.windows);
        for (from, letter) in self.spec.templates() {
            let template = self.c.templates.iter().find(|t| t.letter == letter).ok_or(Reason::Template)?;
            template.check().map_err(|_| Reason::Template)?;
            self.templates.push((from, template));
        }
        let plain = self.windows.is_empty() && self.templates.is_empty();
        let moves = |l: &Lent| matches!(l.window, WindowKind::Tear | WindowKind::Get);
        let (caller, callee) = (&self.c.caller, &self.c.callee);
        let lends = caller.lends && callee.receives && !callee.exclusive;
        let books = caller.receives || !self.windows.iter().any(moves);
        if plain || self.shape == Shape::Call && (self.windows.is_empty() || lends && books) {
            Ok(())
        } else {
            Err(Reason::Window)
        }
    }

    /// Reads the code from offset `at` to the exit that straight execution comes to, and the ways that branch
    /// off it, which must lie behind that exit without a gap. Returns the offset behind the last.
    pub(super) fn leg(&mut self, at: usize, s: &mut State, depth: usize) -> Result<usize, Refusal> {
        let mut ways = Ways::default();
        let exit = M::straight(self, at, usize::MAX, s, depth, &mut ways)?;
        ways.behind(exit.ok_or(Refusal { at, reason: Reason::Endless })?)
    }

    /// Whether `value` is this constant, from the code or from the pool.
    pub(super) fn is(&self, value: Value, expected: u64) -> bool {
        match value {
            Value(Kind::Const, n) => i64::from(n) as u64 == expected,
            Value(Kind::Pool, at) => self.double_word(at as usize) == Some(expected),
            _ => false,
        }
    }

    pub(super) fn double_word(&self, at: usize) -> Option<u64> {
        let low = *self.words.get(at / 4)?;
        let high = *self.words.get(at / 4 + 1)?;
        Some(u64::from(low) | u64::from(high) << 32)
    }

    /// A leg's pool lies behind it, and what was loaded from it lies in it.
    fn check_pool(&self, start: usize, end: usize) -> Result<(), Refusal> {
        let sized = start <= end
            && end <= self.words.len() * 4
            && (end - start).is_multiple_of(8)
            && end - start <= M::POOL * 8;
        let inside = self.pool.is_none_or(|(first, last)| start <= first && last < end);
        if sized && inside { Ok(()) } else { Err(Refusal { at: start, reason: Reason::Pool }) }
    }

    /// The word before the return code: whose frame it is, above its words.
    fn check_description(&self, ret_at: usize, frame: usize) -> Result<(), Refusal> {
        let at = ret_at.wrapping_sub(8);
        if self.double_word(at) == Some(Hole::Description.symbol() + frame as u64) {
            Ok(())
        } else {
            Err(Refusal { at, reason: Reason::Description })
        }
    }

    /// Code with an error entry at its second instruction: the first clears the status, or, in a portal that
    /// keeps that of its callee, does nothing.
    fn after_status(&self, at: usize, s: &mut State) -> Result<usize, Refusal> {
        let word = self.words.get(at / 4).copied().unwrap_or_default();
        let status = M::REGISTERS.status as u8;
        let right =
            if self.c.keeps_status { M::keeps(word, status) } else { M::clears(word) == Some(status) };
        if !right {
            return Err(Refusal { at, reason: Reason::FirstOfReturn });
        }
        s.set(status, Value(Kind::Status, 0));
        Ok(at + 4)
    }
}
