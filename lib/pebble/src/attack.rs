//! What only a hostile component does: the raw instructions of attacks, for tests that a domain hurts itself alone.

use core::arch::asm;

/// Loads a word from any address.
pub fn load(address: u64) {
    // SAFETY: none; it is an attack. If the wall holds, the component faults and is killed here.
    unsafe { asm!("ld {0}, 0({1})", out(reg) _, in(reg) address) }
}

/// Stores a word to any address.
pub fn store(address: u64, word: u64) {
    // SAFETY: as in `load`.
    unsafe { asm!("sd {0}, 0({1})", in(reg) word, in(reg) address) }
}

/// Jumps to any address.
pub fn jump(address: u64) {
    // SAFETY: as in `load`.
    unsafe { asm!("jr {0}", in(reg) address, options(noreturn)) }
}

/// Executes instructions that it has written onto its stack.
pub fn execute_stack() {
    let code: [u32; 2] = [0x0000_8067, 0x0000_8067];
    // SAFETY: as in `load`.
    unsafe { asm!("fence.i", "jalr {0}", in(reg) code.as_ptr(), clobber_abi("C")) }
}

/// Writes the address-space register.
pub fn privileged() {
    // SAFETY: as in `load`.
    unsafe { asm!("csrw satp, zero") }
}

pub fn sret() {
    // SAFETY: as in `load`.
    unsafe { asm!("sret", options(noreturn)) }
}

/// Recursion without end.
pub fn overflow_stack() {
    // SAFETY: as in `load`.
    unsafe { asm!("1: addi sp, sp, -512", "sd zero, 0(sp)", "j 1b", options(noreturn)) }
}

/// Loops with an unlikely value in every register.
pub fn nonsense() {
    // SAFETY: as in `load`.
    unsafe {
        asm!(
            "li ra, -1",
            "li gp, -1",
            "li tp, -1",
            "li t0, -1",
            "li t1, -1",
            "li t2, -1",
            "li s0, -1",
            "li s1, -1",
            "li a0, -1",
            "li a1, -1",
            "li a2, -1",
            "li a3, -1",
            "li a4, -1",
            "li a5, -1",
            "li a6, -1",
            "li a7, -1",
            "li s2, -1",
            "li s3, -1",
            "li s4, -1",
            "li s5, -1",
            "li s6, -1",
            "li s7, -1",
            "li s8, -1",
            "li s9, -1",
            "li s10, -1",
            "li s11, -1",
            "li t3, -1",
            "li t4, -1",
            "li t5, -1",
            "li t6, -1",
            "li sp, -1",
            "1: j 1b",
            options(noreturn),
        )
    }
}
