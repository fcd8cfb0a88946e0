//! Whatever a domain does wrong, the call comes back with an error that says what and where.

mod common;

use common::{basic, instance};
use pebble_sfi_runtime::{CallError, Cause, Fault, Imports, Instance, Linked, Module, Portal, Region};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

fn fault(portal: &Portal, words: &[u64]) -> Fault {
    match portal.call(words) {
        Err(CallError::Fault(fault)) => *fault,
        other => panic!("{other:?}"),
    }
}

#[test]
fn each_kind_is_named() {
    let i = instance();
    let cases: [(&str, &[u64], Cause, &str); 10] = [
        ("load", &[0x7000_0000, 0], Cause::Memory, "load+0x0"),
        ("store", &[0x100, 1], Cause::Memory, "store+0x0"),
        ("store", &[0x2_0000, 1], Cause::Memory, "store+0x0"),
        ("divide", &[1, 0], Cause::Arithmetic, "divide+0x5"),
        ("crash", &[0, 0], Cause::Instruction, "crash+0x"),
        ("recurse", &[0, 0], Cause::ReturnStack, "recurse+0x"),
        ("deep", &[0, 0], Cause::DataStack, "deep+0x7"),
        ("missing", &[0, 0], Cause::Import, "missing+0x5"),
        ("ends_in_import", &[0, 0], Cause::Import, "ends_in_import+0x0"),
        ("store", &[0xFFFF_FFF8, 1], Cause::Memory, "store+0x0"),
    ];
    for spec in ["smii", "npii", "nfii"] {
        for (name, words, cause, place) in cases {
            let portal = i.portal(name, spec).unwrap();
            let fault = fault(&portal, words);
            assert_eq!(fault.cause, cause, "{name}: {fault}");
            let text = fault.to_string();
            assert!(text.contains(place) && text.contains("basic.s:"), "{text}");
            if name == "store" {
                assert_eq!(fault.address, i.base() + words[0]);
            }
            assert_eq!(i.poisoned(), Some(cause));
            let again = crate::fault(&i.portal("divide", spec).unwrap(), &[8, 2]);
            let wanted = format!("poisoned by an earlier fault: {}; divide has not run, reset", cause.text());
            assert!(again.earlier && again.cause == cause && again.to_string().contains(&wanted), "{again}");
            i.reset().unwrap();
            let add = i.portal("add", spec).unwrap();
            assert_eq!(add.call(&[1, 2]).unwrap(), 3);
        }
    }
}

/// All six preserved registers, before and after.
fn preserved_over(portal: &Portal) -> bool {
    let (before, after): ([u64; 5], [u64; 5]);
    let mut words = [11u64, 12, 13, 14, 15, portal.address()];
    before = [11, 12, 13, 14, 15];
    let at = words.as_mut_ptr();
    // SAFETY: sets registers that the block gives back, calls a portal, and stores what they are.
    unsafe {
        std::arch::asm!(
            "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15", "push rdi", "sub rsp, 8",
            "mov rbx, [rdi]", "mov r12, [rdi+8]", "mov r13, [rdi+16]", "mov r14, [rdi+24]", "mov r15, [rdi+32]",
            "call [rdi+40]",
            "add rsp, 8", "pop rdi",
            "mov [rdi], rbx", "mov [rdi+8], r12", "mov [rdi+16], r13", "mov [rdi+24], r14", "mov [rdi+32], r15",
            "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
            inout("rdi") at => _, out("rax") _, out("rcx") _, out("rdx") _, out("rsi") _, out("r8") _, out("r9") _,
            out("r10") _, out("r11") _, clobber_abi("C"),
        );
    }
    after = [words[0], words[1], words[2], words[3], words[4]];
    after == before
}

#[test]
fn preserved_registers_survive_a_fault() {
    let i = instance();
    for spec in ["sm", "sp", "sf", "nm"] {
        let crash = i.portal("crash", spec).unwrap();
        assert!(preserved_over(&crash), "{spec}");
        assert!(pebble_sfi_runtime::take_fault().is_some());
        i.reset().unwrap();
    }
}

#[test]
fn deadline_ends_a_loop() {
    let i = instance();
    let spin = i.portal("spin", "sm").unwrap();
    for _ in 0..3 {
        let start = Instant::now();
        match spin.call_within(Duration::from_millis(20), &[]) {
            Err(CallError::Fault(fault)) => {
                assert_eq!(fault.cause, Cause::Deadline);
                assert_eq!(fault.function.as_ref().map(|f| f.0.as_str()), Some("spin"));
                assert!(!fault.earlier, "{fault}");
            }
            other => panic!("{other:?}"),
        }
        assert!(start.elapsed() >= Duration::from_millis(20) && start.elapsed() < Duration::from_secs(2));
        i.reset().unwrap();
        let add = i.portal("add", "smii").unwrap();
        assert_eq!(add.call_within(Duration::from_secs(10), &[1, 2]).unwrap(), 3);
    }
}

#[test]
fn another_thread_cancels() {
    let i = instance();
    let spin = i.portal("spin", "nm").unwrap();
    std::thread::scope(|scope| {
        let j = i.clone();
        scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(20));
            j.cancel();
        });
        assert_eq!(fault(&spin, &[]).cause, Cause::Cancelled);
    });
}

#[test]
fn a_fault_names_the_guilty_one() {
    let (a, b) = (instance(), instance());
    a.connect("host0", &b, "crash", "sm").unwrap();
    let callback = a.portal("callback", "smii").unwrap();
    // The first domain gets control back, with a status it ignores here.
    assert_eq!(callback.call(&[1, 2]).unwrap(), 1);
    assert_eq!(
        pebble_sfi_runtime::take_fault().map(|f| (f.instance, f.cause)),
        Some((b.number(), Cause::Instruction))
    );
    assert_eq!((a.poisoned(), b.poisoned()), (None, Some(Cause::Instruction)));
    assert!(!a.busy() && !b.busy());
}

#[test]
fn a_call_that_another_ends_says_so() {
    let i = instance();
    i.connect("host0", &i, "store", "smii").unwrap();
    let outer = fault(&i.portal("callback", "smii").unwrap(), &[0x100, 1]);
    let text = outer.to_string();
    assert!(outer.by_another && !outer.earlier && outer.cause == Cause::Memory, "{text}");
    assert!(
        text.contains("without the right to it, in another call, which has ended this one, executing 0x"),
        "{text}"
    );
    assert!(text.contains(" in callback+0x") && !text.contains("segment +"), "{text}");
}

static OUTSIDE: AtomicU32 = AtomicU32::new(0);

extern "C" fn own_handler(_: i32, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel's structures; skips the two bytes of the faulting instruction.
    unsafe {
        assert_eq!((*info).si_addr() as u64, 8);
        let context = &mut *context.cast::<libc::ucontext_t>();
        context.uc_mcontext.gregs[libc::REG_RIP as usize] += 3;
    }
    OUTSIDE.fetch_add(1, Ordering::Relaxed);
}

/// A process of its own, since handlers are the process's.
#[test]
fn faults_outside_are_the_processs() {
    if std::env::var_os("PEBBLE_OUTSIDE").is_none() {
        let run = |kind: &str| {
            std::process::Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "faults_outside_are_the_processs", "--nocapture"])
                .env("PEBBLE_OUTSIDE", kind)
                .output()
                .unwrap()
        };
        let handled = run("handled");
        assert!(handled.status.success(), "{handled:?}");
        let default = run("default");
        use std::os::unix::process::ExitStatusExt;
        assert_eq!(default.status.signal(), Some(libc::SIGSEGV), "{default:?}");
        return;
    }
    let handled = std::env::var("PEBBLE_OUTSIDE").as_deref() == Ok("handled");
    // SAFETY: sets a handler that comes back behind the instruction, or none.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_flags = libc::SA_SIGINFO;
        action.sa_sigaction = if handled { own_handler as *const () as usize } else { libc::SIG_DFL };
        libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut());
    }
    let i = instance();
    assert_eq!(fault(&i.portal("crash", "sm").unwrap(), &[]).cause, Cause::Instruction);
    i.reset().unwrap();
    // SAFETY: faults on purpose; the handler steps over the three bytes of the load.
    unsafe { std::arch::asm!("mov rax, [rcx]", in("rcx") 8, out("rax") _) };
    assert_eq!(OUTSIDE.load(Ordering::Relaxed), 1);
    assert_eq!(i.portal("add", "smii").unwrap().call(&[1, 2]).unwrap(), 3);
}

fn measure() -> (usize, usize, usize) {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    let files = std::fs::read_dir("/proc/self/fd").unwrap().count();
    let status = std::fs::read_to_string("/proc/self/statm").unwrap();
    let resident = status.split(' ').nth(1).unwrap().parse().unwrap();
    (maps, files, resident)
}

static RAISED: AtomicU32 = AtomicU32::new(0);

extern "C" fn counting_handler(_: i32) {
    RAISED.fetch_add(1, Ordering::Relaxed);
}

const OTHERS: [i32; 4] = [libc::SIGFPE, libc::SIGILL, libc::SIGBUS, libc::SIGTRAP];

/// The process's own handlers, before the first instance.
fn install_own() {
    let set = |signal: i32, handler: usize, flags: i32| {
        // SAFETY: whole structures, and handlers of the kind that the flags say.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            (action.sa_sigaction, action.sa_flags) = (handler, flags);
            assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
        }
    };
    set(libc::SIGSEGV, own_handler as *const () as usize, libc::SA_SIGINFO);
    OTHERS.into_iter().for_each(|signal| set(signal, counting_handler as *const () as usize, 0));
}

/// Faults of the process's own, one of each signal, which its handlers get.
fn own_handlers_are_called() {
    // SAFETY: faults on purpose; the handler steps over the three bytes of the load. The others only count.
    unsafe {
        std::arch::asm!("mov rax, [rcx]", in("rcx") 8, out("rax") _);
        OTHERS.into_iter().for_each(|signal| assert_eq!(libc::raise(signal), 0));
    }
    assert_eq!((OUTSIDE.load(Ordering::Relaxed), RAISED.load(Ordering::Relaxed)), (1, OTHERS.len() as u32));
}

/// What has been reported as it must be: crashes, time-outs, cancellations.
static REPORTED: [AtomicU32; 3] = [const { AtomicU32::new(0) }; 3];

fn reported(kind: usize) {
    REPORTED[kind].fetch_add(1, Ordering::Relaxed);
}

/// One fault of each kind in turn, and what must be said of it.
fn one_fault(i: &Instance, t: u64, n: u64, cancel: &Sender<Instance>) {
    let spec = if n % 2 == 0 { "sm" } else { "np" };
    let portal = |name: &str, words| i.portal(name, &format!("{spec}{words}")).unwrap();
    let named = |name: &str, words: &[u64], cause: Cause| {
        let fault = fault(&portal(name, &"ii"[..words.len()]), words);
        let function = fault.function.as_ref().map(|f| f.0.as_str());
        assert_eq!((fault.cause, function, fault.instance), (cause, Some(name), i.number()), "{fault}");
        assert!(i.module().text.contains(&(fault.at as u32)), "{fault}");
        reported(0);
        fault
    };
    // What spins keeps a processor until it is ended: less often.
    const KINDS: [u8; 17] = [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5, 6];
    match KINDS[(n % 17) as usize] {
        0 => {
            let address = 0x1000_0000 + (t << 12 | n % 0x1000) * 0x1000;
            assert_eq!(named("store", &[address, 1], Cause::Memory).address, i.base() + address);
        }
        1 => drop(named("divide", &[1, 0], Cause::Arithmetic)),
        2 => drop(named("crash", &[], Cause::Instruction)),
        3 => assert_ne!(named("recurse", &[], Cause::ReturnStack).address, 0),
        4 => assert!(named("deep", &[], Cause::DataStack).address.wrapping_sub(i.base()) < 4 << 30),
        5 => {
            cancel.send(i.clone()).unwrap();
            // It may come before the call begins: then there is no function yet.
            assert_eq!(fault(&portal("spin", ""), &[]).cause, Cause::Cancelled);
            reported(2);
        }
        _ => match portal("spin", "").call_within(Duration::from_micros(300), &[]) {
            Err(CallError::Fault(fault)) => {
                let function = fault.function.map(|f| f.0);
                assert_eq!((fault.cause, function), (Cause::Deadline, Some("spin".into())));
                assert!(i.module().text.contains(&(fault.at as u32)));
                reported(1);
            }
            other => panic!("{other:?}"),
        },
    }
}

const THREADS: u64 = 8;

/// So many faults on eight threads, each in an instance of its own; a ninth cancels. How many of each kind
/// were reported.
fn faults_on_threads(linked: &Arc<Linked>, count: u64) -> [u32; 3] {
    REPORTED.iter().for_each(|reported| reported.store(0, Ordering::Relaxed));
    let (cancel, cancelled) = std::sync::mpsc::channel::<Instance>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for instance in cancelled {
                std::thread::sleep(Duration::from_micros(50));
                instance.cancel();
            }
        });
        for t in 0..THREADS {
            let cancel = cancel.clone();
            scope.spawn(move || {
                let i = Instance::new(linked).unwrap();
                for n in 0..count / THREADS {
                    one_fault(&i, t, n, &cancel);
                    i.reset().unwrap();
                    assert_eq!(i.portal("add", "smii").unwrap().call(&[t, n]).unwrap(), t + n);
                }
            });
        }
        drop(cancel);
    });
    REPORTED.each_ref().map(|reported| reported.load(Ordering::Relaxed))
}

/// Ten thousand crashes, time-outs and cancellations on eight threads of one process, each reported with its
/// place; nothing leaks, and the process's own handlers are as before. A process of its own, since handlers
/// are the process's and other tests would show in its memory.
#[test]
fn ten_thousand_faults() {
    if std::env::var_os("PEBBLE_ALONE").is_none() {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "ten_thousand_faults", "--nocapture"])
            .env("PEBBLE_ALONE", "1")
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        // What it has counted.
        let _ = std::io::stderr().write_all(&output.stderr);
        return;
    }
    install_own();
    let linked = basic(1);
    faults_on_threads(&linked, 400);
    let before = measure();
    // Fewer when there is no time.
    let count = std::env::var("PEBBLE_FAULTS").ok().and_then(|n| n.parse::<u64>().ok()).unwrap_or(10_000);
    let [crashes, ended, cancelled] = faults_on_threads(&linked, count);
    let after = measure();
    assert!(
        after.0 <= before.0 + 40 && after.1 == before.1 && after.2 <= before.2 + 2000,
        "{before:?} {after:?}"
    );
    assert_eq!(pebble_sfi_runtime::instances(), 0);
    own_handlers_are_called();
    assert_eq!(u64::from(crashes + ended + cancelled), count / THREADS * THREADS);
    let _ = writeln!(
        std::io::stderr(),
        "note: {crashes} crashes and {ended} time-outs reported with function and address, {cancelled} \
         cancellations, on {THREADS} threads; before and after: {} and {} mappings, {} and {} open files, {} \
         and {} resident pages",
        before.0,
        after.0,
        before.1,
        after.1,
        before.2,
        after.2
    );
}

/// Memory that a domain was lent can go, as a file that somebody shortens.
#[test]
fn a_bus_error_is_the_domains() {
    let (i, region) = (instance(), Region::new(1 << 20).unwrap());
    let load = i.portal("load", "smr").unwrap();
    assert_eq!(load.call(&[region.address()]).unwrap(), 0);
    // The region's file is the one of its length.
    let files = std::fs::read_dir("/proc/self/fd").unwrap().flatten().map(|entry| entry.path());
    let own = |path: &std::path::PathBuf| {
        let name = std::fs::read_link(path).unwrap_or_default();
        let length = std::fs::metadata(path).map_or(0, |m| m.len());
        name.to_string_lossy().contains("pebble-sfi-region") && length == 1 << 20
    };
    let file = files.into_iter().find(own).expect("the region's file");
    std::fs::OpenOptions::new().write(true).open(file).unwrap().set_len(0).unwrap();
    let fault = fault(&load, &[region.address()]);
    assert_eq!((fault.cause, fault.signal), (Cause::Memory, libc::SIGBUS), "{fault}");
}

/// A panic does not unwind over a domain's frames: it ends the process.
#[test]
fn a_panic_under_a_domain_aborts() {
    if std::env::var_os("PEBBLE_PANIC").is_none() {
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        alone.args(["--exact", "a_panic_under_a_domain_aborts", "--nocapture"]).env("PEBBLE_PANIC", "1");
        let output = alone.output().unwrap();
        use std::os::unix::process::ExitStatusExt;
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.signal(), Some(libc::SIGABRT), "{output:?}");
        assert!(said.contains("on purpose") && !said.contains("went on"), "{said}");
        return;
    }
    let module = Module::load("basic", common::build("basic", 1)).unwrap();
    let mut imports = Imports::new();
    imports.lenient = true;
    imports.closure("host0", |_, _| panic!("on purpose"));
    let i = Instance::new(&imports.link(&module).unwrap()).unwrap();
    let callback = i.portal("callback", "smii").unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| callback.call(&[1, 2])));
    panic!("it went on: {}", caught.is_ok());
}

/// A call that leads nowhere is reported with the place that it would have returned to.
#[test]
fn a_wild_call_is_reported_with_its_caller() {
    let i = instance();
    for to in [0u64, 0x18, 0x2_0038] {
        let fault = fault(&i.portal("wild", "smi").unwrap(), &[to]);
        let text = fault.to_string();
        if to < 0x2_0000 {
            assert_eq!((fault.at, &fault.function), (to, &None), "{text}");
            assert!(
                text.contains("outside any function; the call or jump that led there returns to 0x"),
                "{text}"
            );
            assert!(text.contains(" in wild+0x") && text.contains("basic.s:"), "{text}");
        } else {
            assert_eq!(fault.from, None, "an unused slot is in the code: {text}");
        }
        i.reset().unwrap();
    }
}
