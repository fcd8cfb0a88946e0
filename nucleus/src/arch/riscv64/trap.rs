//! The trap handler: finds the entry of the running domain's portal table, and jumps.
//!
//! Portal call, exception and interrupt alike. `gp` is the only register that may be touched: it belongs to
//! the nucleus. The table is at address 0 of whichever address space runs, so an entry is one absolute load
//! away. A portal index is taken modulo the table's size: no branch, hence nothing to mispredict into.

use core::arch::global_asm;
use pebble_abi::{map, sys};

const INDEX_BITS: u32 = map::TABLE_ENTRIES.trailing_zeros();
const USER_CALL: i32 = 8;
const STATUS_SPP: u32 = 0x100;

global_asm!(
    ".text",
    ".option norelax",
    ".balign 64",
    ".global trap",
    "trap:",
    "    csrr  gp, scause",
    "    addi  gp, gp, -{USER_CALL}",
    "    bnez  gp, 1f",
    "    slli  gp, t0, 64 - {INDEX_BITS}",
    "    srli  gp, gp, 61 - {INDEX_BITS}",
    "    ld    gp, 0(gp)",
    "    jr    gp",
    "1:  csrr  gp, scause",
    "    bltz  gp, 2f",
    "    csrr  gp, sstatus",
    "    andi  gp, gp, {STATUS_SPP}",
    "    bnez  gp, panic_trap",
    "    ld    gp, {EXCEPTION} * 8(zero)",
    "    jr    gp",
    "2:  ld    gp, {INTERRUPT} * 8(zero)",
    "    jr    gp",
    USER_CALL = const USER_CALL,
    INDEX_BITS = const INDEX_BITS,
    STATUS_SPP = const STATUS_SPP,
    EXCEPTION = const sys::EXCEPTION,
    INTERRUPT = const sys::INTERRUPT,
);
