//! Page tables that the refill handler walks. A leaf, shifted by [`LEAF_SHIFT`], is what goes into the
//! translation buffer (MIPS64 Architecture For Programmers, volume III, "EntryLo0 and EntryLo1").
//!
//! The upper half, and portal tables, are reached through the addresses that hardware maps onto the first 512
//! MiB: so they need no leaf, and all tables lie there. A leaf of the nucleus's is one that the translation
//! buffer does not take.

use crate::{Leaf, Reach, Whose};
use pebble_abi::map;

pub const VALID: u64 = 1;
/// Of a valid entry: it is a leaf, not a table's.
pub const LEAF: u64 = 2;
/// Of a window: the refill handler has not seen it yet, so the translation buffer does not hold it. The sign
/// of a leaf, which has none otherwise.
pub const UNTOUCHED: u64 = 1 << 63;
pub const EXECUTE: u64 = 1 << 3;
/// Bits that say [`Whose`], of tables too: from bit 4 on, where the refill handler puts in the pair that it
/// wants. None: the domain's own.
pub const MARKS: u64 = 3 << 4;
pub const BORROWED: u64 = 1 << 4;
pub const OPEN: u64 = 2 << 4;
pub const FOREIGN: u64 = 3 << 4;
/// `V` and `D` of `EntryLo`: user mode reaches it; and writes, which no leaf says without the other.
pub const USER: u64 = 1 << 7;
pub const WRITE: u64 = 1 << 8;
/// Cache attribute of memory, and of everything else.
pub const CACHED: u64 = 3 << 9;
pub const UNCACHED: u64 = 2 << 9;
/// Below the address, all of them.
const FLAGS: u64 = map::PAGE - 1;
const ADDRESS: u64 = 0x7fff_f000;
/// Makes `EntryLo` of a leaf.
pub const LEAF_SHIFT: u32 = 6;

/// Not valid, and not empty.
pub const SHUT: u64 = 2;
pub const WAITS: u64 = 4;
pub const PROMISED: u64 = 6;

/// In a domain's root: direct addresses of the pages of its portal table. The lowest table has them as leaves
/// that the translation buffer does not take.
pub const ROOT_PORTALS: u64 = 64;

/// The hardware maps physical memory a second time, so much further, and does not cache it there.
pub const LATE: u64 = 1 << 29;
const _: () = assert!((map::CODE_VA | (map::CODE_BYTES - 1)) & LATE == 0 && LATE >= map::CODE_BYTES);

/// Of a space: the domain's number.
pub const SPACE_ASID: u64 = 0xff;
const _: () = assert!(map::MAX_DOMAINS == SPACE_ASID as usize + 1);

/// Where memory ends, whatever the board: devices are behind.
const MEMORY_END: u64 = map::RAM_MAX + map::UPPER_BYTES;

pub(super) const fn fixed(va: u64) -> u64 {
    va & (LATE - 1)
}

/// The direct address of the root of a domain's page tables, with the domain's number.
pub const fn space(asid: u16, root: u64) -> u64 {
    map::direct(root) | asid as u64
}

/// Where portal code finds the root of the page tables that this value names.
pub const fn root_va(space: u64) -> u64 {
    space & !SPACE_ASID
}

pub const fn table(pa: u64) -> u64 {
    map::direct(pa) | VALID
}

pub const fn address(entry: u64) -> u64 {
    entry & ADDRESS
}

pub(super) const fn leaf(pa: u64, leaf: Leaf) -> u64 {
    let user = match leaf.reach {
        Reach::User if leaf.write => USER | WRITE,
        Reach::User => USER,
        Reach::Space | Reach::Nucleus => 0,
    };
    let execute = if leaf.execute { EXECUTE } else { 0 };
    pa | VALID | LEAF | user | execute | cache(pa) | mark(leaf.whose)
}

const fn cache(pa: u64) -> u64 {
    if pa < MEMORY_END { CACHED } else { UNCACHED }
}

pub(super) const fn is_table(entry: u64) -> bool {
    entry & (VALID | LEAF) == VALID
}

const fn mark(whose: Whose) -> u64 {
    match whose {
        Whose::Own => 0,
        Whose::Borrowed => BORROWED,
        Whose::Open => OPEN,
        Whose::Foreign => FOREIGN,
    }
}

pub(super) const fn marked(entry: u64, whose: Whose) -> u64 {
    entry & !MARKS | mark(whose)
}

pub(super) const fn whose(entry: u64) -> Whose {
    match entry & MARKS {
        BORROWED => Whose::Borrowed,
        OPEN => Whose::Open,
        FOREIGN => Whose::Foreign,
        _ => Whose::Own,
    }
}

pub(super) const fn is_lendable(entry: u64) -> bool {
    entry & (VALID | LEAF | USER | EXECUTE | MARKS) == VALID | LEAF | USER
}

pub(super) const fn read(entry: u64) -> Option<Leaf> {
    if entry & (VALID | LEAF) != VALID | LEAF {
        return None;
    }
    let reach = if entry & USER != 0 { Reach::User } else { Reach::Space };
    let (write, execute) = (entry & WRITE != 0, entry & EXECUTE != 0);
    Some(Leaf { reach, write, execute, whose: whose(entry) })
}

pub(super) const fn moved(entry: u64, pa: u64) -> u64 {
    pa | entry & FLAGS
}
