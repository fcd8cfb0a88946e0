//! What only a hostile component does: the raw instructions of attacks, for tests that a domain hurts itself
//! alone.

use core::arch::{asm, naked_asm};

/// Loads a word from any address.
pub fn load(address: u64) {
    // SAFETY: none; it is an attack. If the wall holds, the component faults and is killed here.
    unsafe { asm!("ld {0}, 0({1})", out(reg) _, in(reg) address) }
}

/// The word at any address.
pub fn read(address: u64) -> u64 {
    let word;
    // SAFETY: as in `load`.
    unsafe { asm!("ld {0}, 0({1})", out(reg) word, in(reg) address) }
    word
}

/// Stores a word to any address.
pub fn store(address: u64, word: u64) {
    // SAFETY: as in `load`.
    unsafe { asm!("sd {0}, 0({1})", in(reg) word, in(reg) address) }
}

/// Faults with this stack pointer.
pub fn fault_on_stack(sp: u64) {
    // SAFETY: as in `load`.
    unsafe { asm!("mv sp, {0}", "sd zero, 0(zero)", in(reg) sp, options(noreturn)) }
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

/// One instruction that user mode may not execute, or that does not exist.
#[derive(Clone, Copy)]
pub enum Bad {
    Zero,
    Ones,
    Breakpoint,
    MachineReturn,
    WaitForInterrupt,
    Fence,
    ReadMachine,
    WriteCounter,
    Float,
    Vector,
}

pub fn execute(bad: Bad) {
    // SAFETY: as in `load`.
    unsafe {
        match bad {
            Bad::Zero => asm!(".4byte 0"),
            Bad::Ones => asm!(".4byte 0xffffffff"),
            Bad::Breakpoint => asm!("ebreak"),
            Bad::MachineReturn => asm!(".4byte 0x30200073"),
            Bad::WaitForInterrupt => asm!("wfi"),
            Bad::Fence => asm!("sfence.vma"),
            Bad::ReadMachine => asm!("csrr {0}, 0x300", out(reg) _),
            Bad::WriteCounter => asm!("csrw 0xc00, zero"),
            // fadd.d f0, f0, f0; vsetvli zero, zero, e64, m1
            Bad::Float => asm!(".4byte 0x02007053"),
            Bad::Vector => asm!(".4byte 0x01807057"),
        }
    }
}

/// Adds nothing to a word, in one step.
pub fn add_atomically(address: u64) {
    // SAFETY: as in `load`.
    unsafe { asm!("amoadd.w zero, zero, ({0})", in(reg) address) }
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

/// An entry that overwrites what is above it on the stack that it runs on, as far as there is any, and
/// returns.
#[unsafe(naked)]
pub extern "C" fn smash() -> i64 {
    naked_asm!(
        "mv t1, sp",
        "li t2, 512",
        "1: sd zero, 0(t1)",
        "addi t1, t1, 8",
        "addi t2, t2, -1",
        "bnez t2, 1b",
        "li a0, 0",
        "ret",
    )
}

/// An entry that returns with nonsense in every register that it has to preserve.
#[unsafe(naked)]
pub extern "C" fn spoil() -> i64 {
    naked_asm!(
        "li s0, 1",
        "li s1, 1",
        "li s2, 1",
        "li s3, 1",
        "li s4, 1",
        "li s5, 1",
        "li s6, 1",
        "li s7, 1",
        "li s8, 1",
        "li s9, 1",
        "li s10, 1",
        "li s11, 1",
        "li tp, 1",
        "li a0, 0",
        "ret",
    )
}

/// Registers that a component may look at after a portal has brought a thread in: all but `x0`, `ra`, `sp`
/// and `a0`.
const LOOKED_AT: u32 = !(1 | 1 << 1 | 1 << 2 | 1 << 10);

/// An entry that returns, as bits, the registers that were not zero when it was entered.
#[unsafe(naked)]
pub extern "C" fn look() -> i64 {
    naked_asm!(
        "addi sp, sp, -256",
        "sd x3, 24(sp)", "sd x4, 32(sp)", "sd x5, 40(sp)", "sd x6, 48(sp)", "sd x7, 56(sp)", "sd x8, 64(sp)",
        "sd x9, 72(sp)", "sd x11, 88(sp)", "sd x12, 96(sp)", "sd x13, 104(sp)", "sd x14, 112(sp)",
        "sd x15, 120(sp)", "sd x16, 128(sp)", "sd x17, 136(sp)", "sd x18, 144(sp)", "sd x19, 152(sp)",
        "sd x20, 160(sp)", "sd x21, 168(sp)", "sd x22, 176(sp)", "sd x23, 184(sp)", "sd x24, 192(sp)",
        "sd x25, 200(sp)", "sd x26, 208(sp)", "sd x27, 216(sp)", "sd x28, 224(sp)", "sd x29, 232(sp)",
        "sd x30, 240(sp)", "sd x31, 248(sp)",
        "sd ra, 0(sp)",
        "mv a0, sp",
        "call {nonzero}",
        "ld ra, 0(sp)",
        "addi sp, sp, 256",
        "ret",
        nonzero = sym nonzero,
    )
}

/// Which of the saved registers are not zero.
extern "C" fn nonzero(saved: &[u64; 32]) -> u32 {
    saved
        .iter()
        .enumerate()
        .filter(|(x, v)| LOOKED_AT >> x & 1 == 1 && **v != 0)
        .fold(0, |set, (x, _)| set | 1 << x)
}

/// What a caller sees after a call for which it had filled every register.
pub struct Seen {
    pub value: i64,
    pub status: u64,
    /// Caller-saved registers, value and status apart, that are not zero.
    pub leaked: u32,
    /// Preserved registers that are not what they were.
    pub lost: u32,
}

/// Calls a portal with -2 in every register that carries nothing, and looks at all of them afterwards.
pub fn call_and_look(index: usize) -> Seen {
    let mut saved = [0u64; 32];
    // SAFETY: the frame of this function is left as it was; all registers that change are named, or saved and
    // restored here.
    unsafe {
        asm!(
            "addi sp, sp, -128",
            "sd s0, 0(sp)", "sd s1, 8(sp)", "sd tp, 16(sp)", "sd {buffer}, 24(sp)",
            "mv t0, {index}",
            "li a0, -2", "li a1, -2", "li a2, -2", "li a3, -2", "li a4, -2", "li a5, -2", "li a6, -2",
            "li a7, -2", "li t1, -2", "li t2, -2", "li t3, -2", "li t4, -2", "li t5, -2", "li t6, -2",
            "li tp, -2", "li s0, -2", "li s1, -2", "li s2, -2", "li s3, -2", "li s4, -2", "li s5, -2",
            "li s6, -2", "li s7, -2", "li s8, -2",
            "li s9, -2", "li s10, -2", "li s11, -2",
            "lla ra, 2f",
            "ecall",
            "2:",
            "ld ra, 24(sp)",
            "sd x3, 24(ra)", "sd x4, 32(ra)", "sd x5, 40(ra)", "sd x6, 48(ra)", "sd x7, 56(ra)",
            "sd x8, 64(ra)", "sd x9, 72(ra)", "sd x10, 80(ra)", "sd x11, 88(ra)", "sd x12, 96(ra)",
            "sd x13, 104(ra)", "sd x14, 112(ra)", "sd x15, 120(ra)", "sd x16, 128(ra)", "sd x17, 136(ra)",
            "sd x18, 144(ra)", "sd x19, 152(ra)", "sd x20, 160(ra)", "sd x21, 168(ra)", "sd x22, 176(ra)",
            "sd x23, 184(ra)", "sd x24, 192(ra)", "sd x25, 200(ra)", "sd x26, 208(ra)", "sd x27, 216(ra)",
            "sd x28, 224(ra)", "sd x29, 232(ra)",
            "sd x30, 240(ra)", "sd x31, 248(ra)",
            "ld s0, 0(sp)", "ld s1, 8(sp)", "ld tp, 16(sp)",
            "addi sp, sp, 128",
            index = in(reg) index,
            buffer = in(reg) saved.as_mut_ptr(),
            out("s2") _, out("s3") _, out("s4") _, out("s5") _, out("s6") _, out("s7") _, out("s8") _,
            out("s9") _,
            out("s10") _, out("s11") _,
            clobber_abi("C"),
        );
    }
    const PRESERVED: u32 = 1 << 4 | 3 << 8 | 0x3ff << 18;
    let changed = |x: &usize| saved[*x] != -2i64 as u64;
    let lost = (0..32).filter(|x| PRESERVED >> x & 1 == 1 && changed(x)).fold(0, |set, x| set | 1 << x);
    Seen {
        value: saved[10] as i64,
        status: saved[11],
        leaked: nonzero(&saved) & !PRESERVED & !(1 << 11),
        lost,
    }
}
