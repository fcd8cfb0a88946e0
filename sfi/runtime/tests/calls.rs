//! Calls into a domain and out of it.

mod common;

use common::{basic, instance};
use pebble_sfi_runtime::{CallError, Error, Instance};

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

#[test]
fn registers_are_hidden() {
    let i = instance();
    let registers = i.portal("registers", "sf").unwrap();
    assert_eq!(registers.call(&[]).unwrap(), 0);
    let i = Instance::new(&basic(2)).unwrap();
    i.portal("dirty", "smi").unwrap().call(&[77]).unwrap();
    assert_eq!(i.portal("vectors", "sf").unwrap().call(&[]).unwrap(), 0);
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
