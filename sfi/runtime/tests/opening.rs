//! Constructors: before the first call of an instance, again after a reset, and what becomes of an instance
//! whose constructors fail.

mod common;

use pebble_sfi_runtime::{Cause, Error, Imports, Instance, Linked, Malformed, Module, instances};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The module, and what the host is to answer its second constructor.
fn module() -> (Arc<Linked>, Arc<AtomicU64>) {
    let module = Module::load("opening", common::build("opening", 1)).unwrap_or_else(|e| panic!("{e}"));
    let answer = Arc::new(AtomicU64::new(0));
    let (mut imports, told) = (Imports::new(), answer.clone());
    imports.closure("host", move |_, _| {
        // 3: other threads have time to try.
        let answer = told.load(Ordering::SeqCst);
        if answer == 3 {
            std::thread::sleep(Duration::from_millis(50));
        }
        answer
    });
    (imports.link(&module).expect("linked"), answer)
}

fn cause(error: Error) -> Cause {
    match error {
        Error::Constructor(why) => match *why {
            pebble_sfi_runtime::CallError::Fault(fault) => fault.cause,
            other => panic!("{other}"),
        },
        other => panic!("{other}"),
    }
}

#[test]
fn constructors_run_once_and_in_order() {
    let (linked, _) = module();
    let instance = Instance::new(&linked).expect("an instance");
    let get = instance.portal("get", "sm").expect("a portal");
    assert_eq!((get.call(&[]).unwrap(), get.call(&[]).unwrap()), (42, 42));
    instance.write(u64::from(instance.module().data_range().start), &7u64.to_le_bytes()).unwrap();
    instance.reset().unwrap();
    assert_eq!(get.call(&[]).unwrap(), 42);
}

#[test]
fn constructors_that_fail_leave_no_instance() {
    let (linked, answer) = module();
    let before = instances();
    answer.store(1, Ordering::SeqCst);
    let error = Instance::new(&linked).err().expect("no instance");
    assert!(error.to_string().contains("constructor") && error.to_string().contains("second"), "{error}");
    assert_eq!(cause(error), Cause::Instruction);
    answer.store(2, Ordering::SeqCst);
    let error = Instance::new_within(&linked, Duration::from_millis(20)).err().expect("no instance");
    assert_eq!(cause(error), Cause::Deadline);
    assert!(instances() <= before + 1, "its place is free again");
    // After a reset it is poisoned, until one comes to its end.
    answer.store(0, Ordering::SeqCst);
    let instance = Instance::new(&linked).expect("an instance");
    let get = instance.portal("get", "sm").expect("a portal");
    answer.store(1, Ordering::SeqCst);
    assert_eq!(cause(instance.reset().expect_err("a constructor fails")), Cause::Instruction);
    assert!(instance.poisoned().is_some() && get.call(&[]).is_err());
    answer.store(0, Ordering::SeqCst);
    instance.reset().unwrap();
    assert_eq!(get.call(&[]).unwrap(), 42);
}

#[test]
fn nobody_is_in_before_the_constructors_end() {
    let (linked, answer) = module();
    let instance = Instance::new(&linked).expect("an instance");
    answer.store(3, Ordering::SeqCst);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let get = instance.portal("get", "sm").expect("a portal");
                for _ in 0..50 {
                    // 21 would be between the constructors, 0 before them.
                    match get.call(&[]) {
                        Ok(value) => assert_eq!(value, 42),
                        Err(error) => panic!("{error}"),
                    }
                    std::thread::sleep(Duration::from_millis(2));
                }
            });
        }
        let mut done = 0;
        while done < 3 {
            done += u32::from(instance.reset().is_ok());
        }
    });
}

/// A constructor that is no slot of the table is refused, wherever it leads.
#[test]
fn constructors_are_functions() {
    let file = common::build("opening", 1);
    let image = pebble_sfi_runtime::Image::parse(&file).expect("a module");
    let (place, slot) = (image.relocations[0].0, image.relocations[0].1);
    let addend = u64::from(slot).to_le_bytes();
    // Place, kind, addend.
    let entry = [u64::from(place).to_le_bytes(), 8u64.to_le_bytes(), addend].concat();
    let at = file.windows(24).position(|bytes| bytes == entry).expect("its relocation") + 16;
    for wrong in [u64::from(slot) + 1, 0, u64::from(image.ftab + image.ftab_bytes), u64::from(place)] {
        let mut changed = file.clone();
        changed[at..at + 8].copy_from_slice(&wrong.to_le_bytes());
        let Malformed { reason, .. } = pebble_sfi_runtime::Image::parse(&changed).expect_err("refused");
        assert!(reason.contains("constructor"), "{wrong:#x}: {reason}");
    }
}
