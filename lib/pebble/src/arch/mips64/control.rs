//! Calls that go on for others, copies of domains, and where calls resume that have changed the table.

use crate::control::{Answer, Plain, changes, copy};
use core::arch::naked_asm;

/// The portal returns to whoever called this.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn pass_index(_: u64) -> Plain {
    naked_asm!("move $12, $4", "syscall")
}

/// The same with words, and all that comes back.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn pass_to(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Answer) {
    naked_asm!(
        ".set push",
        ".set noreorder",
        "daddiu $29, $29, -16",
        "sd $31, 8($29)",
        "sd $10, 0($29)",
        "bal 2f",
        "move $12, $4",
        "ld $12, 0($29)",
        "sd $2, 0($12)",
        "sd $3, 8($12)",
        "sd $6, 16($12)",
        "sd $7, 24($12)",
        "sd $8, 32($12)",
        "sd $9, 40($12)",
        "sd $10, 48($12)",
        "sd $11, 56($12)",
        "ld $31, 8($29)",
        "jr $31",
        "daddiu $29, $29, 16",
        "2: syscall",
        ".set pop",
    )
}

/// Pushes the preserved registers, and lets `copy` have this word and the stack pointer.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn fork_frame(_: u64) -> i64 {
    naked_asm!(
        ".set push",
        ".set noreorder",
        "daddiu $29, $29, -80",
        "sd $31, 0($29)",
        "sd $16, 8($29)",
        "sd $17, 16($29)",
        "sd $18, 24($29)",
        "sd $19, 32($29)",
        "sd $20, 40($29)",
        "sd $21, 48($29)",
        "sd $22, 56($29)",
        "sd $23, 64($29)",
        "sd $30, 72($29)",
        "jal {copy}",
        "move $5, $29",
        "ld $31, 0($29)",
        "jr $31",
        "daddiu $29, $29, 80",
        ".set pop",
        copy = sym copy,
    )
}

/// The copy's thread starts here, on that stack.
#[unsafe(naked)]
pub(crate) extern "C" fn copied() -> i64 {
    naked_asm!(
        ".set push",
        ".set noreorder",
        "ld $31, 0($29)",
        "ld $16, 8($29)",
        "ld $17, 16($29)",
        "ld $18, 24($29)",
        "ld $19, 32($29)",
        "ld $20, 40($29)",
        "ld $21, 48($29)",
        "ld $22, 56($29)",
        "ld $23, 64($29)",
        "ld $30, 72($29)",
        "li $2, 0",
        "jr $31",
        "daddiu $29, $29, 80",
        ".set pop",
    )
}

/// Where a call that changed the table resumes: with its results in the registers.
#[unsafe(naked)]
pub(crate) extern "C" fn detour() {
    naked_asm!(
        ".set push",
        ".set noreorder",
        "daddiu $29, $29, -64",
        "sd $2, 0($29)",
        "sd $3, 8($29)",
        "sd $6, 16($29)",
        "sd $7, 24($29)",
        "sd $8, 32($29)",
        "sd $9, 40($29)",
        "sd $10, 48($29)",
        "jal {changes}",
        "sd $11, 56($29)",
        "move $31, $2",
        "ld $2, 0($29)",
        "ld $3, 8($29)",
        "ld $6, 16($29)",
        "ld $7, 24($29)",
        "ld $8, 32($29)",
        "ld $9, 40($29)",
        "ld $10, 48($29)",
        "ld $11, 56($29)",
        "jr $31",
        "daddiu $29, $29, 64",
        ".set pop",
        changes = sym changes,
    )
}
