//! What a fault of a domain was, and what a call says that has no value.
//!
//! Problem: the signal handler ([`crate::trap`]) can neither allocate nor look anything up, and people want
//! function, file and line. Strategy: it writes down numbers, a [`Report`] of the thread's; whoever asks
//! makes a [`Fault`] of it, which finds its lines when they are wanted.

use crate::ending;
use crate::instance::Shared;
use crate::layout::*;
use crate::module::Module;
use crate::report;
use crate::slots;
use crate::thread;
use std::fmt;
use std::sync::{Arc, OnceLock};

/// What ended a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Cause {
    /// Memory outside, or without the right to it.
    Memory = 1,
    /// Division by zero or overflow, or a floating-point trap.
    Arithmetic,
    /// An instruction that does not exist, or `abort`.
    Instruction,
    ReturnStack,
    DataStack,
    Deadline,
    Cancelled,
    /// An import that nobody provides.
    Import,
    /// `longjmp` to a place that is not on the stack.
    LongJump,
    /// It has ended itself, by `exit`.
    Exit,
    /// It has ended itself, by `abort` or a signal to itself.
    Abort,
    /// Calls are nested so deep that the thread's own stack is nearly used up, or more than
    /// [`pebble_portal::fault::MOST_NESTED`] calls out of domains have not come back.
    Nesting,
    /// A comparison of level `check` has found an address outside.
    Check,
    /// It has more memory than its policy allows.
    Limit,
}

impl Cause {
    pub(crate) fn from_number(number: u32) -> Option<Cause> {
        use Cause::*;
        let all = [
            Memory,
            Arithmetic,
            Instruction,
            ReturnStack,
            DataStack,
            Deadline,
            Cancelled,
            Import,
            LongJump,
            Exit,
            Abort,
            Nesting,
            Check,
            Limit,
        ];
        all.into_iter().find(|cause| *cause as u32 == number)
    }

    /// Nobody's mistake, or nobody's alone: whoever else is in the instance is told the same.
    pub(crate) fn ends_all(self) -> bool {
        use Cause::*;
        matches!(self, Deadline | Cancelled | Exit | Abort | Nesting | Limit)
    }

    /// Somebody has ended a call wherever it was.
    pub(crate) fn cuts(self) -> bool {
        matches!(self, Cause::Deadline | Cause::Cancelled)
    }

    pub const fn text(self) -> &'static str {
        match self {
            Cause::Memory => "memory access outside the domain or without the right to it",
            Cause::Arithmetic => "arithmetic trap",
            Cause::Instruction => "illegal instruction or abort",
            Cause::ReturnStack => "return stack overflow",
            Cause::DataStack => "data stack overflow",
            Cause::Deadline => "deadline passed",
            Cause::Cancelled => "cancelled",
            Cause::Import => "call of an import that nobody provides",
            Cause::LongJump => "longjmp to a place that is not on the stack",
            Cause::Exit => "it has exited",
            Cause::Abort => "it has aborted",
            Cause::Nesting => "calls out of the domain nested too deep",
            Cause::Check => "segment matching failed: the address of the next access lies outside the domain",
            Cause::Limit => "its image, stacks and heap are more memory than its policy allows",
        }
    }
}

/// What the signal handler writes down.
#[derive(Clone, Copy)]
pub struct Report {
    pub cause: Cause,
    pub signal: i32,
    pub address: u64,
    pub rip: u64,
    /// The word that the return stack pointer names.
    pub word: u64,
    /// The code had lost its rights before the function was entered.
    pub barred: bool,
    /// The code has lost its rights meanwhile.
    pub withdrawn: bool,
    /// The call has ended for one further out, whose report this is too.
    pub cut: bool,
    /// The call had come back.
    pub returned: bool,
    pub registers: [u64; 16],
    /// The instance, by its slot and number: it may have gone when somebody asks.
    pub slot: u32,
    pub instance: u32,
}

/// A fault of a domain, for people.
#[derive(Clone)]
pub struct Fault {
    pub cause: Cause,
    pub signal: i32,
    pub instance: u32,
    pub module: Arc<Module>,
    /// Where it was executing, as an offset in the segment: the file's own addresses.
    pub at: u64,
    /// What it touched, for memory and stacks; what it would have touched, for a failed comparison.
    pub address: u64,
    /// General registers by number.
    pub registers: [u64; 16],
    /// Base of the segment.
    pub base: u64,
    /// None if it was executing outside the module's code.
    pub function: Option<(String, u32)>,
    /// If it was, after a call or jump that went astray: where that returns to.
    pub from: Option<u64>,
    /// What it has called `exit` with.
    pub status: Option<i32>,
    /// The instance was poisoned before, for this cause: `function` has not run.
    pub earlier: bool,
    /// Another call in the instance, nested in this one or on another thread, had this fault, and has ended
    /// this one.
    pub by_another: bool,
    /// The time was over when the call had come back, but nobody had been told: `at` and `function` are those
    /// of nothing.
    pub returned: bool,
    /// File and line of `at` and `from`, once somebody has asked: to look for them costs more than to
    /// describe the rest.
    lines: Arc<[OnceLock<Option<(String, u32)>>; 2]>,
}

impl Fault {
    /// File and line, if the module has debug information.
    pub fn line(&self) -> Option<(String, u32)> {
        self.line_of(0, self.at)
    }

    fn line_of(&self, place: usize, at: u64) -> Option<(String, u32)> {
        self.lines.get(place)?.get_or_init(|| report::line(&self.module.bytes, at)).clone()
    }
}

/// The function around an address of the module's code.
fn function(module: &Module, at: u64) -> Option<(&str, u32)> {
    let at = u32::try_from(at).ok().filter(|at| module.text.contains(at))?;
    module.function(at)
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let earlier = if self.earlier { "poisoned by an earlier fault: " } else { "" };
        write!(f, "{} (instance {}): {earlier}{}", self.module.name, self.instance, self.cause.text())?;
        if let Some(status) = self.status {
            write!(f, " with status {status}")?;
        }
        if self.returned {
            return f.write_str(", as the call came back");
        }
        if self.earlier {
            let name = self.function.as_ref().map_or("the function", |(name, _)| name);
            return write!(f, "; {name} has not run, reset the instance first");
        }
        if self.by_another {
            f.write_str(", in another call, which has ended this one")?;
        } else if self.cause == Cause::Check {
            write!(f, ": {:#x}", self.address)?;
        } else if matches!(self.cause, Cause::Memory | Cause::DataStack | Cause::ReturnStack) {
            write!(f, " at {:#x}", self.address)?;
            if self.address.wrapping_sub(self.base) < SEGMENT {
                write!(f, " (segment + {:#x})", self.address - self.base)?;
            }
        }
        write!(f, ", executing {:#x}", self.at)?;
        if let Some((name, offset)) = &self.function {
            write!(f, " in {name}+{offset:#x}")?;
        }
        if let Some((file, line)) = self.line() {
            write!(f, " at {file}:{line}")?;
        }
        if let Some(from) = self.from {
            write!(f, ", outside any function; the call or jump that led there returns to {from:#x}")?;
            if let Some((name, offset)) = function(&self.module, from) {
                write!(f, " in {name}+{offset:#x}")?;
            }
            if let Some((file, line)) = self.line_of(1, from - 1) {
                write!(f, " at {file}:{line}")?;
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Why a call has no value.
#[derive(Clone, Debug)]
pub enum CallError {
    Fault(Box<Fault>),
    /// No stack for this thread in the instance, and why.
    NoStack(String),
    NotLent,
    /// By a signal handler that has interrupted a domain, a portal or this runtime on its thread.
    Reentered,
    /// There is a deadline, and no thread could be started to watch it. Nothing has run.
    NoClock,
    Words {
        wanted: usize,
        given: usize,
    },
    /// Slices that share a count differ in length, or it does not hold theirs.
    Lengths,
    /// The result should be a text of the domain's, and is none.
    NoText,
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Fault(fault) => fault.fmt(f),
            CallError::NoStack(why) => write!(f, "no stack for this thread in the instance: {why}"),
            CallError::Reentered => f.write_str(crate::error::REENTERED),
            CallError::NoClock => f.write_str(
                "the thread that watches deadlines could not be started: let the process have one more \
                 (ulimit -u), or call without a limit",
            ),
            CallError::NotLent => f.write_str(
                "a window or capability could not be lent: all of a window's memory must be one region's \
                 (Region, Lent; pbl_region_new, pbl_lend), and the kernel must have memory for it",
            ),
            CallError::Lengths => {
                write!(f, "slices that share a count must have one length, which it can hold")
            }
            CallError::NoText => write!(f, "the result is no text in the domain's memory"),
            CallError::Words { wanted, given } => write!(f, "the portal takes {wanted} words, not {given}"),
        }
    }
}

impl std::error::Error for CallError {}

impl CallError {
    /// Of the call that this thread has just made.
    pub(crate) fn no_stack() -> CallError {
        CallError::NoStack(thread::with(|thread| thread.refusal.clone()).unwrap_or_default())
    }
}

/// The last fault of this thread's calls, once.
pub fn take_fault() -> Option<Fault> {
    thread::with(|thread| thread.report.get_mut().take())??.describe()
}

/// The same, which stays to be taken.
pub(crate) fn with_fault<R>(f: impl FnOnce(Fault) -> R) -> Option<R> {
    let report = thread::with(|thread| *thread.report.get_mut())??;
    report.describe().map(f)
}

/// The call of this thread's that has come back has been ended all the same, for this cause.
pub(crate) fn too_late(shared: &Shared, cause: Cause) {
    let report = Report {
        cause,
        signal: 0,
        address: 0,
        rip: shared.base,
        word: shared.base,
        barred: false,
        withdrawn: false,
        cut: false,
        returned: true,
        registers: [0; 16],
        slot: shared.slot,
        instance: shared.number,
    };
    thread::with(|thread| {
        *thread.report.get_mut() = Some(report);
        ending::come_back(thread);
    });
}

/// The code was barred in time for the call itself: it is this call's fault.
pub(crate) fn in_time() {
    thread::with(|thread| thread.report.get_mut().iter_mut().for_each(|report| report.barred = false));
}

impl Report {
    /// None if the instance has gone.
    fn describe(self) -> Option<Fault> {
        let slots = slots::existing()?;
        let pinned = slots::pin();
        // SAFETY: null, or an instance, which stays while it is pinned.
        let shared = unsafe { slots.instance(self.slot).as_ref() }.filter(|s| s.number == self.instance)?;
        let (base, module, status) = (shared.base, shared.module.clone(), shared.resources.exit_code());
        drop(pinned);
        let at = self.rip.wrapping_sub(base);
        // Past the return stack a fault in portal code is the domain's: it is where the portal was called.
        let place = function(&module, at).map(|(name, at)| (name.to_string(), at));
        // Padding between functions is no function's either.
        let astray = place.is_none() || self.signal == libc::SIGTRAP;
        let from = self.word.wrapping_sub(base);
        let from = Some(from).filter(|from| astray && function(&module, *from).is_some());
        let earlier = self.barred && place.as_ref().is_some_and(|(_, offset)| *offset == 0);
        let by_another = self.withdrawn && !earlier && !self.cause.ends_all();
        Some(Fault {
            cause: self.cause,
            signal: self.signal,
            instance: self.instance,
            module,
            at,
            address: self.address,
            registers: self.registers,
            base,
            function: place,
            from,
            status: status.filter(|_| self.cause == Cause::Exit),
            earlier,
            by_another,
            returned: self.returned,
            lines: Arc::default(),
        })
    }
}
