//! Intermediate representation: what a portal does, step by step, with no word of any instruction set.
//!
//! [`steps`] turns a specification and the [`Facts`] of a connection (all that shapes its code) into a
//! straight sequence of [`Op`]s: the call leg and, from [`Op::Return`] on, the return leg. Emitters (`emit/`)
//! turn each step into machine code as it comes; [`lower`] collects them for a reader. Fixed by this module,
//! the same for every target: which state is kept and where in the frame, what is hidden, which argument
//! comes from where.
//!
//! Code common to all domains (traps, the thread end) is compiled with `caller.asid` 0. So its frames name no
//! caller, and [`Arg::Origin`], which reads the name from the frame by which a domain was entered, is 0 where
//! a domain serves nobody's call.

use super::hole::{Facts, Hole};
use crate::spec::{Arg, Spec, Stack, State};
use arrayvec::ArrayVec;
pub use connection::{Connection, Domain, Shape, Short, Stacks};
use pebble_abi::status;
use pebble_arch::Layout;
pub use window::{Lent, lent};

mod connection;
mod display;
mod window;

/// One step, two words at most. Frame words count from the lowest word of the frame being pushed or popped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Op {
    /// Add one to the counter word. It comes first, so what it leaves in temporaries is overwritten or
    /// scrubbed.
    Count,
    /// Take a unit and return, or go on.
    TryWait,
    /// Give a unit and return, or go on.
    TrySignal,
    /// Find the invocation stack.
    Top,
    /// Raise the domain's exception if the invocation stack is full; of a server of the image (`reserve`)
    /// refuse the call if the reserve is.
    Room {
        reserve: bool,
    },
    SaveReturn(u8),
    SaveStack(u8),
    SavePreserved(u8),
    SaveFloat(u8),
    /// Every register, program counter and address space; float registers first if told.
    SaveAll {
        float: bool,
    },
    /// Take the first stack of the callee's queue, its descriptor into the frame; without one, wait
    /// (`after_save`: in a trap).
    TakeStack {
        word: u8,
        after_save: bool,
        /// `CheckStack` has found one already.
        checked: bool,
    },
    /// Wait if there is no stack, and take none yet.
    CheckStack,
    /// Find what the caller lends, and refuse what it may not lend. `keep`: frame word for where `g` puts
    /// pages at the return.
    CheckWindow {
        lent: Lent,
        keep: u8,
    },
    /// Wait unless the callee has a free slot for the first window, and for the second, if there is one.
    /// True: for a buffer.
    CheckSlots {
        first: bool,
        second: Option<bool>,
        /// Of those that are apart; then the call is refused instead of waiting.
        apart: bool,
    },
    /// Take a slot, its descriptor into the frame, show in it what is lent; the caller's word becomes the
    /// address there.
    OpenWindow {
        lent: Lent,
        word: u8,
        /// Registers still hold what `CheckSlots` has found.
        found: bool,
        /// Make the caller forget its translations; else the next window does.
        fence: bool,
    },
    /// The caller's word becomes what the template makes of it.
    Translate {
        from: u8,
        letter: u8,
    },
    FixedStack,
    /// Push: frame size in words, the return code's address on top.
    Push(u8),
    /// Interrupts off (callee is exclusive).
    Mask,
    Unmask,
    /// Into this domain's address space.
    Space(Hole),
    Entry,
    FloatOff,
    FloatOn,
    /// Zero these float registers.
    FloatScrub {
        preserved: bool,
    },
    /// Callee's argument `to` is the caller's word `from`.
    Move {
        to: u8,
        from: u8,
    },
    /// Argument, or result, `to`: a number, or a symbol.
    Supply {
        to: u8,
        arg: Arg,
        value: u64,
    },
    /// The cause, argument of an interrupt handler; raise the domain's exception if it is none of an
    /// interrupt: a program may name this entry.
    Interrupted {
        float: bool,
    },
    /// Arguments of an exception handler.
    Cause,
    /// What kind of trap it was, into the frame: of a call, or of something else that lacks a stack of its
    /// handler.
    SaveCause(u8),
    /// Arguments: the domain that a portal has found without a stack, which it has left in the register of
    /// fault addresses; the one that runs.
    Lacking,
    /// The callee returns to the gate.
    Gate,
    /// Zero these registers.
    Scrub(Hidden),
    /// Leave for user mode.
    Leave,

    /// The return leg begins: status word 0. Its error entry is behind this step.
    Return,
    LoadReturn(u8),
    LoadStack(u8),
    LoadPreserved(u8),
    LoadFloat(u8),
    /// Give the stack back.
    GiveStack(u8),
    /// Take back what was lent, and give the slot back.
    CloseWindow {
        lent: Lent,
        word: u8,
        /// Make the callee forget its translations; else the next window does.
        fence: bool,
    },
    Pop(u8),
    /// Program counter and address space of a trap's frame.
    LoadTrapped {
        float: bool,
    },
    /// Every register of a trap's frame, which is popped.
    LoadAll {
        float: bool,
    },

    // Short-circuit portals
    /// First result: address of the invocation stack's top word.
    ResultTop,
    /// First result, which holds that address, becomes the thread.
    ResultThread,
    SetTimer,
    Flush,
    Idle,
    /// Does it, and sets the first result.
    Stacks(Stacks),
    /// Back to the caller of a short-circuit portal.
    Resume,

    // Whole portals
    Switch,
    Dispatch,
    Raise,
    /// A return code that goes on through the table.
    EndThread,
    /// Error return with this status code; with `TIMEOUT` only from a late call.
    Bounce(u16),
}

const _: () = assert!(size_of::<Op>() <= 16);

/// Which registers carry nothing across, and become zero. That of the nucleus is always one of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hidden {
    /// Those that the convention preserves, the thread pointer too.
    pub preserved: bool,
    /// Those that it does not, and the argument registers from this one on; without it none of these.
    pub temporaries: Option<u8>,
}

impl Hidden {
    const OWN: Hidden = Hidden { preserved: false, temporaries: None };

    pub const fn temporaries(arguments_from: usize) -> Hidden {
        Hidden { preserved: false, temporaries: Some(arguments_from as u8) }
    }
}

pub const MAX_OPS: usize = 48;

/// The two legs. Without a return leg `ret` is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lowered {
    pub call: ArrayVec<Op, MAX_OPS>,
    pub ret: ArrayVec<Op, MAX_OPS>,
    /// Words of the frame, the return address included.
    pub words: u8,
}

/// Which words of a call's frame hold what.
#[derive(Default)]
struct Frame {
    words: u8,
    stack: Option<u8>,
    preserved: Option<u8>,
    float: Option<u8>,
    desc: Option<u8>,
    windows: window::Placed,
}

fn frame(spec: &Spec, c: &Facts, layout: &Layout) -> Frame {
    let keeps = spec.state >= State::Partial;
    let mut f = Frame { words: 1, ..Frame::default() };
    let mut take = |wanted: bool, words: u8| {
        wanted.then(|| {
            f.words += words;
            f.words - words
        })
    };
    let stack = take(keeps || spec.stack == Stack::New, 1);
    let preserved = take(keeps, layout.preserved as u8);
    let float = take(keeps_float(spec, c), layout.float_preserved as u8);
    let desc = take(spec.stack == Stack::New && !c.callee.exclusive, 1);
    let place = |lent: Lent| (lent, take(true, lent.frame_words()).unwrap_or(0));
    let windows = window::lent(spec, c).into_iter().map(place).collect();
    Frame { words: f.words + 1, stack, preserved, float, desc, windows }
}

/// Words of a call's frame with such windows, the return address included: as many as [`frame`] gives away.
pub(super) fn frame_words(spec: &Spec, c: &Facts, layout: &Layout, windows: &[Lent]) -> usize {
    let new = spec.stack == Stack::New;
    let mut words = 2 + usize::from(new && !c.callee.exclusive);
    if spec.state >= State::Partial {
        words += 1 + layout.preserved;
    } else if new {
        words += 1;
    }
    if keeps_float(spec, c) {
        words += layout.float_preserved;
    }
    words + windows.iter().map(|lent| usize::from(lent.frame_words())).sum::<usize>()
}

/// Leaving a domain that uses floating point keeps its preserved float registers, unless the callee uses them
/// too and is trusted.
fn keeps_float(spec: &Spec, c: &Facts) -> bool {
    c.caller.float && !(c.callee.float && spec.state == State::Minimal)
}

/// Specification and facts to steps, one list a leg.
pub fn lower(spec: &Spec, shape: Shape, c: &Facts, layout: &Layout) -> Lowered {
    let mut out = Lowered::default();
    steps(spec, shape, c, layout, &mut |op| {
        if let Op::Push(words) = op {
            out.words = words;
        }
        let returning = op == Op::Return || !out.ret.is_empty();
        if returning { &mut out.ret } else { &mut out.call }.push(op);
    });
    out
}

/// Specification and facts to steps, each handed to `put`; frames are as the processor's [`Layout`]
/// says. Only `Call`, `Wait` and `Signal` are counted.
pub fn steps(spec: &Spec, shape: Shape, c: &Facts, layout: &Layout, put: &mut impl FnMut(Op)) {
    match shape {
        Shape::Call | Shape::Wait(_) | Shape::Signal(_) => {
            if c.counted {
                put(Op::Count);
            }
            match shape {
                Shape::Wait(_) => put(Op::TryWait),
                Shape::Signal(_) => put(Op::TrySignal),
                _ => {}
            }
            call(spec, c, layout, put);
        }
        Shape::Tail => {
            put(Op::Top);
            enter_exclusive(spec, put);
        }
        Shape::Short(short) => short_circuit(short, put),
        Shape::Switch => put(Op::Switch),
        Shape::Dispatch => put(Op::Dispatch),
        Shape::None => put(Op::Raise),
        Shape::Bounce | Shape::Leave(_) => {
            leaves_with(shape).into_iter().for_each(|code| put(Op::Bounce(code)));
        }
        // It is reached as a return leg only, at its first or its second instruction.
        Shape::ThreadEnd => [Op::Raise, Op::Return, Op::EndThread].into_iter().for_each(&mut *put),
        Shape::ThreadExit => {
            [Op::Raise, Op::Top, Op::FloatOff, Op::Mask].into_iter().for_each(&mut *put);
            enter_exclusive(spec, put);
        }
        Shape::Interrupt | Shape::Exception | Shape::NoStack => trap(shape, c, layout, put),
    }
}

fn call(spec: &Spec, c: &Facts, layout: &Layout, put: &mut impl FnMut(Op)) {
    let f = frame(spec, c, layout);
    let keeps = spec.state >= State::Partial;
    let masks = c.callee.exclusive && !c.caller.exclusive;
    put(Op::Top);
    // An exclusive callee calls nobody on, so of its short frames one at most ever lies above the limit: the
    // fault handler, entered when a stack is full, can still reach the scheduler.
    if !c.callee.exclusive {
        put(Op::Room { reserve: c.caller.trusted });
    }
    window::check(&f.windows, put);
    put(Op::SaveReturn(0));
    let kept = [f.stack.map(Op::SaveStack), f.preserved.map(Op::SavePreserved), f.float.map(Op::SaveFloat)];
    kept.into_iter().flatten().for_each(&mut *put);
    let translates = spec.templates().count() > 0;
    if f.desc.is_some() && translates {
        put(Op::CheckStack);
    }
    for (from, letter) in spec.templates() {
        put(Op::Translate { from, letter });
    }
    if let Some(word) = f.desc {
        put(Op::TakeStack { word, after_save: false, checked: translates });
    } else if spec.stack == Stack::New {
        put(Op::FixedStack);
    }
    window::open(&f.windows, translates, put);
    put(Op::Push(f.words));
    if masks {
        put(Op::Mask);
    }
    put(Op::Space(Hole::CalleeSpace));
    put(Op::Entry);
    match (c.caller.float, c.callee.float) {
        (true, false) => put(Op::FloatOff),
        (false, true) => {
            put(Op::FloatOn);
            put(Op::FloatScrub { preserved: true });
        }
        (true, true) if keeps => put(Op::FloatScrub { preserved: true }),
        _ => {}
    }
    arguments(spec, f.words, put);

    put(Op::Return);
    put(Op::LoadReturn(0));
    let kept = [f.stack.map(Op::LoadStack), f.preserved.map(Op::LoadPreserved), f.desc.map(Op::GiveStack)];
    kept.into_iter().flatten().for_each(&mut *put);
    window::close(&f.windows, put);
    match (c.caller.float, c.callee.float) {
        (true, false) => put(Op::FloatOn),
        (false, true) => put(Op::FloatOff),
        _ => {}
    }
    if let Some(word) = f.float {
        put(Op::LoadFloat(word));
        put(Op::FloatScrub { preserved: false });
    }
    put(Op::Pop(f.words));
    put(Op::Space(Hole::CallerSpace));
    if masks {
        put(Op::Unmask);
    }
    put(Op::Scrub(Hidden::temporaries(2 + spec.results as usize)));
    put(Op::Leave);
}

/// Into an exclusive domain for good: nothing is kept.
fn enter_exclusive(spec: &Spec, put: &mut impl FnMut(Op)) {
    put(Op::FixedStack);
    put(Op::Space(Hole::CalleeSpace));
    put(Op::Entry);
    arguments(spec, 0, put);
}

fn trap(shape: Shape, c: &Facts, layout: &Layout, put: &mut impl FnMut(Op)) {
    let float = c.caller.float;
    let words = layout.all_words(float) as u8;
    let word = words - (layout.words - layout.desc) as u8;
    put(Op::SaveAll { float });
    if shape == Shape::Interrupt {
        put(Op::Interrupted { float });
    }
    put(match c.callee.exclusive {
        false => Op::TakeStack { word, after_save: true, checked: false },
        true => Op::FixedStack,
    });
    if float {
        put(Op::FloatOff);
    }
    match shape {
        Shape::NoStack => {
            put(Op::SaveCause(word));
            put(Op::Lacking);
        }
        Shape::Exception => put(Op::Cause),
        _ => {}
    }
    put(Op::Push(words));
    if c.callee.exclusive {
        put(Op::Mask);
    }
    put(Op::Space(Hole::CalleeSpace));
    put(Op::Entry);
    let args = match shape {
        Shape::Exception => 6,
        Shape::NoStack => 2,
        _ => 1,
    };
    enter(State::Full, args, put);

    put(Op::Return);
    put(Op::LoadTrapped { float });
    put(if c.callee.exclusive { Op::Unmask } else { Op::GiveStack(word) });
    put(Op::Pop(words));
    if float {
        put(Op::FloatOn);
    }
    put(Op::LoadAll { float });
    put(Op::Scrub(Hidden::OWN));
    put(Op::Leave);
}

fn short_circuit(short: Short, put: &mut impl FnMut(Op)) {
    let constant = |to, value| Op::Supply { to, arg: Arg::Constant, value };
    let mut status = 0;
    match short {
        Short::Constant { value, status: s } => {
            put(constant(0, value as u64));
            status = s;
        }
        Short::ThreadId => {
            put(Op::ResultTop);
            put(Op::ResultThread);
        }
        Short::Top => put(Op::ResultTop),
        Short::Time => put(Op::Supply { to: 0, arg: Arg::Time, value: 0 }),
        Short::SetTimer | Short::Flush | Short::Idle => {
            put(match short {
                Short::SetTimer => Op::SetTimer,
                Short::Flush => Op::Flush,
                _ => Op::Idle,
            });
            put(constant(0, 0));
        }
        Short::Stacks(what) => put(Op::Stacks(what)),
    }
    put(constant(1, status));
    put(Op::Resume);
}

/// Arguments by letter, and into the callee. The caller's words lie one register above the place of an
/// argument list that has only words, so the moves downwards come first, in order, those upwards last, in
/// reverse order: none overwrites a source. `pushed`: words of the frame that this leg has pushed.
fn arguments(spec: &Spec, pushed: u8, put: &mut impl FnMut(Op)) {
    let mut from = 0;
    for (to, _) in (0u8..).zip(&spec.args).filter(|(_, a)| a.is_word()) {
        from += 1;
        if to < from {
            put(Op::Move { to, from });
        }
    }
    for to in (0..spec.args.len() as u8).rev().filter(|to| spec.args[*to as usize].is_word()) {
        if to > from {
            put(Op::Move { to, from });
        }
        from -= 1;
    }
    for (to, arg) in (0u8..).zip(&spec.args).filter(|(_, a)| !a.is_word()) {
        let value = match arg {
            Arg::Constant => Hole::Constant.symbol(),
            Arg::Index => Hole::Index.symbol(),
            Arg::Domain => Hole::Told.symbol(),
            // Where the frame lies by which the caller was entered, below the top of the invocation stack.
            Arg::Origin => u64::from(pushed) * 8,
            _ => 0,
        };
        put(Op::Supply { to, arg: *arg, value });
    }
    enter(spec.state, spec.args.len(), put);
}

/// Into the callee, which has this many arguments; nothing else passes.
fn enter(state: State, args: usize, put: &mut impl FnMut(Op)) {
    put(Op::Gate);
    put(Op::Scrub(Hidden { preserved: state >= State::Partial, ..Hidden::temporaries(args) }));
    put(Op::Leave);
}

/// Result words of a portal whose target is gone.
pub const fn closed(code: u64, asid: u16) -> Short {
    Short::Constant { value: -1, status: code | (asid as u64) << 16 }
}

/// The code that a shape returns as an error of the domain that runs it.
pub const fn leaves_with(shape: Shape) -> Option<u16> {
    match shape {
        Shape::Bounce => Some(status::DEAD as u16),
        Shape::Leave(code) => Some(code),
        _ => None,
    }
}
