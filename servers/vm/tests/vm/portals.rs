//! What portal code does with windows, after `docs/src/windows.md`: a second reading of the contract, on the
//! same words of memory.

use crate::world::*;
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::Asid;
use pebble_vm::Machine;

const V: u64 = 1;
const W: u64 = 4;
const X: u64 = 8;
const U: u64 = 16;
const LEAF: u64 = 14;
pub const BORROWED: u64 = 1 << 8;
pub const OPEN: u64 = 2 << 8;
const MARKS: u64 = 3 << 8;
const WAITS: u64 = 4;
const PLACES: u64 = map::WINDOWS_VA + 256 * PAGE;

/// A call with a window that has not returned.
#[derive(Clone, Copy, Debug)]
pub struct Lent {
    pub caller: u16,
    pub callee: u16,
    /// Whose call it is.
    pub thread: u64,
    letter: u8,
    long: bool,
    desc: u64,
    /// Where the callee sees it; what the caller said, and whether the caller had borrowed that.
    pub at: u64,
    from: u64,
    on: bool,
    goal: u64,
    /// What the goal holds until it is filled.
    empty: u64,
}

impl Lent {
    fn borrows(&self) -> bool {
        matches!(self.letter, b'w' | b'r')
    }

    /// Whether the callee has this address by it.
    fn covers(&self, va: u64) -> bool {
        let bytes = if self.long { map::BUFFER_STRIDE } else { PAGE };
        (self.at..self.at + bytes).contains(&va)
    }
}

fn low(direct: u64) -> u64 {
    direct & 0xffff_ffff
}

impl World {
    fn get(&self, pa: u64) -> u64 {
        self.vm.machine.read(pa)
    }

    fn put(&mut self, pa: u64, word: u64) {
        self.vm.machine.write(pa, word);
    }

    /// The page table word of an address, or the level-1 word of a buffer's place; what marks lie above it.
    fn find(&self, asid: u16, va: u64, long: bool) -> Option<(u64, u64)> {
        let word = self.l1[&asid] + (va >> 21 & 511) * 8;
        if long {
            let place =
                (map::BUFFERS_VA..map::STACKS_VA).contains(&va) && va.is_multiple_of(map::BUFFER_STRIDE);
            return place.then_some((word, 0));
        }
        let entry = self.get(word);
        (va < map::USER_END && entry & V != 0 && entry & LEAF == 0)
            .then(|| ((entry >> 10 << 12) + (va >> 12 & 511) * 8, entry & MARKS))
    }

    /// Whether the thread that makes the call has itself brought here what it lends on.
    fn holds(&self, asid: u16, va: u64) -> bool {
        let slot = if va < map::BUFFERS_VA {
            0x140 + (va - map::WINDOWS_VA) / PAGE * 32
        } else {
            0x40 + ((va - map::BUFFERS_VA) / map::BUFFER_STRIDE - 8) * 32
        };
        self.get(self.control[&asid] + slot + 24) == map::thread_va(self.thread as u16)
    }

    /// The last call of a thread, which ends first.
    pub fn last_of(&self, thread: u64) -> Option<usize> {
        self.calls.iter().rposition(|l| l.thread == thread)
    }

    /// What is borrowed is lent on only within the call that has brought it.
    pub fn check_loans(&self) {
        for (n, lent) in self.calls.iter().enumerate().filter(|(_, l)| l.borrows()) {
            let on = |l: &&Lent| l.callee == lent.caller && l.borrows() && l.covers(lent.from);
            let outer = self.calls[..n].iter().rfind(on);
            assert_eq!(outer.is_some(), lent.on, "{lent:?} outlives {outer:?}");
            assert!(outer.is_none_or(|l| l.thread == lent.thread), "{lent:?} of another thread");
        }
    }

    fn moved(&mut self, asid: u16, pages: u64) {
        let at = self.control[&asid] + map::WINDOW_MOVED;
        self.put(at, self.get(at).wrapping_add(pages));
    }

    /// First leg of a call with a window. `pages` 1: of one page.
    pub fn lend(&mut self, caller: u16, callee: u16, letter: u8, va: u64, pages: u64) -> Option<Lent> {
        let long = pages > 1;
        if !(1..256).contains(&caller) {
            return None;
        }
        for asid in [caller, callee] {
            let control = self.vm.windows(Asid(PM), asid.into());
            if let Ok(control) = control {
                self.control.insert(asid, low(control));
            }
        }
        self.look();
        if self.state(caller) != 1 || !self.control.contains_key(&caller) {
            return None;
        }
        let control = *self.control.get(&callee)?;
        let (word, above) = self.find(caller, va, long)?;
        let entry = self.get(word);
        // `O`: a stub's `o`. What is open to the caller, it may open to others.
        let open = matches!(letter, b'o' | b'O');
        let marks = if open { BORROWED } else { MARKS };
        let own = entry & marks == 0 && above == 0 && !(map::STACKS_VA..map::USER_END).contains(&va);
        let borrowed = [entry & MARKS, above].contains(&BORROWED);
        let lendable = entry & V != 0
            && entry & MARKS != MARKS
            && above != MARKS
            && (!borrowed || self.holds(caller, va))
            && if long {
                let table = entry >> 10 << 12;
                let last = (pages - 1) * 8;
                let writes = letter == b'r' || self.get(table) & W != 0;
                self.get(table + last) & V != 0
                    && (pages == 512 || self.get(table + last + 8) & V == 0)
                    && writes
            } else {
                entry & U != 0 && (letter == b'r' || entry & W != 0)
            };
        let allowed = match letter {
            b'w' | b'r' => lendable,
            b'o' | b'O' | b't' => lendable && own && (long || va < map::BUFFERS_VA),
            // Into a place, or into a slot of the caller's for which a call waits.
            _ if long => entry == if va < map::BUFFERS_VA + 8 * map::BUFFER_STRIDE { 0 } else { WAITS },
            _ => {
                (map::WINDOWS_VA..map::BUFFERS_VA).contains(&va)
                    && entry == if va < PLACES { WAITS } else { 0 }
                    && va < PLACES + 64 * PAGE
            }
        };
        if !allowed {
            return None;
        }
        let apart = if matches!(letter, b'o' | b't') { map::WINDOW_APART } else { 0 };
        let queue = control + apart + if long { map::WINDOW_BUFFERS } else { map::WINDOW_PAGES };
        let desc = low(self.get(queue));
        if desc == 0 {
            return None;
        }
        let (at, slot) = (self.get(desc + 8), low(self.get(desc + 16)));
        self.put(queue, self.get(desc));
        let plain = entry & !(MARKS | if long { 0 } else { X });
        if matches!(letter, b'w' | b'r') {
            self.put(desc + 24, map::thread_va(self.thread as u16));
        }
        match letter {
            b'w' => self.put(slot, plain | BORROWED),
            b'r' if long => self.put(slot, self.get(word + 8) & !MARKS | BORROWED),
            b'r' => self.put(slot, plain & !(W | 128) | BORROWED),
            b'o' => self.put(slot, plain | OPEN),
            b'O' => {
                self.put(slot, plain | OPEN);
                self.put(desc + 24, map::direct(desc));
            }
            b't' => {
                self.put(slot, entry);
                self.put(word, 0);
                let mut count = 1;
                if long {
                    let twin = self.get(word + 8);
                    self.put(slot + 8, twin);
                    self.put(word + 8, 0);
                    count = pages + 2;
                }
                self.moved(callee, count);
                self.moved(caller, count.wrapping_neg());
                self.forget(caller, va, long);
            }
            _ => {
                self.put(desc + 24, map::direct(desc));
                self.put(slot, WAITS);
            }
        }
        let goal = if letter == b'g' { word } else { 0 };
        let (thread, on) = (self.thread, borrowed);
        let lent = Lent { caller, callee, thread, letter, long, desc, at, from: va, on, goal, empty: entry };
        if matches!(letter, b'w' | b'r' | b'g' | b'O') {
            self.calls.push(lent);
        }
        Some(lent)
    }

    /// Second leg; whether the callee gave what it had to.
    pub fn give_back(&mut self, n: usize) -> bool {
        let lent = self.calls.remove(n);
        let slot = low(self.get(lent.desc + 16));
        let entry = self.get(slot);
        let mut good = true;
        if lent.letter == b'O' {
            self.put(lent.desc + 24, 0);
        }
        if lent.letter == b'g' {
            good = entry & V != 0 && entry & MARKS == 0 && self.get(lent.goal) == lent.empty;
            self.put(lent.desc + 24, 0);
            if !good && entry != 0 && entry != WAITS {
                // The page stays with the callee, in a slot that does not go back.
                return false;
            }
            if good {
                self.put(lent.goal, entry);
                let mut count = 1;
                if lent.long {
                    let twin = self.get(slot + 8);
                    self.put(lent.goal + 8, twin);
                    self.put(slot + 8, 0);
                    let table = entry >> 10 << 12;
                    count = 2 + (0..512).filter(|n| self.get(table + n * 8) & V != 0).count() as u64;
                }
                self.moved(lent.caller, count);
                self.moved(lent.callee, count.wrapping_neg());
            }
        }
        self.put(slot, 0);
        self.forget(lent.callee, lent.at, lent.long);
        let control = self.control[&lent.callee];
        let queue = control + if lent.long { map::WINDOW_BUFFERS } else { map::WINDOW_PAGES };
        self.put(lent.desc, self.get(queue));
        self.put(queue, map::direct(lent.desc));
        good
    }

    /// Every slot in a queue is empty, nobody's, and there once.
    pub fn check_queues(&self) {
        for control in self.control.values() {
            for queue in [map::WINDOW_PAGES, map::WINDOW_BUFFERS]
                .map(|q| [q, q + map::WINDOW_APART])
                .into_iter()
                .flatten()
            {
                let mut seen = std::collections::BTreeSet::new();
                let mut at = self.get(control + queue);
                while at != 0 {
                    assert!(seen.insert(at), "a slot is queued twice");
                    let desc = low(at);
                    assert!(desc > *control && desc < control + 0xf00);
                    assert!(self.get(desc + 24) != at, "a queued slot is held");
                    let word = self.get(low(self.get(desc + 16)));
                    assert!(word == 0 || word == 2, "a queued slot is in use: {word:#x}");
                    at = self.get(desc);
                }
                for lent in self.calls.iter().filter(|l| self.control[&l.callee] == *control) {
                    assert!(!seen.contains(&map::direct(lent.desc)), "a slot of a call is queued");
                }
            }
        }
    }
}
