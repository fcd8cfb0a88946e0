//! Buffers: memory made to be lent or given as a whole, and pages on their way from one place to another.
//!
//! A buffer is a level-0 table with pages from its start on, and a read-only twin of it: two words of its
//! owner's level-1 table, and for whoever it is lent or given to. Both tables count as pages of whoever owns
//! the buffer: one of `n` pages moves as `n + 2`.
//!
//! A domain's own buffers lie in the lower places, what comes from others arrives in the upper ones. A single
//! page arrives in a slot, or in a *place* that its owner has asked for as the goal of a `g` call.

use crate::frames::Frames;
use crate::slots::{PLACES, PLACES_VA, buffer_words};
use crate::space::leaf_slot;
use crate::{Answer, Machine, Vm};
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, VirtAddr};
use pebble_arch::{Arch, Leaf, SPAN, Whose};

/// Tables of a buffer.
const TABLES: u64 = 2;
/// Places for a domain's own buffers.
const OWN: u64 = map::BUFFERS as u64 / 2;
/// One-page places, a bit of a word each.
const PAGE_PLACES: u64 = 64;

/// What can be asked for, be given to, or be closed: an empty slot or place of a domain, or what is in it.
#[derive(Clone, Copy)]
enum At {
    /// Page table word; number of the place, or a slot.
    Page(u64, Option<u64>),
    /// Number of the place.
    Buffer(u64),
}

impl<M: Machine> Vm<M> {
    /// A fresh buffer of a domain: its address.
    pub fn buffer(&mut self, asid: Asid, pages: u64) -> Answer {
        let asid = self.alive(asid)?;
        if !(1..=map::BUFFER_PAGES as u64).contains(&pages) {
            return Err(errno::EINVAL);
        }
        self.afford(asid, pages + TABLES)?;
        let l1 = self.domain(asid).l1();
        let given = self.control(asid).map_or(0, |c| self.machine.read(c + PLACES[1]));
        let free = |n: &u64| given >> n & 1 == 0 && self.machine.read(buffer_words(l1, *n)[0]) == 0;
        let n = (0..OWN).find(free).ok_or(errno::EAGAIN)?;
        let [main, twin] = buffer_words(l1, n);
        if !self.machine.exchange(main, 0, M::Arch::SHUT) {
            return Err(errno::EAGAIN);
        }
        // Nothing below fails: it is granted.
        let (table, reader) = (self.take(asid)?, self.take(asid)?);
        for at in (0..pages * 8).step_by(8) {
            let pa = self.take(asid)?;
            self.machine.write(table + at, M::Arch::leaf(pa, Leaf::USER_RW));
            self.machine.write(reader + at, M::Arch::leaf(pa, Leaf::USER_R));
        }
        self.machine.write(twin, M::Arch::table(reader));
        self.machine.write(main, M::Arch::table(table));
        self.machine.flush(asid);
        Ok(map::BUFFERS_VA + n * map::BUFFER_STRIDE)
    }

    /// An empty place, for one page or a buffer, that stays its domain's until it closes it.
    pub fn receive_window(&mut self, asid: Asid, pages: u64) -> Answer {
        let asid = self.alive(asid)?;
        if !(1..=map::BUFFER_PAGES as u64).contains(&pages) {
            return Err(errno::EINVAL);
        }
        let control = self.make_control(asid)?;
        let (bits, first, step, most) = if pages == 1 {
            (control + PLACES[0], PLACES_VA, PAGE, PAGE_PLACES)
        } else {
            (control + PLACES[1], map::BUFFERS_VA, map::BUFFER_STRIDE, OWN)
        };
        let given = self.machine.read(bits);
        let empty = |n: &u64| {
            let word = self.at(asid, first + n * step).map(|at| self.word(asid, at));
            given >> n & 1 == 0 && word.is_ok_and(|word| self.machine.read(word) == 0)
        };
        let n = (0..most).find(empty).ok_or(errno::EAGAIN)?;
        self.machine.write(bits, given | 1 << n);
        Ok(first + n * step)
    }

    /// What lies at an address of the slot table, or is a buffer's place.
    fn at(&self, asid: u16, address: u64) -> Result<At, Errno> {
        if (map::WINDOWS_VA..map::WINDOWS_VA + SPAN).contains(&address) {
            let l0 = self.l0(asid, address).ok_or(errno::EFAULT)?;
            let number = address.checked_sub(PLACES_VA).map(|offset| offset / PAGE);
            return Ok(At::Page(leaf_slot(l0, address), number));
        }
        match address.checked_sub(map::BUFFERS_VA) {
            Some(offset) if address < map::STACKS_VA && offset.is_multiple_of(map::BUFFER_STRIDE) => {
                Ok(At::Buffer(offset / map::BUFFER_STRIDE))
            }
            _ => Err(errno::EFAULT),
        }
    }

    /// The word that says what is there.
    fn word(&self, asid: u16, at: At) -> u64 {
        match at {
            At::Page(word, _) => word,
            At::Buffer(n) => buffer_words(self.domain(asid).l1(), n)[0],
        }
    }

    /// The bit of a place that can be asked for, and the word that holds it.
    fn given(&self, asid: u16, at: At) -> Option<(u64, u64)> {
        let (bits, n) = match at {
            At::Page(_, number) => (PLACES[0], number.filter(|n| *n < PAGE_PLACES)?),
            At::Buffer(n) => (PLACES[1], Some(n).filter(|n| *n < OWN)?),
        };
        self.control(asid).map(|control| (control + bits, 1 << n))
    }

    /// An open window closes, a page or buffer of one's own is given back; the slot or place is empty, and
    /// given back too.
    pub fn window_close(&mut self, asid: Asid, VirtAddr(address): VirtAddr) -> Answer {
        let asid = self.alive(asid)?;
        let at = self.at(asid, address)?;
        let word = self.word(asid, at);
        let entry = self.machine.read(word);
        let opened = M::Arch::whose(entry) == Whose::Open && self.is_goal(asid, address);
        if M::Arch::whose(entry) == Whose::Borrowed || opened || entry == M::Arch::SHUT {
            // The call that lent it ends it.
            return Err(errno::EPERM);
        }
        // The call that waits here goes on waiting.
        let entry = if entry == M::Arch::WAITS { 0 } else { entry };
        let alone = entry != 0 && !self.is_goal(asid, address);
        let shut = if let At::Buffer(_) = at { M::Arch::SHUT } else { 0 };
        if entry != 0 {
            if !self.machine.exchange(word, entry, shut) {
                return Err(errno::EAGAIN);
            }
            match at {
                At::Buffer(_) => {
                    let twin = self.swap(word + 8, 0);
                    self.give_buffer(asid, entry, twin);
                    self.machine.write(word, 0);
                }
                At::Page(..) if M::Arch::whose(entry) == Whose::Own => {
                    self.give(asid, M::Arch::address(entry))
                }
                At::Page(..) => {}
            }
            self.machine.flush(asid);
            self.revoke();
        }
        let mut known = entry != 0;
        if let Some((bits, bit)) = self.given(asid, at) {
            let given = self.machine.read(bits);
            known |= given & bit != 0;
            self.machine.write(bits, given & !bit);
        }
        known |= self.recover(asid, address, word, alone);
        if known { Ok(0) } else { Err(errno::EINVAL) }
    }

    /// The same for buffers alone.
    pub fn buffer_free(&mut self, asid: Asid, VirtAddr(address): VirtAddr) -> Answer {
        if address < map::BUFFERS_VA {
            Err(errno::EFAULT)
        } else {
            self.window_close(asid, VirtAddr(address))
        }
    }

    /// Whether the address is that of a slot which a call holds until it returns: `g`, to be filled, or a
    /// stub's `o`.
    pub(crate) fn is_goal(&self, asid: u16, address: u64) -> bool {
        self.desc(asid, address).is_some_and(|desc| self.held_slot(desc))
    }

    /// Gives a slot back to its queue that has lost what moved into it; not one that a call will give back,
    /// or that is in the queue. `alone`: it was not empty until just now, and no `g` call held it; so it is
    /// in nobody's hands, and in no queue, which is long.
    pub(crate) fn recover(&mut self, asid: u16, address: u64, word: u64, alone: bool) -> bool {
        let Some(desc) = self.desc(asid, address) else { return false };
        let lost =
            alone || self.look(|vm| vm.machine.read(word) == 0 && !vm.held_slot(desc) && !vm.queued(desc));
        if lost {
            self.push(desc);
        }
        lost
    }

    /// The word of an own page: of the image, the heap, or one that has moved here.
    pub(crate) fn own_page(&mut self, asid: u16, address: u64) -> Result<(u64, u64), Errno> {
        let slots = map::WINDOWS_VA..map::WINDOWS_VA + SPAN;
        if !address.is_multiple_of(PAGE)
            || !self.image_range(asid).contains(&address) && !slots.contains(&address)
        {
            return Err(errno::EFAULT);
        }
        let word = leaf_slot(self.l0(asid, address).ok_or(errno::EFAULT)?, address);
        let entry = self.entry(asid, word);
        if M::Arch::is_lendable(entry) { Ok((word, entry)) } else { Err(errno::EFAULT) }
    }

    /// A page or a buffer of the domain's own is nobody else's: whoever was lent it before it moved here, or
    /// after, sees it no more. Portal code cannot know of them, since it counts no lendings; here all slots
    /// are looked at, as for pages that are free.
    pub fn window_claim(&mut self, asid: Asid, VirtAddr(address): VirtAddr) -> Answer {
        let asid = self.alive(asid)?;
        let buffer = address >= map::BUFFERS_VA;
        let address = if buffer { address } else { address & !(PAGE - 1) };
        if self.is_goal(asid, address) {
            return Err(errno::EPERM);
        }
        let (word, entry) = if buffer {
            let word = self.word(asid, self.at(asid, address)?);
            (word, self.machine.read(word))
        } else {
            self.own_page(asid, address)?
        };
        if !M::Arch::is_own(entry) {
            return Err(errno::EFAULT);
        }
        // Foreign for so long: its own threads use it, but cannot let it move; and `turn` leaves it alone.
        if !self.machine.exchange(word, entry, M::Arch::marked(entry, Whose::Foreign)) {
            return Err(errno::EAGAIN);
        }
        let twin = if buffer { self.machine.read(word + 8) } else { 0 };
        if buffer {
            self.machine.write(word + 8, M::Arch::marked(twin, Whose::Foreign));
        }
        self.each_page(entry, twin, |frames, pa| frames.give(pa));
        self.revoke();
        self.each_page(entry, twin, |frames, pa| frames.take_back(pa));
        if buffer {
            self.machine.write(word + 8, twin);
        }
        self.swap(word, entry);
        Ok(0)
    }

    /// The pages behind a word: of a buffer, which has a twin, its tables too.
    fn each_page(&mut self, entry: u64, twin: u64, act: fn(&mut Frames, u64)) {
        act(&mut self.frames, M::Arch::address(entry));
        if !M::Arch::is_valid(twin) {
            return;
        }
        act(&mut self.frames, M::Arch::address(twin));
        let table = M::Arch::address(entry);
        for at in (table..table + PAGE).step_by(8) {
            let page = self.machine.read(at);
            if M::Arch::is_valid(page) {
                act(&mut self.frames, M::Arch::address(page));
            }
        }
    }

    /// The word of an empty place of a domain, or of an empty slot that a `g` call waits to be filled; and
    /// what is in it.
    fn goal(&self, asid: u16, address: u64) -> Result<(u64, u64), Errno> {
        let at = self.at(asid, address)?;
        let given = self.given(asid, at).is_some_and(|(bits, bit)| self.machine.read(bits) & bit != 0);
        let word = self.word(asid, at);
        if !given && !self.is_goal(asid, address) {
            return Err(errno::EINVAL);
        }
        let entry = self.machine.read(word);
        if entry == 0 || entry == M::Arch::WAITS { Ok((word, entry)) } else { Err(errno::EEXIST) }
    }

    /// A page or a buffer of the domain's own moves to an empty place, or slot that waits for it.
    pub fn window_move(&mut self, asid: Asid, VirtAddr(from): VirtAddr, VirtAddr(to): VirtAddr) -> Answer {
        let asid = self.alive(asid)?;
        let buffer = from >= map::BUFFERS_VA;
        if buffer != (to >= map::BUFFERS_VA) {
            return Err(errno::EINVAL);
        }
        let (goal, empty) = self.goal(asid, to)?;
        let (word, entry) = if buffer {
            let word = self.word(asid, self.at(asid, from)?);
            (word, self.machine.read(word))
        } else {
            self.own_page(asid, from)?
        };
        if !M::Arch::is_own(entry) {
            return Err(errno::EFAULT);
        }
        let alone = !self.is_goal(asid, from);
        if !self.machine.exchange(word, entry, if buffer { M::Arch::SHUT } else { 0 }) {
            return Err(errno::EAGAIN);
        }
        // From here on it is in nobody's hands but these.
        if !self.machine.exchange(goal, empty, if buffer { M::Arch::SHUT } else { entry }) {
            if !self.machine.exchange(word, if buffer { M::Arch::SHUT } else { 0 }, entry) {
                self.give(asid, M::Arch::address(entry));
                self.revoke();
            }
            return Err(errno::EEXIST);
        }
        if buffer {
            let twin = self.swap(word + 8, 0);
            self.machine.write(goal + 8, twin);
            self.machine.write(goal, entry);
            self.machine.write(word, 0);
        }
        self.machine.flush(asid);
        self.recover(asid, from, word, alone);
        Ok(0)
    }
}
