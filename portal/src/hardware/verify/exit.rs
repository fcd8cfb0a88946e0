//! What must hold where portal code is left: into the callee, back to the caller, or to other nucleus code.
//!
//! Every exit names a value for each of the 31 registers, for address space, program counter, invocation
//! stack, interrupts and what is beside; nothing that was there by chance leaves with it.

use super::Reason;
use super::leg::{Pushed, Verifier};
use super::machine::Machine;
use super::state::{State, Words, done};
use super::value::*;
use crate::hardware::hole::Hole;
use crate::hardware::{Shape, Short, ir};
use crate::spec::{Arg, Stack, State as Kept, WindowKind};
use pebble_abi::{map, status, sys};

const EXCEPTION: Value = Value(Kind::TableEntry, sys::EXCEPTION as i32);
const NO_STACK: i32 = sys::NO_STACK as i32;
const THREAD_END: i32 = sys::THREAD_END as i32;

impl<M: Machine> Verifier<'_, M> {
    /// Into user mode.
    pub(super) fn leave(&mut self, s: &State) -> Result<(), Reason> {
        match self.shape {
            _ if s.leads != 0 && s.refusing == 0 || !self.kept_to_room(s) => Err(Reason::Jump),
            _ if self.returning && self.is_trap => self.resume_trapped(s),
            _ if self.returning => self.return_to_caller(s),
            _ if s.refusing != 0 => self.refuse_caller(s),
            Shape::Short(short) => self.short_circuit(s, short),
            Shape::Wait(_) | Shape::Signal(_) if s.space == M::SPACE => self.hybrid(s),
            Shape::Switch | Shape::Dispatch | Shape::None | Shape::Bounce | Shape::Leave(_) => {
                Err(Reason::NotAllowed)
            }
            _ => self.enter_callee(s),
        }
    }

    /// Nothing was stored above a top that was not looked at, but the one word behind that branch.
    fn kept_to_room(&self, s: &State) -> bool {
        let asked = s.did(done::ROOM) || self.has_room || self.returning;
        asked || s.stored == Words::NONE || M::SHADOW && s.stored == Words::below(1)
    }

    /// A jump to `base + imm`: always through the register of the leg's address, always with the traversal
    /// not begun, or left to other nucleus code.
    pub(super) fn jump(&self, s: &State, base: Value, imm: i64) -> Result<(), Reason> {
        let r = M::REGISTERS;
        let elsewhere = s.leads != 0 && base != Value(Kind::TableEntry, s.leads);
        if base != s.regs.get(r.code)
            || !self.unchanged(s)
            || elsewhere
            || self.returning
            || !self.kept_to_room(s)
        {
            return Err(Reason::Jump);
        }
        let ours = r.nucleus;
        let raises = s.leads == sys::EXCEPTION as i32;
        let top = Value(Kind::Top, 0);
        if r.begins_with_top() && self.shape != Shape::Switch {
            expect(s, r.top, top)?;
        }
        match (self.shape, base, imm) {
            (Shape::Dispatch, Value(Kind::ReturnCode, 0), 0) => {
                expect(s, r.top, top)?;
                registers(s, Kind::Own, !(ours | 1 << r.top), 0)
            }
            (shape, Value(Kind::ReturnCode, 0), 4) => {
                let code = ir::leaves_with(shape).ok_or(Reason::Jump)?;
                if s.did(done::LATE) != (u64::from(code) == status::TIMEOUT) {
                    return Err(Reason::Jump);
                }
                expect(s, r.top, top)?;
                expect(s, r.value, Value(Kind::Const, -1))?;
                expect(s, r.status, Value(Kind::Leaving, i32::from(code)))?;
                registers(s, Kind::Own, !(ours | 1 << r.top | r.outcome() | r.jump), 0)
            }
            // A call that is not late: it was tested, and no address of the nucleus stays.
            (Shape::Leave(_), EXCEPTION, 0) if raises => {
                registers(s, Kind::Own, !(ours | 1 << r.top | r.jump), 1 << r.top & !ours | r.jump)
            }
            (Shape::Interrupt, EXCEPTION, 0) if raises => registers(s, Kind::Own, !ours, 0),
            (Shape::ThreadEnd, Value(Kind::TableEntry, THREAD_END), _) if imm == M::RAISED as i64 => {
                registers(s, Kind::Own, !(ours | r.jump), 0)
            }
            (Shape::Switch, Value(Kind::ReturnCode, 1), 0) => {
                if s.block != (1 << (1 + r.in_block.len())) - 1
                    || s.regs.get(r.top) != Value(Kind::NextTop, 0)
                {
                    return Err(Reason::SavedThread);
                }
                expect(s, r.value, own(r.status))?;
                registers(s, Kind::NextRegister, r.preserved, 0)?;
                registers(s, Kind::Own, !(r.preserved | r.scratch | ours | 1 << r.value), 0)
            }
            (Shape::None | Shape::ThreadEnd | Shape::ThreadExit, EXCEPTION, 0) => {
                registers(s, Kind::Own, !ours, 0)
            }
            // What a server cannot call is refused.
            (_, EXCEPTION, 0) if self.is_call && !self.c.caller.trusted && raises => self.give_up(s, false),
            (_, Value(Kind::TableEntry, NO_STACK), 0) if self.queue.is_some() && s.did(done::TOLD) => {
                if self.is_trap {
                    registers(s, Kind::Own, !ours, 0)
                } else if self.is_call {
                    self.give_up(s, true)
                } else {
                    Err(Reason::Jump)
                }
            }
            _ => Err(Reason::Jump),
        }
    }

    /// A call that cannot be: what comes next keeps all registers for the user, so the nucleus leaves nothing
    /// in them.
    fn give_up(&self, s: &State, waits: bool) -> Result<(), Reason> {
        let r = M::REGISTERS;
        let plain = self.windows.is_empty() && self.templates.is_empty();
        let scratch = if plain { r.stack_scratch } else { r.window_scratch };
        let used = if self.windows.is_empty() { r.stack_scratch } else { r.window_scratch };
        let cleared = if waits && M::WAITS_CLEAR { used } else { 0 };
        registers(s, Kind::Own, !(s.zero() & scratch | r.nucleus | cleared), cleared)
    }

    /// The traversal has not begun, and no template has acted.
    fn unchanged(&self, s: &State) -> bool {
        self.untouched(s) && s.translated == 0 && s.refusing == 0
    }

    /// The traversal has not begun: everything but general registers is as it was.
    pub(super) fn untouched(&self, s: &State) -> bool {
        s.top == Value(Kind::Top, 0)
            && s.space == M::SPACE
            && s.pc == M::PC
            && s.interrupts.is_none()
            && s.done & !(done::ROOM | done::COUNTED | done::TOLD | done::LATE) == 0
            && s.taken == [0; 2]
            && s.moves == [0; 2]
            && M::untouched(self, s)
    }

    fn check_count(&self, s: &State) -> Result<(), Reason> {
        if s.did(done::COUNTED) == self.counter.is_some() { Ok(()) } else { Err(Reason::Count) }
    }

    /// Back to the caller with a status, and with nothing else in any register that the convention does not
    /// preserve.
    fn refuse_caller(&self, s: &State) -> Result<(), Reason> {
        self.before_call(s)?;
        let status = Hole::Refused.symbol() + u64::from(s.refusing);
        let r = M::REGISTERS;
        expect(s, r.value, Value(Kind::Const, -1))?;
        if !self.is(s.regs.get(r.status), status) {
            return Err(Reason::Register(r.status as u8));
        }
        registers(s, Kind::Own, r.kept(), !(r.kept() | r.outcome()))
    }

    /// Back to the caller from the call leg: only the two results and cleared scratch registers differ.
    fn resume_caller(&self, s: &State) -> Result<(), Reason> {
        self.before_call(s)?;
        let r = M::REGISTERS;
        registers(s, Kind::Own, !(s.zero() & r.temporary | r.nucleus | r.outcome()), r.nucleus)
    }

    /// Everything but general registers is as the caller left it, and user mode goes on where it wants.
    fn before_call(&self, s: &State) -> Result<(), Reason> {
        self.check_count(s)?;
        if s.pc != own(M::REGISTERS.link) {
            return Err(Reason::ProgramCounter);
        }
        if s.space != M::SPACE {
            return Err(Reason::AddressSpace);
        }
        if s.top != Value(Kind::Top, 0) {
            return Err(Reason::InvocationStack);
        }
        if s.interrupts.is_some() {
            return Err(Reason::Interrupts);
        }
        if M::spared(self, s) { Ok(()) } else { Err(Reason::Beside) }
    }

    fn short_circuit(&self, s: &State, short: Short) -> Result<(), Reason> {
        let (value, status) = (s.regs.get(M::REGISTERS.value), s.regs.get(M::REGISTERS.status));
        let done = match short {
            Short::Constant { value: v, status: t } => self.is(value, v as u64) && self.is(status, t),
            Short::ThreadId => value == Value(Kind::ThreadId, 0) && status == ZERO,
            Short::Top => value == Value(Kind::Top, 0) && status == ZERO,
            Short::Time => value == M::TIME && status == ZERO,
            Short::SetTimer | Short::Flush | Short::Idle => {
                s.did(done::EFFECT) && value == ZERO && status == ZERO
            }
            // Read elsewhere.
            Short::Stacks(_) => false,
        };
        if done { self.resume_caller(s) } else { Err(Reason::Effect) }
    }

    /// The fast way of P and V.
    fn hybrid(&self, s: &State) -> Result<(), Reason> {
        if !s.did(done::SEMAPHORE) {
            return Err(Reason::Semaphore);
        }
        expect(s, M::REGISTERS.value, ZERO)?;
        expect(s, M::REGISTERS.status, ZERO)?;
        self.resume_caller(s)
    }

    fn enter_callee(&mut self, s: &State) -> Result<(), Reason> {
        self.check_count(s)?;
        if !self.is(s.space, Hole::CalleeSpace.symbol()) {
            return Err(Reason::AddressSpace);
        }
        if !self.is(s.pc, Hole::Entry.symbol()) {
            return Err(Reason::ProgramCounter);
        }
        if s.did(done::SEMAPHORE) {
            return Err(Reason::Semaphore);
        }
        if s.did(done::INTERRUPT) != (self.shape == Shape::Interrupt) {
            return Err(Reason::Interrupts);
        }
        if s.interrupts != self.masks().then_some(false) {
            return Err(Reason::Interrupts);
        }
        if s.translated != self.templates.len() {
            return Err(Reason::Template);
        }
        self.windows_open(s)?;
        self.pushed_frame(s)?;
        self.callee_stack(s)?;
        if !M::entered(self, s) {
            return Err(Reason::Beside);
        }
        self.arguments(s)
    }

    /// The portal turns interrupts off, and on again at return.
    fn masks(&self) -> bool {
        let on_before = !(self.is_call || self.shape == Shape::Tail) || !self.c.caller.exclusive;
        self.c.callee.exclusive && on_before
    }

    /// Preserved registers are hidden from the callee.
    pub(super) fn hides(&self) -> bool {
        self.is_trap || self.spec.state >= Kept::Partial
    }

    /// The frame has no gap, and on top the return code; portals without one leave the invocation stack
    /// alone.
    fn pushed_frame(&mut self, s: &State) -> Result<(), Reason> {
        let Value(Kind::Top, top) = s.top else { return Err(Reason::InvocationStack) };
        if !self.is_call && !self.is_trap {
            return if top == 0 { Ok(()) } else { Err(Reason::InvocationStack) };
        }
        let words = top as usize / 8;
        if top % 8 != 0 || words != self.frame_words || self.pushed.is_some() {
            return Err(Reason::Frame);
        }
        let Some(Value(Kind::Code, ret_at)) = self.kept(s, words - 1) else { return Err(Reason::Frame) };
        let mut stored = s.stored;
        if self.is_trap {
            if let Some(empty) = self.trap_layout(s, words)? {
                if !stored.add(empty) {
                    return Err(Reason::Frame);
                }
            }
        } else if !s.did(done::ROOM) && !self.c.callee.exclusive {
            return Err(Reason::InvocationStack);
        }
        self.frame_words = 0;
        self.pushed = Some(Pushed { words, ret_at: ret_at as usize });
        if stored == Words::below(words) { Ok(()) } else { Err(Reason::Frame) }
    }

    /// Others read and write trap frames, so every word has its place. Returns the word that stays empty.
    fn trap_layout(&self, s: &State, words: usize) -> Result<Option<usize>, Reason> {
        let layout = &M::LAYOUT;
        let base = if self.c.caller.float { layout.float_words } else { 0 };
        let holds = |word, value| self.kept(s, base + word) == Some(value);
        let mut fits = words == base + layout.words && M::trapped(self, s, base);
        fits &= holds(layout.pc, M::PC) && holds(layout.space, M::SPACE);
        let desc = base + layout.desc;
        let empty = if self.queue.is_some() {
            fits &= self.kept(s, desc).is_some_and(|v| v.0 == Kind::Desc);
            None
        } else if self.shape == Shape::NoStack {
            fits &= holds(layout.desc, M::CAUSE);
            None
        } else {
            Some(desc)
        };
        if fits { Ok(empty) } else { Err(Reason::Frame) }
    }

    fn callee_stack(&self, s: &State) -> Result<(), Reason> {
        let sp = s.regs.get(M::REGISTERS.stack);
        let frameless = !self.is_call && !self.is_trap;
        let fits = if self.is_call && self.spec.stack == Stack::Shared {
            sp == own(M::REGISTERS.stack) && !s.did(done::TAKEN)
        } else if self.queue.is_none() || frameless {
            self.is(sp, Hole::FixedStack.symbol()) && !s.did(done::TAKEN)
        } else {
            sp.0 == Kind::DescStack && s.did(done::TAKEN)
        };
        if fits { Ok(()) } else { Err(Reason::UserStack) }
    }

    fn arguments(&self, s: &State) -> Result<(), Reason> {
        let exception = [
            M::CAUSE,
            M::FAULT,
            M::PC,
            Value(Kind::Asid, 0),
            Value(Kind::ThreadId, 0),
            own(M::REGISTERS.index),
        ];
        let passed = match self.shape {
            Shape::Interrupt => prescribed::<M>(s, &exception[..1])?,
            Shape::Exception => prescribed::<M>(s, &exception)?,
            Shape::NoStack => prescribed::<M>(s, &[M::LACKING, exception[3]])?,
            _ => self.specified(s)?,
        };
        let r = M::REGISTERS;
        let preserved = if self.hides() { 0 } else { r.preserved };
        if !self.is(s.regs.get(r.link), map::GATE_VA) {
            return Err(Reason::Register(r.link as u8));
        }
        let set = passed | 1 << r.link | 1 << r.stack;
        registers(s, Kind::Own, preserved, !(preserved | set))
    }

    /// The callee's arguments, letter by letter; returns their registers.
    fn specified(&self, s: &State) -> Result<u32, Reason> {
        let mut next_word = M::REGISTERS.argument + 1;
        let (mut windows, mut templates) = (-1, -1);
        for (x, arg) in (M::REGISTERS.argument..).zip(&self.spec.args) {
            let value = s.regs.get(x);
            let fits = match arg {
                Arg::Word => {
                    next_word += 1;
                    value == own(next_word - 1)
                }
                Arg::Constant => self.is(value, Hole::Constant.symbol()),
                Arg::Index => self.is(value, Hole::Index.symbol()),
                Arg::Domain => self.is(value, Hole::Told.symbol()),
                Arg::Origin => value == Value(Kind::Origin, 0),
                Arg::Thread => value == Value(Kind::ThreadId, 0),
                Arg::Time => value == M::TIME,
                Arg::Window(_, pages) => {
                    next_word += 1;
                    windows += 1;
                    let slot = self.slot_of(windows).map(|slot| Value(Kind::SlotAddress, slot));
                    let whole = *pages > 1 || matches!(arg, Arg::Window(WindowKind::Get, _));
                    if whole { Some(value) == slot } else { value == Value(Kind::Address, windows) }
                }
                Arg::Template(_) => {
                    next_word += 1;
                    templates += 1;
                    value == Value(Kind::Translated, templates)
                }
            };
            if !fits {
                return Err(Reason::Register(x as u8));
            }
        }
        Ok(((1 << self.spec.args.len()) - 1) << M::REGISTERS.argument)
    }

    /// What both kinds of return do: the frame is gone, interrupts are as before, the stack is back in its
    /// queue.
    fn taken_down(&self, s: &State, took_stack: bool) -> Result<(), Reason> {
        if s.top != Value(Kind::Top, 0) {
            return Err(Reason::InvocationStack);
        }
        if s.interrupts != self.masks().then_some(true) {
            return Err(Reason::Interrupts);
        }
        if s.done != if took_stack { done::LINKED | done::GIVEN } else { 0 } {
            return Err(Reason::UserStack);
        }
        Ok(())
    }

    fn return_to_caller(&self, s: &State) -> Result<(), Reason> {
        let spec = self.spec;
        self.taken_down(s, spec.stack == Stack::New && self.queue.is_some())?;
        if !self.is(s.space, Hole::CallerSpace.symbol()) {
            return Err(Reason::AddressSpace);
        }
        let r = M::REGISTERS;
        if s.pc != own(r.link) {
            return Err(Reason::ProgramCounter);
        }
        if !M::returned(self, s) {
            return Err(Reason::Beside);
        }
        self.windows_closed(s)?;
        let sp = 1 << r.stack;
        let mut restored = 1 << r.link;
        let mut passed = 1 << r.value | ((1 << spec.results) - 1) << r.results;
        *(if self.hides() || spec.stack == Stack::New { &mut restored } else { &mut passed }) |= sp;
        *(if self.hides() { &mut restored } else { &mut passed }) |= r.preserved;
        registers(s, Kind::Own, restored, 0)?;
        registers(s, Kind::Theirs, passed, !(restored | passed | 1 << r.status))
    }

    fn resume_trapped(&self, s: &State) -> Result<(), Reason> {
        self.taken_down(s, self.queue.is_some())?;
        if s.space != M::SPACE {
            return Err(Reason::AddressSpace);
        }
        if s.pc != M::PC {
            return Err(Reason::ProgramCounter);
        }
        if !M::resumed(self, s) {
            return Err(Reason::Beside);
        }
        let ours = M::REGISTERS.nucleus;
        registers(s, Kind::Own, !ours, ours)
    }
}

fn expect(s: &State, x: usize, value: Value) -> Result<(), Reason> {
    if s.regs.get(x) == value { Ok(()) } else { Err(Reason::Register(x as u8)) }
}

/// The handler's arguments; returns their registers.
fn prescribed<M: Machine>(s: &State, values: &[Value]) -> Result<u32, Reason> {
    for (x, value) in (M::REGISTERS.argument..).zip(values) {
        expect(s, x, *value)?;
    }
    Ok(((1 << values.len()) - 1) << M::REGISTERS.argument)
}

/// The registers in `same` hold what they held at the origin, those in `zero` nothing. What the state knows
/// of all at once need not be looked at one by one.
fn registers(s: &State, origin: Kind, same: u32, zero: u32) -> Result<(), Reason> {
    let unknown = if origin == s.origin { same & s.touched() } else { same };
    let mut rest = (unknown | zero & !s.zero()) >> 1;
    let mut x = 1;
    while rest != 0 {
        if rest & 1 == 1 {
            expect(s, x, if same >> x & 1 == 1 { Value(origin, x as i32) } else { ZERO })?;
        }
        rest >>= 1;
        x += 1;
    }
    Ok(())
}
