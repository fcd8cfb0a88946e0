//! Intermediate representation: what a portal does, step by step, with no word of any instruction set.
//!
//! [`lower`] turns a specification and a [`Connection`] (everything known when the portal is opened) into two
//! straight lists of [`Op`]s, the call leg and the return leg. Emitters (`emit/`) turn each step into machine code.
//! Fixed by this module, the same for every target: which state is kept and where in the frame, what is
//! hidden, which argument comes from where.

use crate::spec::{Arg, Spec, Stack, State};
use arrayvec::ArrayVec;
use core::fmt;
use pebble_abi::{map, status, thread};

/// What portal code must know of a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Domain {
    pub asid: u16,
    /// Value of the address-space register.
    pub satp: u64,
    /// Its code may use floating point.
    pub float: bool,
    /// Runs with interrupts off, on one fixed stack.
    pub exclusive: bool,
    /// Initial stack pointer, if exclusive.
    pub fixed_stack: u64,
}

/// One connection: who calls whom, with what compiled in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connection {
    pub caller: Domain,
    pub callee: Domain,
    /// Entry point in the callee.
    pub entry: u64,
    /// Index in the caller's table.
    pub index: u16,
    /// For `c` arguments.
    pub constant: u64,
    /// Count calls in this counter (`map::counter_va`).
    pub counter: Option<u16>,
    /// Address of the common code that waits for a stack.
    pub no_stack: u64,
}

/// The kinds of portal. All but `Call`, `Wait`, `Signal` and `Tail` ignore the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Call leg and return leg.
    Call,
    /// Hybrid P on the semaphore: finishes here when the word is positive, else a call.
    Wait(u16),
    /// Hybrid V on the semaphore: finishes here when the word is not negative, else a call.
    Signal(u16),
    /// A call without a frame: the callee returns to whoever called the caller.
    Tail,
    /// Short-circuit portals.
    Short(Short),
    /// The scheduler's: `p1` thread to run, `p2` result of its pending call.
    Switch,
    /// Table entry 0: runs the return code of the top frame.
    Dispatch,
    /// An index that is not held: the domain's exception entry.
    None,
    /// Every entry of a dead domain's table: error return to whoever called the domain.
    Bounce,
    /// Bottom of the invocation stack: enters the callee (the scheduler's `thread_exit`) for good.
    ThreadEnd,
    /// Full save, then the callee: `a0` the cause.
    Interrupt,
    /// Full save, then the callee: cause, value, address, domain, thread, `t0`.
    Exception,
    /// Full save, then the callee: `a0` the thread; afterwards the `ecall` is repeated.
    NoStack,
}

/// What a short-circuit portal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// Returns these two words (value, status).
    Constant { value: i64, status: u64 },
    ThreadId,
    /// Address of the invocation stack's top word: for the portal manager, which reads thread blocks.
    Top,
    Time,
    /// `p1`: absolute time of the next timer interrupt.
    SetTimer,
    /// `p1`: domain whose translations are dropped.
    Flush,
    /// Waits for an interrupt.
    Idle,
}

/// One step. Frame words count from the lowest word of the frame being pushed or popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Add one to the counter word.
    Count(u64),
    /// Take a unit and return, or go on.
    TryWait(u64),
    /// Give a unit and return, or go on.
    TrySignal(u64),
    /// Find the invocation stack.
    Top,
    /// Raise the domain's exception if the invocation stack is full.
    Room,
    SaveReturn(u8),
    SaveStack(u8),
    SavePreserved(u8),
    SaveFloat(u8),
    /// Every register, program counter and address space; float registers first if told.
    SaveAll {
        float: bool,
    },
    /// Take the first stack of the queue at this address, its descriptor into the frame; without one, wait (`after_save`: in a trap).
    TakeStack {
        queue: u64,
        word: u8,
        no_stack: u64,
        after_save: bool,
    },
    FixedStack(u64),
    /// Push: frame size in words, the return code's address on top.
    Push(u8),
    /// Interrupts off (callee is exclusive).
    Mask,
    Unmask,
    Enter {
        satp: u64,
        entry: u64,
    },
    FloatOff,
    FloatOn,
    /// Zero these float registers.
    FloatScrub(u32),
    /// Callee's argument `to` is the caller's word `from`.
    Move {
        to: u8,
        from: u8,
    },
    Supply {
        to: u8,
        arg: Arg,
        value: u64,
    },
    /// Arguments of an exception handler.
    Cause {
        all: bool,
    },
    /// The callee returns to the gate.
    Gate,
    /// Zero these registers.
    Scrub(u32),
    /// Leave for user mode.
    Leave,

    // Return leg
    /// Status word 0; the error entry is behind it.
    Good,
    LoadReturn(u8),
    LoadStack(u8),
    LoadPreserved(u8),
    LoadFloat(u8),
    /// Give the stack back.
    GiveStack {
        queue: u64,
        word: u8,
    },
    Back {
        satp: u64,
    },
    Pop(u8),
    /// Restore everything and leave.
    LoadAll {
        float: bool,
        words: u8,
        unmask: bool,
        queue: Option<u64>,
    },

    // Whole portals
    /// Two result words, then back to the caller.
    Result {
        value: i64,
        status: u64,
    },
    Short(Short),
    /// Back to the caller of a short-circuit portal.
    Resume,
    Switch,
    Dispatch,
    Raise,
    Bounce,
}

/// Registers as bits; names as in the rv64 convention.
pub mod regs {
    pub const GP: u32 = 1 << 3;
    pub const TP: u32 = 1 << 4;
    pub const TEMPS: u32 = 7 << 5 | 15 << 28;
    pub const PRESERVED: u32 = 3 << 8 | 0x3ff << 18;
    /// `a0 + n ..= a7`.
    pub const fn args_from(n: usize) -> u32 {
        0xff << n << 10 & 0xff << 10
    }
    pub const FLOAT_ALL: u32 = !0;
    /// Float registers that the convention does not preserve.
    pub const FLOAT_TEMPS: u32 = !(3 << 8 | 0x3ff << 18);
}

pub const MAX_OPS: usize = 40;

/// The two legs. Without a return leg `ret` is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lowered {
    pub call: ArrayVec<Op, MAX_OPS>,
    pub ret: ArrayVec<Op, MAX_OPS>,
    /// Words of the frame, the return address included.
    pub words: u8,
}

/// Which words of a call's frame hold what.
#[derive(Clone, Copy, Debug, Default)]
struct Frame {
    words: u8,
    stack: Option<u8>,
    preserved: Option<u8>,
    float: Option<u8>,
    desc: Option<u8>,
}

pub const PRESERVED_WORDS: u8 = 13;
pub const FLOAT_PRESERVED_WORDS: u8 = 13;

fn frame(spec: &Spec, c: &Connection) -> Frame {
    let keeps = spec.state >= State::Partial;
    let mut f = Frame { words: 1, ..Frame::default() };
    let mut take = |wanted: bool, words: u8| {
        wanted.then(|| {
            f.words += words;
            f.words - words
        })
    };
    let stack = take(keeps || spec.stack == Stack::New, 1);
    let preserved = take(keeps, PRESERVED_WORDS);
    let float = take(keeps_float(spec, c), FLOAT_PRESERVED_WORDS);
    let desc = take(spec.stack == Stack::New && !c.callee.exclusive, 1);
    Frame { words: f.words + 1, stack, preserved, float, desc }
}

/// Leaving a domain that uses floating point keeps its preserved float registers, unless the callee uses them too and is trusted.
fn keeps_float(spec: &Spec, c: &Connection) -> bool {
    c.caller.float && !(c.callee.float && spec.state == State::Minimal)
}

/// Specification and connection to steps.
pub fn lower(spec: &Spec, shape: Shape, c: &Connection) -> Lowered {
    let mut out = Lowered::default();
    if let Some(counter) = c.counter {
        out.call.push(Op::Count(map::counter_va(counter as usize)));
    }
    match shape {
        Shape::Call => lower_call(spec, c, &mut out),
        Shape::Wait(sem) => {
            out.call.push(Op::TryWait(map::semaphore_va(sem as usize)));
            lower_call(spec, c, &mut out);
        }
        Shape::Signal(sem) => {
            out.call.push(Op::TrySignal(map::semaphore_va(sem as usize)));
            lower_call(spec, c, &mut out);
        }
        Shape::Tail => {
            out.call.push(Op::Top);
            enter_exclusive(spec, c, &mut out.call);
        }
        Shape::Short(Short::Constant { value, status }) => {
            out.call.push(Op::Result { value, status });
            out.call.push(Op::Resume);
        }
        Shape::Short(short) => {
            out.call.push(Op::Short(short));
            out.call.push(Op::Resume);
        }
        Shape::Switch => out.call.push(Op::Switch),
        Shape::Dispatch => out.call.push(Op::Dispatch),
        Shape::None => out.call.push(Op::Raise),
        Shape::Bounce => out.call.push(Op::Bounce),
        Shape::ThreadEnd => {
            // It is reached as a return leg only.
            out.call.push(Op::Raise);
            out.ret.extend([Op::Good, Op::Top, Op::FloatOff, Op::Mask]);
            enter_exclusive(spec, c, &mut out.ret);
        }
        Shape::Interrupt | Shape::Exception | Shape::NoStack => lower_trap(shape, c, &mut out),
    }
    out
}

fn lower_call(spec: &Spec, c: &Connection, out: &mut Lowered) {
    let f = frame(spec, c);
    let keeps = spec.state >= State::Partial;
    let call = &mut out.call;
    call.extend([Op::Top, Op::Room, Op::SaveReturn(0)]);
    call.extend(f.stack.map(Op::SaveStack));
    call.extend(f.preserved.map(Op::SavePreserved));
    call.extend(f.float.map(Op::SaveFloat));
    if spec.stack == Stack::New {
        call.push(match f.desc {
            Some(word) => {
                let queue = map::stack_queue_va(c.callee.asid);
                Op::TakeStack { queue, word, no_stack: c.no_stack, after_save: false }
            }
            None => Op::FixedStack(c.callee.fixed_stack),
        });
    }
    call.push(Op::Push(f.words));
    if c.callee.exclusive && !c.caller.exclusive {
        call.push(Op::Mask);
    }
    call.push(Op::Enter { satp: c.callee.satp, entry: c.entry });
    match (c.caller.float, c.callee.float) {
        (true, false) => call.push(Op::FloatOff),
        (false, true) => call.extend([Op::FloatOn, Op::FloatScrub(regs::FLOAT_ALL)]),
        (true, true) if keeps => call.push(Op::FloatScrub(regs::FLOAT_ALL)),
        _ => {}
    }
    arguments(spec, c, f.words, call);
    let hidden = if keeps { regs::PRESERVED | regs::TP } else { 0 };
    call.extend([Op::Gate, Op::Scrub(hidden | regs::GP | regs::TEMPS | regs::args_from(spec.args.len())), Op::Leave]);

    let ret = &mut out.ret;
    ret.extend([Op::Good, Op::LoadReturn(0)]);
    ret.extend(f.stack.map(Op::LoadStack));
    ret.extend(f.preserved.map(Op::LoadPreserved));
    ret.extend(f.desc.map(|word| Op::GiveStack { queue: map::stack_queue_va(c.callee.asid), word }));
    match (c.caller.float, c.callee.float) {
        (true, false) => ret.push(Op::FloatOn),
        (false, true) => ret.push(Op::FloatOff),
        _ => {}
    }
    if let Some(word) = f.float {
        ret.extend([Op::LoadFloat(word), Op::FloatScrub(regs::FLOAT_TEMPS)]);
    }
    ret.extend([Op::Pop(f.words), Op::Back { satp: c.caller.satp }]);
    if c.callee.exclusive && !c.caller.exclusive {
        ret.push(Op::Unmask);
    }
    ret.extend([Op::Scrub(regs::GP | regs::TEMPS | regs::args_from(2 + spec.results as usize)), Op::Leave]);
    out.words = f.words;
}

/// Into an exclusive domain for good: nothing is kept.
fn enter_exclusive(spec: &Spec, c: &Connection, leg: &mut ArrayVec<Op, MAX_OPS>) {
    leg.extend([Op::FixedStack(c.callee.fixed_stack), Op::Enter { satp: c.callee.satp, entry: c.entry }]);
    arguments(spec, c, 0, leg);
    let hidden = if spec.state >= State::Partial { regs::PRESERVED | regs::TP } else { 0 };
    let rest = hidden | regs::GP | regs::TEMPS | regs::args_from(spec.args.len());
    leg.extend([Op::Gate, Op::Scrub(rest), Op::Leave]);
}

fn lower_trap(shape: Shape, c: &Connection, out: &mut Lowered) {
    let float = c.caller.float;
    let words = (thread::TRAP_WORDS + if float { thread::TRAP_FLOAT_WORDS } else { 0 }) as u8;
    let queue = (!c.callee.exclusive).then(|| map::stack_queue_va(c.callee.asid));
    let call = &mut out.call;
    call.push(Op::SaveAll { float });
    call.push(match queue {
        Some(queue) => {
            let word = words - (thread::TRAP_WORDS - thread::TRAP_DESC) as u8;
            Op::TakeStack { queue, word, no_stack: c.no_stack, after_save: true }
        }
        None => Op::FixedStack(c.callee.fixed_stack),
    });
    if float {
        call.push(Op::FloatOff);
    }
    let args = match shape {
        Shape::NoStack => {
            call.push(Op::Supply { to: 0, arg: Arg::Thread, value: 0 });
            1
        }
        _ => {
            call.push(Op::Cause { all: shape == Shape::Exception });
            if shape == Shape::Exception { 6 } else { 1 }
        }
    };
    call.push(Op::Push(words));
    if c.callee.exclusive {
        call.push(Op::Mask);
    }
    call.push(Op::Enter { satp: c.callee.satp, entry: c.entry });
    let rest = regs::PRESERVED | regs::TP | regs::GP | regs::TEMPS | regs::args_from(args);
    call.extend([Op::Gate, Op::Scrub(rest), Op::Leave]);
    out.ret.push(Op::LoadAll { float, words, unmask: c.callee.exclusive, queue });
    out.words = words;
}

/// Arguments by letter. The caller's words lie one register above the place of an argument list that has only words, so the moves
/// downwards come first, in order, those upwards last, in reverse order: none overwrites a source.
/// `pushed`: words of the frame that this leg has pushed.
fn arguments(spec: &Spec, c: &Connection, pushed: u8, call: &mut ArrayVec<Op, MAX_OPS>) {
    let words = || spec.args.iter().enumerate().filter(|(_, a)| **a == Arg::Word).map(|(to, _)| to as u8).zip(1u8..);
    call.extend(words().filter(|(to, from)| to < from).map(|(to, from)| Op::Move { to, from }));
    call.extend(words().rev_list().filter(|(to, from)| to > from).map(|(to, from)| Op::Move { to, from }));
    for (to, arg) in spec.args.iter().enumerate().filter(|(_, a)| **a != Arg::Word) {
        let value = match arg {
            Arg::Constant => c.constant,
            Arg::Index => u64::from(c.index),
            Arg::Domain => u64::from(c.caller.asid),
            // Where the frame lies by which the caller was entered, below the top of the invocation stack.
            Arg::Origin => u64::from(pushed) * 8,
            _ => 0,
        };
        call.push(Op::Supply { to: to as u8, arg: *arg, value });
    }
}

/// Reversal of a short iterator that has no reversal of its own.
trait RevList: Iterator<Item = (u8, u8)> + Sized {
    fn rev_list(self) -> impl Iterator<Item = (u8, u8)> {
        let list: ArrayVec<(u8, u8), 8> = self.collect();
        list.into_iter().rev()
    }
}
impl<I: Iterator<Item = (u8, u8)>> RevList for I {}

/// Result words of a portal whose target is gone.
pub const fn closed(code: u64, asid: u16) -> Short {
    Short::Constant { value: -1, status: code | (asid as u64) << 16 }
}

/// The error that [`Shape::Bounce`] returns, before the domain is added.
pub const BOUNCE_CODE: u64 = status::DEAD;

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Op::Scrub(set) => {
                write!(f, "Scrub(")?;
                for x in (0..32).filter(|x| set >> x & 1 == 1) {
                    write!(f, " x{x}")?;
                }
                write!(f, " )")
            }
            Op::FloatScrub(set) => write!(f, "FloatScrub({set:#010x})"),
            Op::Enter { satp, entry } => write!(f, "Enter {{ satp: {satp:#x}, entry: {entry:#x} }}"),
            Op::Back { satp } => write!(f, "Back {{ satp: {satp:#x} }}"),
            Op::Count(a) | Op::TryWait(a) | Op::TrySignal(a) | Op::FixedStack(a) => {
                let name = match self {
                    Op::Count(_) => "Count",
                    Op::TryWait(_) => "TryWait",
                    Op::TrySignal(_) => "TrySignal",
                    _ => "FixedStack",
                };
                write!(f, "{name}({a:#x})")
            }
            other => write!(f, "{other:x?}"),
        }
    }
}
