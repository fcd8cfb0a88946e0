//! How a server is replaced: what its two interfaces `X.handover` (`npiii>4`) and `X.takeover` (`npiiiii`)
//! are asked.
//!
//! The state is a string of bytes in a format that the server numbers; it travels [`CHUNK`] bytes a call.

/// First word of `X.handover`. Second word: newest format that the successor reads; third: index of the
/// portal, in the server's own table, through which calls leave with status `MOVED`. → format of the state;
/// its length in bytes. From this instant on no call takes place in this instance.
pub const LEAVE: u64 = 0;
/// Second word: offset → number of bytes, at most [`CHUNK`], in the further result words.
pub const READ: u64 = 1;
/// The successor has refused: calls take place here again.
pub const RESUME: u64 = 2;

/// First word of `X.takeover`: this instance is a successor, and its `main` will wait in `ready()` for the
/// state. Called before its thread starts.
pub const PREPARE: u64 = 0;
/// → 1 once its `main` waits.
pub const WAITS: u64 = 1;
/// The next bytes of the state, as many as the first word says in bits 8 and up, in the other words.
pub const APPEND: u64 = 2;
/// Second word: format; third: length. → 0 when the state has been understood; then the successor is in
/// charge.
pub const FINISH: u64 = 3;

/// Bytes of one call.
pub const CHUNK: usize = 32;

pub const fn append(bytes: usize) -> u64 {
    APPEND | (bytes as u64) << 8
}
