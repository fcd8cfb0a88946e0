//! Names for debuggers and profilers: GDB's JIT interface and perf's map file.
//!
//! GDB reads a list of ELF files from the process, at a symbol it knows, when a function it knows is called.
//! An instance's file is its module's with the addresses moved to the segment, those of the debug information
//! too. Both cost memory and time for each instance, so they are asked for: `PEBBLE_SFI_DEBUG=1` in the
//! environment, or [`name_instances`].

use crate::dwarf;
use crate::instance::{Shared, lock};
use crate::unwind;
use pebble_portal::fault::{Code, Crossing, Door};
use std::io::Write;
use std::ptr::{null, null_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU8, Ordering};

/// `jit_code_entry` of GDB.
#[repr(C)]
struct Entry {
    next: *mut Entry,
    previous: *mut Entry,
    file: *const u8,
    bytes: u64,
}

/// `jit_descriptor` of GDB.
#[repr(C)]
struct Descriptor {
    version: u32,
    action: u32,
    relevant: *mut Entry,
    first: *mut Entry,
}

const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

#[unsafe(no_mangle)]
static mut __jit_debug_descriptor: Descriptor =
    Descriptor { version: 1, action: 0, relevant: null_mut(), first: null_mut() };

/// GDB has a breakpoint here.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn __jit_debug_register_code() {
    // SAFETY: does nothing, but in a way that keeps the call.
    unsafe { std::arch::asm!("") };
}

static LOCK: Mutex<()> = Mutex::new(());
static WANTED: AtomicU8 = AtomicU8::new(0);

/// From now on instances are made known to GDB and perf.
pub fn name_instances() {
    WANTED.store(2, Ordering::Relaxed);
}

fn wanted() -> bool {
    if WANTED.load(Ordering::Relaxed) == 0 {
        let asked = std::env::var_os("PEBBLE_SFI_DEBUG").is_some();
        WANTED.store(if asked { 2 } else { 1 }, Ordering::Relaxed);
    }
    WANTED.load(Ordering::Relaxed) == 2
}

/// An instance or a portal that GDB knows.
pub struct Named {
    entry: *mut Entry,
    _file: Vec<u8>,
}

// SAFETY: the entry is only touched under the lock.
unsafe impl Send for Named {}
// SAFETY: as above.
unsafe impl Sync for Named {}

/// Makes an instance known, if that is wanted.
pub fn name(shared: &Shared) -> Option<Named> {
    if !wanted() {
        return None;
    }
    perf(shared);
    Some(register(moved_file(&shared.module.bytes, shared.base)?))
}

/// A module's file as a debugger wants it of an instance at `base`: with symbols and debug information where
/// they are in the process. None if it is no ELF file.
pub fn moved_file(file: &[u8], base: u64) -> Option<Vec<u8>> {
    let mut out = moved(file, base)?;
    dwarf::move_in(file, &mut out, base);
    Some(out)
}

/// Makes a portal's code known, and how it is unwound, if that is wanted.
pub fn name_portal(at: u64, door: &Door, crossing: &Crossing, code: &Code) -> Option<Named> {
    let frames = || unwind::frames(at, door, crossing, code);
    wanted().then(|| register(unwind::object("pebble_portal", at, code.bytes.len() as u64, &frames())))
}

fn register(file: Vec<u8>) -> Named {
    let entry =
        Entry { next: null_mut(), previous: null_mut(), file: file.as_ptr(), bytes: file.len() as u64 };
    let entry = Box::into_raw(Box::new(entry));
    let _one = lock(&LOCK);
    // SAFETY: the list is only changed under the lock, and read by a debugger that has stopped the process.
    unsafe {
        let list = &raw mut __jit_debug_descriptor;
        (*entry).next = (*list).first;
        if let Some(first) = (*list).first.as_mut() {
            first.previous = entry;
        }
        ((*list).first, (*list).relevant, (*list).action) = (entry, entry, REGISTER);
    }
    __jit_debug_register_code();
    Named { entry, _file: file }
}

impl Drop for Named {
    fn drop(&mut self) {
        let _one = lock(&LOCK);
        // SAFETY: as in `name`; the entry was made there, and goes once.
        unsafe {
            let list = &raw mut __jit_debug_descriptor;
            let (next, previous) = ((*self.entry).next, (*self.entry).previous);
            match previous.as_mut() {
                Some(previous) => previous.next = next,
                None => (*list).first = next,
            }
            if let Some(next) = next.as_mut() {
                next.previous = previous;
            }
            ((*list).relevant, (*list).action) = (self.entry, UNREGISTER);
            __jit_debug_register_code();
            (*list).relevant = null_mut();
            (*self.entry).file = null();
            drop(Box::from_raw(self.entry));
        }
    }
}

/// One line a function in the file that perf looks for.
fn perf(shared: &Shared) {
    let path = format!("/tmp/perf-{}.map", std::process::id());
    let Ok(mut file) = std::fs::OpenOptions::new().append(true).create(true).open(path) else { return };
    let mut text = String::new();
    for symbol in &shared.module.symbols {
        let at = shared.base + u64::from(symbol.at);
        text += &format!("{at:x} {:x} {}`{}\n", symbol.size.max(1), shared.module.name, symbol.name);
    }
    let _ = file.write_all(text.as_bytes());
}

/// The file with its sections and symbols where they are in the process. The parser has accepted it, but
/// every access is checked.
fn moved(file: &[u8], base: u64) -> Option<Vec<u8>> {
    let mut out = file.to_vec();
    // A file at fixed addresses (ET_EXEC): else GDB would move it once more.
    *out.get_mut(16)? = 2;
    let number = |at: usize, bytes: usize| {
        let mut word = [0; 8];
        word[..bytes].copy_from_slice(file.get(at..at + bytes)?);
        Some(u64::from_le_bytes(word))
    };
    let mut add = |at: usize| {
        let moved = number(at, 8)?.wrapping_add(base);
        out.get_mut(at..at + 8)?.copy_from_slice(&moved.to_le_bytes());
        Some(())
    };
    let (headers, count) = (number(40, 8)? as usize, number(60, 2)? as usize);
    let (segments, segment_count) = (number(32, 8)? as usize, number(56, 2)? as usize);
    for header in (0..segment_count).map(|i| segments + i * 56) {
        add(header + 16)?;
        add(header + 24)?;
    }
    for header in (0..count).map(|i| headers + i * 64) {
        const ALLOCATED: u64 = 2;
        const SYMBOLS: u64 = 2;
        if number(header + 8, 8)? & ALLOCATED != 0 {
            add(header + 16)?;
        }
        if number(header + 4, 4)? == SYMBOLS {
            let (from, bytes) = (number(header + 24, 8)? as usize, number(header + 32, 8)? as usize);
            for symbol in (0..bytes / 24).map(|i| from + i * 24) {
                // Absolute and undefined symbols stay.
                if !matches!(number(symbol + 6, 2)?, 0 | 0xfff1) {
                    add(symbol + 8)?;
                }
            }
        }
    }
    Some(out)
}
