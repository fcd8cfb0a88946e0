//! The translation buffer (TLB): filling it from the page tables, forgetting a domain, and waiting.
//!
//! Problem: a page that the TLB does not have costs every domain a trap, and a window that nobody touches
//! should cost nothing. Strategy: the refill vector is four loads from tables at direct addresses, without
//! stack or memory of its own. A table's entry is negative and tells that it is one by that; with bit 63 a
//! leaf tells that its window has not been touched, and loses it here. Whatever else is found (nothing, a
//! word of no leaf) lacks `V`, so it goes into the TLB as an entry that is not valid, and the access ends in
//! the general vector.
//!
//! The sections' places are fixed by the hardware and by `nucleus.ld`.

use core::arch::global_asm;

global_asm!(
    ".set push",
    ".set noreorder",
    ".set noat",
    ".section .text.refill, \"ax\"",
    ".global refill",
    "refill:",
    "    dmfc0  $k0, $8", // BadVAddr
    "    dsrl   $k1, $k0, 30",
    "    bnez   $k1, 1f",  // no user address: word 0 of no table
    "    dmfc0  $k1, $31", // DESAVE: the root
    "    ld     $k1, 0($k1)",
    "    drotr  $k0, $k0, 21",
    "    dins   $k1, $k0, 3, 9",
    "    ld     $k1, -1($k1)",
    "    bgez   $k1, 3f",
    "    drotr  $k0, $k0, 56", // lowest: which pair of pages
    "    dins   $k1, $k0, 4, 8",
    "    ld     $k0, -1($k1)",
    "    bltz   $k0, 5f",
    "    dext   $k0, $k0, 6, 32",
    "4:  dmtc0  $k0, $2", // EntryLo0
    "    ld     $k0, 7($k1)",
    "    bltz   $k0, 6f",
    "    dext   $k0, $k0, 6, 32",
    "7:  dmtc0  $k0, $3", // EntryLo1
    "    li     $k0, 0",
    "    li     $k1, 0",
    "    ehb",
    "    tlbwr",
    "    eret",
    // A leaf of the upper level spans all pages of a table; nothing, none of them.
    "1:  li     $k1, 0",
    "3:  dins   $k1, $k0, 13, 8",
    "    dext   $k1, $k1, 6, 32",
    "    dmtc0  $k1, $2",
    "    daddiu $k0, $k1, 1 << 6",
    "    b      7b",
    "    dext   $k0, $k0, 0, 32",
    // A window's first touch.
    "5:  ld     $k0, -1($k1)",
    "    dins   $k0, $zero, 63, 1",
    "    sd     $k0, -1($k1)",
    "    b      4b",
    "    dext   $k0, $k0, 6, 32",
    "6:  ld     $k0, 7($k1)",
    "    dins   $k0, $zero, 63, 1",
    "    sd     $k0, 7($k1)",
    "    b      7b",
    "    dext   $k0, $k0, 6, 32",
    //
    // No entry is of domain `$24` any more. Returns to `$25`; `$1` keeps whose address space this is.
    ".section .text.flush, \"ax\"",
    ".global flush",
    "flush:",
    "    dmfc0  $1, $10",     // EntryHi
    "    mfc0   $k0, $16, 1", // Config1: the last entry
    "    dext   $k0, $k0, 25, 6",
    "1:  mtc0   $k0, $0", // Index
    "    ehb",
    "    tlbr",
    "    ehb",
    "    dmfc0  $k1, $10",
    "    andi   $k1, $k1, 0xff",
    "    bne    $k1, $24, 2f",
    "    nor    $k1, $k0, $zero", // an address that nobody uses, another for each entry
    "    dsll   $k1, $k1, 13",
    "    dmtc0  $k1, $10",
    "    dmtc0  $zero, $2",
    "    dmtc0  $zero, $3",
    "    ehb",
    "    tlbwi",
    "2:  bnez   $k0, 1b",
    "    addiu  $k0, $k0, -1",
    "    dmtc0  $1, $10",
    "    jr     $25",
    "    ehb",
    //
    // Waits in privileged code, where an interrupt is all that can come: the trap handler then puts back what
    // is in `$24`, and returns to `$25`.
    ".section .text.idle, \"ax\"",
    ".global idle",
    "idle:",
    "    mfc0   $24, $12", // Status
    "    ori    $k0, $24, 0x1f",
    "    xori   $k0, $k0, 0x1e", // kernel mode, no EXL, IE
    "    mtc0   $k0, $12",
    "    ehb",
    "1:  wait",
    "    b      1b",
    "    nop",
    ".set pop",
);
