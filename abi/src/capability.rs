//! The capability table: shared by the capability manager and the template of the letter `k`. Layout and
//! rules: `docs/src/capability.md`.

/// Nodes of the table; node 0 is nobody's.
pub const NODES: usize = 2048;
/// Bytes of a node, and the shift from its number to its offset.
pub const NODE_BYTES: u64 = 32;
pub const NODE_SHIFT: u32 = NODE_BYTES.trailing_zeros();
pub const TABLE_BYTES: u64 = NODES as u64 * NODE_BYTES;

/// Words of a node.
pub const HOLDER: usize = 0;
pub const TOKEN: usize = 1;
pub const PARENT: usize = 2;
pub const NEXT: usize = 3;

/// Flags of the first word, above the holder.
pub const VALID: u64 = 1 << 16;
pub const TRANSFER: u64 = 1 << 17;
pub const ONCE: u64 = 1 << 18;

/// The same as calls carry them, in `rights | flags << 16`: it can be passed on; it is gone once used or
/// passed on.
pub const FLAG_TRANSFER: u64 = 1;
pub const FLAG_ONCE: u64 = 2;

/// Parent of a root.
pub const ROOT: u64 = 1;

/// Kinds below this belong to the image's servers.
pub const FIRST_USER_KIND: u16 = 256;
/// What a rule of the system wants to be shown: the object is the rule's position. An interface has one
/// right, to open it.
pub const NAME: u16 = 1;
pub const OPEN: u16 = 1;
/// A file: [`READ`] its bytes, its directory's names, or run it; [`WRITE`]: make, change and remove it.
pub const FILE: u16 = 2;
pub const READ: u16 = 1;
pub const WRITE: u16 = 2;
/// A device: see [`REGISTERS`] and [`INTERRUPT`].
pub const DEVICE: u16 = 3;
pub const REGISTERS: u16 = 1;
pub const INTERRUPT: u16 = 2;
/// All rights of a file, or of a device.
pub const ALL: u16 = 3;

pub const fn token(kind: u16, rights: u16, object: u32) -> u64 {
    object as u64 | (rights as u64) << 32 | (kind as u64) << 48
}

/// Kind, rights, object.
pub const fn token_parts(token: u64) -> (u16, u16, u32) {
    ((token >> 48) as u16, (token >> 32) as u16, token as u32)
}
