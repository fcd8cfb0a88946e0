//! Programs for rv64: how they are compiled, and which are accepted (RISC-V ELF psABI, "ELF Object Files").

/// `EM_RISCV`.
pub const MACHINE: u16 = 243;
/// Compressed instructions, arguments in double-precision registers.
pub(super) const FLAGS: u32 = 5;
pub(super) const REFUSED: (u32, &str) = (7, QUAD);
pub(super) const FORMAT: &str = "elf64-littleriscv";
pub(super) const DISASSEMBLY: &str = "+m,+a,+f,+d";
pub(super) const RUST_TARGET: &str = "riscv64imac-unknown-none-elf";
/// What every processor with `Sstc` has besides (RVA22): smaller and quicker code. `relax`: the linker makes
/// two instructions of a call one where the function is near.
pub(super) const RUST_FLAGS: &str = "-C target-feature=+zba,+zbb,+zbs,+relax";

/// Of `e_flags`: floating-point registers pass arguments, of at most so many bits.
const FLOAT_ABI: u32 = 0x0006;
const FLOAT_ABI_QUAD: u32 = 0x0006;
const QUAD: &str = "needs quad-precision floating point";

pub(super) const fn uses_float(flags: u32) -> Result<bool, &'static str> {
    match flags & FLOAT_ABI {
        FLOAT_ABI_QUAD => Err(QUAD),
        abi => Ok(abi != 0),
    }
}
