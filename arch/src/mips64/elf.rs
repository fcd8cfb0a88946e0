//! Programs for mips64: how they are compiled, and which are accepted (MIPS ABI, "ELF Header Flags").

/// `EM_MIPS`.
pub const MACHINE: u16 = 8;
/// Release 2, n64.
pub(super) const FLAGS: u32 = 0x8000_0000;
pub(super) const REFUSED: (u32, &str) = (FLAGS | SHORT, COMPRESSED);
pub(super) const FORMAT: &str = "elf64-tradlittlemips";
pub(super) const DISASSEMBLY: &str = "+mips64r2";
/// The compiler knows no such target without an operating system: here is its description.
pub(super) const RUST_TARGET: &str = "arch/src/mips64/mips64el-pebble.json";
/// It calls the processor's assembly experimental, and wants to be told that this is known, wherever there is
/// any.
pub(super) const RUST_FLAGS: &str = "-Z crate-attr=feature(asm_experimental_arch) -A unused-features";

/// Of `e_flags`: instructions of two bytes, in either of two forms.
const SHORT: u32 = 0x0600_0000;
const COMPRESSED: &str = "has compressed instructions";
/// Calling conventions with addresses of 32 bits; n64 is none of them.
const NARROW: u32 = 0x0000_f020;
/// Release: 9 and up are those that other processors have.
const RELEASE: u32 = 28;
const RELEASE_6: u32 = 9;

/// There is no floating point, and the flags do not tell whether code uses it: its first such instruction is
/// illegal.
pub(super) const fn uses_float(flags: u32) -> Result<bool, &'static str> {
    if flags & NARROW != 0 {
        Err("is not for the calling convention n64")
    } else if flags & SHORT != 0 {
        Err(COMPRESSED)
    } else if flags >> RELEASE >= RELEASE_6 {
        Err("needs a processor of release 6")
    } else {
        Ok(false)
    }
}
