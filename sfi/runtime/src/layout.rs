//! Where everything lies: slots, segments, return stacks. The map is drawn in `docs/src/fault-domains.md`.

use pebble_portal::fault::STACK_BYTES;

pub const PAGE: u64 = 4096;
/// Distance of slots. A slot begins with the guard zone below its segment.
pub const SLOT: u64 = 16 << 30;
pub const SLOT_SHIFT: u32 = 34;
/// From the slot's begin to its segment, and the segment's size.
pub const GUARD: u64 = 4 << 30;
pub const SEGMENT: u64 = 4 << 30;
/// From the segment's base to the return stacks, and how many there are.
pub const RETURN_STACKS: u64 = 8 << 30;
pub const RETURN_STACK: u64 = STACK_BYTES as u64;
pub const MAX_STACKS: u32 = ((SLOT - GUARD - RETURN_STACKS) / RETURN_STACK) as u32;
/// Where portal code lies: behind the last slot, as far from it as a segment's guard.
pub const CODE: u64 = 64 << 20;
/// Most slots, if the address space has them.
pub const MAX_SLOTS: usize = 4096;

/// Offsets in a segment.
pub const CONTEXT: u64 = 0x1_0000;
pub const TABLE: u64 = 0x100;
/// Context pages of one instance.
pub const CONTEXT_BYTES: u64 = 2 * PAGE;
pub const MAX_IMPORTS: u32 = ((CONTEXT_BYTES - TABLE) / 8) as u32;
pub const MODULE: u64 = 0x2_0000;
pub const MODULE_END: u64 = 0x8000_0000;
pub const WINDOWS: u64 = 0x8000_0000;
pub const WINDOWS_END: u64 = 0xC000_0000;
pub const DATA_STACKS: u64 = 0xC000_0000;
pub const DATA_STACKS_END: u64 = 0xFF80_0000;
pub const DATA_STACK: u64 = 8 << 20;
pub const MAX_DATA_STACKS: u32 = ((DATA_STACKS_END - DATA_STACKS) / DATA_STACK) as u32;

pub const fn page_up(bytes: u64) -> u64 {
    bytes.div_ceil(PAGE) * PAGE
}
