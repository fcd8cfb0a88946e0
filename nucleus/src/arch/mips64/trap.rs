//! The trap handler: finds the entry of the running domain's portal table, and jumps.
//!
//! Portal call, exception and interrupt alike. The table's pages are named by the root of the domain's page
//! tables. A portal index is taken modulo the table's size: no branch, hence nothing to mispredict into.
//! Portal code begins with its own address in `k0` and the invocation stack's top in `k1`.
//!
//! Two exceptions are no fault of the domain. The TLB maps pairs of pages, so it may have an entry that says
//! "not valid" or "not writable" of a page about which the tables have changed their mind since. And
//! compilers read the thread pointer by an instruction that this processor lacks: `rdhwr $3, $29` loads `$28`
//! here. In a delay slot it is a fault, since what is looked at then is the branch.
//!
//! Privileged code runs with `EXL` set, so the processor does not tell its faults from those of the domain.
//! What gives it away is an address that user mode cannot even ask the TLB for.

use core::arch::global_asm;
use pebble_abi::{map, sys};

/// Codes of `Cause`, where they are in it.
const CODE: u32 = 0x7c;
const SYSCALL: u32 = 8 << 2;
const RESERVED: u32 = 10 << 2;
/// Behind those of translations (1 to 3).
const ADDRESS: u32 = 4 << 2;
const STATUS_UM: u32 = 0x10;
/// Words 8 to 15 of the root are the pages of the table.
const TABLE: usize = 64;
const PAGE_BITS: u32 = map::TABLE_ENTRIES_PER_PAGE.trailing_zeros();
const PAGES_BITS: u32 = map::TABLE_ENTRIES.trailing_zeros() - PAGE_BITS;
/// Of a leaf.
const EXECUTE: u32 = 1 << 3;

/// Where in the root the page is that has an entry, and where in the page.
const fn page(index: usize) -> usize {
    TABLE + index / map::TABLE_ENTRIES_PER_PAGE * 8
}
const fn word(index: usize) -> usize {
    index % map::TABLE_ENTRIES_PER_PAGE * 8
}

global_asm!(
    ".set push",
    ".set noreorder",
    ".set noat",
    ".section .text.trap, \"ax\"",
    ".global trap",
    "trap:",
    "    mfc0   $k0, $13",          // Cause
    "    andi   $k0, $k0, {CODE}",
    "    xori   $k0, $k0, {SYSCALL}",
    "    bnez   $k0, 1f",
    "    dext   $k1, $12, {PAGE_BITS}, {PAGES_BITS}",
    "    dmfc0  $k0, $31",          // DESAVE: the root
    "    dins   $k0, $k1, 3, {PAGES_BITS}",
    "    ld     $k0, {TABLE}($k0)",
    "    dins   $k0, $12, 3, {PAGE_BITS}",
    "    ld     $k0, 0($k0)",
    "    jr     $k0",
    "    dmfc0  $k1, $30",          // ErrorEPC: the invocation stack
    "1:  mfc0   $k1, $12",          // Status
    "    andi   $k1, $k1, {STATUS_UM}",
    "    beqz   $k1, 6f",
    "    xori   $k1, $k0, {SYSCALL}",
    "    beqz   $k1, 5f",
    "    sltiu  $k0, $k1, {ADDRESS}",
    "    bnez   $k0, 2f",
    "    xori   $k0, $k1, {RESERVED}",
    "    bnez   $k0, 4f",
    "    dmfc0  $k0, $14",          // EPC
    "    b      3f",
    "    dsrl   $k1, $k0, 30",
    // A translation. The entry that has said no goes: an address that nobody uses, another for each entry.
    "2:  tlbp",
    "    ehb",
    "    mfc0   $k0, $0",           // Index
    "    bltz   $k0, 7f",
    "    dmfc0  $k1, $10",          // EntryHi
    "    nor    $k0, $k0, $zero",
    "    dsll   $k0, $k0, 13",
    "    dmtc0  $k0, $10",
    "    dmtc0  $zero, $2",         // EntryLo0
    "    dmtc0  $zero, $3",         // EntryLo1
    "    ehb",
    "    tlbwi",
    "    dmtc0  $k1, $10",
    "7:  dmfc0  $k0, $8",           // BadVAddr
    "    bltz   $k0, panic_trap",
    "    dsrl   $k1, $k0, 30",
    // What the tables say of the address in k0.
    "3:  bnez   $k1, 4f",
    "    dmfc0  $k1, $31",
    "    ld     $k1, 0($k1)",
    "    drotr  $k0, $k0, 21",
    "    dins   $k1, $k0, 3, 9",
    "    ld     $k1, -1($k1)",
    "    bgez   $k1, 8f",
    "    drotr  $k0, $k0, 55",      // lowest: which page
    "    dins   $k1, $k0, 3, 9",
    "    b      9f",
    "    ld     $k1, -1($k1)",
    "8:  dins   $k1, $k0, 12, 9",
    "9:  mfc0   $k0, $13",
    "    andi   $k0, $k0, 8 << 2",
    "    bnez   $k0, 10f",          // the instruction that does not exist
    "    mfc0   $k0, $13",
    // Enough for a load is `V`, else `D` beside it: filled like any other.
    "    dext   $k0, $k0, 2, 1",
    "    dext   $k1, $k1, 7, 2",
    "    sltu   $k0, $k0, $k1",
    "    bnez   $k0, refill",
    "    nop",
    "4:  dmfc0  $k0, $31",
    "    ld     $k0, {EXCEPTION_PAGE}($k0)",
    "    ld     $k0, {EXCEPTION_WORD}($k0)",
    "    jr     $k0",
    "    dmfc0  $k1, $30",
    "5:  dmfc0  $k0, $31",
    "    ld     $k0, {INTERRUPT_PAGE}($k0)",
    "    ld     $k0, {INTERRUPT_WORD}($k0)",
    "    jr     $k0",
    "    dmfc0  $k1, $30",
    // From privileged code: interrupts come to `idle` alone, nothing else may.
    "6:  bnez   $k1, panic_trap",
    "    nop",
    "    mtc0   $24, $12",
    "    jr     $25",
    "    ehb",
    // Only code is looked at: what is no memory may be nowhere.
    "10: andi   $k0, $k1, {EXECUTE}",
    "    beqz   $k0, 4b",
    "    dmfc0  $k0, $14",
    "    dins   $k1, $k0, 0, 12",
    "    lui    $k0, 0x8000",
    "    or     $k1, $k1, $k0",
    "    lw     $k1, 0($k1)",
    "    lui    $k0, 0x7c03",
    "    ori    $k0, $k0, 0xe83b",
    "    bne    $k0, $k1, 4b",
    "    dmfc0  $k0, $14",
    "    move   $3, $28",
    "    daddiu $k0, $k0, 4",
    "    dmtc0  $k0, $14",
    "    li     $k0, 0",
    "    li     $k1, 0",
    "    ehb",
    "    eret",
    ".set pop",
    CODE = const CODE,
    SYSCALL = const SYSCALL,
    RESERVED = const RESERVED,
    ADDRESS = const ADDRESS,
    STATUS_UM = const STATUS_UM,
    TABLE = const TABLE,
    PAGE_BITS = const PAGE_BITS,
    PAGES_BITS = const PAGES_BITS,
    EXECUTE = const EXECUTE,
    EXCEPTION_PAGE = const page(sys::EXCEPTION),
    EXCEPTION_WORD = const word(sys::EXCEPTION),
    INTERRUPT_PAGE = const page(sys::INTERRUPT),
    INTERRUPT_WORD = const word(sys::INTERRUPT),
);
