//! Boot: from the bootloader's jump to the return code of the first thread.
//!
//! The image builder has laid out memory as it shall be; what is left is to load registers. It fills in
//! `BOOT_RECORD` (address space of the first domain, top of the first thread's invocation stack). The
//! bootloader enters at the ELF file's entry, and has made the caches ready.

use core::arch::global_asm;

global_asm!(
    ".set push",
    ".set noreorder",
    ".set noat",
    ".section .text.boot, \"ax\"",
    ".global _start, BOOT_RECORD",
    "_start:",
    // Vectors may move only while those of boot are in force.
    "    lui    $8, 0x40",  // BEV
    "    ori    $8, $8, 2", // EXL
    "    mtc0   $8, $12",   // Status
    "    ehb",
    "    lui    $8, %hi(refill)",
    "    daddiu $8, $8, %lo(refill)",
    "    mtc0   $8, $15, 1", // EBase
    "    ehb",
    // Next `eret`: to user mode, with 64-bit operations; no float; interrupt controller and clock.
    "    lui    $8, 0x80",
    "    ori    $8, $8, 0x8413",
    "    mtc0   $8, $12",
    "    mtc0   $zero, $13", // Cause
    // The clock's interrupt comes when it is asked for.
    "    mfc0   $8, $9", // Count
    "    addiu  $8, $8, -1",
    "    mtc0   $8, $11", // Compare
    // Counter and length of cache lines are readable in user mode.
    "    li     $8, 0xe",
    "    mtc0   $8, $7", // HWREna
    // The TLB: pages of 4 KiB, none fixed, and of what was before us nothing.
    "    mtc0   $zero, $5",  // PageMask
    "    mtc0   $zero, $6",  // Wired
    "    dmtc0  $zero, $2",  // EntryLo0
    "    dmtc0  $zero, $3",  // EntryLo1
    "    mfc0   $8, $16, 1", // Config1: the last entry
    "    dext   $8, $8, 25, 6",
    "1:  mtc0   $8, $0", // Index
    "    nor    $9, $8, $zero",
    "    dsll   $9, $9, 13",
    "    dmtc0  $9, $10", // EntryHi
    "    ehb",
    "    tlbwi",
    "    bnez   $8, 1b",
    "    addiu  $8, $8, -1",
    "    lui    $8, %hi(BOOT_RECORD)",
    "    ld     $9, %lo(BOOT_RECORD)($8)",
    "    ld     $k1, %lo(BOOT_RECORD + 8)($8)",
    "    dmtc0  $9, $10",
    "    dins   $9, $zero, 0, 8",
    "    dmtc0  $9, $31",  // DESAVE: the root
    "    dmtc0  $k1, $30", // ErrorEPC: the invocation stack
    "    ld     $k0, 0($k1)",
    "    jr     $k0",
    "    ehb",
    "    .balign 16",
    "BOOT_RECORD:",
    "    .quad 0, 0",
    ".set pop",
);
