//! Boot: from the firmware's jump, in physical memory, to the return code of the first thread.
//!
//! The image builder has laid out memory as it shall be; what is left is to load registers. It fills in
//! `BOOT_RECORD` (address space of the first domain, top of the first thread's invocation stack). Paging is
//! turned on by faulting into it: the instruction after the `satp` write has no mapping at its physical
//! address, so the processor goes to `stvec`, which holds the virtual address of the next step.

use core::arch::global_asm;

global_asm!(
    ".section .text.boot, \"ax\"",
    // Where it runs first is not where it is linked: the linker changes nothing.
    ".option norelax",
    ".global _start, BOOT_RECORD",
    "_start:",
    "    j boot",
    "    .balign 8",
    "BOOT_RECORD:",
    "    .quad 0, 0",
    "boot:",
    "    lla   t0, BOOT_RECORD",
    "    ld    t1, 0(t0)",
    "    ld    t2, 8(t0)",
    "    lui   t3, %hi(paged)",
    "    addi  t3, t3, %lo(paged)",
    "    csrw  stvec, t3",
    "    csrw  sie, zero",
    "    csrw  satp, t1",
    "    .balign 4",
    "paged:",
    "    sfence.vma",
    "    lla   t3, trap",
    "    csrw  stvec, t3",
    "    csrw  sscratch, t2",
    // Time, cycle and instruction counters are readable in user mode.
    "    li    t3, 7",
    "    csrw  scounteren, t3",
    // Next `sret`: to user mode; no float, no access to user pages, interrupts per `sie` alone.
    "    li    t3, 0x4e122",
    "    csrc  sstatus, t3",
    "    mv    t1, t2",
    "    ld    gp, 0(t1)",
    "    jr    gp",
);
