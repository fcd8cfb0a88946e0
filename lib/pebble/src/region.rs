//! Memory that only some servers have, at fixed addresses of `pebble_abi::map`: physical memory (VM manager),
//! portal tables and code (portal manager), shared nucleus data (portal manager, scheduler), boot
//! information. Access is by word and bounds-checked; the memory is shared with generated code or with other
//! domains, so no Rust reference to it is ever made.

use crate::arch::register;
use crate::buffer::copy_words;
use core::sync::atomic::Ordering::Relaxed;
use pebble_abi::{capability, map, scheduler as abi_scheduler};

/// A range of such memory.
#[derive(Clone, Copy)]
pub struct Region {
    base: u64,
    len: u64,
}

/// All physical memory of the board, from where it begins, and what may be fixed behind it.
pub const PHYSICAL: Region = Region { base: map::PHYS_VA, len: map::RAM_MAX + map::UPPER_BYTES };
/// Portal code arena, writable here only.
pub const CODE: Region = Region { base: map::PM_CODE_VA, len: map::CODE_BYTES };
/// Semaphores, stack queues, counters.
pub const SHARED_DATA: Region = Region { base: map::SHARED_DATA_VA, len: map::KDATA_BYTES };
/// Thread blocks.
pub const THREADS: Region = Region { base: map::PM_THREADS_VA, len: map::MAX_THREADS as u64 * map::PAGE };
/// Portal tables of all domains.
pub const TABLES: Region =
    Region { base: map::PM_TABLES_VA, len: map::MAX_DOMAINS as u64 * map::TABLE_BYTES };
/// The capability table.
pub const CAPABILITIES: Region = Region { base: map::CAPABILITY_TABLE_VA, len: capability::TABLE_BYTES };
/// The private data of an argument letter, `A` to `Z`, for the component to which the system's manifest gives
/// it.
pub const fn template_data(letter: u8) -> Region {
    assert!(letter.is_ascii_uppercase(), "letters of templates are A to Z");
    Region { base: map::template_data_va(letter), len: map::PAGE }
}
/// Pages of a domain under construction.
pub const LOADER: Region = Region { base: map::LOADER_VA, len: 0x100_0000 };
pub const BOOTINFO: Region = Region { base: map::BOOTINFO_VA, len: map::BOOTINFO_MAX };
/// The start-up page of a program.
pub const STARTUP: Region = Region { base: map::STARTUP_VA, len: map::PAGE };

impl Region {
    #[inline]
    fn at(&self, offset: u64, size: u64) -> u64 {
        assert!(
            offset.is_multiple_of(size) && offset < self.len && size <= self.len - offset,
            "outside the region"
        );
        self.base + offset
    }

    #[inline]
    pub fn read(&self, offset: u64) -> u64 {
        // SAFETY: bounds-checked, aligned, and no Rust object lives there. An unmapped page faults, which is
        // defined.
        unsafe { (self.at(offset, 8) as *const u64).read_volatile() }
    }

    #[inline]
    pub fn write(&self, offset: u64, value: u64) {
        // SAFETY: as in `read`.
        unsafe { (self.at(offset, 8) as *mut u64).write_volatile(value) }
    }

    #[inline]
    pub fn write32(&self, offset: u64, value: u32) {
        // SAFETY: as in `read`.
        unsafe { (self.at(offset, 4) as *mut u32).write_volatile(value) }
    }

    #[inline]
    pub fn read32(&self, offset: u64) -> u32 {
        // SAFETY: as in `read`.
        unsafe { (self.at(offset, 4) as *const u32).read_volatile() }
    }

    /// So many words from there on, for who reads and writes many of them.
    #[inline]
    pub fn words(&self, offset: u64, count: usize) -> Words {
        let Some(last) = count.checked_sub(1) else { return Words { first: self.base, count } };
        let (first, _) = (self.at(offset, 8), self.at(offset + last as u64 * 8, 8));
        Words { first, count }
    }

    /// Words one behind the other, each stored in one step.
    pub fn write_words(&self, offset: u64, words: &[u64]) {
        self.words(offset, words.len()).copy(words);
    }

    /// Bytes from a word on. What they leave of their last word becomes zero.
    pub fn write_bytes(&self, offset: u64, bytes: &[u8]) {
        let (words, end) = bytes.as_chunks::<8>();
        let behind = offset + words.len() as u64 * 8;
        // SAFETY: every eight bytes are a word.
        match unsafe { words.as_flattened().align_to() } {
            ([], aligned, []) => self.write_words(offset, aligned),
            _ => {
                let words = words.iter().map(|word| u64::from_le_bytes(*word));
                (offset..).step_by(8).zip(words).for_each(|(offset, word)| self.write(offset, word));
            }
        }
        if !end.is_empty() {
            let mut word = [0; 8];
            word[..end.len()].copy_from_slice(end);
            self.write(behind, u64::from_le_bytes(word));
        }
    }

    pub fn read8(&self, offset: u64) -> u8 {
        // SAFETY: as in `read`.
        unsafe { (self.at(offset, 1) as *const u8).read_volatile() }
    }

    pub fn write8(&self, offset: u64, value: u8) {
        // SAFETY: as in `read`.
        unsafe { (self.at(offset, 1) as *mut u8).write_volatile(value) }
    }

    /// Stores `new` if the word is `old`, in one step even against portal code; whether it did.
    pub fn exchange(&self, offset: u64, old: u64, new: u64) -> bool {
        // SAFETY: bounds-checked, aligned; whoever else touches the word does so by single loads and stores.
        let word = unsafe { &*(self.at(offset, 8) as *const core::sync::atomic::AtomicU64) };
        word.compare_exchange(old, new, Relaxed, Relaxed).is_ok()
    }

    /// How many of the words from here on are zero before one is not, `count` at most.
    #[inline(never)]
    pub fn zeros(&self, offset: u64, count: u64) -> u64 {
        let Some(last) = count.checked_sub(1) else { return 0 };
        let (first, _) = (self.at(offset, 8) as *const u64, self.at(offset + last * 8, 8));
        // SAFETY: as in `read`, for the first word and the last; the others lie between.
        let read = |n: u64| unsafe { first.add(n as usize).read_volatile() };
        // Most by straight code.
        let mut n = 0;
        while n + 16 <= count && (0..16).fold(0, |all, i| all | read(n + i)) == 0 {
            n += 16;
        }
        while n + 4 <= count && (0..4).fold(0, |all, i| all | read(n + i)) == 0 {
            n += 4;
        }
        while n < count && read(n) == 0 {
            n += 1;
        }
        n
    }

    /// A page of the same word.
    #[inline(never)]
    pub fn fill_page(&self, offset: u64, word: u64) {
        let page = self.at(offset, map::PAGE) as *mut u64;
        // SAFETY: as in `read`, for all of the page.
        each_word(|n| unsafe { page.add(n).write_volatile(word) });
    }

    #[inline(never)]
    pub fn copy_page(&self, from: u64, to: u64) {
        let (from, to) = (self.at(from, map::PAGE) as *const u64, self.at(to, map::PAGE) as *mut u64);
        // SAFETY: as in `read`, for all of both pages.
        each_word(|n| unsafe { to.add(n).write_volatile(from.add(n).read_volatile()) });
    }
}

/// Words of a region, one behind the other, that were found to be in it.
pub struct Words {
    first: u64,
    count: usize,
}

impl Words {
    #[inline(always)]
    fn at(&self, n: usize) -> u64 {
        assert!(n < self.count, "behind the words");
        self.first + n as u64 * 8
    }

    #[inline(always)]
    pub fn read(&self, n: usize) -> u64 {
        // SAFETY: aligned and in the region, as its first word and its last; otherwise as in `Region::read`.
        unsafe { (self.at(n) as *const u64).read_volatile() }
    }

    #[inline(always)]
    pub fn write(&mut self, n: usize, value: u64) {
        // SAFETY: as in `read`.
        unsafe { (self.at(n) as *mut u64).write_volatile(value) }
    }

    /// These come to the beginning, each stored in one step; whether each was read back as it is.
    pub fn copy(&mut self, words: &[u64]) -> bool {
        assert!(words.len() <= self.count, "behind the words");
        let (strides, rest) = words.as_chunks::<8>();
        let mut there = self.first as *mut u64;
        strides.iter().all(|words| store(&mut there, words))
            && rest.iter().all(|word| store(&mut there, &[*word]))
    }
}

/// A few words of a region, first all stored, then all read back, in straight code; goes on behind them.
#[inline(always)]
fn store<const N: usize>(there: &mut *mut u64, words: &[u64; N]) -> bool {
    let first = *there;
    *there = first.wrapping_add(N);
    // SAFETY: the caller has seen that so many words from there on are in the region; otherwise as in
    // `Region::read`.
    unsafe {
        (0..N).for_each(|n| first.add(n).write_volatile(words[n]));
        (0..N).all(|n| first.add(n).read_volatile() == words[n])
    }
}

/// The words of a page by number, in strides that the compiler makes straight code of.
#[inline(always)]
fn each_word(mut word: impl FnMut(usize)) {
    const STRIDE: usize = 16;
    for at in (0..map::PAGE as usize / size_of::<u64>()).step_by(STRIDE) {
        for n in at..at + STRIDE {
            word(n);
        }
    }
}

/// The boot information: read-only for as long as the server lives.
pub fn boot_info() -> &'static [u8] {
    let words = abi_scheduler::FIRST as u64 + BOOTINFO.read(8) + BOOTINFO.read(16);
    let len = (words * 8 + BOOTINFO.read(0)).min(map::BOOTINFO_MAX);
    // SAFETY: mapped read-only by the image builder; nobody has it mapped for writing.
    unsafe { core::slice::from_raw_parts(map::BOOTINFO_VA as *const u8, len as usize) }
}

/// The semaphore words, shared with generated code (scheduler).
pub fn semaphore_words() -> &'static [core::sync::atomic::AtomicI64; map::MAX_SEMAPHORES] {
    // SAFETY: mapped read-write for good; everybody who touches them does so atomically.
    unsafe { &*((map::SHARED_DATA_VA + map::SEMAPHORES_OFF) as *const _) }
}

/// The head of a domain's stack queue (scheduler): an address, or one of the two ends.
#[inline(always)]
pub fn stack_queue(domain: u8) -> u64 {
    SHARED_DATA.read(map::STACK_QUEUES_OFF + u64::from(domain) * 8)
}

const SCHEDULER_STATE: u64 = map::SHARED_DATA_VA + map::SCHEDULER_OFF;
const _: () = assert!(SCHEDULER_STATE.is_multiple_of(map::PAGE));

/// What the scheduler keeps from one instance to the next, all zero at boot. `T` is the same type in every
/// instance, or at least has the same layout, and is made of integers.
#[inline(always)]
pub fn scheduler_state<T: Send>() -> &'static crate::sync::Exclusive<T> {
    const { assert!(size_of::<crate::sync::Exclusive<T>>() as u64 <= map::SCHEDULER_BYTES, "state too large") };
    // One register for the whole entry.
    let base = register::opaque::<SCHEDULER_STATE>();
    // SAFETY: mapped read-write for good, at a page; entries of all instances run one at a time, with
    // interrupts off.
    unsafe { &*(base as *const _) }
}

/// The file archive (file server), `len` bytes.
pub fn archive(len: usize) -> &'static [u8] {
    // SAFETY: mapped read-only; nobody has it mapped for writing.
    unsafe { core::slice::from_raw_parts(map::ARCHIVE_VA as *const u8, len) }
}

/// `len` bytes of a file of the archive, as the file server has said where it is shown. If it has lied, to
/// look at them is a fault. `None`: no archive is there.
pub fn shown(address: u64, len: usize) -> Option<&'static [u8]> {
    let places = map::ARCHIVE_VA..map::PHYS_VA;
    (places.contains(&address) && len as u64 <= places.end - address)
        // SAFETY: nothing is ever mapped there but pages of the archive, read-only; nobody has them mapped
        // for writing.
        .then(|| unsafe { core::slice::from_raw_parts(address as *const u8, len) })
}

/// Makes instruction fetches see code written before.
#[inline]
pub fn fence_i() {
    register::fence_instructions();
}
