//! Where a program starts and gives up, and entries that no compiler can make.

use core::arch::{asm, global_asm};
use pebble_arch::riscv64::regs;

global_asm!(
    ".section .text.start, \"ax\"",
    ".global _start",
    "_start:",
    "    call {main}",
    // The first thread returns to the gate like any callee: the bottom of its invocation stack ends it.
    "    li   t0, 0",
    "    ecall",
    main = sym crate::start::main,
);

/// Gives up: a fault whose report names the place.
pub fn abort() -> ! {
    // SAFETY: an illegal instruction on purpose, and the domain ends.
    unsafe { asm!(".word {}", const regs::ABORT, options(noreturn)) }
}

/// The body of an entry with further results behind an `m` portal: `a2..a5`, which no C function can return.
#[doc(hidden)]
#[macro_export]
macro_rules! returns_wide {
    ($entry:path) => {
        core::arch::naked_asm!(
            "addi sp, sp, -48",
            "sd ra, 40(sp)",
            "sd zero, 0(sp)",
            "sd zero, 8(sp)",
            "sd zero, 16(sp)",
            "sd zero, 24(sp)",
            "mv a6, sp",
            "call {entry}",
            "ld a2, 0(sp)",
            "ld a3, 8(sp)",
            "ld a4, 16(sp)",
            "ld a5, 24(sp)",
            "ld ra, 40(sp)",
            "addi sp, sp, 48",
            "ret",
            entry = sym $entry,
        )
    };
}

/// The body of an entry of the scheduler, whose decision is in `a0` and `a1`.
#[doc(hidden)]
#[macro_export]
macro_rules! switches {
    ($entry:path) => {
        core::arch::naked_asm!(
            "call {entry}",
            "bltz a0, 2f",
            "li t0, {switch}",
            "ecall",
            "2:",
            "mv a0, a1",
            "li t0, 0",
            "ecall",
            entry = sym $entry,
            switch = const $crate::abi::sys::NUCLEUS_SWITCH,
        )
    };
}

/// The body of an entry that goes on through the portal at an index.
#[doc(hidden)]
#[macro_export]
macro_rules! goes_on {
    ($index:expr) => {
        core::arch::naked_asm!("li t0, {index}", "ecall", index = const $index)
    };
}

/// The body of a controller's entry. There are two, 4 bytes apart: for stubs of plain portals, and for all
/// others.
#[doc(hidden)]
#[macro_export]
macro_rules! handles {
    ($plain:path, $call:path) => {
        core::arch::naked_asm!(
            ".option push",
            ".option norvc",
            ".option norelax",
            "j {plain}",
            "j 2f",
            ".option pop",
            "2:",
            "addi sp, sp, -80",
            "sd ra, 72(sp)",
            "mv a6, sp",
            "call {call}",
            "ld a0, 0(sp)",
            "ld a1, 8(sp)",
            "ld a2, 16(sp)",
            "ld a3, 24(sp)",
            "ld a4, 32(sp)",
            "ld a5, 40(sp)",
            "ld a6, 48(sp)",
            "ld a7, 56(sp)",
            "ld ra, 72(sp)",
            "addi sp, sp, 80",
            "ret",
            plain = sym $plain,
            call = sym $call,
        )
    };
}
