//! Windows and capabilities: what portals leave to the runtime, before the call and after it.
//!
//! Into a domain: `w`, `r` and `o` make a page of a [`crate::Region`] appear in the segment, the same page, not a copy; `w` and `r` go when
//! the last call that lends the page returns. Mappings are kept without rights, so lending again costs one system call.
//! `t` moves a page's contents to the domain for good, `g` brings those of a fresh page back. `k` names an object of the process.
//! Out of a domain: a function of the process gets a copy of the page, since no pointer into a segment stays valid by itself.

use crate::instance::{Shared, lock};
use crate::layout::*;
use crate::os;
use crate::region::{self, Pages};
use crate::thread::status;
use pebble_portal::sfi::Door;
use std::sync::Arc;

/// Windows of one instance that are kept mapped, at most.
const MOST: usize = 1024;

struct Window {
    /// Offset in the segment.
    at: u64,
    pages: Arc<Pages>,
    /// Offset in the region.
    page: u64,
    writable: bool,
    /// Calls that lend it now; more than none for ever if it stays open.
    lent: u32,
}

/// An instance's.
#[derive(Default)]
pub struct Windows {
    windows: Vec<Window>,
    /// Offsets of pages that were given away by `t`, or are being filled by `g`.
    made: u64,
    shared: Vec<Arc<Pages>>,
    objects: Vec<u64>,
}

/// Begin of the part of the window area for pages of the domain's own.
const OWN: u64 = WINDOWS + (WINDOWS_END - WINDOWS) / 4;

impl Windows {
    /// The segment has been emptied.
    pub fn clear(&mut self) {
        *self = Windows::default();
    }

    /// A shared region's file stays while it is mapped.
    pub fn keep(&mut self, pages: Arc<Pages>) {
        self.shared.push(pages);
    }

    fn lend(&mut self, base: u64, address: u64, writable: bool, open: bool) -> Option<u64> {
        let pages = region::find(address)?;
        let page = (address - pages.at) & !(PAGE - 1);
        let prot = if writable { os::PROT_READ | os::PROT_WRITE } else { os::PROT_READ };
        let same =
            |w: &&mut Window| w.pages.number == pages.number && w.page == page && w.writable == writable;
        let count = if open { 1 << 31 } else { 1 };
        let within = address & (PAGE - 1);
        if let Some(window) = self.windows.iter_mut().find(same) {
            if window.lent == 0 {
                os::protect(base + window.at, PAGE, prot).ok()?;
            }
            window.lent = window.lent.checked_add(count).unwrap_or(window.lent);
            return Some(base + window.at + within);
        }
        let at = match self.windows.iter().position(|w| w.lent == 0) {
            Some(unused) if self.windows.len() >= MOST => self.windows.swap_remove(unused).at,
            _ if self.windows.len() >= MOST => return None,
            // A page between windows stays empty.
            _ => WINDOWS + self.windows.len() as u64 * 2 * PAGE,
        };
        os::shared(base + at, PAGE, prot, &pages.file, page).ok()?;
        self.windows.push(Window { at, pages, page, writable, lent: count });
        Some(base + at + within)
    }

    fn give_back(&mut self, base: u64, address: u64) {
        let at = (address - base) & !(PAGE - 1);
        if let Some(window) = self.windows.iter_mut().find(|w| w.at == at) {
            window.lent = window.lent.saturating_sub(1);
            if window.lent == 0 {
                let _ = os::protect(base + at, PAGE, os::PROT_NONE);
            }
        }
    }

    /// A fresh page of the domain's own.
    fn make(&mut self, base: u64) -> Option<u64> {
        let at = OWN + self.made * PAGE;
        if at + PAGE > OWN + (WINDOWS_END - WINDOWS) / 4 {
            return None;
        }
        os::anonymous(base + at, PAGE, os::PROT_READ | os::PROT_WRITE).ok()?;
        self.made += 1;
        Some(base + at)
    }

    fn name(&mut self, object: u64) -> u64 {
        let known = self.objects.iter().position(|o| *o == object);
        known.unwrap_or_else(|| {
            self.objects.push(object);
            self.objects.len() - 1
        }) as u64
            + 1
    }

    fn object(&self, name: u64) -> Option<u64> {
        self.objects.get((name as usize).checked_sub(1)?).copied()
    }
}

/// What a portal into a domain lends.
pub struct Description {
    callee: Arc<Shared>,
    letters: Vec<u8>,
}

impl Description {
    pub fn new(callee: &Arc<Shared>, door: &Door) -> Description {
        Description { callee: callee.clone(), letters: door.args.to_vec() }
    }
}

/// A page of the callee's that `g` brings back, and the caller's page for it, while the call lasts.
struct Filling {
    page: u64,
    to: u64,
}

static FILLING: std::sync::Mutex<Vec<Filling>> = std::sync::Mutex::new(Vec::new());

/// From a portal: makes addresses of the callee's out of the caller's words. A status.
pub extern "C" fn lend_in(d: &Description, words: &mut [u64; 8]) -> u64 {
    let callee = &*d.callee;
    let mut windows = lock(&callee.windows);
    for (i, letter) in d.letters.iter().enumerate() {
        let word = words[i];
        let lent = match letter {
            b'w' => windows.lend(callee.base, word, true, false),
            b'r' => windows.lend(callee.base, word, false, false),
            b'o' => windows.lend(callee.base, word, true, true),
            b't' => windows.make(callee.base).filter(|page| move_page(callee, word, *page)),
            b'g' => windows
                .make(callee.base)
                .inspect(|page| lock(&FILLING).push(Filling { page: *page, to: word })),
            b'k' => Some(windows.name(word)),
            _ => continue,
        };
        let Some(lent) = lent else {
            undo(callee, &mut windows, &d.letters[..i], words);
            return status::NOT_LENT;
        };
        words[i] = lent;
    }
    status::OK
}

/// The contents of the caller's page to a page of the domain's; the caller's is empty afterwards.
fn move_page(callee: &Shared, from: u64, to: u64) -> bool {
    let Some(pages) = region::find(from) else { return false };
    let page = (from - pages.at) & !(PAGE - 1);
    let mut bytes = [0; PAGE as usize];
    // SAFETY: a page of the region, which `pages` keeps.
    unsafe {
        let from = (pages.at + page) as *mut u8;
        std::ptr::copy(from, bytes.as_mut_ptr(), bytes.len());
        std::ptr::write_bytes(from, 0, bytes.len());
    }
    callee.poke(to, &bytes).is_ok()
}

fn undo(callee: &Shared, windows: &mut Windows, letters: &[u8], words: &mut [u64; 8]) {
    for (i, letter) in letters.iter().enumerate() {
        match letter {
            b'w' | b'r' => windows.give_back(callee.base, words[i]),
            b'g' => drop(filled(words[i])),
            _ => {}
        }
    }
    // What is given back is not given back again.
    words[..6].fill(0);
}

fn filled(page: u64) -> Option<Filling> {
    let mut filling = lock(&FILLING);
    let place = filling.iter().position(|f| f.page == page)?;
    Some(filling.swap_remove(place))
}

/// From a portal, after the call.
pub extern "C" fn give_back_in(d: &Description, words: &mut [u64; 8]) {
    let callee = &*d.callee;
    let mut windows = lock(&callee.windows);
    for (i, letter) in d.letters.iter().enumerate().filter(|(i, _)| words[*i] != 0) {
        match letter {
            b'w' | b'r' => windows.give_back(callee.base, words[i]),
            b'g' => {
                let Some(filling) = filled(words[i]) else { continue };
                let mut bytes = [0; PAGE as usize];
                let read = callee.read(words[i], &mut bytes).is_ok();
                if let Some(pages) = region::find(filling.to).filter(|_| read) {
                    let page = (filling.to - pages.at) & !(PAGE - 1);
                    // SAFETY: a page of the region, which `pages` keeps.
                    unsafe { std::ptr::copy(bytes.as_ptr(), (pages.at + page) as *mut u8, bytes.len()) };
                }
                let _ = os::vacate(words[i], PAGE);
            }
            _ => {}
        }
    }
}

/// A page of a domain's while a function of the process has it. The portal's words hold its address.
#[repr(C, align(4096))]
struct Copied {
    bytes: [u8; PAGE as usize],
    caller: *const Shared,
    from: u64,
}

/// What a portal out of a domain lends: its letters.
pub struct Letters(pub Vec<u8>);

fn caller_of(words: &[u64; 8]) -> &'static Shared {
    use crate::record::Mark;
    use pebble_portal::sfi::record;
    // SAFETY: the seventh word is the mark of the return stack under the call, whose instance a running call keeps.
    unsafe { &*(Mark(words[6]).get(record::INSTANCE) as *const Shared) }
}

pub extern "C" fn lend_out(d: &Letters, words: &mut [u64; 8]) -> u64 {
    let caller = caller_of(words);
    for (i, letter) in d.0.iter().enumerate() {
        let lent = match letter {
            b'w' | b'r' | b'o' | b't' | b'g' => copy_page(caller, words[i]),
            b'k' => lock(&caller.windows).object(words[i]),
            _ => continue,
        };
        let Some(lent) = lent else {
            take_back(&d.0[..i], words, false);
            words[..6].fill(0);
            return status::NOT_LENT;
        };
        words[i] = lent;
    }
    status::OK
}

fn copy_page(caller: &'static Shared, address: u64) -> Option<u64> {
    let from = address & !(PAGE - 1);
    let mut copied = Box::new(Copied { bytes: [0; PAGE as usize], caller, from });
    caller.read(from, &mut copied.bytes).ok()?;
    Some(Box::into_raw(copied) as u64 + (address & (PAGE - 1)))
}

pub extern "C" fn give_back_out(d: &Letters, words: &mut [u64; 8]) {
    take_back(&d.0, words, true);
}

fn take_back(letters: &[u8], words: &[u64; 8], done: bool) {
    for (i, letter) in letters.iter().enumerate().filter(|(i, _)| words[*i] != 0) {
        if !b"wrotg".contains(letter) {
            continue;
        }
        // SAFETY: `copy_page` made it, and the portal keeps the word out of everybody's reach.
        let copied = unsafe { Box::from_raw((words[i] & !(PAGE - 1)) as *mut Copied) };
        // SAFETY: the caller waits in its portal, so it lives.
        let caller = unsafe { &*copied.caller };
        if done && matches!(letter, b'w' | b'o' | b'g') {
            // Pages that the domain may not write stay as they are.
            let _ = caller.write(copied.from, &copied.bytes);
        }
    }
}
