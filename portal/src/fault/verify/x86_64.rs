//! The verifier of portals between a process and its fault domains.
//!
//! Problem: portal code runs with the process's rights on both sides of the wall, so a mistake of the
//! compiler must not become a hole. Strategy: symbolic execution of every path (branches go forward, so there
//! are few) over what the decoder says. A register or a word of a stack holds a [`Val`]: what it was at the
//! start, a field of a record, a constant. At each way out the values must be those that specification and
//! crossing prescribe. What is not recognized is refused. It knows neither emitter nor encoder.
//!
//! What acceptance means (each property is a function below):
//! * every path ends, at `ret` or at the runtime's way in for threads without a stack, where nothing has
//!   changed;
//! * memory: only the stacks being used, fields of records, the current mark, the own constants;
//! * the callee is entered on its own stacks, with its instance in `gs`, with a frame that says where the
//!   call came from, and with arguments and nothing else in the registers that are to be hidden;
//! * back at the caller each preserved register, both stack pointers, `gs` and the record are as before.

mod exit;
mod memory;
mod refusal;

pub use refusal::{Reason, Refusal};

use crate::fault::{
    Crossing, Door, INSIDE, MOST_NESTED, NESTED, PLAIN_CONTROL, PLAIN_MXCSR, PRESERVED, STACK_BYTES,
    STACK_ROOM_SHIFT, TAKEN, Way, record,
};
use crate::isa::x86_64::decode::{Insn, Memory, decode};
use crate::spec::State as Kept;
use arrayvec::ArrayVec;

/// Whose stack a mark names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mark {
    Own,
    OwnHome,
    Current,
    Linked,
    Fresh,
    /// Home of the callee's stack.
    CalleeHome,
}

/// Stacks by what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    /// Under the caller, at the start.
    Caller,
    /// Under the callee: offset 0 is its top.
    Callee,
    /// Around the call that entered the caller's domain: offset 0 is the top that its frame hangs from.
    Outer,
    /// The process's, below that frame's caller.
    Process,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Val {
    Any,
    Initial(u8),
    Const(u64),
    Mark(Mark),
    Field(Mark, i32),
    Base(Mark),
    Links,
    At(Where, i32),
    Start,
    /// Of the call: `rax`, `rdx`.
    Result(u8),
    Lent(u8),
    LendStatus,
    Low,
    High,
    Time,
    Controls,
    /// The process's stack pointer above its limit, and whether that is enough.
    Above,
    Room,
}

/// What the last comparison asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    Slot,
    Null,
    Lent,
    Current,
    Inside,
    Room,
    Depth,
}

#[derive(Clone)]
struct Path {
    at: usize,
    regs: [Val; 16],
    words: ArrayVec<((Where, i32), Val), 48>,
    fields: ArrayVec<((Mark, i32), Val), 12>,
    asked: Asked,
    /// `gs` holds the callee's base, or the caller's.
    gs: Option<Way>,
    /// What the current mark was set to.
    current: Option<Mark>,
    /// What the inside word is known to be: 0, or [`TAKEN`].
    inside: Option<u32>,
    /// The process's stack is known to have room.
    room: bool,
    /// There may be one more call out of a domain; it has been counted.
    shallow: bool,
    nested: bool,
    /// On the way back `gs` has been written, and the current mark not yet.
    stale: bool,
    /// The thread's home in the callee is not one of an instance that is gone.
    alive: bool,
    called: bool,
    lent: Option<bool>,
    given_back: bool,
    cleared: bool,
    /// Lower halves that are zero, as bits, and [`UPPERS`].
    vectors: u32,
    exceptions: bool,
    emptied: bool,
    /// Zeros pushed since then; whether the condition codes say so, and the registers are empty again.
    zeros: u8,
    examined: bool,
    zeroed: bool,
    controls: bool,
    /// The controls have been stored; and those of a process's start loaded, of vectors and of x87.
    kept: bool,
    plain: [bool; 2],
}

struct Checker<'a> {
    code: &'a [u8],
    pool_at: usize,
    door: &'a Door,
    c: &'a Crossing,
    steps: usize,
}

type Checked<T> = Result<T, Reason>;

const RSP: usize = 4;
const RBP: usize = 5;
/// All upper halves of vector registers.
const UPPERS: u32 = 1 << 16;
/// More than any portal's paths have together.
const MOST_STEPS: usize = 4096;

/// Accepts the bytes of a portal, whose constants begin at `pool_at`, or says why not.
pub fn verify(code: &[u8], pool_at: usize, door: &Door, c: &Crossing) -> Result<(), Refusal> {
    if pool_at > code.len() || !pool_at.is_multiple_of(8) || !code.len().is_multiple_of(8) {
        return Err(Refusal { at: pool_at, reason: Reason::Pool });
    }
    let mut regs = [Val::Any; 16];
    (0..16).for_each(|r| regs[r] = Val::Initial(r as u8));
    regs[RSP] = Val::At(Where::Caller, 0);
    let path = Path {
        at: 0,
        regs,
        words: ArrayVec::new(),
        fields: ArrayVec::new(),
        asked: Asked::Nothing,
        gs: if c.way == Way::In { None } else { Some(Way::Out) },
        current: None,
        inside: if c.way == Way::In { None } else { Some(TAKEN) },
        room: false,
        shallow: false,
        nested: false,
        stale: false,
        alive: false,
        called: false,
        lent: None,
        given_back: false,
        cleared: false,
        vectors: 0,
        exceptions: false,
        emptied: false,
        zeros: 0,
        examined: false,
        zeroed: false,
        controls: false,
        kept: false,
        plain: [false; 2],
    };
    Checker { code, pool_at, door, c, steps: 0 }.walk(path)
}

impl Checker<'_> {
    /// Executes a path to its end; a branch's other side first.
    fn walk(&mut self, mut path: Path) -> Result<(), Refusal> {
        loop {
            let at = path.at;
            let refuse = |reason| Refusal { at, reason };
            self.steps += 1;
            if self.steps > MOST_STEPS {
                return Err(refuse(Reason::Endless));
            }
            let decoded = if at < self.pool_at { decode(&self.code[..self.pool_at], at) } else { None };
            let (insn, next) = decoded.ok_or(refuse(Reason::NotAllowed))?;
            path.at = next;
            match insn {
                Insn::Return => return self.leave(&path).map_err(refuse),
                Insn::Undefined => return self.fault(&path).map_err(refuse),
                Insn::JumpMemory { at: to } => return self.jump(&path, to).map_err(refuse),
                Insn::Jump { to } => path.at = self.forward(next, to).map_err(refuse)?,
                Insn::Branch { equal, to } => {
                    let mut other = path.clone();
                    other.at = self.forward(next, to).map_err(refuse)?;
                    self.branch(&mut path, equal, false).map_err(refuse)?;
                    self.branch(&mut other, equal, true).map_err(refuse)?;
                    self.walk(other)?;
                }
                _ => self.step(&mut path, insn).map_err(refuse)?,
            }
        }
    }

    fn forward(&self, from: usize, to: i64) -> Checked<usize> {
        match usize::try_from(to) {
            Ok(to) if to >= from && to < self.pool_at => Ok(to),
            _ => Err(Reason::Branch),
        }
    }

    /// What is known on one side of a branch.
    fn branch(&self, path: &mut Path, equal: bool, taken: bool) -> Checked<()> {
        let same = equal == taken;
        match core::mem::replace(&mut path.asked, Asked::Nothing) {
            Asked::Nothing => return Err(Reason::Branch),
            Asked::Inside => path.inside = same.then_some(0),
            Asked::Room => path.room = !same,
            Asked::Depth => path.shallow = !same,
            Asked::Slot if same && self.c.way == Way::In => path.gs = Some(Way::In),
            Asked::Slot if same => path.alive = true,
            Asked::Current if same => (path.gs, path.current) = (Some(Way::Out), None),
            // Another instance may be in `gs` by now.
            Asked::Current => path.gs = None,
            Asked::Lent => path.lent = Some(same),
            Asked::Slot | Asked::Null => {}
        }
        Ok(())
    }

    fn pool(&self, memory: Memory) -> Checked<u64> {
        let Memory::Code(at) = memory else { return Err(Reason::Pool) };
        let at = usize::try_from(at).map_err(|_| Reason::Pool)?;
        let bytes =
            self.code.get(at..at.saturating_add(8)).filter(|_| at >= self.pool_at && at.is_multiple_of(8));
        bytes.and_then(|b| b.try_into().ok()).map(u64::from_le_bytes).ok_or(Reason::Pool)
    }

    fn step(&self, path: &mut Path, insn: Insn) -> Checked<()> {
        let asked = core::mem::replace(&mut path.asked, Asked::Nothing);
        match insn {
            Insn::Load { to, from, wide: true } => path.regs[to as usize] = self.load(path, from)?,
            Insn::Load { to, from, wide: false } => {
                path.regs[to as usize] = match self.load(path, from)? {
                    val @ Val::Field(_, record::SLOT | record::THREAD_ID) => val,
                    _ => return Err(Reason::Memory),
                }
            }
            Insn::Store { to, from } => self.store(path, to, path.regs[from as usize])?,
            Insn::StoreConstant { to: Memory::Base { base, disp: -4 }, value: 0 } if base as usize == RSP => {
                self.clear(path)?
            }
            Insn::StoreConstant { to: Memory::Thread(disp), value } if disp == self.c.current + INSIDE => {
                self.inside(path, value)?
            }
            Insn::Address { to, of: Memory::Base { base, disp } } => {
                let place = self.place(path.regs[base as usize], disp).ok_or(Reason::StackPointer)?;
                path.regs[to as usize] = Val::At(place.0, place.1);
            }
            Insn::Address { to, of: Memory::Code(0) } => path.regs[to as usize] = Val::Start,
            Insn::Move { to, from } => path.regs[to as usize] = path.regs[from as usize],
            Insn::Constant { to, value } => path.regs[to as usize] = Val::Const(value),
            Insn::Zero { reg } => path.regs[reg as usize] = Val::Const(0),
            Insn::Test { reg } => {
                path.asked =
                    if path.regs[reg as usize] == Val::LendStatus { Asked::Lent } else { Asked::Null };
            }
            Insn::CompareConstant { at: Memory::Thread(disp), value: 0 }
                if disp == self.c.current + INSIDE && self.c.way == Way::In && path.inside.is_none() =>
            {
                path.asked = Asked::Inside;
            }
            Insn::CompareConstant { at: Memory::Thread(disp), value: MOST_NESTED }
                if disp == self.c.current + NESTED && self.c.way != Way::In && !path.nested =>
            {
                path.asked = Asked::Depth;
            }
            Insn::AddConstant { to: Memory::Thread(disp), value } if disp == self.c.current + NESTED => {
                let over = path.called || path.lent == Some(false);
                path.nested = match value {
                    1 if path.shallow && !path.nested && !over => true,
                    -1 if path.nested && over => false,
                    _ => return Err(Reason::Depth),
                }
            }
            Insn::Subtract { from, what } => {
                let limit = self.load(path, what)? == Val::Field(Mark::Own, record::STACK_LIMIT);
                if !limit || path.regs[from as usize] != Val::At(Where::Process, 0) {
                    return Err(Reason::Room);
                }
                path.regs[from as usize] = Val::Above;
            }
            Insn::ShiftRight { reg, by: STACK_ROOM_SHIFT } if path.regs[reg as usize] == Val::Above => {
                path.regs[reg as usize] = Val::Room;
                path.asked = Asked::Room;
            }
            Insn::CompareConstant { at, value } => {
                let mark = if self.c.way == Way::In { Mark::Current } else { Mark::Linked };
                let slot = self.load(path, at)? == Val::Field(mark, record::SLOT);
                // Whoever ends this stack must be able to see that somebody is about to use it.
                let seen = self.c.way == Way::In || path.current == Some(Mark::Linked);
                if !slot || !seen || value != self.c.callee_slot {
                    return Err(Reason::SegmentBase);
                }
                path.asked = Asked::Slot;
            }
            Insn::Compare { at: Memory::Thread(disp), with } if disp == self.c.current => {
                if self.mark(path.regs[with as usize]) != Some(Mark::OwnHome) {
                    return Err(Reason::SegmentBase);
                }
                path.asked = Asked::Current;
            }
            Insn::Push { reg } => self.push(path, path.regs[reg as usize])?,
            Insn::Pop { reg } => {
                let val = self.pop(path)?;
                path.regs[reg as usize] = val;
            }
            Insn::PushMemory { from } => {
                let val = self.load(path, from)?;
                self.push(path, val)?;
            }
            Insn::PopMemory { to } => {
                let val = self.pop(path)?;
                self.store(path, to, val)?;
            }
            Insn::Or { reg, value } if value == STACK_BYTES as i32 - 1 => {
                path.regs[reg as usize] = match path.regs[reg as usize] {
                    Val::At(Where::Caller, _) if self.c.way != Way::In => Val::Mark(Mark::Own),
                    Val::At(Where::Callee, _) => Val::Mark(self.callee()),
                    _ => return Err(Reason::Record),
                }
            }
            Insn::And { reg, value: -16 } if reg as usize == RSP => match path.regs[RSP] {
                Val::At(Where::Process, at) => path.regs[RSP] = Val::At(Where::Process, at & -16),
                _ => return Err(Reason::StackPointer),
            },
            Insn::Time => (path.regs[0], path.regs[2]) = (Val::Low, Val::High),
            Insn::ShiftLeft { reg, by: 32 } => {
                path.regs[reg as usize] = match path.regs[reg as usize] {
                    Val::High => Val::High,
                    Val::Field(mark, record::SLOT) => Val::Base(mark),
                    _ => return Err(Reason::NotAllowed),
                }
            }
            Insn::OrRegister { to, from } => {
                match (path.regs[to as usize], path.regs[from as usize]) {
                    (Val::Low, Val::High) => path.regs[to as usize] = Val::Time,
                    _ => return Err(Reason::NotAllowed),
                };
            }
            Insn::SegmentBase { reg } => {
                path.stale = path.called;
                path.gs = Some(match path.regs[reg as usize] {
                    Val::Const(base) if base == u64::from(self.c.callee_slot) << 32 && !path.called => {
                        Way::In
                    }
                    Val::Const(base) if base == u64::from(self.c.caller_slot) << 32 && path.called => {
                        Way::Out
                    }
                    Val::Base(Mark::Own) => Way::Out,
                    _ => return Err(Reason::SegmentBase),
                });
            }
            Insn::CallMemory { at } => self.call(path, at)?,
            Insn::ZeroUppers if self.c.wide => path.vectors |= UPPERS,
            Insn::ZeroVector { reg } => path.vectors |= 1 << reg,
            Insn::ClearExceptions => path.exceptions = true,
            Insn::EmptyRegisters => {
                path.zeroed = path.examined;
                (path.emptied, path.zeros, path.examined) = (true, 0, false);
            }
            Insn::PushZero if path.emptied && path.zeros < 8 => path.zeros += 1,
            Insn::Examine if path.zeros == 8 => path.examined = true,
            Insn::StoreMxcsr { to: at @ Memory::Base { base, disp: 0 } } if base as usize == RSP => {
                self.store(path, at, Val::Controls)?
            }
            Insn::StoreControl { to: Memory::Base { base, disp: 4 } } if base as usize == RSP => {
                path.kept = path.plain == [false; 2]
            }
            Insn::LoadMxcsr { from: from @ Memory::Code(_) } => {
                path.plain[0] = path.kept && self.pool(from)? == PLAIN_MXCSR.into()
            }
            // With an exception that waits it would be a fault, on nobody's account.
            Insn::LoadControl { from: from @ Memory::Code(_) } => {
                let quiet = !self.c.caller_x87 || path.exceptions;
                path.plain[1] = path.kept && quiet && self.pool(from)? == PLAIN_CONTROL.into()
            }
            Insn::LoadMxcsr { from } if self.load(path, from)? == Val::Controls => path.controls = true,
            Insn::LoadControl { from: Memory::Base { base, disp: 4 } } if base as usize == RSP => {
                if self.load(path, Memory::Base { base, disp: 0 })? != Val::Controls {
                    return Err(Reason::Control);
                }
            }
            Insn::Trap => return Err(Reason::NotAllowed),
            _ => return Err(Reason::NotAllowed),
        }
        if asked != Asked::Nothing && path.asked == Asked::Nothing && !matches!(insn, Insn::Load { .. }) {
            return Err(Reason::Branch);
        }
        Ok(())
    }

    /// No vector register holds anything.
    fn scrubbed(&self, path: &Path) -> bool {
        path.vectors == if self.c.wide { 0xffff | UPPERS } else { 0xffff }
    }

    /// The inside word is set.
    fn inside(&self, path: &mut Path, value: u32) -> Checked<()> {
        let right = match (self.c.way, value) {
            (Way::In, TAKEN) => path.inside == Some(0) && !path.called,
            // All that the thread has in common with who resets the callee is done by then.
            (Way::In, 0) => path.inside == Some(TAKEN) && self.returned(path),
            (Way::Out, 0) => !path.called,
            (Way::Out, TAKEN) => path.called && path.inside == Some(0),
            _ => false,
        };
        path.inside = Some(value);
        if right { Ok(()) } else { Err(Reason::Inside) }
    }

    /// The marker of an outstanding call, at the word below the frame.
    fn clear(&self, path: &mut Path) -> Checked<()> {
        match path.regs[RSP] {
            Val::At(Where::Callee, _) if path.called => path.cleared = true,
            _ => return Err(Reason::Outstanding),
        }
        Ok(())
    }

    fn call(&self, path: &mut Path, at: Memory) -> Checked<()> {
        let target = self.pool(at)?;
        let runtime = target == self.c.lend || target == self.c.give_back;
        let scrubbed = |path: &mut Path| {
            [0, 1, 2, 6, 7, 8, 9, 10, 11].into_iter().for_each(|r: usize| path.regs[r] = Val::Any);
        };
        if runtime && self.door.lends() {
            let described = path.regs[7] == Val::Const(self.c.description) && path.regs[6] == path.regs[RSP];
            let aligned = matches!(path.regs[RSP], Val::At(Where::Caller, at) if self.c.way == Way::In && (at - 8) % 16 == 0)
                || matches!(path.regs[RSP], Val::At(Where::Process, at) if at % 16 == 0);
            if !described || !aligned || path.inside != Some(TAKEN) {
                return Err(Reason::Call);
            }
            scrubbed(path);
            if target == self.c.lend && !path.called {
                let Val::At(place, at) = path.regs[RSP] else { return Err(Reason::Call) };
                // Each argument word is now what the runtime made of it.
                for (i, _) in self.door.args.iter().enumerate() {
                    path.words
                        .try_push(((place, at + i as i32 * 8), Val::Lent(i as u8)))
                        .map_err(|_| Reason::Call)?;
                }
                path.regs[0] = Val::LendStatus;
            } else {
                path.given_back = true;
            }
            return Ok(());
        }
        if target != self.c.entry || path.called || path.lent == Some(false) {
            return Err(Reason::Call);
        }
        self.entry(path)?;
        path.called = true;
        (path.exceptions, path.emptied, path.zeroed) = (false, false, false);
        path.vectors = 0;
        scrubbed(path);
        (path.regs[0], path.regs[2]) = (Val::Result(0), Val::Result(2));
        if self.c.way != Way::Out {
            let may = if self.door.state == Kept::Full || self.c.hide { !0 } else { self.c.touched };
            PRESERVED
                .into_iter()
                .filter(|r| may >> r & 1 == 1)
                .for_each(|r| path.regs[r as usize] = Val::Any);
            path.regs[RBP] = Val::Any;
        } else {
            path.gs = None;
        }
        Ok(())
    }
}
