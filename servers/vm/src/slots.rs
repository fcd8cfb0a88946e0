//! Window slots: where a domain receives pages that others lend or give it, and how they are taken away when
//! their owner loses them.
//!
//! Portal code opens and closes windows without asking anybody. All that it needs of a domain is its *control
//! page*: queues of empty slots, whose descriptors name the page table word to be written, and a count of the
//! pages that have moved. Control page and slot table are made at first use, belong to the domain, and
//! outlive it until [`Vm::domain_free`], since a thread may still return and clear its slot.
//!
//! Portal code runs between any two steps of this component, so
//! * a page table word that portal code may change is changed here by `exchange` alone: who gets a page out
//!   of a word has it;
//! * [`Vm::revoke`] looks at all slots again and again, until it was not interrupted: then nobody can have
//!   passed on, behind its back, a page that it was still looking for.
//!
//! The first slots of each kind are apart, with queues of their own, for calls of which a window stays open
//! (`o`, `t`): a domain that never gives them up, or that strangers fill them for, is called with other
//! windows as before.
//!
//! Slots over pages that are gone show the *sink*: a page that nobody reads, so that who was lent them does
//! not fault. A buffer's slot shows a table full of it.

use crate::space::leaf_slot;
use crate::{Answer, Machine, State, Vm};
use core::num::NonZeroU16;
use core::ops::Range;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::Asid;
use pebble_arch::{Arch, Leaf, Whose, slot};

/// Words of the control page that portal code does not touch: places given out by [`Vm::receive_window`], one
/// bit each: pages, buffers.
pub(crate) const PLACES: [u64; 2] = [0x18, 0x20];
/// Records of ranges with fault handlers, at the end of the control page.
pub(crate) const RANGES: u64 = 0xf00;
/// Of a descriptor: address in the domain, direct address of the page table word.
const DESC_VA: u64 = 8;
const DESC_PTE: u64 = 16;
/// One-page slots.
pub(crate) const SLOTS: u64 = (RANGES - map::WINDOW_PAGE_DESC) / map::WINDOW_DESC_BYTES;
/// Buffer slots: the upper half of the buffer places. The lower is for the domain's own.
const UPPER: u64 = map::BUFFERS as u64 / 2;
/// So many slots are apart.
const APART: u64 = 40;
const UPPER_APART: u64 = UPPER / 2;
/// One-page places lie in the upper half of the slot table.
pub(crate) const PLACES_VA: u64 = map::WINDOWS_VA + 256 * PAGE;

/// Level-1 words of a buffer's place: the buffer's, and behind it that of the read-only twin.
pub(crate) fn buffer_words(l1: u64, n: u64) -> [u64; 2] {
    let word = slot(l1, 1, map::BUFFERS_VA + n * map::BUFFER_STRIDE);
    [word, word + 8]
}

impl<M: Machine> Vm<M> {
    /// Only the portal manager asks.
    pub(crate) fn portal_manager(&self, caller: Asid) -> Result<u16, Errno> {
        let caller = self.alive(caller)?;
        if NonZeroU16::new(caller) == self.portal_manager { Ok(caller) } else { Err(errno::EPERM) }
    }

    /// Direct address of a domain's control page, made at first use.
    pub fn windows(&mut self, caller: Asid, asid: Asid) -> Answer {
        self.portal_manager(caller)?;
        let asid = self.alive(asid)?;
        self.make_control(asid).map(M::Arch::direct)
    }

    /// Direct address of a domain's level-1 table: with it portal code finds what a caller may lend.
    pub fn space(&mut self, caller: Asid, asid: Asid) -> Answer {
        self.portal_manager(caller)?;
        let asid = self.alive(asid)?;
        Ok(M::Arch::direct(self.domain(asid).l1()))
    }

    pub(crate) fn control(&self, asid: u16) -> Option<u64> {
        let d = self.domain(asid);
        let word = (d.state != State::Free).then(|| self.machine.read(d.root() + map::ROOT_WINDOWS));
        word.filter(|direct| *direct != 0).map(M::Arch::physical)
    }

    pub(crate) fn make_control(&mut self, asid: u16) -> Answer {
        if let Some(control) = self.control(asid) {
            return Ok(control);
        }
        self.afford(asid, 2)?;
        let l0 = self.make_l0(asid, map::WINDOWS_VA)?;
        let control = self.take(asid)?;
        let l1 = self.domain(asid).l1();
        for n in (0..SLOTS).rev() {
            let va = map::WINDOWS_VA + n * PAGE;
            self.make_slot(page_desc(control, n), va, leaf_slot(l0, va));
        }
        for n in (0..UPPER).rev() {
            let buffer = n + UPPER;
            let va = map::BUFFERS_VA + buffer * map::BUFFER_STRIDE;
            let word = buffer_words(l1, buffer)[0];
            self.make_slot(buffer_desc(control, n), va, word);
        }
        let root = self.domain(asid).root();
        self.machine.write(root + map::ROOT_WINDOWS, M::Arch::direct(control));
        Ok(control)
    }

    /// A free slot at the head of its queue.
    fn make_slot(&mut self, desc: u64, va: u64, word: u64) {
        let queue = Self::queue(desc);
        self.machine.write(desc, self.machine.read(queue));
        self.machine.write(desc + DESC_VA, va);
        self.machine.write(desc + DESC_PTE, M::Arch::direct(word));
        self.machine.write(queue, M::Arch::direct(desc));
    }

    /// The one-page slots' and places' page table words.
    pub(crate) fn slot_words(&self, asid: u16) -> Range<u64> {
        self.l0(asid, map::WINDOWS_VA).map_or(0..0, |l0| l0..l0 + PAGE)
    }

    /// The descriptor of the slot at an address.
    pub(crate) fn desc(&self, asid: u16, va: u64) -> Option<u64> {
        let upper = map::BUFFERS_VA + UPPER * map::BUFFER_STRIDE;
        let control = self.control(asid)?;
        if (map::WINDOWS_VA..map::WINDOWS_VA + SLOTS * PAGE).contains(&va) {
            Some(page_desc(control, (va - map::WINDOWS_VA) / PAGE))
        } else if (upper..map::STACKS_VA).contains(&va) {
            Some(buffer_desc(control, (va - upper) / map::BUFFER_STRIDE))
        } else {
            None
        }
    }

    /// Whether a call holds the slot with this descriptor, whatever is there.
    pub(crate) fn held_slot(&self, desc: u64) -> bool {
        self.machine.read(desc + map::WINDOW_HOLDER) == M::Arch::direct(desc)
    }

    /// Takes what a page table word holds, and puts `new` there.
    pub(crate) fn swap(&mut self, word: u64, new: u64) -> u64 {
        loop {
            let old = self.machine.read(word);
            if self.machine.exchange(word, old, new) {
                return old;
            }
        }
    }

    /// The queue of a slot, which is in the same page as its descriptor.
    fn queue(desc: u64) -> u64 {
        desc - desc % PAGE
            + match desc % PAGE {
                at if at >= page_desc(0, APART) => map::WINDOW_PAGES,
                at if at >= page_desc(0, 0) => map::WINDOW_PAGES + map::WINDOW_APART,
                at if at >= buffer_desc(0, UPPER_APART) => map::WINDOW_BUFFERS,
                _ => map::WINDOW_BUFFERS + map::WINDOW_APART,
            }
    }

    /// Gives a slot back to its queue.
    pub(crate) fn push(&mut self, desc: u64) {
        let queue = Self::queue(desc);
        loop {
            let head = self.machine.read(queue);
            self.machine.write(desc, head);
            if self.machine.exchange(queue, head, M::Arch::direct(desc)) {
                return;
            }
        }
    }

    /// What one look, that nobody interrupted, has found: portal code may change between two steps here what
    /// it looks at.
    pub(crate) fn look(&self, find: impl Fn(&Self) -> bool) -> bool {
        loop {
            let before = self.machine.switches();
            let found = find(self);
            if self.machine.switches() == before {
                return found;
            }
        }
    }

    /// Whether a slot is in its queue; part of a [`look`](Self::look), so that the queue has an end.
    pub(crate) fn queued(&self, desc: u64) -> bool {
        let mut at = self.machine.read(Self::queue(desc));
        for _ in 0..SLOTS + UPPER {
            if at == 0 || at == M::Arch::direct(desc) {
                break;
            }
            at = self.machine.read(M::Arch::physical(at));
        }
        at == M::Arch::direct(desc)
    }

    /// Pages that a domain is charged for.
    pub(crate) fn charge(&self, asid: u16) -> u32 {
        let moved = self.control(asid).map_or(0, |control| self.machine.read(control + map::WINDOW_MOVED));
        self.domain(asid).pages.wrapping_add(moved as u32)
    }

    pub(crate) fn charge_more(&mut self, asid: u16, pages: i32) {
        let d = self.domain_mut(asid);
        d.pages = d.pages.wrapping_add_signed(pages);
    }

    /// Takes all windows away whose pages are free. Whoever has given pages back calls this before it lets go
    /// of the lock.
    pub(crate) fn revoke(&mut self) {
        let Ok(common) = self.common() else { return };
        while self.frames.loose() {
            let before = self.machine.switches();
            for asid in self.numbers() {
                if self.control(asid).is_some() && self.sweep(asid, common.sink, common.sink_table) {
                    self.machine.flush(asid);
                }
            }
            if self.machine.switches() == before {
                self.frames.settle();
            }
        }
    }

    /// Whether a domain has any window at all; part of a [`look`](Self::look).
    pub(crate) fn shows_something(&self, asid: u16) -> bool {
        if self.control(asid).is_none() {
            return false;
        }
        let upper = buffer_words(self.domain(asid).l1(), UPPER)[0];
        self.valid_in(self.slot_words(asid).start, SLOTS) || self.valid_in(upper, 2 * UPPER)
    }

    /// Whether one of so many words maps something.
    fn valid_in(&self, word: u64, count: u64) -> bool {
        let mut n = 0;
        loop {
            n += self.machine.zeros(word + n * 8, count - n);
            if n == count || M::Arch::is_valid(self.machine.read(word + n * 8)) {
                return n < count;
            }
            n += 1;
        }
    }

    /// One look at a domain's slots; whether anything was turned.
    fn sweep(&mut self, asid: u16, sink: u64, sink_table: u64) -> bool {
        let mut turned = false;
        let mut word = self.slot_words(asid).start;
        let end = self.slot_words(asid).end.min(word + SLOTS * 8);
        // Nearly all are empty: every domain that was ever lent something is looked through when one dies.
        while word < end {
            word += self.machine.zeros(word, (end - word) / 8) * 8;
            if word < end {
                turned |= self.turn(word, M::Arch::leaf(sink, Leaf::USER_RW));
                word += 8;
            }
        }
        for n in UPPER..2 * UPPER {
            for word in buffer_words(self.domain(asid).l1(), n) {
                turned |= self.turn(word, M::Arch::table(sink_table));
            }
        }
        turned
    }

    #[inline(always)]
    fn turn(&mut self, word: u64, to: u64) -> bool {
        let entry = self.machine.read(word);
        M::Arch::is_valid(entry) && self.turn_valid(word, entry, to)
    }

    #[inline(never)]
    fn turn_valid(&mut self, word: u64, entry: u64, to: u64) -> bool {
        // Foreign: its owner's, who claims it.
        let whose = M::Arch::whose(entry);
        if whose == Whose::Foreign || self.frames.in_use(M::Arch::address(entry)) {
            return false;
        }
        // What is marked as somebody else's is never given back as one's own.
        let whose = if whose == Whose::Own { Whose::Open } else { whose };
        self.machine.exchange(word, entry, M::Arch::marked(to, whose))
    }

    /// Gives back what a dead domain owns in its slots and places; what it was lent it loses. `last`: nobody
    /// can come any more, the tables go too.
    pub(crate) fn drain_windows(&mut self, asid: u16, last: bool) {
        for word in self.slot_words(asid).step_by(8) {
            let entry = self.swap(word, 0);
            if M::Arch::is_own(entry) {
                self.give(asid, M::Arch::address(entry));
            }
        }
        for n in 0..2 * UPPER {
            let [word, twin] = buffer_words(self.domain(asid).l1(), n);
            if last && !M::Arch::is_valid(self.machine.read(word)) {
                continue;
            }
            let main = self.swap(word, M::Arch::SHUT);
            let twin = self.swap(twin, M::Arch::SHUT);
            self.give_buffer(asid, main, twin);
        }
        if let Some(control) = self.control(asid) {
            for places in PLACES {
                self.machine.write(control + places, 0);
            }
            if last {
                let root = self.domain(asid).root();
                self.give_table(asid, self.slot_words(asid).start);
                self.machine.write(root + map::ROOT_WINDOWS, 0);
                self.give_table(asid, control);
            }
        }
    }

    /// Gives back an own buffer, taken out of its place; what is lent or no buffer is left alone.
    pub(crate) fn give_buffer(&mut self, asid: u16, main: u64, twin: u64) {
        if !M::Arch::is_own(main) {
            return;
        }
        let table = M::Arch::address(main);
        for word in (table..table + PAGE).step_by(8) {
            let entry = self.swap(word, 0);
            if M::Arch::is_valid(entry) {
                self.give(asid, M::Arch::address(entry));
            }
        }
        self.give(asid, table);
        if M::Arch::is_valid(twin) {
            self.give(asid, M::Arch::address(twin));
        }
    }
}

fn page_desc(control: u64, n: u64) -> u64 {
    control + map::WINDOW_PAGE_DESC + n * map::WINDOW_DESC_BYTES
}

/// `n`: from the first upper place on.
fn buffer_desc(control: u64, n: u64) -> u64 {
    control + map::WINDOW_BUFFER_DESC + n * map::WINDOW_DESC_BYTES
}

const _: () = assert!(SLOTS == 110);
const _: () = assert!(
    map::WINDOW_BUFFERS + map::WINDOW_APART < map::WINDOW_BUFFER_DESC && PLACES[1] < map::WINDOW_APART
);
