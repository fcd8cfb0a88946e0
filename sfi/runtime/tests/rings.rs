//! Domains that call each other in rings, as deep as they can: a call that is to end is back within its time,
//! in a few signals, however many callers between domains it has; and each of those is as if it had been told
//! singly.

mod common;

use common::{alone, basic, basic_with, fault, function, own_clock, sound_again, time, used};
use pebble_sfi_runtime::{CallError, Cause, Imports, Instance, Limit, Linked, Module, Portal};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

/// The register with a function's first word: in `descend` the calls that are still to go.
const RDI: usize = 7;
const TIME: Duration = Duration::from_millis(30);
/// What a call may take beyond its limit, of the processor. A virtual machine that is held up counts as used
/// what it has not had.
const BEYOND: Duration = Duration::from_millis(500);

/// Each calls the export of this name of the next one.
fn ring(linked: &Arc<Linked>, number: usize, name: &str, spec: &str) -> Vec<Instance> {
    let all: Vec<Instance> = (0..number).map(|_| Instance::new(linked).unwrap()).collect();
    for (i, next) in all.iter().cycle().skip(1).take(number).enumerate() {
        all[i].connect("host0", next, name, spec).unwrap();
    }
    all
}

/// Back once they are told that they cannot, or ever again. `call` says as well how much processor time it
/// has taken since it was to end. The longest.
fn rings(level: u32, call: impl Fn(&Instance, &Portal) -> (Result<u64, CallError>, Duration)) -> Duration {
    let mut longest = Duration::ZERO;
    let linked = basic(level);
    let all = [
        (2, "callback", "smii"),
        (2, "again", "smii"),
        (8, "again", "smii"),
        // There are fewer stacks than calls.
        (8, "again", "nfii"),
        (32, "callback", "npii"),
        (32, "again", "smii"),
        (32, "again", "nfii"),
    ];
    for (number, name, spec) in all {
        let all = ring(&linked, number, name, spec);
        let portal = all[0].portal(name, "smii").unwrap();
        let (done, more) = call(&all[0], &portal);
        longest = longest.max(more);
        assert!(more < BEYOND, "level {level}, {number} x {name} {spec}: {more:?}: {done:?}");
        if name == "again" {
            assert!(matches!(done, Err(CallError::Fault(_))), "level {level}, {number}: {done:?}");
        }
        sound_again(&all);
    }
    longest
}

#[test]
fn with_a_limit() {
    let mut longest = Duration::ZERO;
    for (level, limit) in [(1, Limit::processor(TIME)), (2, Limit::processor(TIME)), (1, Limit::clock(TIME))]
    {
        longest = longest.max(rings(level, |_, portal| {
            let before = used();
            let done = portal.call_within(limit, &[1, 2]);
            (done, (used() - before).saturating_sub(TIME))
        }));
    }
    eprintln!("note: rings of domains are back {longest:.1?} of processor time after their limit at most");
}

#[test]
fn cancelled() {
    rings(2, |first, portal| {
        let (watched, over) = (own_clock(), AtomicBool::new(false));
        let start = used();
        std::thread::scope(|scope| {
            let canceller = scope.spawn(|| {
                while time(watched) < start + TIME && !over.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(1));
                }
                first.cancel();
                time(watched)
            });
            let done = portal.call(&[1, 2]);
            let end = used();
            over.store(true, Ordering::SeqCst);
            (done, end.saturating_sub(canceller.join().unwrap()))
        })
    });
}

static SIGNALS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn counted(signal: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    SIGNALS.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the arguments of this handler.
    if !unsafe { pebble_sfi_runtime::handle(signal, info, context) } {
        // SAFETY: ends the process.
        unsafe { libc::abort() };
    }
}

/// Faults from now on come here first. In a process of its own.
fn count_signals() {
    pebble_sfi_runtime::leave_handlers_alone();
    for signal in [libc::SIGSEGV, libc::SIGILL] {
        // SAFETY: a handler of the kind that the flags say.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_NODEFER;
            action.sa_sigaction = counted as *const () as usize;
            libc::sigaction(signal, &action, std::ptr::null_mut());
        }
    }
}

/// A thousand calls end with a handful of signals, whatever there is to do at the end of each. Nothing is
/// left of them: as many can be made at once.
#[test]
fn in_a_few_signals() {
    if !alone("in_a_few_signals") {
        return;
    }
    count_signals();
    let kinds = [(1, None), (2, None), (1, Some("CONTROL")), (2, Some("CONTROL")), (2, Some("FLOAT"))];
    for (level, symbol) in kinds {
        for spec in ["smii", "npii", "nfii"] {
            let all = ring(&basic_with(level, symbol), 8, "descend", spec);
            let portal = all[0].portal("descend", spec).unwrap();
            let most = if spec.starts_with('s') { 1024 } else { 8 * 126 };
            let innermost = all[(most as usize - 1) % 8].number();
            for _ in 0..3 {
                // On a machine that is busy elsewhere the time may be over on the way down: then with more.
                let mut limit = TIME;
                let (ended, signals) = loop {
                    SIGNALS.store(0, Ordering::SeqCst);
                    let ended = fault(portal.call_within(Limit::processor(limit), &[most, 1]));
                    let still_to_go = ended.registers[RDI];
                    if still_to_go == 0 || limit > TIME * 16 {
                        break (ended, SIGNALS.load(Ordering::SeqCst));
                    }
                    sound_again(&all);
                    limit *= 2;
                };
                assert_eq!((ended.cause, function(&ended)), (Cause::Deadline, Some("descend")), "{ended}");
                // The innermost is told.
                assert_eq!(ended.instance, innermost, "{ended}");
                assert!(signals < 12, "level {level}, {symbol:?}, {spec}: {signals}");
                sound_again(&all);
                assert_eq!(portal.call(&[most, 0]).unwrap(), most);
            }
            // The process's own call does not count; the next would be one too many.
            if spec.starts_with('s') {
                assert_eq!(portal.call(&[most + 1, 0]).unwrap(), most + 1);
                let ended = fault(portal.call(&[most + 2, 0]));
                assert_eq!((ended.cause, ended.instance), (Cause::Nesting, all[0].number()), "{ended}");
            }
        }
    }
}

/// Half of the functions have left by a jump to the next portal.
#[test]
fn of_functions_that_have_left() {
    let linked = basic_with(2, Some("FLOAT"));
    let all: [Instance; 2] = std::array::from_fn(|_| Instance::new(&linked).unwrap());
    let [a, b] = &all;
    a.connect("host0", b, "ends_in_import", "smii").unwrap();
    b.connect("host1", a, "again", "npii").unwrap();
    let before = used();
    let ended = fault(a.portal("again", "smii").unwrap().call_within(Limit::processor(TIME), &[1, 2]));
    let more = used() - before;
    assert!(more < TIME + BEYOND, "{more:?}: {ended}");
    sound_again(&all);
}

/// A domain that has called one whose time is over, and is not to end itself, goes on with all that it had.
#[test]
fn the_first_that_can_go_on_does() {
    for (level, symbol) in [(1, None), (2, Some("CONTROL")), (2, Some("FLOAT"))] {
        let all = ring(&basic_with(level, symbol), 3, "descend", "nfii");
        let outer = Instance::new(&basic(level)).unwrap();
        outer.connect("host0", &all[0], "descend", "npii").unwrap();
        let portal = outer.portal("steady", "smii").unwrap();
        for spec in 0..2 {
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !all[2].busy() {
                        std::thread::sleep(Duration::from_millis(1));
                    }
                    all[spec].cancel();
                });
                assert_eq!(portal.call(&[300, 77]).unwrap(), 77 << 32 | 300);
            });
            assert_eq!(outer.poisoned(), None);
            sound_again(&all);
        }
    }
}

/// Each ends by itself, though it is in the same domains as the other.
#[test]
fn on_two_threads() {
    let linked = basic(2);
    for _ in 0..10 {
        let all = ring(&linked, 4, "descend", "smii");
        std::thread::scope(|scope| {
            for start in 0..2 {
                let all = &all;
                scope.spawn(move || {
                    let portal = all[start].portal("descend", "smii").unwrap();
                    let before = used();
                    let done = portal.call_within(Limit::processor(TIME), &[1000, 1]);
                    let more = used() - before;
                    assert!(more < TIME + BEYOND, "{more:?}: {done:?}");
                    // The other's has ended those below it.
                    let told = |called| called < 1000;
                    assert!(done.map_or_else(|e| fault(Err(e)).cause == Cause::Deadline, told));
                });
            }
        });
        sound_again(&all);
    }
}

/// A thousand domains call one another, and each waits, spins or calls on when it is told that its call has
/// come to nothing: none waits for its turn.
#[test]
fn in_a_long_chain() {
    let linked = basic(2);
    for name in ["callback", "stays", "again"] {
        let all: Vec<Instance> = (0..1000).map(|_| Instance::new(&linked).unwrap()).collect();
        for pair in all.windows(2) {
            pair[0].connect("host0", &pair[1], name, "smii").unwrap();
        }
        all[999].connect("host0", &all[999], "spin", "smii").unwrap();
        let portal = all[0].portal(name, "smii").unwrap();
        // All stacks are made, so that the limit is over at the end of the chain.
        all.iter().for_each(|i| i.attach().unwrap());
        let before = used();
        let ended = fault(portal.call_within(Limit::processor(TIME), &[1, 2]));
        let more = used() - before;
        assert!(more < TIME + BEYOND, "{name}: {more:?}: {ended}");
        sound_again(&all);
    }
}

/// Each calls a function of the process, which calls the next one and makes something of whatever it is told.
fn ring_of_callbacks(number: usize, name: &str) -> (Vec<Instance>, Arc<OnceLock<Vec<Portal>>>) {
    let module = Module::load("basic", common::build("basic", 1)).unwrap();
    let portals = Arc::new(OnceLock::<Vec<Portal>>::new());
    let make = |i: usize| {
        let (mut imports, portals) = (Imports::new(), portals.clone());
        imports.lenient = true;
        imports.closure("host0", move |_, [x, y, ..]| {
            let next = &portals.get().expect("the test's")[(i + 1) % number];
            next.call(&[x, y]).unwrap_or(7)
        });
        Instance::new(&imports.link(&module).unwrap()).unwrap()
    };
    let all: Vec<Instance> = (0..number).map(make).collect();
    let _ = portals.set(all.iter().map(|i| i.portal(name, "smii").unwrap()).collect());
    (all, portals)
}

#[test]
fn through_functions_of_the_process() {
    let run = || {
        for (number, name) in [(2, "again"), (8, "again"), (32, "again"), (32, "callback"), (32, "stays")] {
            let (all, portals) = ring_of_callbacks(number, name);
            let before = used();
            let done = portals.get().unwrap()[0].call_within(Limit::processor(TIME), &[1, 2]);
            let more = (used() - before).saturating_sub(TIME);
            assert!(more < BEYOND, "{number} x {name}: {more:?}: {done:?}");
            sound_again(&all);
        }
    };
    // However large the thread's stack is.
    for size in [1 << 20, 64 << 20] {
        std::thread::Builder::new().stack_size(size).spawn(run).unwrap().join().unwrap();
    }
}
