//! Faults of domains: from a signal to an error at the call that is outstanding.
//!
//! Problem: a fault in confined code must end the call, one anywhere else must be what it would be without us: a core dump, a
//! debugger's stop, the process's own handler. Strategy: the handler decides by two numbers that confined code cannot forge: the
//! interrupted instruction pointer lies in an instance's text (or in portal code), and the stack pointer in a return stack of that slot.
//! Then the frame under the stack's top says where the call came from, and the interrupted context is changed to be there,
//! with a status. Everything else goes to the handler that was there before.
//!
//! Invariants: the handler allocates nothing, takes no lock, and makes one system call (`mprotect`); it reads only the reservation and what
//! records point to. Deadlines and cancellations use no signal of their own: the instance's code loses its rights, and whoever is in it faults.

use crate::arena;
use crate::check;
use crate::ending;
use crate::error::{Error, system};
use crate::instance::Shared;
use crate::layout::*;
use crate::module::Module;
use crate::record::Mark;
use crate::report;
use crate::slots;
use crate::thread::{self, Thread, status};
use pebble_portal::sfi::{STATUS_BYTES, published_to_return, record};
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// Calls between process and domains are nested so deep that the thread's own stack is nearly used up.
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
    fn ends_all(self) -> bool {
        use Cause::*;
        matches!(self, Deadline | Cancelled | Exit | Abort | Nesting | Limit)
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
            Cause::Nesting => "calls between process and domain nested too deep for the thread's own stack",
            Cause::Check => "segment matching failed: the address of the next access lies outside the domain",
            Cause::Limit => "its image, stacks and heap are more memory than its policy allows",
        }
    }
}

/// What the signal handler writes down.
#[derive(Clone, Copy)]
pub struct Report {
    cause: Cause,
    signal: i32,
    address: u64,
    rip: u64,
    /// The word that the return stack pointer names.
    word: u64,
    /// The code had lost its rights before the function was entered.
    barred: bool,
    /// The code has lost its rights meanwhile.
    withdrawn: bool,
    /// The call has ended for one further out, whose report this is too.
    cut: bool,
    /// The call had come back.
    returned: bool,
    registers: [u64; 16],
    /// The instance, by its slot and number: it may have gone when somebody asks.
    slot: u32,
    instance: u32,
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
    /// Another call in the instance, nested in this one or on another thread, had this fault, and has ended this one.
    pub by_another: bool,
    /// The time was over when the call had come back, but nobody had been told: `at` and `function` are those of nothing.
    pub returned: bool,
    /// File and line of `at` and `from`, once somebody has asked: to look for them costs more than to describe the rest.
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
                "the thread that watches deadlines could not be started: let the process have one more (ulimit -u), or call without a limit",
            ),
            CallError::NotLent => f.write_str(
                "a window or capability could not be lent: all of a window's memory must be one region's (Region, Lent; pbl_region_new, pbl_lend), \
                 and the kernel must have memory for it",
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

/// The call of this thread's that has come back has been ended by its deadline all the same.
pub(crate) fn too_late(shared: &Shared) {
    let report = Report {
        cause: Cause::Deadline,
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
    thread::with(|thread| *thread.report.get_mut() = Some(report));
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

/// What confined code can raise. The linker fills gaps with `int3`, and a wild call may lead there: hence SIGTRAP.
const SIGNALS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

struct Old([libc::sigaction; SIGNALS.len()]);

static OLD: OnceLock<Old> = OnceLock::new();
static OWN_HANDLERS: AtomicBool = AtomicBool::new(true);

/// For a process whose own handlers come first: they must hand faults of domains to [`handle`]. Before the first instance.
pub fn leave_handlers_alone() {
    OWN_HANDLERS.store(false, Ordering::Relaxed);
}

/// Installs the handlers, once. Those that were there are kept for faults outside.
pub fn install() -> Result<(), Error> {
    if OLD.get().is_some() || !OWN_HANDLERS.load(Ordering::Relaxed) {
        return Ok(());
    }
    static MAKING: std::sync::Mutex<()> = std::sync::Mutex::new(());
    let _one = MAKING.lock().unwrap_or_else(|e| e.into_inner());
    if OLD.get().is_some() {
        return Ok(());
    }
    // SAFETY: asks for the handlers, then sets ours, which is async-signal-safe; all structures are whole.
    unsafe {
        let mut old: [libc::sigaction; SIGNALS.len()] = std::mem::zeroed();
        for (signal, old) in SIGNALS.into_iter().zip(&mut old) {
            libc::sigaction(signal, std::ptr::null(), old);
        }
        let _ = OLD.set(Old(old));
        for signal in SIGNALS {
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = on_signal as *const () as usize;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            libc::sigemptyset(&mut new.sa_mask);
            if libc::sigaction(signal, &new, std::ptr::null_mut()) != 0 {
                return Err(system("installing a signal handler")(std::io::Error::last_os_error()));
            }
        }
    }
    Ok(())
}

extern "C" fn on_signal(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes whole structures; `errno` is this thread's.
    unsafe {
        let errno = *libc::__errno_location();
        if !handle(signal, info, context) {
            pass_on(signal, info, context);
        }
        *libc::__errno_location() = errno;
    }
}

/// Whether the signal was a fault of a domain; then the context leads back to the caller.
///
/// # Safety
/// The arguments are those of a handler with `SA_SIGINFO`, on a stack that is no domain's.
pub unsafe fn handle(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) -> bool {
    // SAFETY: by the function's contract.
    let (info, context) = unsafe { (&*info, &mut *context.cast::<libc::ucontext_t>()) };
    // Sent by somebody, not raised by an instruction.
    if info.si_code <= 0 {
        return false;
    }
    let gregs = &mut context.uc_mcontext.gregs;
    let (rip, rsp) = (gregs[libc::REG_RIP as usize] as u64, gregs[libc::REG_RSP as usize] as u64);
    // The processor has gone past an `int3`.
    let rip = if signal == libc::SIGTRAP { rip.wrapping_sub(1) } else { rip };
    let Some(slots) = slots::existing() else { return false };
    let Some(slot) = slots.return_stack(rsp) else { return false };
    let shared = slots.instance(slot);
    if shared.is_null() {
        return false;
    }
    // SAFETY: an instance in which a call is outstanding is not dropped.
    let instance = unsafe { &*shared };
    // A wild call ends below the ftab, where nothing is executable: all the segment is the domain's.
    let confined = rip.wrapping_sub(instance.base) < SEGMENT;
    if !confined && !arena::contains(rip) {
        return false;
    }
    let mark = Mark(rsp | (RETURN_STACK - 1));
    let Some((resume, site)) = mark.frame(mark.get(record::TOP)) else { return false };
    // SAFETY: the fields of a fault's information are there for these signals.
    let address = unsafe { info.si_addr() } as u64;
    let word = mark.peek(rsp).unwrap_or(0);
    let poisoned = instance.poisoned();
    // On the stack is only the way back into the portal: the function's first instruction could not be fetched.
    let barred = poisoned.is_some() && address == rip && arena::contains(word);
    let text = instance.module.text_pages();
    let code = text.contains(&rip.wrapping_sub(instance.base));
    let withdrawn = poisoned.is_some() && address == rip && code;
    let registers = general(gregs);
    let refused = Some(rip.wrapping_sub(instance.base)).filter(|_| signal == libc::SIGILL && confined);
    let refused = refused.and_then(|at| check::refused(&instance.module, at, instance.base, &registers));
    // Sound code can be executed: somebody asks who is in it.
    let fetched =
        signal == libc::SIGSEGV && address == rip && code && gregs[libc::REG_ERR as usize] & WRITE == 0;
    if fetched && poisoned.is_none() {
        ending::answer(instance, mark);
        return true;
    }
    let cause = match signal {
        libc::SIGFPE => Cause::Arithmetic,
        libc::SIGILL if !confined => {
            let ended = instance.poisoned().filter(|cause| cause.ends_all());
            ended.unwrap_or_else(|| crate::longjmp::cause(rip))
        }
        libc::SIGILL if refused.is_some() => Cause::Check,
        libc::SIGILL | libc::SIGTRAP => Cause::Instruction,
        _ => {
            let guard = mark.0 - (RETURN_STACK - 1);
            let limit = mark.get(record::DATA_LIMIT);
            match poisoned {
                Some(cause) if barred || withdrawn || address == rip && cause.ends_all() => cause,
                _ if address.wrapping_sub(guard) < PAGE => Cause::ReturnStack,
                _ if address.wrapping_sub(limit - PAGE) < PAGE => Cause::DataStack,
                _ => Cause::Memory,
            }
        }
    };
    // In portal code the domain is where it called the portal from.
    let at = if confined { rip } else { called_from(word) };
    let address = refused.unwrap_or(address);
    let cut = (withdrawn || barred) && matches!(cause, Cause::Deadline | Cause::Cancelled);
    let (slot, instance_number) = (instance.slot, instance.number);
    let report = Report {
        cause,
        signal,
        address,
        rip: at,
        word,
        barred,
        withdrawn,
        cut,
        returned: false,
        registers,
        slot,
        instance: instance_number,
    };
    instance.poison(cause);
    pass_on_to_callers(mark);
    // The call is over, whatever `busy` is asked meanwhile.
    mark.poke(resume - 8, 0);
    // SAFETY: the record names the block of the thread that owns the stack, which is this one; nothing on it uses the block while it is in
    // the domain. A report that nobody fetched is only numbers, so replacing it drops nothing.
    unsafe {
        let thread = mark.get(record::THREAD) as *const Thread;
        let place = &mut *(*thread).report.get();
        // Of a call that ends with all that it waits for, the innermost place is told.
        let kept = place.filter(|inner| cut && inner.cut && inner.cause == cause).unwrap_or(report);
        *place = Some(Report { cut: cut && (*thread).ended().is_some(), ..kept });
    }
    gregs[libc::REG_RSP as usize] = resume as i64;
    gregs[libc::REG_RIP as usize] = (site + STATUS_BYTES) as i64;
    gregs[libc::REG_RAX as usize] = 0;
    gregs[libc::REG_RDX as usize] = status::FAULT as i64;
    // Trap, direction and alignment-check flags are as the convention has them.
    gregs[libc::REG_EFL as usize] &= !(1 << 8 | 1 << 10 | 1 << 18);
    let float = context.uc_mcontext.fpregs;
    // SAFETY: the kernel's frame has the floating-point state, or no pointer to it.
    if let Some(float) = unsafe { float.as_mut() } {
        // An empty x87 stack without pending exceptions.
        (float.swd, float.ftw) = (0, 0);
        float.mxcsr &= !0x3f;
    }
    true
}

/// In the error code of a page fault: the access was a write.
const WRITE: libc::greg_t = 2;

/// A function that ends in a jump to a portal has left: what that portal says is its caller's, whose portal must not take it for the function's result.
/// So the fault of a call goes on to the innermost caller that has not left, or to the process.
fn pass_on_to_callers(mut mark: Mark) {
    let mut top = mark.get(record::TOP);
    while let Some((caller, published, next)) = mark.caller(top) {
        let verdict = |mark: Mark| mark.instance().module.verdict.control;
        let to = published + published_to_return(verdict(mark) || verdict(caller));
        let Some(word) = caller.peek(to).filter(|word| arena::contains(*word)) else { return };
        caller.poke(to, word + STATUS_BYTES);
        (mark, top) = (caller, next);
    }
}

/// The general registers by number.
fn general(gregs: &[libc::greg_t]) -> [u64; 16] {
    const ORDER: [i32; 16] = [
        libc::REG_RAX,
        libc::REG_RCX,
        libc::REG_RDX,
        libc::REG_RBX,
        libc::REG_RSP,
        libc::REG_RBP,
        libc::REG_RSI,
        libc::REG_RDI,
        libc::REG_R8,
        libc::REG_R9,
        libc::REG_R10,
        libc::REG_R11,
        libc::REG_R12,
        libc::REG_R13,
        libc::REG_R14,
        libc::REG_R15,
    ];
    ORDER.map(|r| gregs[r as usize] as u64)
}

/// Where a domain called a portal, by the word on its return stack. A function that the process has called and that ends in a jump to
/// an import leaves only the process's portal there: then it is that function, which the portal's call names.
fn called_from(word: u64) -> u64 {
    const CALL: [u8; 2] = [0xff, 0x15];
    if !arena::contains(word) || !arena::contains(word - 6) {
        return word;
    }
    // SAFETY: portal code stays mapped and readable; the word is behind a call in it, whose constant lies in the same portal.
    unsafe {
        if ((word - 6) as *const [u8; 2]).read() != CALL {
            return word;
        }
        let away = ((word - 4) as *const i32).read_unaligned();
        (word.wrapping_add_signed(away.into()) as *const u64).read_unaligned()
    }
}

/// To the handler that was there before, as the kernel would have called it, but for the stack.
///
/// # Safety
/// As for [`handle`].
unsafe fn pass_on(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    let place = SIGNALS.iter().position(|s| *s == signal);
    let Some(old) = OLD.get().zip(place).and_then(|(old, place)| old.0.get(place)) else { return };
    // SAFETY: the old action is what `sigaction` gave; its handler has the type that its flags say.
    unsafe {
        match old.sa_sigaction {
            libc::SIG_DFL => {
                // The instruction faults again, and the process ends as it would have; but an `int3` is done.
                libc::sigaction(signal, old, std::ptr::null_mut());
                if (*info).si_code <= 0 || signal == libc::SIGTRAP {
                    libc::raise(signal);
                }
            }
            libc::SIG_IGN if (*info).si_code <= 0 => {}
            libc::SIG_IGN => {
                let mut default: libc::sigaction = std::mem::zeroed();
                default.sa_sigaction = libc::SIG_DFL;
                libc::sigaction(signal, &default, std::ptr::null_mut());
            }
            handler => {
                let mut mask = old.sa_mask;
                if old.sa_flags & libc::SA_NODEFER == 0 {
                    libc::sigaddset(&mut mask, signal);
                }
                let mut before: libc::sigset_t = std::mem::zeroed();
                libc::pthread_sigmask(libc::SIG_BLOCK, &mask, &mut before);
                if old.sa_flags & libc::SA_SIGINFO != 0 {
                    type Handler = extern "C" fn(i32, *mut libc::siginfo_t, *mut libc::c_void);
                    std::mem::transmute::<usize, Handler>(handler)(signal, info, context);
                } else {
                    std::mem::transmute::<usize, extern "C" fn(i32)>(handler)(signal);
                }
                libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut());
            }
        }
    }
}
