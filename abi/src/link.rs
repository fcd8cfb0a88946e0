//! Records in a component's ELF file by which image builder and loader connect it.
//!
//! Section `.pebble.exports` holds [`EXPORT_BYTES`]-byte records: name, specification, entry address, order:
//! interfaces are numbered in that order. Section `.pebble.imports` holds [`IMPORT_BYTES`]-byte records:
//! name, slot, order; whoever loads the component opens the portals in that order, and writes each one's
//! index into the word at its slot before the component runs. Slot 0: nobody asks for the index. Neither
//! section is loaded: nobody reads it when the component runs. All numbers little-endian; names and
//! specifications padded with zero bytes.

/// Before the name of an import: without such an interface its index is 0, and the component goes on.
pub const OPTIONAL: char = '?';
/// Longest interface name; three words.
pub const NAMELEN: usize = 24;
/// Longest specification string.
pub const SPECLEN: usize = 16;
/// Text of limits: see the process server.
pub const MANIFEST: &str = ".pebble.manifest";
pub const EXPORTS: &str = ".pebble.exports";
pub const IMPORTS: &str = ".pebble.imports";
/// name `[u8; 24]`, specification `[u8; 16]`, entry `u64`, order `u64`
pub const EXPORT_BYTES: usize = NAMELEN + SPECLEN + 16;
pub const EXPORT_ENTRY: usize = NAMELEN + SPECLEN;
pub const EXPORT_ORDER: usize = EXPORT_ENTRY + 8;
/// name `[u8; 24]`, slot `u64`, order `u64`
pub const IMPORT_BYTES: usize = NAMELEN + 16;
pub const IMPORT_SLOT: usize = NAMELEN;
pub const IMPORT_ORDER: usize = IMPORT_SLOT + 8;

/// Offsets in the start-up page of a program.
pub struct Startup;
impl Startup {
    /// `u64`: number of arguments.
    pub const ARGC: usize = 0;
    /// Paths that the program opens as files 0, 1 and 2: 40 bytes each.
    pub const STDIN: usize = 8;
    pub const STDOUT: usize = 48;
    pub const STDERR: usize = 88;
    /// First free heap address after the image.
    pub const BREAK: usize = 128;
    /// The arguments, one zero-terminated string after the other; behind them in the same way the environment,
    /// `NAME=value` each, which ends with an empty string.
    pub const ARGS: usize = 256;
    pub const ARGS_MAX: usize = 4096 - 256;
    /// Beside the count of `process.argument`: these bytes are the environment's, which comes behind the last
    /// argument.
    pub const ENVIRONMENT: u64 = 1 << 8;
}
/// Longest path in an `open` call; five words.
pub const PATHLEN: usize = 40;

/// A name as the words in which calls pass it.
pub fn pack<const WORDS: usize>(name: &str) -> Option<[u64; WORDS]> {
    let bytes = name.as_bytes();
    if bytes.len() > WORDS * 8 {
        return None;
    }
    let mut words = [0u64; WORDS];
    for (word, bytes) in words.iter_mut().zip(bytes.chunks(8)) {
        *word = bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    }
    Some(words)
}

/// The inverse of [`pack`]: fills `out` (8 bytes a word) and returns the length up to the first zero.
pub fn unpack(words: &[u64], out: &mut [u8]) -> usize {
    let mut len = 0;
    for (i, byte) in out.iter_mut().enumerate().take(words.len() * 8) {
        *byte = (words[i / 8] >> (i % 8 * 8)) as u8;
        if *byte == 0 {
            break;
        }
        len = i + 1;
    }
    len
}
