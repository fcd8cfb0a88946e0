//! Last words: one line through the board's console, then power off.
//!
//! Reached by a fault in privileged code, and as the exception entry of domains without which nothing can go
//! on (scheduler, interrupt dispatcher, VM manager). Needs no stack.

use core::arch::global_asm;

/// Of malta, where they are not cached: the registers of COM1, a 16550; and the one that resets the board,
/// which ends the emulator.
const COM1: u64 = 0xffff_ffff_b800_03f8;
const RESET: u64 = 0xffff_ffff_bf00_0500;
const GO: u64 = 0x42;

global_asm!(
    ".set push",
    ".set noreorder",
    ".set noat",
    ".text",
    ".global panic_trap, PANIC_ENTRY",
    "PANIC_ENTRY:",
    "panic_trap:",
    "    mfc0   $16, $13",          // Cause
    "    dmfc0  $17, $14",          // EPC
    "    dmfc0  $18, $8",           // BadVAddr
    "    dmfc0  $19, $10",          // EntryHi
    "    andi   $19, $19, 0xff",
    "    lui    $20, %hi(10f)",
    "    daddiu $20, $20, %lo(10f)",
    "    lui    $21, {COM1_HIGH}",
    "1:  lbu    $4, 0($20)",
    "    beqz   $4, 5f",
    "    addiu  $5, $4, -1",
    "    beqz   $5, 2f",
    "    li     $22, 60",
    "    bal    4f",
    "    daddiu $20, $20, 1",
    "    b      1b",
    "    nop",
    // A word: the next of the four.
    "2:  dsrlv  $4, $16, $22",
    "    andi   $4, $4, 15",
    "    sltiu  $5, $4, 10",
    "    bnez   $5, 3f",
    "    addiu  $4, $4, 48",
    "    addiu  $4, $4, 39",
    "3:  bal    4f",
    "    addiu  $22, $22, -4",
    "    bgez   $22, 2b",
    "    nop",
    "    move   $16, $17",
    "    move   $17, $18",
    "    move   $18, $19",
    "    b      1b",
    "    daddiu $20, $20, 1",
    // $4: character; returns to $31.
    "4:  lbu    $5, {COM1_LOW} + 5($21)",
    "    andi   $5, $5, 0x20",
    "    beqz   $5, 4b",
    "    nop",
    "    jr     $31",
    "    sb     $4, {COM1_LOW}($21)",
    "5:  lbu    $5, {COM1_LOW} + 5($21)",
    "    andi   $5, $5, 0x40",      // all has left
    "    beqz   $5, 5b",
    "    lui    $4, {RESET_HIGH}",
    "    li     $5, {GO}",
    "    sb     $5, {RESET_LOW}($4)",
    "6:  wait",
    "    b      6b",
    "    nop",
    "10: .asciz \"\\nnucleus: cannot go on: cause \\001 at \\001 value \\001 domain \\001\\n\"",
    "    .balign 4",
    ".set pop",
    COM1_HIGH = const COM1 >> 16 & 0xffff,
    COM1_LOW = const COM1 & 0xffff,
    RESET_HIGH = const RESET >> 16 & 0xffff,
    RESET_LOW = const RESET & 0xffff,
    GO = const GO,
);
