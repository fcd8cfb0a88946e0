//! The calling convention of a portal.
//!
//! The caller names the portal's index and its own words `p1..p5`. The letters of the specification name the
//! callee's arguments in order. `c = a d h` are supplied by the portal; every `i` takes the caller's next
//! word, `p1` first.
//!
//! Results: the value, the transport status ([`crate::status`]; 0: the call took place), and for a
//! specification that ends in `>n` further words. The callee cannot set the status. In which registers all
//! that is, and which become zero, the crate `pebble-arch` says for each processor.

/// Most words that a caller passes.
pub const MAX_CALLER_WORDS: usize = 5;
/// Most arguments of the callee.
pub const MAX_ARGS: usize = 6;
/// Most further result words.
pub const MAX_RESULTS: usize = 6;
/// Bytes that one `read` or `write` call carries in registers (four words).
pub const IO_BYTES: usize = 32;
