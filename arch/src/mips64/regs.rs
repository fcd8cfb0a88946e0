//! Registers of a portal call on mips64, convention n64.
//!
//! The caller puts the portal index into `$12`, its own words `p1..p5` into `$5..$9`, and executes `syscall`
//! with the return address in `$31`: the portal comes back there, not behind the `syscall`, so the whole stub
//! of `invoke_portal(index, p1..p5)` is `move $12, $4; syscall`.
//!
//! The callee has its arguments in `$4..$9`. Results: `$2` the value, `$3` the status, and further words in
//! `$6..$11`. Every other caller-saved register reads as zero after the call. `$26` and `$27` belong to the
//! nucleus: they never keep a value.

use pebble_abi::map;

/// The instruction by which a program gives up: `lwc2` into the register with the number of SIGABRT. There is
/// no such coprocessor, and the processor says which one was wanted; it does not tell instructions.
pub const ABORT: u32 = 0xc806_0000;

/// Places in the nucleus that portal code calls, with `$25` as return address. `$1`, `$24`, `$26` and `$27`
/// are destroyed.
///
/// No entry of the translation buffer is then of the domain with the number in `$24`.
pub const FLUSH: u64 = map::NUCLEUS_VA + 0x100;
/// Waits until there is an interrupt.
pub const IDLE: u64 = map::NUCLEUS_VA + 0x160;

/// The instructions behind which a domain returns, or is taken out: `li $12, index; syscall`.
pub(super) const fn gate(index: usize) -> [u32; 2] {
    [0x240c_0000 | index as u32, 0xc]
}

/// `jal`, `bal`, or `jalr` that leaves its address in `$31`; and the instruction in its delay slot.
pub(super) fn follows_call(before: &[u8]) -> bool {
    let Some([call, _]) = before.last_chunk::<8>().map(|last| {
        let word = u64::from_le_bytes(*last);
        [word as u32, (word >> 32) as u32]
    }) else {
        return false;
    };
    let jal = call >> 26 == 3;
    let jalr = call & 0xfc1f_f83f == 0xf809;
    // `bltzal`, `bgezal`, and what they were called with a likely branch.
    let bal = call & 0xfc1c_0000 == 0x0410_0000;
    jal || jalr || bal
}
