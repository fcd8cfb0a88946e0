//! What must hold where portal code is left: into the callee, back to the caller, or to other nucleus code.
//!
//! Every exit names a value for each of the 31 registers, for address space, program counter, invocation
//! stack, interrupts and floating point; nothing that was there by chance leaves with it.

use super::*;
use crate::hardware::ir;
use crate::spec::{Arg, Stack, State as Kept, Window};
use pebble_abi::status;

const EXCEPTION: Value = Value(Kind::TableEntry, sys::EXCEPTION as i32);
const NO_STACK: i32 = sys::NO_STACK as i32;
const THREAD_END: i32 = sys::THREAD_END as i32;
/// Bytes of the domain's exception, behind which begins what only a thread's end comes to.
pub(super) const RAISED: i64 = 8;

impl Verifier<'_> {
    /// `sret`.
    pub(super) fn leave(&mut self, s: &State) -> Result<(), Reason> {
        match self.shape {
            _ if self.returning && self.is_trap => self.resume_trapped(s),
            _ if self.returning => self.return_to_caller(s),
            _ if s.refusing != 0 => self.refuse_caller(s),
            Shape::Short(short) => self.short_circuit(s, short),
            Shape::Wait(_) | Shape::Signal(_) if s.space == csr_value(csr::SATP) => self.hybrid(s),
            Shape::Switch | Shape::Dispatch | Shape::None | Shape::Bounce | Shape::Leave(_) => {
                Err(Reason::NotAllowed)
            }
            _ => self.enter_callee(s),
        }
    }

    /// `jr base + imm`: always through `gp`, always with the traversal not begun, or left to other nucleus
    /// code.
    pub(super) fn jump(&self, s: &State, base: Value, imm: i64) -> Result<(), Reason> {
        let elsewhere = s.leads != 0 && base != Value(Kind::TableEntry, s.leads);
        if base != s.regs.get(reg::GP) || !self.unchanged(s) || elsewhere {
            return Err(Reason::Jump);
        }
        let gp = 1 << reg::GP;
        let top = Value(Kind::Top, 0);
        match (self.shape, base, imm) {
            (Shape::Dispatch, Value(Kind::ReturnCode, 0), 0) => {
                expect(s, reg::T1, top)?;
                registers(s, Kind::Own, !(gp | 1 << reg::T1), 0)
            }
            (shape, Value(Kind::ReturnCode, 0), 4) => {
                let code = ir::leaves_with(shape).ok_or(Reason::Jump)?;
                if s.did(done::LATE) != (u64::from(code) == status::TIMEOUT) {
                    return Err(Reason::Jump);
                }
                expect(s, reg::T1, top)?;
                expect(s, reg::A0, Value(Kind::Const, -1))?;
                expect(s, reg::A1, Value(Kind::Leaving, i32::from(code)))?;
                registers(s, Kind::Own, !(gp | 1 << reg::T1 | 3 << reg::A0), 0)
            }
            // A call that is not late: it was tested, and no address of the nucleus stays.
            (Shape::Leave(_), EXCEPTION, 0) if s.leads == sys::EXCEPTION as i32 => {
                registers(s, Kind::Own, !(gp | 1 << reg::T1), 1 << reg::T1)
            }
            (Shape::Interrupt, EXCEPTION, 0) => registers(s, Kind::Own, !gp, 0),
            (Shape::ThreadEnd, Value(Kind::TableEntry, THREAD_END), RAISED) => {
                registers(s, Kind::Own, !gp, 0)
            }
            (Shape::Switch, Value(Kind::ReturnCode, 1), 0) => {
                if s.block != (1 << (1 + reg::IN_BLOCK.len())) - 1
                    || s.regs.get(reg::T1) != Value(Kind::NextTop, 0)
                {
                    return Err(Reason::SavedThread);
                }
                expect(s, reg::A0, own(reg::A1))?;
                registers(s, Kind::NextRegister, reg::PRESERVED, 0)?;
                registers(s, Kind::Own, !(reg::PRESERVED | reg::SCRATCH | gp | 1 << reg::A0), 0)
            }
            (Shape::None | Shape::ThreadEnd | Shape::ThreadExit, EXCEPTION, 0) => {
                registers(s, Kind::Own, !gp, 0)
            }
            // What a server cannot call is refused.
            (_, EXCEPTION, 0) if self.is_call && !self.c.caller.trusted => self.give_up(s),
            (_, Value(Kind::TableEntry, NO_STACK), 0) if self.queue.is_some() && s.did(done::TOLD) => {
                if self.is_trap {
                    registers(s, Kind::Own, !gp, 0)
                } else if self.is_call {
                    self.give_up(s)
                } else {
                    Err(Reason::Jump)
                }
            }
            _ => Err(Reason::Jump),
        }
    }

    /// A call that cannot be: what comes next keeps all registers for the user, so the nucleus leaves nothing
    /// in them.
    fn give_up(&self, s: &State) -> Result<(), Reason> {
        let plain = self.windows.is_empty() && self.templates.is_empty();
        let scratch = if plain { reg::STACK_SCRATCH } else { reg::WINDOW_SCRATCH };
        registers(s, Kind::Own, !(s.zero() & scratch | 1 << reg::GP), 0)
    }

    /// The traversal has not begun, and no template has acted.
    fn unchanged(&self, s: &State) -> bool {
        self.untouched(s) && s.translated == 0 && s.refusing == 0
    }

    /// The traversal has not begun: everything but general registers is as it was.
    pub(super) fn untouched(&self, s: &State) -> bool {
        s.sscratch == Value(Kind::Top, 0)
            && s.space == csr_value(csr::SATP)
            && s.sepc == csr_value(csr::SEPC)
            && s.sie.is_none()
            && s.done & !(done::ROOM | done::COUNTED | done::TOLD | done::LATE) == 0
            && s.taken == [0; 2]
            && s.moves == [0; 2]
            && self.float_untouched(s, self.c.caller.float)
    }

    fn float_untouched(&self, s: &State, on: bool) -> bool {
        let fcsr = if self.returning { UNKNOWN } else { csr_value(csr::FCSR) };
        s.float == on && s.float_zero | s.float_restored == 0 && s.fcsr == fcsr
    }

    fn check_count(&self, s: &State) -> Result<(), Reason> {
        if s.did(done::COUNTED) == self.counter.is_some() { Ok(()) } else { Err(Reason::Count) }
    }

    /// Back to the caller with a status, and with nothing else in any register that the convention does not
    /// preserve.
    fn refuse_caller(&self, s: &State) -> Result<(), Reason> {
        self.before_call(s)?;
        let status = u64::from(s.refusing) | u64::from(self.c.caller.asid) << 16;
        expect(s, reg::A0, Value(Kind::Const, -1))?;
        if !self.is(s.regs.get(reg::A1), status) {
            return Err(Reason::Register(reg::A1 as u8));
        }
        let kept = reg::PRESERVED | 1 << reg::RA | 1 << reg::SP;
        registers(s, Kind::Own, kept, !(kept | 3 << reg::A0))
    }

    /// Back to the caller from the call leg: only the two results and cleared scratch registers differ.
    fn resume_caller(&self, s: &State) -> Result<(), Reason> {
        self.before_call(s)?;
        expect(s, reg::GP, ZERO)?;
        registers(s, Kind::Own, !(s.zero() & reg::TEMPORARY | 1 << reg::GP | 3 << reg::A0), 0)
    }

    /// Everything but general registers is as the caller left it, and user mode goes on where it wants.
    fn before_call(&self, s: &State) -> Result<(), Reason> {
        self.check_count(s)?;
        if s.sepc != own(reg::RA) {
            return Err(Reason::ProgramCounter);
        }
        if s.space != csr_value(csr::SATP) {
            return Err(Reason::AddressSpace);
        }
        if s.sscratch != Value(Kind::Top, 0) {
            return Err(Reason::InvocationStack);
        }
        if s.sie.is_some() {
            return Err(Reason::Interrupts);
        }
        if !self.float_untouched(s, self.c.caller.float) {
            return Err(Reason::FloatRegisters);
        }
        Ok(())
    }

    fn short_circuit(&self, s: &State, short: Short) -> Result<(), Reason> {
        let (value, status) = (s.regs.get(reg::A0), s.regs.get(reg::A1));
        let done = match short {
            Short::Constant { value: v, status: t } => self.is(value, v as u64) && self.is(status, t),
            Short::ThreadId => value == Value(Kind::ThreadId, 0) && status == ZERO,
            Short::Top => value == Value(Kind::Top, 0) && status == ZERO,
            Short::Time => value == csr_value(csr::TIME) && status == ZERO,
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
        expect(s, reg::A0, ZERO)?;
        expect(s, reg::A1, ZERO)?;
        self.resume_caller(s)
    }

    fn enter_callee(&mut self, s: &State) -> Result<(), Reason> {
        self.check_count(s)?;
        if !self.is(s.space, self.c.callee.space) {
            return Err(Reason::AddressSpace);
        }
        if !self.is(s.sepc, self.c.entry) {
            return Err(Reason::ProgramCounter);
        }
        if s.did(done::SEMAPHORE) {
            return Err(Reason::Semaphore);
        }
        if s.did(done::INTERRUPT) != (self.shape == Shape::Interrupt) {
            return Err(Reason::Interrupts);
        }
        if s.sie != self.masks().then_some(ZERO) {
            return Err(Reason::Interrupts);
        }
        if s.translated != self.templates.len() {
            return Err(Reason::Template);
        }
        self.windows_open(s)?;
        self.pushed_frame(s)?;
        self.callee_stack(s)?;
        self.float_at_entry(s)?;
        self.arguments(s)
    }

    /// The portal turns interrupts off, and on again at return.
    fn masks(&self) -> bool {
        let on_before = !(self.is_call || self.shape == Shape::Tail) || !self.c.caller.exclusive;
        self.c.callee.exclusive && on_before
    }

    /// Preserved registers are hidden from the callee.
    fn hides(&self) -> bool {
        self.is_trap || self.spec.state >= Kept::Partial
    }

    /// The frame has no gap, and on top the return code; portals without one leave the invocation stack
    /// alone.
    fn pushed_frame(&mut self, s: &State) -> Result<(), Reason> {
        let Value(Kind::Top, top) = s.sscratch else { return Err(Reason::InvocationStack) };
        if !self.is_call && !self.is_trap {
            return if top == 0 { Ok(()) } else { Err(Reason::InvocationStack) };
        }
        let words = top as usize / 8;
        if top % 8 != 0 || !(2..=MAX_FRAME).contains(&words) || self.pushed.is_some() {
            return Err(Reason::Frame);
        }
        let Some(Value(Kind::Code, ret_at)) = self.kept(s, words - 1) else { return Err(Reason::Frame) };
        let mut stored = s.stored;
        if self.is_trap {
            if let Some(empty) = self.trap_layout(s, words)? {
                if stored.has(empty) {
                    return Err(Reason::Frame);
                }
                stored.add(empty);
            }
        } else if !s.did(done::ROOM) && !self.c.callee.exclusive {
            return Err(Reason::InvocationStack);
        }
        self.pushing = false;
        self.pushed = Some(Pushed { words, ret_at: ret_at as usize });
        if stored == Words::below(words) { Ok(()) } else { Err(Reason::Frame) }
    }

    /// Others read and write trap frames, so every word has its place. Returns the word that stays empty.
    fn trap_layout(&self, s: &State, words: usize) -> Result<Option<usize>, Reason> {
        let holds = |word, value| self.kept(s, word) == Some(value);
        let base = if self.c.caller.float { frame::FLOAT_WORDS } else { 0 };
        let mut fits = words == base + frame::WORDS;
        for x in (1..32).filter(|x| *x != reg::GP) {
            fits &= holds(base + frame::word(x), own(x));
        }
        for f in 0..base.min(32) {
            fits &= holds(f, Value(Kind::Float, f as i32));
        }
        if base > 0 {
            fits &= holds(32, csr_value(csr::FCSR));
        }
        fits &= holds(base + frame::PC, csr_value(csr::SEPC));
        fits &= holds(base + frame::SPACE, csr_value(csr::SATP));
        let desc = base + frame::DESC;
        let empty = if self.queue.is_some() {
            fits &= self.kept(s, desc).is_some_and(|v| v.0 == Kind::Desc);
            None
        } else if self.shape == Shape::NoStack {
            fits &= holds(desc, csr_value(csr::SCAUSE));
            None
        } else {
            Some(desc)
        };
        if fits { Ok(empty) } else { Err(Reason::Frame) }
    }

    fn callee_stack(&self, s: &State) -> Result<(), Reason> {
        let sp = s.regs.get(reg::SP);
        let frameless = !self.is_call && !self.is_trap;
        let fits = if self.is_call && self.spec.stack == Stack::Shared {
            sp == own(reg::SP) && !s.did(done::TAKEN)
        } else if self.queue.is_none() || frameless {
            self.is(sp, self.c.callee.fixed_stack) && !s.did(done::TAKEN)
        } else {
            sp.0 == Kind::DescStack && s.did(done::TAKEN)
        };
        if fits { Ok(()) } else { Err(Reason::UserStack) }
    }

    fn float_at_entry(&self, s: &State) -> Result<(), Reason> {
        let c = self.c;
        let on = c.callee.float && (self.is_call || self.shape == Shape::Tail);
        let fits = if !on {
            !s.float
        } else if c.caller.float && self.spec.state == Kept::Minimal {
            self.float_untouched(s, true)
        } else {
            s.float && s.float_zero == !0 && s.fcsr == ZERO
        };
        if fits { Ok(()) } else { Err(Reason::FloatRegisters) }
    }

    fn arguments(&self, s: &State) -> Result<(), Reason> {
        let exception = [
            csr_value(csr::SCAUSE),
            csr_value(csr::STVAL),
            csr_value(csr::SEPC),
            Value(Kind::Asid, 0),
            Value(Kind::ThreadId, 0),
            own(reg::T0),
        ];
        let passed = match self.shape {
            Shape::Interrupt => prescribed(s, &exception[..1])?,
            Shape::Exception => prescribed(s, &exception)?,
            Shape::NoStack => prescribed(s, &[exception[1], exception[3]])?,
            _ => self.specified(s)?,
        };
        let preserved = if self.hides() { 0 } else { reg::PRESERVED };
        if !self.is(s.regs.get(reg::RA), map::GATE_VA) {
            return Err(Reason::Register(reg::RA as u8));
        }
        let set = passed | 1 << reg::RA | 1 << reg::SP;
        registers(s, Kind::Own, preserved, !(preserved | set))
    }

    /// The callee's arguments, letter by letter; returns their registers.
    fn specified(&self, s: &State) -> Result<u32, Reason> {
        let mut next_word = reg::A1;
        let (mut windows, mut templates) = (-1, -1);
        for (x, arg) in (reg::A0..).zip(&self.spec.args) {
            let value = s.regs.get(x);
            let fits = match arg {
                Arg::Word => {
                    next_word += 1;
                    value == own(next_word - 1)
                }
                Arg::Constant => self.is(value, self.c.constant),
                Arg::Index => self.is(value, u64::from(self.c.index)),
                Arg::Domain => self.is(value, u64::from(self.c.told())),
                Arg::Origin => value == Value(Kind::Origin, 0),
                Arg::Thread => value == Value(Kind::ThreadId, 0),
                Arg::Time => value == csr_value(csr::TIME),
                Arg::Window(_, pages) => {
                    next_word += 1;
                    windows += 1;
                    let slot = self.slot_of(windows).map(|slot| Value(Kind::SlotAddress, slot));
                    let whole = *pages > 1 || matches!(arg, Arg::Window(Window::Get, _));
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
        Ok(((1 << self.spec.args.len()) - 1) << reg::A0)
    }

    /// What both kinds of return do: the frame is gone, interrupts are as before, the stack is back in its
    /// queue.
    fn taken_down(&self, s: &State, took_stack: bool) -> Result<(), Reason> {
        if s.sscratch != Value(Kind::Top, 0) {
            return Err(Reason::InvocationStack);
        }
        if s.sie != self.masks().then_some(SIE_ON) {
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
        if !self.is(s.space, self.c.caller.space) {
            return Err(Reason::AddressSpace);
        }
        if s.sepc != own(reg::RA) {
            return Err(Reason::ProgramCounter);
        }
        self.float_at_return(s)?;
        self.windows_closed(s)?;
        let sp = 1 << reg::SP;
        let mut restored = 1 << reg::RA;
        let mut passed = 1 << reg::A0 | ((1 << spec.results) - 1) << reg::A2;
        *(if self.hides() || spec.stack == Stack::New { &mut restored } else { &mut passed }) |= sp;
        *(if self.hides() { &mut restored } else { &mut passed }) |= reg::PRESERVED;
        registers(s, Kind::Own, restored, 0)?;
        registers(s, Kind::Theirs, passed, !(restored | passed | 1 << reg::A1))
    }

    fn float_at_return(&self, s: &State) -> Result<(), Reason> {
        let c = self.c;
        let fits = if !c.caller.float {
            !s.float
        } else if c.callee.float && !self.hides() {
            self.float_untouched(s, true)
        } else {
            let preserved = reg::FLOAT_PRESERVED;
            s.float
                && s.fcsr == csr_value(csr::FCSR)
                && s.float_restored == preserved
                && s.float_zero == !preserved
        };
        if fits { Ok(()) } else { Err(Reason::FloatRegisters) }
    }

    fn resume_trapped(&self, s: &State) -> Result<(), Reason> {
        self.taken_down(s, self.queue.is_some())?;
        if s.space != csr_value(csr::SATP) {
            return Err(Reason::AddressSpace);
        }
        if s.sepc != csr_value(csr::SEPC) {
            return Err(Reason::ProgramCounter);
        }
        let float = self.c.caller.float;
        if s.float != float || float && (s.float_restored != !0 || s.fcsr != csr_value(csr::FCSR)) {
            return Err(Reason::FloatRegisters);
        }
        registers(s, Kind::Own, !(1 << reg::GP), 1 << reg::GP)
    }
}

fn expect(s: &State, x: usize, value: Value) -> Result<(), Reason> {
    if s.regs.get(x) == value { Ok(()) } else { Err(Reason::Register(x as u8)) }
}

/// The handler's arguments; returns their registers.
fn prescribed(s: &State, values: &[Value]) -> Result<u32, Reason> {
    for (x, value) in (reg::A0..).zip(values) {
        expect(s, x, *value)?;
    }
    Ok(((1 << values.len()) - 1) << reg::A0)
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
