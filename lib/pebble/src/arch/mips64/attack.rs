//! What only a hostile component does: the raw instructions of attacks, for tests that a domain hurts itself
//! alone.

use core::arch::{asm, naked_asm};
use pebble_arch::mips64::regs;

/// Loads a word from any address.
pub fn load(address: u64) {
    read(address);
}

/// The word at any address.
pub fn read(address: u64) -> u64 {
    let word;
    // SAFETY: none; it is an attack. If the wall holds, the component faults and is killed here.
    unsafe { asm!("ld $2, 0($4)", in("$4") address, lateout("$2") word) }
    word
}

/// Stores a word to any address.
pub fn store(address: u64, word: u64) {
    // SAFETY: as in `read`.
    unsafe { asm!("sd $5, 0($4)", in("$4") address, in("$5") word) }
}

/// Faults with this stack pointer.
pub fn fault_on_stack(sp: u64) {
    // SAFETY: as in `read`.
    unsafe { asm!("move $29, $4", "sd $0, 0($0)", in("$4") sp, options(noreturn)) }
}

/// Jumps to any address.
pub fn jump(address: u64) {
    // SAFETY: as in `read`.
    unsafe { asm!("jr $4", in("$4") address, options(noreturn)) }
}

/// Executes an instruction that it has written onto its stack, by which it gives up: the processor cannot
/// forbid to execute what may be read.
pub fn execute_stack() {
    let code: [u32; 2] = [regs::ABORT, 0];
    // SAFETY: as in `read`.
    let code =
        unsafe { core::mem::transmute::<*const u32, extern "C" fn()>(core::hint::black_box(code.as_ptr())) };
    code();
}

/// Writes the address-space register.
pub fn privileged() {
    // SAFETY: as in `read`.
    unsafe { asm!("mtc0 $0, $10") }
}

pub fn sret() {
    // SAFETY: as in `read`.
    unsafe { asm!("eret", options(noreturn)) }
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
    // SAFETY: as in `read`.
    unsafe {
        match bad {
            // A word of zeroes does nothing: this is the nearest that nobody knows.
            Bad::Zero => asm!(".word 0x15"),
            Bad::Ones => asm!(".word 0xffffffff"),
            Bad::Breakpoint => asm!("break"),
            Bad::MachineReturn => asm!("deret"),
            Bad::WaitForInterrupt => asm!("wait"),
            Bad::Fence => asm!("tlbwi"),
            Bad::ReadMachine => asm!("mfc0 $2, $15", lateout("$2") _),
            Bad::WriteCounter => asm!("mtc0 $0, $9"),
            // add.d $f0, $f0, $f0; addu.qb $2, $0, $0
            Bad::Float => asm!(".word 0x46200000"),
            Bad::Vector => asm!(".word 0x7c001010", lateout("$2") _),
        }
    }
}

/// Adds nothing to a word, in one step.
pub fn add_atomically(address: u64) {
    // SAFETY: as in `read`.
    unsafe { asm!("ll $2, 0($4)", "sc $2, 0($4)", in("$4") address, lateout("$2") _) }
}

/// Recursion without end.
pub fn overflow_stack() {
    // SAFETY: as in `read`.
    unsafe { asm!("1: daddiu $29, $29, -512", "sd $0, 0($29)", "b 1b", options(noreturn)) }
}

/// Loops with an unlikely value in every register.
pub fn nonsense() {
    // SAFETY: as in `read`.
    unsafe {
        asm!(
            ".set push",
            ".set noat",
            "li $1, -1",
            "li $2, -1",
            "li $3, -1",
            "li $4, -1",
            "li $5, -1",
            "li $6, -1",
            "li $7, -1",
            "li $8, -1",
            "li $9, -1",
            "li $10, -1",
            "li $11, -1",
            "li $12, -1",
            "li $13, -1",
            "li $14, -1",
            "li $15, -1",
            "li $16, -1",
            "li $17, -1",
            "li $18, -1",
            "li $19, -1",
            "li $20, -1",
            "li $21, -1",
            "li $22, -1",
            "li $23, -1",
            "li $24, -1",
            "li $25, -1",
            "li $26, -1",
            "li $27, -1",
            "li $28, -1",
            "li $29, -1",
            "li $30, -1",
            "li $31, -1",
            "mthi $1",
            "mtlo $1",
            "1: b 1b",
            ".set pop",
            options(noreturn),
        )
    }
}

/// An entry that overwrites what is above it on the stack that it runs on, as far as there is any, and
/// returns.
#[unsafe(naked)]
pub extern "C" fn smash() -> i64 {
    naked_asm!(
        "move $13, $29",
        "li $14, 512",
        "1: sd $0, 0($13)",
        "daddiu $13, $13, 8",
        "addiu $14, $14, -1",
        "bnez $14, 1b",
        "li $2, 0",
        "jr $31",
    )
}

/// An entry that returns with nonsense in every register that it has to preserve.
#[unsafe(naked)]
pub extern "C" fn spoil() -> i64 {
    naked_asm!(
        "li $16, 1",
        "li $17, 1",
        "li $18, 1",
        "li $19, 1",
        "li $20, 1",
        "li $21, 1",
        "li $22, 1",
        "li $23, 1",
        "li $28, 1",
        "li $30, 1",
        "li $2, 0",
        "jr $31",
    )
}

/// The convention's: `$16` to `$23`, `$28`, `$30`.
const PRESERVED: u32 = 0xff << 16 | 1 << 28 | 1 << 30;
/// Registers that a component may look at after a portal has brought a thread in: all but `$29` and `$31`. In
/// place of `$0` are `hi` and `lo`.
const LOOKED_AT: u32 = !(1 << 29 | 1 << 31);

/// An entry that returns, as bits, the registers that were not zero when it was entered.
#[unsafe(naked)]
pub extern "C" fn look() -> i64 {
    naked_asm!(
        ".set push",
        ".set noreorder",
        ".set noat",
        "daddiu $29, $29, -256",
        "sd $1, 8($29)", "sd $2, 16($29)", "sd $3, 24($29)", "sd $4, 32($29)", "sd $5, 40($29)",
        "sd $6, 48($29)", "sd $7, 56($29)", "sd $8, 64($29)", "sd $9, 72($29)", "sd $10, 80($29)",
        "sd $11, 88($29)", "sd $12, 96($29)", "sd $13, 104($29)", "sd $14, 112($29)", "sd $15, 120($29)",
        "sd $16, 128($29)", "sd $17, 136($29)", "sd $18, 144($29)", "sd $19, 152($29)", "sd $20, 160($29)",
        "sd $21, 168($29)", "sd $22, 176($29)", "sd $23, 184($29)", "sd $24, 192($29)", "sd $25, 200($29)",
        "sd $26, 208($29)", "sd $27, 216($29)",
        "sd $28, 224($29)", "sd $30, 240($29)", "sd $31, 248($29)",
        "mfhi $4",
        "mflo $5",
        "or $4, $4, $5",
        "sd $4, 0($29)",
        "jal {nonzero}",
        "move $4, $29",
        "ld $31, 248($29)",
        "jr $31",
        "daddiu $29, $29, 256",
        ".set pop",
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
            ".set push",
            ".set noreorder",
            ".set noat",
            "daddiu $29, $29, -32",
            "sd $28, 0($29)", "sd $30, 8($29)", "sd $31, 16($29)", "sd $5, 24($29)",
            "move $12, $4",
            "li $1, -2", "li $2, -2", "li $3, -2", "li $4, -2", "li $5, -2", "li $6, -2", "li $7, -2",
            "li $8, -2", "li $9, -2", "li $10, -2", "li $11, -2", "li $13, -2", "li $14, -2", "li $15, -2",
            "li $16, -2", "li $17, -2", "li $18, -2", "li $19, -2", "li $20, -2", "li $21, -2", "li $22, -2",
            "li $23, -2", "li $24, -2", "li $25, -2", "li $26, -2", "li $27, -2", "li $28, -2", "li $30, -2",
            "mthi $1",
            "mtlo $1",
            "bal 2f",
            "nop",
            "ld $31, 24($29)",
            "sd $1, 8($31)", "sd $2, 16($31)", "sd $3, 24($31)", "sd $4, 32($31)", "sd $5, 40($31)",
            "sd $6, 48($31)", "sd $7, 56($31)", "sd $8, 64($31)", "sd $9, 72($31)", "sd $10, 80($31)",
            "sd $11, 88($31)", "sd $12, 96($31)", "sd $13, 104($31)", "sd $14, 112($31)", "sd $15, 120($31)",
            "sd $16, 128($31)", "sd $17, 136($31)", "sd $18, 144($31)", "sd $19, 152($31)",
            "sd $20, 160($31)", "sd $21, 168($31)", "sd $22, 176($31)", "sd $23, 184($31)",
            "sd $24, 192($31)", "sd $25, 200($31)", "sd $26, 208($31)", "sd $27, 216($31)",
            "sd $28, 224($31)", "sd $30, 240($31)",
            "mfhi $4",
            "mflo $5",
            "or $4, $4, $5",
            "sd $4, 0($31)",
            "ld $28, 0($29)", "ld $30, 8($29)", "ld $31, 16($29)",
            "b 3f",
            "daddiu $29, $29, 32",
            "2: syscall",
            "3:",
            ".set pop",
            inlateout("$4") index => _,
            inlateout("$5") saved.as_mut_ptr() => _,
            out("$2") _, out("$3") _, out("$6") _, out("$7") _, out("$8") _, out("$9") _, out("$10") _,
            out("$11") _, out("$12") _, out("$13") _, out("$14") _, out("$15") _, out("$16") _, out("$17") _,
            out("$18") _, out("$19") _, out("$20") _, out("$21") _, out("$22") _, out("$23") _, out("$24") _,
            out("$25") _,
        );
    }
    let changed = |x: &usize| saved[*x] != -2i64 as u64;
    let lost = (0..32).filter(|x| PRESERVED >> x & 1 == 1 && changed(x)).fold(0, |set, x| set | 1 << x);
    Seen {
        value: saved[2] as i64,
        status: saved[3],
        leaked: nonzero(&saved) & !PRESERVED & !(1 << 2 | 1 << 3),
        lost,
    }
}
