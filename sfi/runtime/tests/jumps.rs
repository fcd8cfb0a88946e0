//! `longjmp` goes where a `setjmp` is still on the return stack, and nowhere else.

mod common;

use pebble_sfi_runtime::{CallError, Cause, Imports, Instance, Module};
use std::time::Duration;

fn jumps(level: u32) -> Instance {
    let module = Module::load("jumps", common::build("jumps", level)).unwrap_or_else(|e| panic!("{e}"));
    Instance::new(&Imports::new().link(&module).unwrap()).unwrap()
}

#[test]
fn jumps_go_where_they_may() {
    for level in [1, 2] {
        let i = jumps(level);
        for spec in ["sm", "np"] {
            let attempt = i.portal("attempt", &format!("{spec}i")).unwrap();
            for deep in [0, 1, 2, 100, 5000] {
                assert_eq!(attempt.call(&[deep]).unwrap(), 77, "{deep}");
            }
            for bad in ["forged", "gone"] {
                match i.portal(bad, spec).unwrap().call(&[]) {
                    Err(CallError::Fault(fault)) => {
                        assert_eq!(fault.cause, Cause::LongJump);
                        assert_eq!(fault.function.map(|f| f.0).as_deref(), Some(bad));
                    }
                    other => panic!("{other:?}"),
                }
                i.reset().unwrap();
            }
        }
    }
}

#[test]
fn a_pushed_data_stack_pointer_is_what_it_was() {
    let i = jumps(1);
    // The word below the address is what the domain stores to if it gets its way.
    let own = [5u64, 6];
    let word = std::ptr::from_ref(&own[1]) as u64;
    assert_eq!(i.portal("swapped", "smi").unwrap().call(&[word]).unwrap(), 0);
    assert_eq!(std::hint::black_box(own), [5, 6]);
}

#[test]
fn a_data_stack_pointer_that_is_lost_ends_the_walk() {
    let i = jumps(1);
    match i.portal("lost", "sm").unwrap().call(&[]) {
        Err(CallError::Fault(fault)) => assert_eq!(fault.cause, Cause::LongJump),
        other => panic!("{other:x?}"),
    }
}

#[test]
fn a_long_walk_ends_with_the_deadline() {
    let i = jumps(1);
    let far = i.portal("far", "smi").unwrap();
    match far.call_within(Duration::from_millis(500), &[10_000]) {
        Err(CallError::Fault(fault)) => assert_eq!(fault.cause, Cause::Deadline, "{fault}"),
        other => panic!("{other:?}"),
    }
}
