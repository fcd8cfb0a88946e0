//! Calls that go on for others, copies of domains, and where calls resume that have changed the table.

use crate::control::{Answer, Plain, changes, copy};
use core::arch::naked_asm;

/// The portal returns to whoever called this.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn pass_index(_: u64) -> Plain {
    naked_asm!("mv t0, a0", "ecall")
}

/// The same with words, and all that comes back.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn pass_to(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, _: &mut Answer) {
    naked_asm!(
        "addi sp, sp, -16",
        "sd ra, 8(sp)",
        "sd a6, 0(sp)",
        "mv t0, a0",
        "jal 2f",
        "ld t0, 0(sp)",
        "sd a0, 0(t0)",
        "sd a1, 8(t0)",
        "sd a2, 16(t0)",
        "sd a3, 24(t0)",
        "sd a4, 32(t0)",
        "sd a5, 40(t0)",
        "sd a6, 48(t0)",
        "sd a7, 56(t0)",
        "ld ra, 8(sp)",
        "addi sp, sp, 16",
        "ret",
        "2: ecall",
    )
}

/// Pushes the preserved registers, and lets `copy` have this word and the stack pointer.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn fork_frame(_: u64) -> i64 {
    naked_asm!(
        "addi sp, sp, -112",
        "sd ra, 0(sp)",
        "sd s0, 8(sp)",
        "sd s1, 16(sp)",
        "sd s2, 24(sp)",
        "sd s3, 32(sp)",
        "sd s4, 40(sp)",
        "sd s5, 48(sp)",
        "sd s6, 56(sp)",
        "sd s7, 64(sp)",
        "sd s8, 72(sp)",
        "sd s9, 80(sp)",
        "sd s10, 88(sp)",
        "sd s11, 96(sp)",
        "mv a1, sp",
        "call {copy}",
        "ld ra, 0(sp)",
        "addi sp, sp, 112",
        "ret",
        copy = sym copy,
    )
}

/// The copy's thread starts here, on that stack.
#[unsafe(naked)]
pub(crate) extern "C" fn copied() -> i64 {
    naked_asm!(
        "ld ra, 0(sp)",
        "ld s0, 8(sp)",
        "ld s1, 16(sp)",
        "ld s2, 24(sp)",
        "ld s3, 32(sp)",
        "ld s4, 40(sp)",
        "ld s5, 48(sp)",
        "ld s6, 56(sp)",
        "ld s7, 64(sp)",
        "ld s8, 72(sp)",
        "ld s9, 80(sp)",
        "ld s10, 88(sp)",
        "ld s11, 96(sp)",
        "li a0, 0",
        "addi sp, sp, 112",
        "ret",
    )
}

/// Where a call that changed the table resumes: with its results in the registers.
#[unsafe(naked)]
pub(crate) extern "C" fn detour() {
    naked_asm!(
        "addi sp, sp, -64",
        "sd a0, 0(sp)",
        "sd a1, 8(sp)",
        "sd a2, 16(sp)",
        "sd a3, 24(sp)",
        "sd a4, 32(sp)",
        "sd a5, 40(sp)",
        "sd a6, 48(sp)",
        "sd a7, 56(sp)",
        "call {changes}",
        "mv ra, a0",
        "ld a0, 0(sp)",
        "ld a1, 8(sp)",
        "ld a2, 16(sp)",
        "ld a3, 24(sp)",
        "ld a4, 32(sp)",
        "ld a5, 40(sp)",
        "ld a6, 48(sp)",
        "ld a7, 56(sp)",
        "addi sp, sp, 64",
        "ret",
        changes = sym changes,
    )
}
