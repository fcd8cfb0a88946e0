//! One instance among many threads, signal handlers and callbacks: whoever comes at the wrong moment is told
//! so or waits, and nobody's stack or wall breaks. Each test runs in a process of its own, since what it
//! guards against ends the process.

mod common;

use common::{alone, basic, instance};
use pebble_sfi_runtime::{CallError, Cause, Error, Imports, Instance, Linked, Module, Portal};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What may come of a call in an instance in which others fault and cancel.
fn expected(outcome: Result<u64, CallError>, value: Option<u64>) {
    match outcome {
        Ok(got) => assert_eq!(Some(got), value),
        Err(CallError::Fault(_)) => {}
        Err(other) => panic!("{other}"),
    }
}

/// One step of a thread of the stress: instance and portals, thread, round.
fn step(i: &Instance, t: u64, n: u64) {
    let spec = if n % 3 == 0 { "np" } else { "sm" };
    let call = |name: &str, words: &[u64]| {
        let portal = i.portal(name, &format!("{spec}{}", &"ii"[..words.len()])).unwrap();
        portal.call(words)
    };
    match (t + n) % 7 {
        0 => expected(call("crash", &[]), None),
        1 => expected(call("store", &[0x100, n]), None),
        2 => expected(call("deep", &[]), None),
        3 => expected(call("callback", &[t, n]), Some(t + n + 1001)),
        4 => i.cancel(),
        5 => {
            let spin = i.portal("spin", spec).unwrap();
            let ended = spin.call_within(Duration::from_micros(100), &[]);
            assert!(matches!(ended, Err(CallError::Fault(_))), "{ended:?}");
        }
        _ => expected(call("add", &[t, n]), Some(t + n)),
    }
    match i.reset() {
        Ok(()) => {}
        Err(Error::Busy) => std::thread::yield_now(),
        Err(other) => panic!("{other}"),
    }
}

/// Eight threads call, fault, cancel and reset in the same few instances, and replace them by new ones;
/// threads come and go.
#[test]
fn eight_threads_in_one_instance() {
    if !alone("eight_threads_in_one_instance") {
        return;
    }
    let linked: Arc<Linked> = basic(1);
    let rounds = std::env::var("PEBBLE_ROUNDS").ok().and_then(|n| n.parse().ok()).unwrap_or(400);
    let shared: [Mutex<Instance>; 2] = std::array::from_fn(|_| Mutex::new(Instance::new(&linked).unwrap()));
    for _ in 0..2 {
        std::thread::scope(|scope| {
            for t in 0..8u64 {
                let (shared, linked) = (&shared, &linked);
                scope.spawn(move || {
                    for n in 0..rounds {
                        let place = &shared[((t + n / 16) % 2) as usize];
                        let own = place.lock().unwrap().clone();
                        step(&own, t, n);
                        if n % 41 == t {
                            *place.lock().unwrap() = Instance::new(linked).unwrap();
                        }
                    }
                });
            }
        });
    }
    // Whatever was going on: both are good again.
    for place in &shared {
        let i = place.lock().unwrap();
        i.reset().unwrap();
        assert_eq!(i.portal("add", "smii").unwrap().call(&[1, 2]).unwrap(), 3);
    }
}

/// What the handler calls, and what came of it.
static CALLED: AtomicPtr<Portal> = AtomicPtr::new(std::ptr::null_mut());
static ANSWERS: [AtomicU64; 6] = [const { AtomicU64::new(0) }; 6];

extern "C" fn calls_a_portal(_: i32) {
    let portal = CALLED.load(Ordering::Relaxed);
    // SAFETY: the test keeps the portal while signals come.
    let outcome = unsafe { (&*portal).entry()(1, 2, 0, 0, 0, 0) };
    assert!(outcome.status != 0 || outcome.value == 3);
    ANSWERS[outcome.status as usize].fetch_add(1, Ordering::Relaxed);
}

/// Signals to this thread every few microseconds, from now on.
fn alarm(flags: i32) -> libc::timer_t {
    // SAFETY: a handler of the kind that the flags say, and a timer of whole structures.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        (action.sa_sigaction, action.sa_flags) =
            (calls_a_portal as *const () as usize, flags | libc::SA_RESTART);
        libc::sigaction(libc::SIGALRM, &action, std::ptr::null_mut());
        let mut event: libc::sigevent = std::mem::zeroed();
        (event.sigev_notify, event.sigev_signo) = (libc::SIGEV_THREAD_ID, libc::SIGALRM);
        event.sigev_notify_thread_id = libc::gettid();
        let mut timer = std::ptr::null_mut();
        assert_eq!(libc::timer_create(libc::CLOCK_MONOTONIC, &mut event, &mut timer), 0);
        let every = libc::timespec { tv_sec: 0, tv_nsec: 97_000 };
        let when = libc::itimerspec { it_interval: every, it_value: every };
        libc::timer_settime(timer, 0, &when, std::ptr::null_mut());
        timer
    }
}

/// A handler that calls portals wherever it interrupts: in the domain, in portal code, in a function of the
/// process under it, outside.
#[test]
fn handlers_that_call_portals() {
    if !alone("handlers_that_call_portals") {
        return;
    }
    let (i, j) = (instance(), instance());
    i.connect("host1", &j, "keep", "smii").unwrap();
    for (flags, inner) in [(0, &i), (0, &j), (libc::SA_ONSTACK, &i), (libc::SA_ONSTACK, &j)] {
        let portal = Box::new(inner.portal("add", "smii").unwrap());
        CALLED.store(Box::into_raw(portal), Ordering::Relaxed);
        i.attach().unwrap();
        j.attach().unwrap();
        let calls: Vec<_> = ["smi", "npi"].map(|spec| i.portal("repeat", spec).unwrap()).into();
        let across = ["smii", "npii"].map(|spec| i.portal("missing", spec).unwrap());
        let keep = i.portal("keep", "smii").unwrap();
        let timer = alarm(flags);
        let until = std::time::Instant::now() + Duration::from_millis(700);
        let mut n = 0;
        while std::time::Instant::now() < until {
            n += 1;
            calls.iter().for_each(|call| assert!(call.call(&[500]).is_ok()));
            across.iter().for_each(|call| assert_eq!(call.call(&[n, 7]).unwrap(), n + 7));
            (0..500).for_each(|k| assert_eq!(keep.call(&[n, k]).unwrap(), n + k));
        }
        // SAFETY: the timer that was made.
        unsafe { libc::timer_delete(timer) };
    }
    let count = |status: u64| ANSWERS[status as usize].load(Ordering::Relaxed);
    let refused = count(pebble_sfi_runtime::status::REENTERED);
    eprintln!("{} answered, {refused} refused", count(0));
    assert!(refused > 50 && count(0) > 10);
    assert_eq!(refused + count(0), (0..6).map(count).sum::<u64>());
    for k in [&i, &j] {
        assert_eq!(k.portal("add", "smii").unwrap().call(&[1, 2]).unwrap(), 3);
        k.reset().unwrap();
    }
}

static INNER: AtomicPtr<Portal> = AtomicPtr::new(std::ptr::null_mut());

/// Callbacks that lead to calls that lead to callbacks end with an error while the thread still has stack.
#[test]
fn callbacks_without_end() {
    if !alone("callbacks_without_end") {
        return;
    }
    let module = Module::load("basic", common::build("basic", 1)).unwrap();
    let mut imports = Imports::new();
    imports.lenient = true;
    imports.closure("host0", |_, [depth, ..]| {
        // SAFETY: the test keeps the portal.
        let inner = unsafe { &*INNER.load(Ordering::Relaxed) };
        match inner.call(&[depth + 1, 0]) {
            Ok(value) => value,
            Err(CallError::Fault(fault)) => {
                assert_eq!(fault.cause, Cause::Nesting, "{fault}");
                assert!(fault.to_string().contains("in callback+0x"), "{fault}");
                depth
            }
            Err(other) => panic!("{other}"),
        }
    });
    let linked = imports.link(&module).unwrap();
    let run = move || {
        let i = Instance::new(&linked).unwrap();
        for spec in ["smii", "spii", "sfii"] {
            INNER.store(Box::into_raw(Box::new(i.portal("callback", spec).unwrap())), Ordering::Relaxed);
            match i.portal("callback", spec).unwrap().call(&[0, 0]) {
                Err(CallError::Fault(fault)) => assert_eq!(fault.cause, Cause::Nesting, "{fault}"),
                other => panic!("{other:?}"),
            }
            assert_eq!(i.poisoned(), Some(Cause::Nesting));
            i.reset().unwrap();
            assert_eq!(i.portal("add", spec).unwrap().call(&[1, 2]).unwrap(), 3);
        }
    };
    run();
    // A small stack too.
    std::thread::Builder::new().stack_size(256 << 10).spawn(run).unwrap().join().unwrap();
}

/// More threads than an instance has stacks: each has its answer, or is told how many there are; and those
/// that end make room.
#[test]
fn hundreds_of_threads_call_one_instance() {
    let instance = common::instance();
    for round in 0..3 {
        let (all, served) = (std::sync::Barrier::new(300), AtomicU64::new(0));
        std::thread::scope(|scope| {
            let thread = |n| {
                let (all, served, instance) = (&all, &served, &instance);
                scope.spawn(move || {
                    let portal = instance.portal("add", "smii").expect("a portal");
                    match portal.call(&[n, 1]) {
                        Ok(value) => {
                            assert_eq!(value, n + 1);
                            served.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(error) => assert!(error.to_string().contains("room for 127 stacks"), "{error}"),
                    }
                    all.wait();
                })
            };
            // To their very end, at which they give their stacks back.
            let threads: Vec<_> = (0..300).map(thread).collect();
            threads.into_iter().for_each(|thread| thread.join().expect("a thread"));
        });
        assert_eq!(served.load(Ordering::SeqCst), 127, "round {round}");
    }
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// A host that lives long and reloads its modules: what its threads have been in does not stay with them.
#[test]
fn mappings_are_of_what_is_alive() {
    if !alone("mappings_are_of_what_is_alive") {
        return;
    }
    const THREADS: usize = 64;
    let linked = basic(1);
    let turn = std::sync::Barrier::new(THREADS + 1);
    let counts = std::thread::scope(|scope| {
        let thread = |t: usize| {
            for round in 0..30 {
                // Who makes one first gets the first slot.
                std::thread::sleep(Duration::from_micros(((t * 7 + round * 13) % THREADS) as u64 * 20));
                let own = Instance::new(&linked).unwrap();
                for spec in ["smii", "npii"] {
                    assert_eq!(own.portal("add", spec).unwrap().call(&[1, 2]).unwrap(), 3);
                }
                turn.wait();
                turn.wait();
                drop(own);
                turn.wait();
                turn.wait();
            }
        };
        for t in 0..THREADS {
            scope.spawn(move || thread(t));
        }
        let one = |_| {
            turn.wait();
            let during = mappings();
            turn.wait();
            turn.wait();
            let after = mappings();
            turn.wait();
            (during, after)
        };
        (0..30).map(one).collect::<Vec<_>>()
    });
    let [(first, _), .., (last, after)] = counts[..] else { panic!("{counts:?}") };
    assert!(last < first + 4 * THREADS && after < last, "{counts:?}");
    eprintln!(
        "note: mappings with {THREADS} threads in an instance each: {first}, after 30 reloads {last}, \
         without instances {after}"
    );
}
