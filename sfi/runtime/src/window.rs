//! Windows and capabilities: what portals leave to the runtime, before the call and after it.
//!
//! Into a domain: `w`, `r` and `o` make pages of a [`crate::Region`] appear in the segment, the same pages,
//! not copies; `w` and `r` go when the last call that lends them returns. A window is over one page, or as
//! far as the portal's [`Extent`] says. Mappings are kept without rights, so lending again costs one system
//! call. `t` moves a page's contents to the domain for good, `g` brings those of a fresh page back. `k` names
//! an object of the process. Out of a domain: a function of the process gets a copy of the page, since no
//! pointer into a segment stays valid by itself.

use crate::error::Error;
use crate::guard::guard;
use crate::instance::{Shared, lock};
use crate::layout::*;
use crate::os;
use crate::region::{self, Pages};
use crate::thread::status;
use pebble_portal::fault::Door;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Windows of one instance that are kept mapped, at most.
const MOST: usize = 1024;

struct MappedWindow {
    pages: Arc<Pages>,
    /// Offset in the region, and how many bytes from there: whole pages.
    from: u64,
    bytes: u64,
    writable: bool,
    /// Calls that lend it now; more than none for ever if it stays open.
    lent: u32,
}

/// An instance's.
#[derive(Default)]
pub struct Windows {
    /// By their offsets in the segment. A page between windows stays empty.
    windows: BTreeMap<u64, MappedWindow>,
    /// How many places for pages of the domain's own there have been: those given away by `t`, or being
    /// filled by `g`; and places that are free again.
    made: u64,
    unused: Vec<u64>,
    shared: Vec<Arc<Pages>>,
    objects: Vec<u64>,
}

/// Begin of the part of the window area for pages of the domain's own.
const OWN: u64 = WINDOWS + (WINDOWS_END - WINDOWS) / 4;

/// Memory that is to be lent.
#[derive(Clone, Copy)]
struct Loan {
    address: u64,
    bytes: u64,
    writable: bool,
    open: bool,
}

impl Windows {
    /// The segment has been emptied.
    pub fn clear(&mut self) {
        *self = Windows::default();
    }

    /// A shared region's file stays while it is mapped.
    pub fn keep(&mut self, pages: Arc<Pages>) {
        self.shared.push(pages);
    }

    fn lend(&mut self, base: u64, loan: Loan) -> Option<u64> {
        let Loan { address, writable, .. } = loan;
        let pages = region::find(address)?;
        let within = address & (PAGE - 1);
        let from = (address - pages.at) & !(PAGE - 1);
        let bytes = within.checked_add(loan.bytes.max(1))?.checked_next_multiple_of(PAGE)?;
        if bytes > pages.bytes - from {
            return None;
        }
        let prot = if writable { os::PROT_READ | os::PROT_WRITE } else { os::PROT_READ };
        let count = if loan.open { 1 << 31 } else { 1 };
        let same = |w: &MappedWindow| {
            (w.pages.number, w.from, w.bytes, w.writable) == (pages.number, from, bytes, writable)
        };
        if let Some((at, window)) = self.windows.iter_mut().find(|(_, w)| same(w)) {
            if window.lent == 0 {
                os::protect(base + at, bytes, prot).ok()?;
            }
            window.lent = window.lent.checked_add(count).unwrap_or(window.lent);
            return Some(base + at + within);
        }
        let at = self.room(base, bytes)?;
        os::shared(base + at, bytes, prot, &pages.file, from).ok()?;
        self.windows.insert(at, MappedWindow { pages, from, bytes, writable, lent: count });
        Some(base + at + within)
    }

    /// Where a new window goes; those that nobody has make room when there is none.
    fn room(&mut self, base: u64, bytes: u64) -> Option<u64> {
        let free = if self.windows.len() < MOST { self.gap(bytes) } else { None };
        free.or_else(|| {
            self.windows
                .retain(|at, window| window.lent != 0 || os::vacate(base + at, window.bytes).is_err());
            if self.windows.len() < MOST { self.gap(bytes) } else { None }
        })
    }

    /// The lowest gap that is long enough.
    fn gap(&self, bytes: u64) -> Option<u64> {
        let mut at = WINDOWS;
        for (begin, window) in &self.windows {
            if begin - at >= bytes + PAGE {
                break;
            }
            at = begin + window.bytes + PAGE;
        }
        (at + bytes < OWN).then_some(at)
    }

    fn give_back(&mut self, base: u64, address: u64) {
        let at = (address - base) & !(PAGE - 1);
        if let Some(window) = self.windows.get_mut(&at) {
            window.lent = window.lent.saturating_sub(1);
            if window.lent == 0 {
                let _ = os::protect(base + at, window.bytes, os::PROT_NONE);
            }
        }
    }

    /// A fresh page of the domain's own, which counts as its memory.
    fn make(&mut self, callee: &Shared) -> Option<u64> {
        let at = self.unused.last().copied().unwrap_or(OWN + self.made * PAGE);
        if at + PAGE > OWN + (WINDOWS_END - WINDOWS) / 4 {
            return None;
        }
        callee.resources.charge(PAGE).ok()?;
        if os::anonymous(callee.base + at, PAGE, os::PROT_READ | os::PROT_WRITE).is_err() {
            callee.resources.release(PAGE);
            return None;
        }
        if self.unused.pop().is_none() {
            self.made += 1;
        }
        Some(callee.base + at)
    }

    fn unmake(&mut self, callee: &Shared, page: u64) {
        if os::vacate(page, PAGE).is_ok() {
            self.unused.push(page - callee.base);
            callee.resources.release(PAGE);
        }
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

/// How far the window of an argument (counted from 0) reaches; without one, to the end of the page.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    pub(crate) argument: usize,
    pub(crate) length: Length,
}

impl Extent {
    pub const fn bytes(argument: usize, bytes: u64) -> Extent {
        Extent { argument, length: Length::Bytes(bytes) }
    }

    /// As many elements of a size as another argument says, an `i` or `c`.
    pub const fn counted(argument: usize, by: usize, size: u64) -> Extent {
        Extent { argument, length: Length::Counted { by, size } }
    }

    /// To the NUL behind a text.
    pub const fn text(argument: usize) -> Extent {
        Extent { argument, length: Length::Text }
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Length {
    Bytes(u64),
    Counted { by: usize, size: u64 },
    Text,
}

impl Length {
    fn bytes(self, address: u64, words: &[u64; 8]) -> Option<u64> {
        match self {
            Length::Bytes(bytes) => Some(bytes),
            Length::Counted { by, size } => words.get(by)?.checked_mul(size),
            Length::Text => region::text(address),
        }
    }
}

/// What a portal into a domain lends.
pub struct Description {
    callee: Arc<Shared>,
    letters: Vec<u8>,
    lengths: [Length; 6],
}

impl Description {
    pub fn new(callee: &Arc<Shared>, door: &Door, extents: &[Extent]) -> Result<Description, Error> {
        let letter = |argument: usize| door.args.get(argument).copied().unwrap_or(b' ');
        let mut lengths = [Length::Bytes(1); 6];
        for extent in extents {
            let counts = |argument| b"ic".contains(&letter(argument));
            let known = !matches!(extent.length, Length::Counted { by, .. } if !counts(by));
            let window = b"wro".contains(&letter(extent.argument));
            match lengths.get_mut(extent.argument).filter(|_| known && window) {
                Some(length) => *length = extent.length,
                None => return Err(Error::NoExtent(extent.argument)),
            }
        }
        Ok(Description { callee: callee.clone(), letters: door.args.to_vec(), lengths })
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
    guard(|| lent_in(d, words)).unwrap_or(status::NOT_LENT)
}

fn lent_in(d: &Description, words: &mut [u64; 8]) -> u64 {
    let callee = &*d.callee;
    let mut windows = lock(&callee.windows);
    for (i, letter) in d.letters.iter().enumerate() {
        let word = words[i];
        let lent = match letter {
            b'w' | b'r' | b'o' => d.lengths[i].bytes(word, words).and_then(|bytes| {
                let (writable, open) = (*letter != b'r', *letter == b'o');
                windows.lend(callee.base, Loan { address: word, bytes, writable, open })
            }),
            b't' => windows.make(callee).filter(|page| move_page(callee, word, *page)),
            b'g' => {
                windows.make(callee).inspect(|page| lock(&FILLING).push(Filling { page: *page, to: word }))
            }
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
            b'g' if filled(words[i]).is_some() => windows.unmake(callee, words[i]),
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
    let _ = guard(|| given_back_in(d, words));
}

fn given_back_in(d: &Description, words: &mut [u64; 8]) {
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
                windows.unmake(callee, words[i]);
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
    use pebble_portal::fault::record;
    // SAFETY: the seventh word is the mark of the return stack under the call, whose instance a running call
    // keeps.
    unsafe { &*(Mark(words[6]).get(record::INSTANCE) as *const Shared) }
}

pub extern "C" fn lend_out(d: &Letters, words: &mut [u64; 8]) -> u64 {
    guard(|| lent_out(d, words)).unwrap_or(status::NOT_LENT)
}

fn lent_out(d: &Letters, words: &mut [u64; 8]) -> u64 {
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
    let _ = guard(|| given_back_out(d, words));
}

fn given_back_out(d: &Letters, words: &mut [u64; 8]) {
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
