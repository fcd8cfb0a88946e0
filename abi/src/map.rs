//! Address map. Sizes and addresses in bytes.
//!
//! Every domain lives below 1 GiB, so a pointer fits an `int`. The nucleus and what portal code
//! touches live in the last 2 GiB of the address space, the same in every domain and closed to user mode:
//! a `lui` reaches all of it in one instruction.

pub const PAGE: u64 = 4096;
/// Domains (address space identifiers) that the system can hold; 0 is never used.
pub const MAX_DOMAINS: usize = 256;
pub const MAX_THREADS: usize = 256;
pub const MAX_SEMAPHORES: usize = 1024;
/// Semaphores from here on are for locks of the image's components, as long as there are any: their number
/// says so.
pub const FIRST_LOCK: usize = MAX_SEMAPHORES - 64;
/// Stack descriptors in all stack queues together.
pub const MAX_STACKS: usize = 512;

// --- user half of a domain -------------------------------------------------------------------

/// The domain's own portal table: supervisor-only and read-only here, so a null pointer faults.
pub const TABLE_VA: u64 = 0x0000;
/// Entries of a portal table; the portal index is taken modulo this.
pub const TABLE_ENTRIES: usize = 4096;
pub const TABLE_BYTES: u64 = TABLE_ENTRIES as u64 * 8;
/// Entries per page of a table; pages that a domain has not grown into map the shared empty page.
pub const TABLE_ENTRIES_PER_PAGE: usize = 512;
/// The gate page (user, read and execute): where a portal's callee returns to.
pub const GATE_VA: u64 = 0x8000;
/// Behind it in the same page: returns from the domain with status `TIMEOUT`, if the call by which it was
/// entered is late: a return address of portal code has a bit that says so (`LATE` of the processor).
pub const GATE_UNWIND: u64 = GATE_VA + 8;
/// Start-up page of a program (user, read and write): see [`crate::link::Startup`].
pub const STARTUP_VA: u64 = 0x9000;
/// Boot information, read-only, in the servers whose manifest entry asks for it.
/// It and device registers lie in the first 2 MiB, whose page table every domain has anyway.
pub const BOOTINFO_VA: u64 = 0x1c_0000;
pub const BOOTINFO_MAX: u64 = 0x2_0000;
/// Where component images are linked.
pub const IMAGE_VA: u64 = 0x1_0000;
/// The file archive, read-only, in the file server.
pub const ARCHIVE_VA: u64 = 0x0900_0000;
/// First address after image and heap.
pub const HEAP_END: u64 = 0x0800_0000;
/// Where the heap of a server begins that holds what others give it (`large_heap` in its manifest): other
/// components' heaps follow their image and end at [`BOOTINFO_VA`], within the page table that they have
/// anyway.
pub const LARGE_HEAP_VA: u64 = 0x20_0000;
/// Device registers granted by the manifest are mapped here, one after the other, page by page.
pub const DEVICE_VA: u64 = 0x1e_0000;
/// Registers of the devices that programs ask the device server for ([`DEVICES_END`]); each device has its
/// own place, the same in all domains.
pub const DEVICES_VA: u64 = 0x0880_0000;
pub const DEVICES_END: u64 = ARCHIVE_VA;
/// So many a system can have.
pub const MAX_DEVICES: usize = 8;
/// VM manager: all physical memory, read and write. Behind [`RAM_MAX`] what the processor has fixed there, if
/// it fixes anything.
pub const PHYS_VA: u64 = 0x1000_0000;
/// Portal manager: portal code arena, read and write.
pub const PM_CODE_VA: u64 = 0x1800_0000;
/// Portal manager: the nucleus data pages (semaphores, stack queues), read and write. Scheduler: the
/// semaphores and its own state, read and write; the heads of stack queues, read-only.
pub const SHARED_DATA_VA: u64 = 0x1870_0000;
/// Capability manager: the capability table, read and write.
pub const CAPABILITY_TABLE_VA: u64 = 0x1840_0000;
/// Components that may register templates: the private data of each letter, a page each
/// ([`template_data_va`]), read and write.
pub const TEMPLATE_DATA_VA: u64 = 0x1842_0000;
/// Portal manager: all thread blocks, read and write.
pub const PM_THREADS_VA: u64 = 0x1860_0000;
/// Portal manager: portal tables of all domains, `asid * TABLE_BYTES` apart, read and write.
pub const PM_TABLES_VA: u64 = 0x1900_0000;
/// Loader: where the VM manager maps pages of a domain under construction.
pub const LOADER_VA: u64 = 0x1a00_0000;
/// One-page window slots of a domain that receives windows (one level-0 table).
pub const WINDOWS_VA: u64 = 0x1b00_0000;
/// Buffers: 4 MiB apart, each a level-0 table of at most 512 pages from the start on, and 2 MiB further its
/// read-only twin. The lower half are places for a domain's own, the upper half the slots where long windows
/// and torn buffers arrive.
pub const BUFFERS_VA: u64 = 0x1c00_0000;
pub const BUFFER_STRIDE: u64 = 0x40_0000;
pub const BUFFERS: usize = 16;
pub const BUFFER_PAGES: usize = 512;
/// Stacks: domain `asid` owns `STACKS_VA + asid * STACKS_STRIDE ..`; an `s` portal shares that whole range.
pub const STACKS_VA: u64 = 0x2000_0000;
pub const STACKS_STRIDE: u64 = 0x20_0000;
/// Address space of one stack; the lowest page is never mapped (guard).
pub const STACK_SLOT: u64 = 0x1_0000;
pub const STACKS_PER_DOMAIN: usize = (STACKS_STRIDE / STACK_SLOT) as usize;
/// The slot of a program's first thread; its stack grows into those below.
pub const FIRST_STACK: usize = STACKS_PER_DOMAIN - 1;
/// End of all user addresses.
pub const USER_END: u64 = 0x4000_0000;

/// Base of the stack range of a domain.
pub const fn stacks_of(asid: u16) -> u64 {
    STACKS_VA + asid as u64 * STACKS_STRIDE
}

/// Initial stack pointer of stack `slot` of a domain.
pub const fn stack_top(asid: u16, slot: usize) -> u64 {
    stacks_of(asid) + (slot as u64 + 1) * STACK_SLOT
}

// --- supervisor half, the same in every domain -----------------------------------------------

/// Half of the nucleus: 1 GiB from here, the same level-1 table in every domain.
pub const KERNEL_VA: u64 = 0xffff_ffff_8000_0000;
/// All physical memory, read and write, for portal code that opens windows: an address here is the physical
/// one with the half's own bits set ([`direct`]). Memory begins at 0, or 2 GiB further.
pub const DIRECT_VA: u64 = KERNEL_VA;
/// So much memory a board can have that is managed; what is fixed in this half lies behind it.
pub const RAM_MAX: u64 = 0x800_0000;
const _: () = assert!(RAM_BYTES <= RAM_MAX && RAM_PA & !(1 << 31) == 0);
/// Nucleus: read and execute.
pub const NUCLEUS_VA: u64 = KERNEL_VA + RAM_MAX;
pub const NUCLEUS_MAX: u64 = 0x8000;
/// Data that generated code touches: read and write. Semaphores, then stack queues.
pub const KDATA_VA: u64 = NUCLEUS_VA + 0x1_0000;
pub const SEMAPHORES_OFF: u64 = 0;
/// Call counters of portals recompiled with one, 8 bytes each. From here on to the scheduler's state only
/// portal code and the portal manager write.
pub const COUNTERS_OFF: u64 = SEMAPHORES_OFF + MAX_SEMAPHORES as u64 * 8;
pub const MAX_COUNTERS: usize = 256;
/// Heads of the lists of stacks that are kept, 8 bytes a domain: address of the first descriptor, or
/// [`STACKS_END`]. What is kept for those who wait is not in the domain's queue. The scheduler reads this
/// page.
pub const STACKS_KEPT_OFF: u64 = (COUNTERS_OFF + MAX_COUNTERS as u64 * 8).next_multiple_of(PAGE);
/// Heads of stack queues, 8 bytes a domain: address of the first free [descriptor](STACK_DESC_OFF), or of one
/// of two ends.
pub const STACK_QUEUES_OFF: u64 = STACKS_KEPT_OFF + MAX_DOMAINS as u64 * 8;
/// The word that is the [end of a queue](STACKS_END), right behind the queues.
pub const STACKS_END_OFF: u64 = STACK_QUEUES_OFF + MAX_DOMAINS as u64 * 8;
/// Stack descriptors, 16 bytes: next descriptor (or an end), initial stack pointer.
pub const STACK_DESC_OFF: u64 = STACKS_END_OFF + 16;
/// The time that was read last, where the processor's counter is too short to tell it.
pub const TIME_OFF: u64 = STACK_DESC_OFF + MAX_STACKS as u64 * 16;
/// The scheduler's own state, which stays where it is when another instance takes over; generated code does
/// not touch it.
pub const SCHEDULER_OFF: u64 = (TIME_OFF + 8).next_multiple_of(PAGE);
pub const SCHEDULER_BYTES: u64 = 6 * PAGE;
pub const KDATA_BYTES: u64 = SCHEDULER_OFF + SCHEDULER_BYTES;
/// What the scheduler has mapped of it: offset, bytes, and whether it may write there.
pub const SCHEDULING: [(u64, u64, bool); 3] = [
    (SEMAPHORES_OFF, MAX_SEMAPHORES as u64 * 8, true),
    (STACKS_KEPT_OFF, PAGE, false),
    (SCHEDULER_OFF, SCHEDULER_BYTES, true),
];
/// The capability table ([`crate::capability`]), in systems that have a capability manager: read and write.
pub const CAPABILITIES_VA: u64 = NUCLEUS_VA + 0x4_0000;
/// Private data of the letters `A` to `Z`, a page each, those that the image gives to somebody: read and
/// write.
pub const TEMPLATES_VA: u64 = NUCLEUS_VA + 0x6_0000;
/// Thread blocks, a page each: read and write.
pub const THREADS_VA: u64 = NUCLEUS_VA + 0x10_0000;
/// Portal code arena: read and execute.
pub const CODE_VA: u64 = NUCLEUS_VA + 0x20_0000;
pub const CODE_BYTES: u64 = 0x20_0000;
/// All from the nucleus to the end of portal code.
pub const UPPER_BYTES: u64 = CODE_VA + CODE_BYTES - NUCLEUS_VA;

/// Where portal code finds the word at a physical address.
pub const fn direct(pa: u64) -> u64 {
    KERNEL_VA | pa
}
pub const fn semaphore_va(id: usize) -> u64 {
    KDATA_VA + SEMAPHORES_OFF + id as u64 * 8
}
pub const fn stack_queue_va(asid: u16) -> u64 {
    KDATA_VA + STACK_QUEUES_OFF + asid as u64 * 8
}
/// End of a stack queue. A portal reads the word behind the head, whether that is a descriptor or an end, and
/// takes the head unless the word is below the queue's address: both ends hold 0.
pub const STACKS_END: u64 = KDATA_VA + STACKS_END_OFF;
/// End of a stack queue for which somebody waits: domain 0's word of what is kept. It is below all queues, so
/// the last descriptor is not taken.
pub const STACKS_WANTED: u64 = stacks_kept_va(0);
const _: () = assert!(STACKS_END.is_multiple_of(PAGE) && STACKS_WANTED < stack_queue_va(0));
const _: () = assert!(STACKS_WANTED.is_multiple_of(PAGE));
pub const fn stacks_kept_va(asid: u16) -> u64 {
    KDATA_VA + STACKS_KEPT_OFF + asid as u64 * 8
}
pub const fn stack_desc_va(desc: usize) -> u64 {
    KDATA_VA + STACK_DESC_OFF + desc as u64 * 16
}
/// Where portal code finds the private data of a letter from `A` to `Z`.
pub const fn template_va(letter: u8) -> u64 {
    TEMPLATES_VA + (letter - b'A') as u64 * PAGE
}
/// Where the component that may register the letter finds it.
pub const fn template_data_va(letter: u8) -> u64 {
    TEMPLATE_DATA_VA + (letter - b'A') as u64 * PAGE
}
pub const fn counter_va(counter: usize) -> u64 {
    KDATA_VA + COUNTERS_OFF + counter as u64 * 8
}
pub const fn thread_va(tid: u16) -> u64 {
    THREADS_VA + tid as u64 * PAGE
}

// --- kinds of domain, as the loader asks for them ----------------------------------------------

/// It uses floating point.
pub const FLOAT: u64 = 1;
/// It has all pages of its stacks from the start.
pub const EAGER: u64 = 2;

// --- rights to pages, as callers ask for them ---------------------------------------------------

pub const READ: u64 = 1;
pub const WRITE: u64 = 2;
pub const EXECUTE: u64 = 4;

// --- the window control page of a domain that receives windows (one page, direct address) -------

/// In a domain's root, a word that hardware never follows, and ignores while its lowest bit is clear: the
/// control page's direct address, or 0.
pub const ROOT_WINDOWS: u64 = 8;
/// Head of the queue of free one-page slots: direct address of a [slot descriptor](WINDOW_PAGE_DESC), or 0.
pub const WINDOW_PAGES: u64 = 0;
/// The same of buffer slots.
pub const WINDOW_BUFFERS: u64 = 8;
/// How far behind these are the queues of the slots set apart for calls of which a window stays open: what
/// nobody gives up keeps no other call waiting.
pub const WINDOW_APART: u64 = 0x28;
/// Pages that torn windows have moved into the domain, minus those that they have moved out.
pub const WINDOW_MOVED: u64 = 16;
/// Descriptors of the buffer slots, behind them those of the one-page slots: next (or 0), the slot's address
/// in the domain, direct address of its page table entry (buffer: of its level-1 entry),
/// [holder](WINDOW_HOLDER).
pub const WINDOW_BUFFER_DESC: u64 = 0x40;
pub const WINDOW_PAGE_DESC: u64 = WINDOW_BUFFER_DESC + BUFFERS as u64 / 2 * WINDOW_DESC_BYTES;
pub const WINDOW_DESC_BYTES: u64 = 32;
/// Word of a descriptor: its own address while a call holds the slot though what is there looks like its
/// domain's to close or to fill (`g`, a stub's `o`); of what is borrowed (`w`, `r`), an address in the block
/// of the thread whose call has brought it. Of other slots it tells nothing.
pub const WINDOW_HOLDER: u64 = 24;

// --- board facts -----------------------------------------------------------------------------

/// A device of the board, as its driver sees it.
pub struct Device {
    /// Which driver it needs.
    pub kind: &'static str,
    /// Source of its interrupt; 0: it has none.
    pub interrupt: u32,
    pub registers: &'static [Registers],
}

/// A range of a device's registers: the first of the device's pages that it is in, its offset there, and its
/// bytes.
pub struct Registers {
    pub page: usize,
    pub offset: usize,
    pub bytes: usize,
}

include!(concat!(env!("OUT_DIR"), "/board.rs"));

// --- semaphores made at boot -------------------------------------------------------------------

/// Semaphore `n` below this belongs to interrupt `n` of the board.
pub const SEM_IRQS: u16 = 64;
/// Posted by the scheduler when a thread has exited.
pub const SEM_REAPER: u16 = 64;
/// Posted by the VM manager when it has killed a domain.
pub const SEM_FAULT: u16 = 65;
/// First semaphore for everything else.
pub const SEM_FIRST: u16 = 66;
