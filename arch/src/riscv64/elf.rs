//! Programs for rv64 (RISC-V ELF psABI, "ELF Object Files").

/// `EM_RISCV`.
pub const MACHINE: u16 = 243;
/// Of `e_flags`: floating-point registers pass arguments, of at most so many bits.
const FLOAT_ABI: u32 = 0x0006;
const FLOAT_ABI_QUAD: u32 = 0x0006;

pub(super) const fn uses_float(flags: u32) -> Result<bool, &'static str> {
    match flags & FLOAT_ABI {
        FLOAT_ABI_QUAD => Err("needs quad-precision floating point"),
        abi => Ok(abi != 0),
    }
}
