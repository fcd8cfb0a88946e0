//! Faults of domains: from a signal to an error at the call that is outstanding.
//!
//! Problem: a fault in confined code must end the call, one anywhere else must be what it would be without
//! us: a core dump, a debugger's stop, the process's own handler. Strategy: the handler decides by two
//! numbers that confined code cannot forge: the interrupted instruction pointer lies in an instance's text
//! (or in portal code), and the stack pointer in a return stack of that slot. Then the frame under the
//! stack's top says where the call came from, and the interrupted context is changed to be there, with a
//! status. Everything else goes to the handler that was there before.
//!
//! Invariants: the handler allocates nothing, takes no lock, and makes few system calls: `mprotect` for each
//! domain that it poisons, and what [`crate::ending`] needs. It takes as many steps as its thread has calls
//! between domains, and reads only the reservation and what records point to. Deadlines and cancellations use
//! no signal of their own: the instance's code loses its rights, and whoever is in it faults.

use crate::arena;
use crate::back;
use crate::check;
use crate::ending;
use crate::error::{Error, system};
use crate::fault::{Cause, Report};
use crate::layout::*;
use crate::left;
use crate::record::Mark;
use crate::slots;
use crate::thread::{Thread, status};
use pebble_portal::fault::{STATUS_BYTES, record};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What confined code can raise. The linker fills gaps with `int3`, and a wild call may lead there: hence
/// SIGTRAP.
const SIGNALS: [i32; 5] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL, libc::SIGTRAP];

struct Old([libc::sigaction; SIGNALS.len()]);

static OLD: OnceLock<Old> = OnceLock::new();
static OWN_HANDLERS: AtomicBool = AtomicBool::new(true);

/// For a process whose own handlers come first: they must hand faults of domains to [`handle`]. Before the
/// first instance.
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
    // On the stack is only the way back into the portal: the function's first instruction could not be
    // fetched.
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
    let nested = signal == libc::SIGILL && !confined && crate::longjmp::cause(rip) == Cause::Nesting;
    if nested && poisoned.is_none() && left::makes_room(mark) {
        // The portal's begin, where all was as it is.
        gregs[libc::REG_RIP as usize] = gregs[libc::REG_R10 as usize];
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
    let cut = (withdrawn || barred) && cause.cuts();
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
    ending::faulted(mark);
    back::tell_callers(mark, cut);
    // The call is over, whatever `busy` is asked meanwhile.
    mark.poke(resume - 8, 0);
    // SAFETY: the record names the block of the thread that owns the stack, which is this one; nothing on it
    // uses the block while it is in the domain. A report that nobody fetched is only numbers, so replacing it
    // drops nothing.
    unsafe {
        let thread = mark.get(record::THREAD) as *const Thread;
        let place = &mut *(*thread).report.get();
        // Of a call that ends with all that it waits for, the innermost place is told.
        let kept = place.filter(|inner| cut && inner.cut && inner.cause == cause).unwrap_or(report);
        let ended = (*thread).ended().is_some();
        *place = Some(Report { cut: cut && ended, ..kept });
        if !ended {
            ending::settled(mark);
        }
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

/// Where a domain called a portal, by the word on its return stack. A function that the process has called
/// and that ends in a jump to an import leaves only the process's portal there: then it is that function,
/// which the portal's call names.
fn called_from(word: u64) -> u64 {
    const CALL: [u8; 2] = [0xff, 0x15];
    if !arena::contains(word) || !arena::contains(word - 6) {
        return word;
    }
    // SAFETY: portal code stays mapped and readable; the word is behind a call in it, whose constant lies in
    // the same portal.
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
