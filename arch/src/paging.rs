//! Page tables in neutral words.

use pebble_abi::map::PAGE;

/// Bytes that one table of the lowest level maps.
pub const SPAN: u64 = 512 * PAGE;

/// Address of the entry for `va` in the table of this level at `table`. Level 0 is the lowest.
pub const fn slot(table: u64, level: u32, va: u64) -> u64 {
    table + (va >> (12 + 9 * level) & 511) * 8
}

/// Who reaches a page through a leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// The domain.
    User,
    /// The nucleus and portal code, in this address space: a portal table.
    Space,
    /// The nucleus and portal code, in all address spaces alike.
    Nucleus,
}

/// Whose the page is that a domain reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// The domain's own.
    Own,
    /// A window, until the call returns: may be lent on by the thread whose call it is.
    Borrowed,
    /// An open window: shared until either side ends it. May be lent on.
    Open,
    /// Device registers, boot information, grants: never lent.
    Foreign,
}

/// What a leaf says of its page, which can always be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leaf {
    pub reach: Reach,
    pub write: bool,
    pub execute: bool,
    pub whose: Whose,
}

impl Leaf {
    pub const USER_R: Leaf = Leaf { reach: Reach::User, write: false, execute: false, whose: Whose::Own };
    pub const USER_RW: Leaf = Leaf { write: true, ..Leaf::USER_R };
    pub const USER_RX: Leaf = Leaf { execute: true, ..Leaf::USER_R };
    pub const FOREIGN_R: Leaf = Leaf { whose: Whose::Foreign, ..Leaf::USER_R };
    pub const FOREIGN_RW: Leaf = Leaf { whose: Whose::Foreign, ..Leaf::USER_RW };
    pub const FOREIGN_RX: Leaf = Leaf { whose: Whose::Foreign, ..Leaf::USER_RX };
    pub const TABLE_R: Leaf = Leaf { reach: Reach::Space, ..Leaf::USER_R };
    pub const NUCLEUS_RW: Leaf = Leaf { reach: Reach::Nucleus, ..Leaf::USER_RW };
    pub const NUCLEUS_RX: Leaf = Leaf { reach: Reach::Nucleus, ..Leaf::USER_RX };

    /// User mode writes to it, or executes it, or neither.
    pub const fn user(write: bool, execute: bool) -> Leaf {
        Leaf { write, execute, ..Leaf::USER_R }
    }
}
