//! A deadline or a cancellation ends a call wherever it is, and never reads as success: in domains that have
//! been called, however they are composed, in system calls, and at every single instruction. Limits are of
//! processor time where something computes, so that no test knows how busy the machine is.

mod common;

use common::{alone, basic, basic_with, fault, function, instance, sound_again, used};
use pebble_sfi_runtime::{
    CallError, Cause, Fault, Imports, Instance, Limit, Module, Outcome, Policy, Portal,
};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const TIME: Duration = Duration::from_millis(30);
/// What a call may take beyond its limit, of the processor. A virtual machine that is held up counts as used
/// what it has not had.
const BEYOND: Duration = Duration::from_millis(500);

/// The call's deadline passes, and it is back in time.
fn ends_in_time(portal: &Portal, words: &[u64]) -> Fault {
    let before = used();
    let fault = fault(portal.call_within(Limit::processor(TIME), words));
    let more = used() - before;
    assert_eq!(fault.cause, Cause::Deadline, "{fault}");
    assert!(more >= TIME && more < TIME + BEYOND, "{more:?}: {fault}");
    fault
}

/// Cancels an instance when a call is in another.
fn cancelled_while_in(cancelled: &Instance, busy: &Instance, call: impl FnOnce() -> Fault) -> Fault {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !busy.busy() {
                std::thread::sleep(Duration::from_millis(1));
            }
            cancelled.cancel();
        });
        call()
    })
}

#[test]
fn in_a_domain_that_loops() {
    for spec in ["smii", "npii", "nfii"] {
        let (a, b) = (instance(), instance());
        a.connect("host0", &b, "spin", spec).unwrap();
        let portal = a.portal("callback", spec).unwrap();
        let ended = ends_in_time(&portal, &[1, 2]);
        assert_eq!((ended.instance, function(&ended)), (b.number(), Some("spin")), "{ended}");
        assert_eq!((a.poisoned(), b.poisoned()), (Some(Cause::Deadline), Some(Cause::Deadline)));
        sound_again([&a, &b]);
        let ended = cancelled_while_in(&a, &b, || fault(portal.call(&[1, 2])));
        assert_eq!((ended.cause, ended.instance), (Cause::Cancelled, b.number()), "{ended}");
        sound_again([&a, &b]);
    }
}

/// A function that ends in a jump to a portal is on no stack any more: the fault is that of the call of it
/// all the same.
#[test]
fn below_a_function_that_has_left() {
    let all: [Instance; 4] = std::array::from_fn(|_| instance());
    let [a, b, c, d] = &all;
    a.connect("host1", b, "ends_in_import", "smii").unwrap();
    b.connect("host1", c, "ends_in_import", "npii").unwrap();
    c.connect("host1", d, "spin", "smii").unwrap();
    for spec in ["smii", "npii"] {
        let portal = a.portal("ends_in_import", spec).unwrap();
        assert_eq!(ends_in_time(&portal, &[1, 2]).instance, d.number());
        sound_again([a, b, c, d]);
        let ended = cancelled_while_in(a, d, || fault(portal.call(&[1, 2])));
        assert_eq!(ended.cause, Cause::Cancelled);
        sound_again([a, b, c, d]);
    }
    // Whatever the portal between them keeps.
    for (level, symbol) in
        [(1, None), (2, None), (1, Some("CONTROL")), (2, Some("CONTROL")), (2, Some("FLOAT"))]
    {
        let (e, f) = (instance(), Instance::new(&basic_with(level, symbol)).unwrap());
        for (caller, callee) in [(&e, &f), (&f, &e)] {
            caller.connect("host1", callee, "crash", "smii").unwrap();
            let crash = fault(caller.portal("ends_in_import", "smii").unwrap().call(&[1, 2]));
            assert_eq!((crash.cause, crash.instance), (Cause::Instruction, callee.number()), "{crash}");
            assert_eq!((caller.poisoned(), callee.poisoned()), (None, Some(Cause::Instruction)));
            assert_eq!(caller.portal("add", "smii").unwrap().call(&[1, 2]).unwrap(), 3);
            callee.reset().unwrap();
        }
    }
}

#[test]
fn at_the_end_of_a_chain() {
    let all: Vec<Instance> = (0..12).map(|_| instance()).collect();
    for pair in all.windows(2) {
        pair[0].connect("host0", &pair[1], "callback", "smii").unwrap();
    }
    let last = instance();
    all[11].connect("host0", &last, "spin", "smii").unwrap();
    let ended = ends_in_time(&all[0].portal("callback", "smii").unwrap(), &[1, 2]);
    assert_eq!(ended.instance, last.number());
    sound_again(all.iter().chain([&last]));
    // Back in itself: A, B, A, B, ...
    let (a, b) = (instance(), instance());
    a.connect("host0", &b, "callback", "smii").unwrap();
    b.connect("host0", &a, "missing", "npii").unwrap();
    a.connect("host1", &b, "spin", "smii").unwrap();
    ends_in_time(&a.portal("callback", "smii").unwrap(), &[1, 2]);
    sound_again([&a, &b]);
}

/// The domain ignores what it is told of the calls that it makes, and makes more.
#[test]
fn in_a_domain_that_goes_on() {
    let (a, b, c) = (instance(), instance(), instance());
    a.connect("host0", &b, "repeat", "smii").unwrap();
    b.connect("host0", &c, "spin", "smii").unwrap();
    let ended = ends_in_time(&a.portal("callback", "smii").unwrap(), &[u64::MAX, 0]);
    assert!([b.number(), c.number()].contains(&ended.instance), "{ended}");
    sound_again([&a, &b, &c]);
}

static INNER: OnceLock<Portal> = OnceLock::new();

#[test]
fn below_a_function_of_the_process() {
    let (b, c) = (instance(), instance());
    b.connect("host0", &c, "spin", "smii").unwrap();
    let _ = INNER.set(b.portal("callback", "smii").unwrap());
    let module = Module::load("basic", common::build("basic", 1)).unwrap();
    let mut imports = Imports::new();
    imports.lenient = true;
    imports.closure("host0", |_, [x, y, ..]| {
        let inner = INNER.get().expect("the test's");
        let ended = fault(inner.call(&[x, y]));
        assert!([Cause::Deadline, Cause::Cancelled].contains(&ended.cause), "{ended}");
        7
    });
    let a = Instance::new(&imports.link(&module).unwrap()).unwrap();
    let portal = a.portal("callback", "smii").unwrap();
    ends_in_time(&portal, &[1, 2]);
    sound_again([&a, &b, &c]);
    let ended = cancelled_while_in(&a, &c, || fault(portal.call(&[1, 2])));
    assert_eq!(ended.cause, Cause::Cancelled);
    sound_again([&a, &b, &c]);
}

/// Who cancels waits for the lock of the deadlines, however long somebody has it; and who has it himself, as
/// a signal handler's thread may, is heard when he gives it up.
#[test]
fn cancelled_while_the_lock_is_taken() {
    let (a, b) = (instance(), instance());
    a.connect("host0", &b, "spin", "smii").unwrap();
    let portal = a.portal("callback", "smii").unwrap();
    for own in [false, true] {
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !b.busy() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                let held = pebble_sfi_runtime::hold_deadlines();
                let other = (!own).then(|| scope.spawn(|| a.cancel()));
                if own {
                    a.cancel();
                }
                std::thread::sleep(Duration::from_millis(50));
                drop(held);
                other.map(|other| other.join());
            });
            let ended = fault(portal.call_within(Limit::processor(Duration::from_secs(2)), &[1, 2]));
            assert_eq!(ended.cause, Cause::Cancelled);
        });
        sound_again([&a, &b]);
    }
}

/// A domain that answers at once goes on to do so for others, though an accomplice of the one whose time is
/// over calls it without end.
#[test]
fn who_answers_is_spared() {
    let (a, accomplice, server) = (instance(), instance(), instance());
    a.connect("host0", &accomplice, "repeat", "smii").unwrap();
    accomplice.connect("host0", &server, "add", "smii").unwrap();
    let (over, served) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let add = server.portal("add", "npii").unwrap();
            while !over.load(Ordering::SeqCst) {
                let n = served.fetch_add(1, Ordering::SeqCst);
                assert_eq!(add.call(&[n, 1]).unwrap(), n + 1);
            }
        });
        for _ in 0..5 {
            let ended = ends_in_time(&a.portal("callback", "smii").unwrap(), &[u64::MAX, 1]);
            assert_eq!((accomplice.poisoned(), server.poisoned()), (Some(Cause::Deadline), None), "{ended}");
            sound_again([&a, &accomplice]);
        }
        over.store(true, Ordering::SeqCst);
    });
    assert!(served.load(Ordering::SeqCst) > 0);
}

/// Whoever else is in a domain that is asked waits for a moment, and has what it wants.
#[test]
fn eight_threads_below_deadlines() {
    let server = instance();
    std::thread::scope(|scope| {
        for t in 0..8u64 {
            let server = &server;
            scope.spawn(move || {
                let a = instance();
                a.connect("host0", server, "keep", "npii").unwrap();
                let repeat = a.portal("repeat", "smii").unwrap();
                let keep = server.portal("keep", "smii").unwrap();
                for n in 0..20 {
                    let limit = Limit::processor(Duration::from_micros(300 + 100 * t));
                    assert_eq!(fault(repeat.call_within(limit, &[u64::MAX, n])).cause, Cause::Deadline);
                    a.reset().unwrap();
                    assert_eq!(keep.call(&[t, n]).unwrap(), t + n);
                }
            });
        }
    });
    assert_eq!(server.poisoned(), None);
}

/// A call that has come back when its time is over says so, since its instance is poisoned.
#[test]
fn no_limit_is_passed_in_silence() {
    let (a, b) = (instance(), instance());
    a.connect("host0", &b, "add", "smii").unwrap();
    let portal = a.portal("callback", "smii").unwrap();
    let mut ended = 0;
    // On a busy machine whoever ends it is late for most.
    for n in 0..1_000_000u64 {
        if n >= 2000 && ended > 0 {
            return;
        }
        let limit = Duration::from_nanos(n % 2000 * 50);
        match portal.call_within(limit, &[n, 1]) {
            Ok(value) => assert_eq!((value, a.poisoned()), (n + 2, None)),
            Err(CallError::Fault(fault)) => {
                ended += 1;
                assert_eq!((fault.cause, fault.earlier), (Cause::Deadline, false), "{fault}");
                assert_eq!((a.poisoned(), b.poisoned()), (Some(Cause::Deadline), None));
                a.reset().unwrap();
            }
            Err(other) => panic!("{other}"),
        }
    }
    panic!("none of a million calls was ended");
}

/// A system call of a domain that has been called ends with the call.
#[test]
fn in_a_system_call_of_another_domain() {
    let module = Module::load("sys", common::build("sys", 1)).unwrap();
    let mut imports = Imports::new();
    imports.system_calls().unwrap();
    let b = Instance::new(&imports.link(&module).unwrap()).unwrap();
    b.grant(&Arc::new(Policy::default().allow("sleep").unwrap()), 0);
    let map = b.portal("sys", "smiiiiii").unwrap();
    let anonymous = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
    let at = map.call(&[libc::SYS_mmap as u64, 0, 4096, 3, anonymous, u64::MAX]).unwrap();
    b.write(at, &1_000_000u64.to_le_bytes()).unwrap();
    let a = instance();
    a.connect("host0", &b, "sys", "smii").unwrap();
    let portal = a.portal("callback", "smii").unwrap();
    let words = [libc::SYS_nanosleep as u64, at];
    let ended = fault(portal.call_within(TIME, &words));
    assert_eq!(ended.cause, Cause::Deadline);
    assert_eq!(b.poisoned(), None, "it has answered: {ended}");
    a.reset().unwrap();
    let ended = cancelled_while_in(&a, &b, || fault(portal.call(&words)));
    assert_eq!(ended.cause, Cause::Cancelled);
}

/// Steps to go, and what to cancel then.
static STEPS: AtomicUsize = AtomicUsize::new(0);
static CANCELLED: OnceLock<Instance> = OnceLock::new();
const TRACE: libc::greg_t = 1 << 8;

extern "C" fn stepped(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel's structures.
    let flags =
        unsafe { &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs[libc::REG_EFL as usize] };
    if signal == libc::SIGTRAP {
        match STEPS.load(Ordering::SeqCst) {
            1 => {
                *flags &= !TRACE;
                CANCELLED.get().expect("the test's").cancel();
            }
            n => STEPS.store(n - 1, Ordering::SeqCst),
        }
    // SAFETY: the arguments of this handler.
    } else if !unsafe { pebble_sfi_runtime::handle(signal, info, context) } {
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
}

/// A call that is cancelled after so many instructions.
fn call_stepped(portal: &Portal, steps: usize, words: [u64; 2]) -> Outcome {
    let entry = portal.entry();
    STEPS.store(steps, Ordering::SeqCst);
    // SAFETY: sets the trace flag, which is taken away after so many instructions.
    unsafe { std::arch::asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq") };
    let outcome = entry(words[0], words[1], 0, 0, 0, 0);
    // SAFETY: as above.
    unsafe { std::arch::asm!("pushfq", "and qword ptr [rsp], ~0x100", "popfq") };
    outcome
}

/// A process of its own, whose handlers are its own.
#[test]
fn at_every_instruction() {
    if !alone("at_every_instruction") {
        return;
    }
    pebble_sfi_runtime::leave_handlers_alone();
    for signal in [libc::SIGSEGV, libc::SIGTRAP] {
        // SAFETY: a handler of the kind that the flags say.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            action.sa_sigaction = stepped as *const () as usize;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
    let linked = basic(2);
    let [a, b] = std::array::from_fn(|_| Instance::new(&linked).unwrap());
    let _ = CANCELLED.set(a.clone());
    a.connect("host0", &b, "keep", "npii").unwrap();
    a.connect("host1", &b, "add", "smii").unwrap();
    let (mut ended, mut answered) = (0, 0);
    for (name, value) in [("callback", 16), ("ends_in_import", 15)] {
        let portal = a.portal(name, "smii").unwrap();
        for steps in 1..300 {
            // The thread has its stacks.
            assert_eq!(portal.call(&[7, 8]).unwrap(), value);
            let outcome = call_stepped(&portal, steps, [7, 8]);
            if outcome.status == 0 {
                answered += 1;
                assert_eq!(outcome.value, value, "{name}, {steps} steps");
            } else {
                ended += 1;
                let fault = pebble_sfi_runtime::take_fault().expect("a fault");
                assert_eq!(
                    (outcome.value, fault.cause),
                    (0, Cause::Cancelled),
                    "{name}, {steps} steps: {fault}"
                );
            }
            assert_eq!((b.poisoned(), a.busy(), b.busy()), (None, false, false), "{name}, {steps} steps");
            a.reset().unwrap();
        }
    }
    assert!(ended > 100 && answered > 0, "{ended} ended, {answered} answered");
}
