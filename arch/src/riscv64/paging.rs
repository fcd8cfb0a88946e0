//! Sv39 (The RISC-V Instruction Set Manual, volume II, "Sv39: Page-Based 39-bit Virtual-Memory System").
//!
//! Accessed and dirty are always set, so the hardware never has to. The two bits that it leaves to software
//! say whose page it is.

use crate::{Leaf, Reach, Whose};
use pebble_abi::map;

pub const V: u64 = 1;
pub const R: u64 = 2;
pub const W: u64 = 4;
pub const X: u64 = 8;
pub const U: u64 = 16;
pub const G: u64 = 32;
pub const A: u64 = 64;
pub const D: u64 = 128;

/// Software bits of a user leaf: [`Whose`]. None: the domain's own.
pub const MARKS: u64 = 3 << 8;
pub const BORROWED: u64 = 1 << 8;
pub const OPEN: u64 = 2 << 8;
pub const FOREIGN: u64 = 3 << 8;
/// Below the address, all of them.
const FLAGS: u64 = 0x3ff;

/// Not valid, and not empty.
pub const SHUT: u64 = 2;
pub const WAITS: u64 = 4;
pub const PROMISED: u64 = 6;

/// The arena of portal code is mapped a second time, so much further.
pub const LATE: u64 = 1 << 22;
const _: () = assert!((map::CODE_VA | (map::CODE_BYTES - 1)) & LATE == 0 && LATE >= map::CODE_BYTES);

/// Of `satp`: the mode.
pub const SATP_SV39: u64 = 8 << 60;
/// Where in it the identifier of the address space is.
pub const SATP_ASID: u32 = 44;
const PAGE_NUMBER: u64 = 0xfff_ffff_ffff;

/// Memory begins at 2 GiB: a direct address has the 32nd bit as sign, so two shifts make it of an entry.
pub(super) const fn direct(pa: u64) -> u64 {
    pa as i32 as i64 as u64
}

/// The value of `satp` for a domain.
pub const fn space(asid: u16, root: u64) -> u64 {
    SATP_SV39 | (asid as u64) << SATP_ASID | root >> 12
}

/// Where portal code finds the root of the page tables that this value names.
pub const fn root_va(space: u64) -> u64 {
    direct((space & PAGE_NUMBER) << 12)
}

pub const fn entry(pa: u64, flags: u64) -> u64 {
    (pa >> 12) << 10 | flags
}

pub const fn address(entry: u64) -> u64 {
    (entry >> 10 & PAGE_NUMBER) << 12
}

pub(super) const fn leaf(pa: u64, leaf: Leaf) -> u64 {
    let reach = match leaf.reach {
        Reach::User => U,
        Reach::Space => 0,
        Reach::Nucleus => G,
    };
    let write = if leaf.write { W | D } else { 0 };
    let execute = if leaf.execute { X } else { 0 };
    entry(pa, V | R | A | reach | write | execute | mark(leaf.whose))
}

pub(super) const fn is_table(entry: u64) -> bool {
    entry & (V | R | W | X) == V
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
    entry & (V | U | X | MARKS) == V | U
}

pub(super) const fn read(entry: u64) -> Option<Leaf> {
    if entry & V == 0 || is_table(entry) {
        return None;
    }
    let reach = match entry & (U | G) {
        0 => Reach::Space,
        G => Reach::Nucleus,
        _ => Reach::User,
    };
    let (write, execute) = (entry & W != 0, entry & X != 0);
    Some(Leaf { reach, write, execute, whose: whose(entry) })
}

pub(super) const fn moved(entry: u64, pa: u64) -> u64 {
    self::entry(pa, entry & FLAGS)
}
