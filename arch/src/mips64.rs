//! mips64, release 2, little endian, with a translation buffer that the nucleus fills (`docs/src/mips.md`).

use crate::{Arch, Cause, Layout, Leaf, Processor, Whose};
use pebble_abi::map;

pub mod elf;
pub mod fault;
pub mod frame;
pub mod paging;
pub mod regs;

/// As people call it.
pub(crate) const NAME: &str = "MIPS";

#[derive(Clone, Copy, Debug)]
pub struct Mips64;

impl Arch for Mips64 {
    const PROCESSOR: Processor = Processor::Mips64;
    const ELF_MACHINE: u16 = elf::MACHINE;
    const ELF_FLAGS: u32 = elf::FLAGS;
    const ELF_FLAGS_REFUSED: (u32, &str) = elf::REFUSED;
    const ELF_FORMAT: &str = elf::FORMAT;
    const DISASSEMBLY: &str = elf::DISASSEMBLY;
    const RUST_TARGET: &str = elf::RUST_TARGET;
    const RUST_FLAGS: &str = elf::RUST_FLAGS;
    const LAYOUT: Layout = frame::LAYOUT;
    const ABORT: u32 = regs::ABORT;
    const ILLEGAL_AT: bool = true;
    const WAITS: u64 = paging::WAITS;
    const SHUT: u64 = paging::SHUT;
    const PROMISED: u64 = paging::PROMISED;
    const LATE: u64 = paging::LATE;
    const PORTALS: Option<u64> = Some(paging::ROOT_PORTALS);

    #[inline(always)]
    fn table(pa: u64) -> u64 {
        paging::table(pa)
    }

    #[inline(always)]
    fn leaf(pa: u64, leaf: Leaf) -> u64 {
        paging::leaf(pa, leaf)
    }

    #[inline(always)]
    fn is_valid(entry: u64) -> bool {
        entry & paging::VALID != 0
    }

    #[inline(always)]
    fn is_table(entry: u64) -> bool {
        paging::is_table(entry)
    }

    #[inline(always)]
    fn whose(entry: u64) -> Whose {
        paging::whose(entry)
    }

    #[inline(always)]
    fn is_lendable(entry: u64) -> bool {
        paging::is_lendable(entry)
    }

    #[inline(always)]
    fn marked(entry: u64, whose: Whose) -> u64 {
        paging::marked(entry, whose)
    }

    #[inline(always)]
    fn read(entry: u64) -> Option<Leaf> {
        paging::read(entry)
    }

    #[inline(always)]
    fn address(entry: u64) -> u64 {
        paging::address(entry)
    }

    #[inline(always)]
    fn moved(entry: u64, pa: u64) -> u64 {
        paging::moved(entry, pa)
    }

    #[inline(always)]
    fn direct(pa: u64) -> u64 {
        map::direct(pa)
    }

    #[inline(always)]
    fn physical(direct: u64) -> u64 {
        paging::address(direct) | direct % map::PAGE
    }

    #[inline(always)]
    fn fixed(va: u64) -> Option<u64> {
        Some(paging::fixed(va))
    }

    fn space(asid: u16, root: u64) -> u64 {
        paging::space(asid, root)
    }

    fn asid(space: u64) -> u16 {
        (space & paging::SPACE_ASID) as u16
    }

    fn gate(index: usize) -> [u32; 2] {
        regs::gate(index)
    }

    fn cause(code: u64, value: u64, pc: u64) -> (Cause, u64) {
        fault::cause(code, value, pc)
    }

    #[inline(always)]
    fn is_timer(code: u64) -> bool {
        fault::is_timer(code)
    }

    fn uses_float(elf_flags: u32) -> Result<bool, &'static str> {
        elf::uses_float(elf_flags)
    }

    fn follows_call(before: &[u8]) -> bool {
        regs::follows_call(before)
    }

    fn is_aligned(address: u64) -> bool {
        address.is_multiple_of(4)
    }
}
