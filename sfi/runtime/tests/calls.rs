//! Calls into a domain and out of it.

mod common;

use common::{basic, instance};
use pebble_sfi_runtime::{CallError, Cause, Error, Imports, Instance, Module, Portal};
use std::time::Duration;

#[test]
fn arguments_and_results() {
    for spec in ["sm", "sp", "sf", "nm", "np", "nf"] {
        let i = instance();
        assert_eq!(i.portal("null", spec).unwrap().call(&[]).map(drop).ok(), Some(()), "{spec}");
        let add = i.portal("add", &format!("{spec}ii")).unwrap();
        for n in 0..100 {
            assert_eq!(add.call(&[40 + n, 2]).unwrap(), 42 + n, "{spec}");
        }
        let six = i.portal("six", &format!("{spec}iiiiii")).unwrap();
        assert_eq!(
            six.call(&[1, 10, 100, 1000, 10000, 100000]).unwrap(),
            1 + 20 + 300 + 4000 + 50000 + 600000
        );
        let mixed = i.portal_with("six", &format!("{spec}ci=cdi"), 1000).unwrap();
        assert_eq!(
            mixed.call(&[1, 2]).unwrap() % 100,
            (1000 + 2 + 4000 + 12) % 100 + 5 * thread_part(&mixed) % 100
        );
    }
}

/// The thread's number as `d` tells it cannot be known here; the mixed call checks the rest.
fn thread_part(mixed: &pebble_sfi_runtime::Portal) -> u64 {
    (mixed.call(&[1, 2]).unwrap() - (1000 + 2 + 4000 + 12)) / 5
}

#[test]
fn callbacks_nest() {
    let i = instance();
    let callback = i.portal("callback", "smii").unwrap();
    assert_eq!(callback.call(&[1, 2]).unwrap(), 1004);
    let fresh = i.portal("callback", "npii").unwrap();
    assert_eq!(fresh.call(&[1, 2]).unwrap(), 1004);
}

#[test]
fn data_are_private_and_reset() {
    let (a, b) = (instance(), instance());
    let (count_a, count_b) = (a.portal("count", "sm").unwrap(), b.portal("count", "sm").unwrap());
    assert_eq!([count_a.call(&[]).unwrap(), count_a.call(&[]).unwrap()], [42, 43]);
    assert_eq!(count_b.call(&[]).unwrap(), 42);
    a.reset().unwrap();
    assert_eq!(count_a.call(&[]).unwrap(), 42);
    let pointer = a.portal("pointer", "sm").unwrap().call(&[]).unwrap();
    let mut word = [0; 8];
    a.read(pointer, &mut word).unwrap();
    assert_eq!(u64::from_le_bytes(word), 42);
    assert!(matches!(a.read(b.base() + 0x1_0000 + (4 << 30), &mut word), Err(Error::OutOfBounds)));
}

#[test]
fn thread_local_variables() {
    let i = instance();
    let tls = i.portal("tls", "sm").unwrap();
    assert_eq!([tls.call(&[]).unwrap(), tls.call(&[]).unwrap()], [7, 8]);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| tls.call(&[]).unwrap());
        assert_eq!(other.join().unwrap(), 7);
    });
}

/// Calls a portal with a secret in every register that could hold one; what the callee found of it.
fn call_with_secrets(portal: &Portal) -> u64 {
    let mut word = portal.address();
    // SAFETY: fills registers that the block gives back or declares, and calls a portal on an aligned stack.
    unsafe {
        std::arch::asm!(
            "push rbx", "push rbp", "push r12", "push r13", "push r14", "push r15",
            "vcmptrueps ymm0, ymm0, ymm0", "vmovaps ymm1, ymm0", "vmovaps ymm2, ymm0", "vmovaps ymm3, ymm0",
            "vmovaps ymm4, ymm0", "vmovaps ymm5, ymm0", "vmovaps ymm6, ymm0", "vmovaps ymm7, ymm0", "vmovaps ymm8, ymm0",
            "vmovaps ymm9, ymm0", "vmovaps ymm10, ymm0", "vmovaps ymm11, ymm0", "vmovaps ymm12, ymm0",
            "vmovaps ymm13, ymm0", "vmovaps ymm14, ymm0", "vmovaps ymm15, ymm0",
            "mov rbx, -1", "mov r12, rbx", "mov r13, rbx", "mov r14, rbx", "mov r15, rbx", "mov r10, rbx", "mov rcx, rbx",
            "mov rbp, rsp", "and rsp, -16", "push rbp", "push rbp",
            "call rax",
            "pop rsp",
            "pop r15", "pop r14", "pop r13", "pop r12", "pop rbp", "pop rbx",
            inout("rax") word, clobber_abi("C"),
        );
    }
    word
}

extern "C" fn leaves_secrets() {
    // SAFETY: vector registers are the caller's to lose.
    unsafe {
        std::arch::asm!("vcmptrueps ymm7, ymm7, ymm7", "vmovaps ymm15, ymm7", out("xmm7") _, out("xmm15") _)
    };
}

/// At `full` whatever the specification says, at `write`, where a domain can read the process's memory, only
/// with `f`.
#[test]
fn registers_are_hidden() {
    if !std::is_x86_feature_detected!("avx") {
        eprintln!("not tested: this processor has no AVX");
        return;
    }
    for (level, specs, hidden) in
        [(2, &["sm", "sp", "sf", "nm", "np", "nf"][..], true), (1, &["sf", "nf"], true), (1, &["sm"], false)]
    {
        let mut imports = Imports::new();
        imports.lenient = true;
        // SAFETY: takes nothing.
        unsafe { imports.function("host0", specs[0], leaves_secrets as *const (), 0).unwrap() };
        let module = Module::load("basic", common::build("basic", level)).unwrap();
        let linked = imports.link(&module).unwrap();
        let (i, other) = (Instance::new(&linked).unwrap(), Instance::new(&linked).unwrap());
        for spec in specs {
            for name in ["registers", "every_vector", "reveal"] {
                let found = call_with_secrets(&i.portal(name, spec).unwrap());
                assert_eq!(found == 0, hidden, "{name} {spec} at level {level}: {found:#x}");
            }
            // Neither to another domain nor back from it.
            other.connect("host0", &i, "every_vector", spec).unwrap();
            let found = call_with_secrets(&other.portal("callback", "sm").unwrap());
            assert!(!hidden || found == 1, "{spec} at level {level}: {found:#x}");
            other.connect("host0", &i, "dirty", &format!("{spec}i")).unwrap();
            let found = call_with_secrets(&other.portal("reveal", &format!("{spec}i")).unwrap());
            assert_eq!(found == 0, hidden, "back, {spec} at level {level}: {found:#x}");
        }
    }
}

#[test]
fn words_are_counted() {
    let i = instance();
    let add = i.portal("add", "smii").unwrap();
    assert!(matches!(add.call(&[1]), Err(CallError::Words { wanted: 2, given: 1 })));
    assert!(matches!(i.portal("sub", "sm"), Err(Error::NoExport(_))));
    let error = i.portal("add", "smix").err().unwrap().to_string();
    assert!(error.contains("column 4"), "{error}");
}

#[test]
fn one_domain_calls_another() {
    let (a, b) = (instance(), instance());
    a.connect("host0", &b, "add", "smii").unwrap();
    let callback = a.portal("callback", "smii").unwrap();
    for n in 0..10 {
        assert_eq!(callback.call(&[n, 2]).unwrap(), n + 3);
    }
    // Through the second one back to the process, on stacks of their own.
    let c = instance();
    c.connect("host0", &a, "callback", "npii").unwrap();
    let chain = c.portal("callback", "smii").unwrap();
    assert_eq!(chain.call(&[5, 6]).unwrap(), 5 + 6 + 2);
    b.connect("host0", &b, "add", "smii").unwrap();
    assert_eq!(c.portal("add", "smii").unwrap().call(&[1, 1]).unwrap(), 2);
}

#[test]
fn the_callee_may_be_reset_between_calls() {
    let (a, b) = (instance(), instance());
    a.connect("host0", &b, "count", "sm").unwrap();
    let callback = a.portal("callback", "sm").unwrap();
    assert_eq!([callback.call(&[]).unwrap(), callback.call(&[]).unwrap()], [43, 44]);
    b.reset().unwrap();
    assert_eq!(callback.call(&[]).unwrap(), 43);
    a.reset().unwrap();
    assert_eq!(callback.call(&[]).unwrap(), 44);
}

#[test]
fn a_forked_child_makes_no_instances() {
    let linked = basic(1);
    let i = Instance::new(&linked).unwrap();
    let add = i.portal("add", "smii").unwrap();
    add.call(&[1, 2]).unwrap();
    // SAFETY: the child calls what the parent had ready, and leaves without running anything else.
    unsafe {
        match libc::fork() {
            0 => {
                let calls = add.call(&[1, 2]).ok() == Some(3);
                let makes = matches!(Instance::new(&linked), Err(Error::Forked));
                libc::_exit(if calls && makes { 0 } else { 1 });
            }
            child => {
                let mut status = 0;
                libc::waitpid(child, &mut status, 0);
                assert_eq!(status, 0);
            }
        }
    }
}

/// Portal code and context pages of the parent's may change: the child has its own, and a clock.
#[test]
fn a_forked_child_keeps_what_it_has_inherited() {
    let (time, short) = (Duration::from_secs(10), Duration::from_millis(20));
    let linked = basic(1);
    let i = Instance::new(&linked).unwrap();
    let open = |name, spec| i.portal(name, spec).unwrap();
    let (add, callback, spin) = (open("add", "smii"), open("callback", "smii"), open("spin", "sm"));
    let outer = Instance::new(&linked).unwrap();
    outer.connect("host0", &i, "descend", "smii").unwrap();
    let below = outer.portal("descend", "smii").unwrap();
    assert_eq!(below.call(&[2, 0]).unwrap(), 2);
    // The parent's clock runs.
    add.call_within(time, &[1, 2]).unwrap();
    let mut pipe = [0; 2];
    // SAFETY: as above; the child waits for the parent's byte, and not for ever.
    unsafe {
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        match libc::fork() {
            0 => {
                libc::alarm(20);
                libc::read(pipe[0], [0u8].as_mut_ptr().cast(), 1);
                let fault = |called| match called {
                    Err(CallError::Fault(fault)) => Some(fault.cause),
                    _ => None,
                };
                let steps = [
                    add.call(&[1, 2]).ok() == Some(3),
                    callback.call(&[1, 2]).ok() == Some(1004),
                    fault(below.call_within(short, &[2, 1])) == Some(Cause::Deadline),
                    fault(spin.call_within(short, &[])) == Some(Cause::Deadline),
                    fault(add.call(&[1, 2])) == Some(Cause::Deadline),
                ];
                libc::_exit(steps.iter().position(|right| !right).map_or(0, |step| step as i32 + 1));
            }
            child => {
                drop((add, callback, spin, below, outer, i));
                // In the same places: another instance, whose imports lead elsewhere, and portals to other
                // functions.
                let other = Instance::new(&basic(1)).unwrap();
                let portals = ["null", "count", "six"].map(|name| other.portal(name, "smii").unwrap());
                assert_eq!(libc::write(pipe[1], [0u8].as_ptr().cast(), 1), 1);
                let mut status = 0;
                libc::waitpid(child, &mut status, 0);
                assert_eq!(status >> 8, 0, "the child's step that went wrong, from 1");
                assert_eq!(status, 0);
                drop(portals);
            }
        }
    }
}

#[test]
fn many_threads_many_instances() {
    let linked = basic(1);
    let instances: Vec<Instance> = (0..40).map(|_| Instance::new(&linked).unwrap()).collect();
    std::thread::scope(|scope| {
        for t in 0..8u64 {
            let instances = &instances;
            scope.spawn(move || {
                for round in 0..20 {
                    for i in instances {
                        let add = i.portal("add", if round % 2 == 0 { "smii" } else { "npii" }).unwrap();
                        assert_eq!(add.call(&[t, round]).unwrap(), t + round);
                        assert_eq!(
                            i.portal("callback", "smii").unwrap().call(&[t, round]).unwrap(),
                            t + round + 1001
                        );
                    }
                }
            });
        }
    });
}

#[test]
fn thousands_of_instances() {
    let linked = basic(1);
    let instances: Vec<Instance> = (0..2000).map(|_| Instance::new(&linked).unwrap()).collect();
    for (n, i) in instances.iter().enumerate() {
        assert_eq!(i.portal("add", "smii").unwrap().call(&[n as u64, 1]).unwrap(), n as u64 + 1);
    }
}

/// What is only reserved is not writable: kernels that lend no memory which they have not got
/// (`vm.overcommit_memory=2`) count the rest.
#[test]
fn a_slot_counts_for_its_stacks_and_its_image() {
    let instance = instance();
    instance.portal("add", "npii").unwrap().call(&[1, 2]).unwrap();
    let begin = instance.base() - (4 << 30);
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let writable = maps.lines().filter_map(|line| {
        let (range, rest) = line.split_once(' ')?;
        let (from, to) = range.split_once('-')?;
        let number = |text| u64::from_str_radix(text, 16).ok();
        let inside = (begin..begin + (16 << 30)).contains(&number(from)?);
        (inside && rest.starts_with("rw")).then_some(number(to)? - number(from)?)
    });
    // Two stacks; return stacks of those who had the slot before are kept.
    let bytes = writable.sum::<u64>();
    assert!((23 << 20..1 << 30).contains(&bytes), "{bytes} bytes");
}
