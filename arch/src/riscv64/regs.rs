//! Registers of a portal call on rv64.
//!
//! The caller puts the portal index into `t0`, its own words `p1..p5` into `a1..a5`, and executes `ecall`
//! with the return address in `ra`: the portal comes back to `ra`, not behind the `ecall`, so the
//! whole stub of `invoke_portal(index, p1..p5)` is `mv t0, a0; ecall`.
//!
//! The callee has its arguments in `a0..a5`. Results: `a0` the value, `a1` the status, and further words in
//! `a2..a7`. Every other caller-saved register reads as zero after the call. `gp` belongs to the nucleus: it
//! never keeps a value.

/// The illegal instruction by which a program gives up: a write to a read-only register, with the number of
/// SIGABRT.
pub const ABORT: u32 = 0xc003_5073;

/// The instructions behind which a domain returns, or is taken out: `li t0, index; ecall`.
pub(super) const fn gate(index: usize) -> [u32; 2] {
    [0x293 | (index as u32) << 20, 0x73]
}

/// `jal` or `jalr` that leaves its address in `ra`; `c.jalr`.
pub(super) fn follows_call(before: &[u8]) -> bool {
    let long =
        before.last_chunk().is_some_and(|word| matches!(u32::from_le_bytes(*word) & 0xfff, 0xef | 0xe7));
    let short = |half: u16| half & 0xf07f == 0x9002 && half & 0xf80 != 0;
    long || before.last_chunk().is_some_and(|half| short(u16::from_le_bytes(*half)))
}
