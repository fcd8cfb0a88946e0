//! The calling convention of a portal (rv64).
//!
//! The caller puts the portal index into `t0`, its own words `p1..p5` into `a1..a5`, and executes `ecall`
//! with the return address in `ra`: the portal comes back to `ra`, not behind the `ecall`, so the
//! whole stub of `invoke_portal(index, p1..p5)` is `mv t0, a0; ecall`.
//!
//! The letters of the specification name the callee's arguments `a0..a5` in order. `c = a d h`
//! are supplied by the portal; every `i` takes the caller's next word, `p1` first.
//!
//! Results: `a0` the value, `a1` the transport status ([`crate::status`]; 0: the call took place), and for a
//! specification that ends in `>n` further words in `a2..`. The callee cannot set `a1`.
//! Every other caller-saved register reads as zero after the call. `gp` belongs to the nucleus: it never
//! keeps a value.

/// Most words that a caller passes (`p1..p5`, in `a1..a5`).
pub const MAX_CALLER_WORDS: usize = 5;
/// Most arguments of the callee.
pub const MAX_ARGS: usize = 6;
/// Most further result words (`a2..a7`).
pub const MAX_RESULTS: usize = 6;
/// Bytes that one `read` or `write` call carries in registers (four words).
pub const IO_BYTES: usize = 32;
/// The illegal instruction by which a program gives up: a write to a read-only register, with the number of SIGABRT.
pub const ABORT: u32 = 0xc003_5073;
