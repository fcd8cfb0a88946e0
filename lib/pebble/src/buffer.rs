//! Memory that domains lend and give each other.
//!
//! * [`Buffer`]: pages made to be lent or given as a whole (`w2` to `w512`); also a page-aligned home for
//!   what is lent a page at a time
//! * [`Window`]: what a callee sees of its caller's memory, or a buffer's owner of its own
//! * [`ReceiveWindow`]: where what a callee gives by `g` arrives
//!
//! The other side may change shared memory at any moment, so there is never a reference to it, and a word
//! that is read twice may be two words: it is copied in, looked at in private memory, and copied out. All of
//! it lies between `map::WINDOWS_VA` and the stacks, where no Rust object ever is; so whatever address
//! somebody claims to have lent, using it can fault, but not break this component's own memory.

use crate::api::{self, Errno};
use crate::arch::memory;
use crate::io::{bytes_to_words, words_to_bytes};
use crate::portal;
use core::sync::atomic::{AtomicUsize, Ordering};
use pebble_abi::call::IO_BYTES;
use pebble_abi::{errno, map};

/// A service of the VM manager: its portal is opened by name at first use. Components of the image, which
/// import it, bind it instead.
pub struct Service {
    name: &'static str,
    index: AtomicUsize,
}

pub static BUFFER: Service = Service::new("vm.buffer");
pub static BUFFER_FREE: Service = Service::new("vm.buffer_free");
pub static WINDOW_CLOSE: Service = Service::new("vm.window_close");
pub static WINDOW_CLAIM: Service = Service::new("vm.window_claim");
pub static WINDOW_MOVE: Service = Service::new("vm.window_move");
pub static RECEIVE_WINDOW: Service = Service::new("vm.receive_window");
pub static TOUCH: Service = Service::new("vm.touch");

impl Service {
    const fn new(name: &'static str) -> Self {
        Service { name, index: AtomicUsize::new(0) }
    }

    /// The index of a portal that is there already.
    pub fn bind(&self, index: usize) {
        self.index.store(index, Ordering::Relaxed);
    }

    fn ask(&self, p: [u64; 2]) -> Result<u64, Errno> {
        if self.index.load(Ordering::Relaxed) == 0 {
            self.bind(api::portal_open(self.name)?);
        }
        let attempt = || portal::call_once(self.index.load(Ordering::Relaxed), p);
        api::answer(attempt().or_else(|broken| portal::repeat(broken, attempt)))
    }
}

/// Pages of stacks and heaps come when they are touched. Portal code touches nothing, and refuses a window over
/// one that is still to come: whether any of these has come now.
#[cold]
pub(crate) fn have_come(addresses: [u64; 5]) -> bool {
    let of_memory = |address: &u64| (map::IMAGE_VA..map::USER_END).contains(address);
    addresses.into_iter().filter(of_memory).filter(|address| TOUCH.ask([*address, 0]) == Ok(1)).count() > 0
}

/// Shared memory, by bounds-checked copies.
pub struct Window {
    base: u64,
    len: u64,
}

impl Window {
    /// The page in which a caller lent something, from that byte on.
    pub fn page(address: u64) -> Result<Window, Errno> {
        Self::new(address, map::PAGE - address % map::PAGE)
    }

    /// A long window of so many pages.
    pub fn pages(address: u64, pages: usize) -> Result<Window, Errno> {
        if pages > map::BUFFER_PAGES || !address.is_multiple_of(map::PAGE) {
            return Err(errno::EFAULT);
        }
        Self::new(address, pages as u64 * map::PAGE)
    }

    fn new(base: u64, len: u64) -> Result<Window, Errno> {
        let slots = map::WINDOWS_VA..map::STACKS_VA;
        if slots.contains(&base) && len <= slots.end - base {
            Ok(Window { base, len })
        } else {
            Err(errno::EFAULT)
        }
    }

    /// What a call that lends or gives it passes.
    pub fn address(&self) -> u64 {
        self.base
    }

    /// In bytes.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn at(&self, offset: usize, len: usize) -> Result<u64, Errno> {
        let (offset, len) = (offset as u64, len as u64);
        if offset <= self.len && len <= self.len - offset {
            Ok(self.base + offset)
        } else {
            Err(errno::EFAULT)
        }
    }

    /// Copies in: what is in `bytes` afterwards changes no more.
    pub fn read(&self, offset: usize, bytes: &mut [u8]) -> Result<(), Errno> {
        let mut at = self.at(offset, bytes.len())?;
        let head = (at.next_multiple_of(8) - at) as usize;
        let (head, rest) = bytes.split_at_mut(head.min(bytes.len()));
        for byte in head {
            // SAFETY: inside the bounds; no Rust object lives there, and an unmapped page faults, which is
            // defined.
            *byte = unsafe { (at as *const u8).read_volatile() };
            at += 1;
        }
        // Words on both sides, as between pages and buffers: without taking them apart.
        // SAFETY: every eight bytes are a word.
        let (before, whole, tail) = unsafe { rest.align_to_mut::<u64>() };
        // SAFETY: as above, and aligned.
        let load = |at: u64| u64::from_le(unsafe { (at as *const u64).read_volatile() });
        let bits = before.len() as u32 * 8;
        if bits == 0 {
            // SAFETY: as above, and aligned on both sides.
            unsafe { copy_words(at, whole.as_mut_ptr() as u64, whole.len()) };
        } else {
            // Each word there is part of two here.
            let mut low = load(at);
            for (byte, own) in before.iter_mut().zip(low.to_le_bytes()) {
                *byte = own;
            }
            for (n, word) in (1..).zip(whole.iter_mut()) {
                let high = load(at + n * 8);
                *word = (low >> bits | high << (64 - bits)).to_le();
                low = high;
            }
        }
        at += (before.len() + whole.len() * 8) as u64;
        for byte in tail {
            // SAFETY: as above.
            *byte = unsafe { (at as *const u8).read_volatile() };
            at += 1;
        }
        Ok(())
    }

    /// Copies out.
    pub fn write(&self, offset: usize, bytes: &[u8]) -> Result<(), Errno> {
        let mut at = self.at(offset, bytes.len())?;
        let head = (at.next_multiple_of(8) - at) as usize;
        let (head, rest) = bytes.split_at(head.min(bytes.len()));
        for byte in head {
            // SAFETY: as in `read`; a page lent for reading faults, which is defined.
            unsafe { (at as *mut u8).write_volatile(*byte) };
            at += 1;
        }
        // SAFETY: every eight bytes are a word.
        let (before, whole, tail) = unsafe { rest.align_to::<u64>() };
        let tail = if before.is_empty() {
            // SAFETY: as above, and aligned on both sides.
            unsafe { copy_words(whole.as_ptr() as u64, at, whole.len()) };
            at += (whole.len() * 8) as u64;
            tail
        } else {
            // Each word there is of two here: what is over of the one before, and the next's begin.
            let bits = before.len() as u32 * 8;
            let mut low = before.iter().rev().fold(0, |low, byte| low << 8 | u64::from(*byte));
            for word in whole {
                let word = u64::from_le(*word);
                // SAFETY: as above, and aligned.
                unsafe { (at as *mut u64).write_volatile((low | word << bits).to_le()) };
                low = word >> (64 - bits);
                at += 8;
            }
            for byte in low.to_le_bytes().into_iter().take(before.len()) {
                // SAFETY: as above.
                unsafe { (at as *mut u8).write_volatile(byte) };
                at += 1;
            }
            tail
        };
        for byte in tail {
            // SAFETY: as above.
            unsafe { (at as *mut u8).write_volatile(*byte) };
            at += 1;
        }
        Ok(())
    }

    /// Copies from the beginning to the beginning of another.
    pub fn copy(&self, to: &Window, len: usize) -> Result<(), Errno> {
        let (from, there) = (self.at(0, len)?, to.at(0, len)?);
        if from.is_multiple_of(8) && there.is_multiple_of(8) && len.is_multiple_of(8) {
            // SAFETY: inside the bounds of both, and aligned; no Rust object lives there.
            unsafe { copy_words(from, there, len / 8) };
            return Ok(());
        }
        let mut bytes = [0; 512];
        for done in (0..len).step_by(bytes.len()) {
            let bytes = &mut bytes[..(len - done).min(512)];
            self.read(done, bytes)?;
            to.write(done, bytes)?;
        }
        Ok(())
    }

    /// Up to 32 bytes as words, zero behind them.
    pub fn words(&self, offset: usize, len: usize) -> Result<[u64; IO_BYTES / 8], Errno> {
        let mut bytes = [0; IO_BYTES];
        self.read(offset, bytes.get_mut(..len).ok_or(errno::EINVAL)?)?;
        Ok(bytes_to_words(&bytes[..len]))
    }

    /// The inverse.
    pub fn set_words(&self, offset: usize, words: [u64; IO_BYTES / 8], len: usize) -> Result<(), Errno> {
        let mut bytes = [0; IO_BYTES];
        let bytes = bytes.get_mut(..len).ok_or(errno::EINVAL)?;
        words_to_bytes(words, bytes);
        self.write(offset, bytes)
    }

    /// One word, read once.
    pub fn word(&self, offset: usize) -> Result<u64, Errno> {
        let at = self.at(offset, 8)?;
        if !at.is_multiple_of(8) {
            return Ok(word_across(at));
        }
        // SAFETY: as in `read`, and aligned.
        Ok(unsafe { (at as *const u64).read_volatile() })
    }

    pub fn set_word(&self, offset: usize, word: u64) -> Result<(), Errno> {
        let at = self.at(offset, 8)?;
        if at.is_multiple_of(8) {
            // SAFETY: as in `write`, and aligned.
            unsafe { (at as *mut u64).write_volatile(word) };
        } else {
            set_word_across(at, word);
        }
        Ok(())
    }

    /// What has moved here is this domain's alone: who was lent it before does not see it any more, and what
    /// he has written since is in it. Whoever believes what he reads there, or writes what is secret, claims
    /// it first.
    pub fn claim(&self) -> Result<(), Errno> {
        WINDOW_CLAIM.ask([self.base, 0]).map(|_| ())
    }

    /// Ends an `o` window, or gives back a page or buffer that has moved here.
    pub fn close(self) -> Result<(), Errno> {
        WINDOW_CLOSE.ask([self.base, 0]).map(|_| ())
    }
}

/// One that lies in two words of memory, inside some window's bounds. Apart, so that any other is had without
/// a stack frame.
#[cold]
#[inline(never)]
fn word_across(at: u64) -> u64 {
    // SAFETY: as in `Window::read`.
    u64::from_le_bytes(core::array::from_fn(|i| unsafe { (at as *const u8).add(i).read_volatile() }))
}

#[cold]
#[inline(never)]
fn set_word_across(at: u64, word: u64) {
    for (i, byte) in word.to_le_bytes().into_iter().enumerate() {
        // SAFETY: as in `Window::write`.
        unsafe { (at as *mut u8).add(i).write_volatile(byte) };
    }
}

/// Copies so many words up; somebody else may change both meanwhile.
///
/// # Safety
/// Both addresses are multiples of 8. What is written is nothing that a reference is to.
pub(crate) unsafe fn copy_words(from: u64, to: u64, words: usize) {
    let end = from + words as u64 * 8;
    let (mut at, mut there) = (from, to);
    let whole = (end - at) / memory::TURN * memory::TURN;
    if whole != 0 {
        // SAFETY: as the caller promises; it is a turn or more.
        (at, there) = unsafe { memory::copy_turns(at, there, at + whole) };
    }
    while at != end {
        // SAFETY: as above.
        unsafe { (there as *mut u64).write_volatile((at as *const u64).read_volatile()) };
        (at, there) = (at + 8, there + 8);
    }
}

/// Pages of one's own that are lent, or given, as a whole. Gone when dropped.
pub struct Buffer {
    window: Window,
}

impl Buffer {
    /// Fresh, zero.
    pub fn new(pages: usize) -> Result<Buffer, Errno> {
        let address = BUFFER.ask([pages as u64, 0])?;
        Self::arrived(address, pages)
    }

    /// One that has moved here by `t`, or to a place by `g`: it is the caller's to give back now.
    pub fn arrived(address: u64, pages: usize) -> Result<Buffer, Errno> {
        if address < map::BUFFERS_VA {
            return Err(errno::EFAULT);
        }
        Window::pages(address, pages).map(|window| Buffer { window })
    }

    pub fn window(&self) -> &Window {
        &self.window
    }

    pub fn address(&self) -> u64 {
        self.window.base
    }

    /// Moves it to where a `g` call of somebody else waits for it.
    pub fn give(self, to: u64) -> Result<(), Errno> {
        WINDOW_MOVE.ask([self.window.base, to])?;
        self.gone();
        Ok(())
    }

    /// It has moved away by a `t` call.
    pub fn gone(self) {
        core::mem::forget(self);
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let _ = BUFFER_FREE.ask([self.window.base, 0]);
    }
}

/// An empty place for what a `g` call gets: of one page, or for a buffer. Given back when dropped, with what
/// is there.
pub struct ReceiveWindow {
    window: Window,
}

/// A place for so many pages; the address goes into the call.
pub fn receive_window(pages: usize) -> Result<ReceiveWindow, Errno> {
    let address = RECEIVE_WINDOW.ask([pages as u64, 0])?;
    Window::pages(address, pages).map(|window| ReceiveWindow { window })
}

impl ReceiveWindow {
    pub fn address(&self) -> u64 {
        self.window.base
    }

    /// What has arrived; before it has, to touch it is a fault.
    pub fn window(&self) -> &Window {
        &self.window
    }
}

impl Drop for ReceiveWindow {
    fn drop(&mut self) {
        let _ = WINDOW_CLOSE.ask([self.window.base, 0]);
    }
}
