//! Controls of floating point that a domain has changed stay its own: no function that it calls runs with
//! them.

mod common;

use pebble_sfi_runtime::{Imports, Instance, Linked, Module};
use std::arch::asm;
use std::sync::Arc;

/// As a process starts: all exceptions masked, rounding to the nearest.
const PLAIN: u64 = 0x037f_1f80;
/// What `wild` sets.
const WILD: u64 = 0x0f40_6000;

/// MXCSR without its flags, the x87 control word above it; and 1 if an x87 register is in use or an exception
/// flagged.
fn controls() -> u64 {
    let (mut environment, mut mxcsr) = ([0u32; 7], 0u32);
    // SAFETY: stores both, and loads again what the first store has changed.
    unsafe {
        asm!("fnstenv [{0}]", "fldenv [{0}]", "stmxcsr [{1}]", in(reg) &mut environment, in(reg) &mut mxcsr);
    }
    let busy = (environment[1] & 0xb8ff, environment[2] & 0xffff) != (0, 0xffff);
    u64::from(mxcsr & 0xffc0) | u64::from(environment[0] & 0xffff) << 16 | u64::from(busy)
}

fn linked(level: u32) -> Arc<Linked> {
    let module = Module::load("controls", common::build("controls", level)).unwrap_or_else(|e| panic!("{e}"));
    let mut imports = Imports::new();
    imports.closure("host0", |_, _| controls());
    imports.link(&module).unwrap()
}

#[test]
fn functions_of_the_process_have_plain_controls() {
    for level in [1, 2] {
        let wild = Instance::new(&linked(level)).unwrap().portal("wild", "sm").unwrap();
        assert_eq!(wild.call(&[]).unwrap(), WILD << 32 | PLAIN, "level {level}");
        assert_eq!(controls(), PLAIN);
    }
}

#[test]
fn so_have_other_domains() {
    for (from, to) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
        let (a, b) = (Instance::new(&linked(from)).unwrap(), Instance::new(&linked(to)).unwrap());
        a.connect("host0", &b, "controls", "sm").unwrap();
        let wild = a.portal("wild", "sm").unwrap();
        assert_eq!(wild.call(&[]).unwrap(), WILD << 32 | PLAIN, "levels {from} and {to}");
        assert_eq!(controls(), PLAIN);
    }
}

#[test]
fn what_a_domain_unmasks_does_not_wait_for_its_caller() {
    let module = Module::load("unmask", common::build("unmask", 1)).unwrap_or_else(|e| panic!("{e}"));
    let unmask =
        Instance::new(&Imports::new().link(&module).unwrap()).unwrap().portal("unmask", "sm").unwrap();
    // SAFETY: divides one by pi on an empty register stack, and leaves it empty: the result is not exact,
    // which is flagged.
    unsafe { asm!("fld1", "fldpi", "fdivp st(1), st", "fstp st(0)", out("st(0)") _, out("st(1)") _) };
    assert_eq!(unmask.call(&[]).unwrap(), 7);
    assert_eq!(controls(), PLAIN);
}
