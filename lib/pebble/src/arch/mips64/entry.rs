//! Where a program starts and gives up, and entries that no compiler can make.

use core::arch::{asm, global_asm};
use pebble_arch::mips64::regs;

global_asm!(
    ".set push",
    ".set noreorder",
    ".section .text.start, \"ax\"",
    ".global _start",
    "_start:",
    "    jal  {main}",
    "    nop",
    // The first thread returns to the gate like any callee: the bottom of its invocation stack ends it.
    "    li   $12, 0",
    "    syscall",
    ".set pop",
    main = sym crate::start::main,
);

/// Gives up: a fault whose report names the place.
pub fn abort() -> ! {
    // SAFETY: an illegal instruction on purpose, and the domain ends.
    unsafe { asm!(".word {}", const regs::ABORT, options(noreturn)) }
}

/// The body of an entry with further results behind an `m` portal: `$6..$9`, which no C function can return.
#[doc(hidden)]
#[macro_export]
macro_rules! returns_wide {
    ($entry:path) => {
        core::arch::naked_asm!(
            ".set push",
            ".set noreorder",
            "daddiu $29, $29, -48",
            "sd $31, 40($29)",
            "sd $0, 0($29)",
            "sd $0, 8($29)",
            "sd $0, 16($29)",
            "sd $0, 24($29)",
            "jal {entry}",
            "move $10, $29",
            "ld $6, 0($29)",
            "ld $7, 8($29)",
            "ld $8, 16($29)",
            "ld $9, 24($29)",
            "ld $31, 40($29)",
            "jr $31",
            "daddiu $29, $29, 48",
            ".set pop",
            entry = sym $entry,
        )
    };
}

/// The body of an entry of the scheduler, whose decision is in `$2` and `$3`.
#[doc(hidden)]
#[macro_export]
macro_rules! switches {
    ($entry:path) => {
        core::arch::naked_asm!(
            ".set push",
            ".set noreorder",
            "jal {entry}",
            "nop",
            "bltz $2, 2f",
            "li $12, {switch}",
            "syscall",
            "2:",
            "move $2, $3",
            "li $12, 0",
            "syscall",
            ".set pop",
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
        core::arch::naked_asm!("li $12, {index}", "syscall", index = const $index)
    };
}

/// The body of a controller's entry. There are two, 4 bytes apart: for stubs of plain portals, and for all
/// others. The second is in the delay slot of the first, to which it does no harm.
#[doc(hidden)]
#[macro_export]
macro_rules! handles {
    ($plain:path, $call:path) => {
        core::arch::naked_asm!(
            ".set push",
            ".set noreorder",
            "j {plain}",
            "daddiu $10, $29, -80",
            "sd $31, 72($10)",
            "jal {call}",
            "move $29, $10",
            "ld $2, 0($29)",
            "ld $3, 8($29)",
            "ld $6, 16($29)",
            "ld $7, 24($29)",
            "ld $8, 32($29)",
            "ld $9, 40($29)",
            "ld $10, 48($29)",
            "ld $11, 56($29)",
            "ld $31, 72($29)",
            "jr $31",
            "daddiu $29, $29, 80",
            ".set pop",
            plain = sym $plain,
            call = sym $call,
        )
    };
}
