//! Pages that two domains see: the loader's view of a domain under construction, the portal manager's arena,
//! stacks of `s` portals.

use crate::space::{leaf_slot, pages_in, stacks_slot};
use crate::{Answer, Machine, State, Vm};
use core::num::NonZeroU16;
use core::ops::Range;
use pebble_abi::errno::{self, Errno};
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, VirtAddr};
use pebble_arch::{Arch, Leaf};

/// Attachments that may exist at once.
pub(crate) const ATTACHMENTS: usize = 8;
const LOADER_BYTES: u64 = 0x100_0000;

/// Pages of a domain that the process server sees too. They are recorded because the domain may lose them at
/// any moment.
#[derive(Clone, Copy)]
pub(crate) struct Attachment {
    /// `None`: it has lost them.
    asid: Option<NonZeroU16>,
    address: u64,
    /// In the process server.
    at: u64,
    bytes: u64,
}

impl Attachment {
    fn there(&self) -> Range<u64> {
        self.at..self.at + self.bytes
    }

    fn touches(&self, asid: u16, range: &Range<u64>) -> bool {
        self.asid.is_some_and(|own| own.get() == asid)
            && self.address < range.end
            && range.start < self.address + self.bytes
    }
}

impl<M: Machine> Vm<M> {
    fn loader(&self, caller: Asid) -> Result<u16, Errno> {
        let caller = self.alive(caller)?;
        if NonZeroU16::new(caller) == self.process { Ok(caller) } else { Err(errno::EPERM) }
    }

    /// Pages of a domain also at the caller's `LOADER_VA + offset`, writable.
    pub fn attach(
        &mut self,
        caller: Asid,
        asid: Asid,
        VirtAddr(address): VirtAddr,
        pages: u64,
        offset: u64,
    ) -> Answer {
        let caller = self.loader(caller)?;
        let asid = self.program(asid)?;
        let range = pages_in(self.image_range(asid), address, pages)?;
        let there = pages_in(0..LOADER_BYTES, offset, pages)?;
        let there = map::LOADER_VA + there.start..map::LOADER_VA + there.end;
        let free = self.attachments.iter().position(Option::is_none).ok_or(errno::EAGAIN)?;
        self.make_place(caller, there.clone())?;
        if !(0..pages).all(|n| self.has_page(asid, address + n * PAGE)) {
            return Err(errno::EFAULT);
        }
        for at in (0..pages).map(|n| n * PAGE) {
            if let Some(pa) = self.page(asid, address + at) {
                self.put(caller, there.start + at, M::Arch::leaf(pa, Leaf::FOREIGN_RW));
            }
        }
        self.machine.flush(caller);
        let (asid, bytes) = (NonZeroU16::new(asid), range.end - range.start);
        self.attachments[free] = Some(Attachment { asid, address: range.start, at: there.start, bytes });
        Ok(0)
    }

    /// Ends the attachments that lie in these pages; none may lie there in part.
    pub fn detach(&mut self, caller: Asid, offset: u64, pages: u64) -> Answer {
        self.loader(caller)?;
        let range = pages_in(0..LOADER_BYTES, offset, pages)?;
        let range = map::LOADER_VA + range.start..map::LOADER_VA + range.end;
        let inside = |a: &Attachment| range.start <= a.at && a.at + a.bytes <= range.end;
        let outside = |a: &Attachment| a.at + a.bytes <= range.start || range.end <= a.at;
        if !self.attachments.iter().flatten().all(|a| inside(a) || outside(a)) {
            return Err(errno::EINVAL);
        }
        for n in 0..ATTACHMENTS {
            if let Some(a) = self.attachments[n].filter(|a| inside(a)) {
                self.shut(self.process, a.there());
                self.attachments[n] = None;
            }
        }
        Ok(0)
    }

    /// The domain is about to lose these pages, the loader perhaps in the middle of writing to them: until it
    /// detaches, it writes to a page that nobody reads, and does not fault.
    pub(crate) fn detach_from(&mut self, asid: u16, range: Range<u64>) {
        let Ok(sink) = self.common().map(|c| c.sink) else { return };
        for n in 0..ATTACHMENTS {
            let Some(a) = self.attachments[n].filter(|a| a.touches(asid, &range)) else { continue };
            self.attachments[n] = Some(Attachment { asid: None, ..a });
            if let Some(process) = self.living(self.process) {
                let sink = M::Arch::leaf(sink, Leaf::FOREIGN_RW);
                a.there().step_by(PAGE as usize).for_each(|va| self.put(process, va, sink));
                self.machine.flush(process);
            }
        }
    }

    /// A fresh page of the portal code arena: executable for the nucleus, writable for the portal manager. It
    /// stays for good. Where the arena is fixed, all of it is there from the start.
    pub fn code_page(&mut self, caller: Asid, page: u64) -> Answer {
        let common = self.common()?;
        let caller = self.portal_manager(caller)?;
        if page >= map::CODE_BYTES / PAGE {
            return Err(errno::EINVAL);
        }
        if M::Arch::fixed(map::CODE_VA).is_some() {
            return Ok(0);
        }
        let (slot, va) = (leaf_slot(common.kernel_l0[1], page * PAGE), map::PM_CODE_VA + page * PAGE);
        if M::Arch::is_valid(self.machine.read(slot)) {
            return Err(errno::EEXIST);
        }
        self.make_l0(caller, va)?;
        let pa = self.take(caller)?;
        self.machine.write(slot, M::Arch::leaf(pa, Leaf::NUCLEUS_RX));
        self.window(self.portal_manager, va, pa)?;
        Ok(0)
    }

    /// Whether what is at these addresses of stacks is a domain's own: its stacks, or copies of those that it
    /// was forked with.
    pub(crate) fn own_stacks(&self, asid: u16, va: u64) -> bool {
        let copies = u16::from(self.domain(asid).stacks);
        va == map::stacks_of(asid) || copies != 0 && va == map::stacks_of(copies)
    }

    /// Whether a living domain has another's stacks in its page table.
    pub(crate) fn sees_stacks(&self, asid: u16, owner: u16) -> bool {
        let d = self.domain(asid);
        !self.own_stacks(asid, map::stacks_of(owner))
            && d.state == State::Alive
            && M::Arch::is_valid(self.machine.read(stacks_slot(d.l1(), owner)))
    }

    /// The stacks of `host` are in the page table of `guest`, until [`unshare_stacks`](Self::unshare_stacks)
    /// or the death of either.
    pub fn share_stacks(&mut self, host: Asid, guest: Asid) -> Answer {
        let (host, guest) = (self.alive(host)?, self.alive(guest)?);
        if self.domain(host).stacks != 0 {
            // Its thread runs where others have their own stacks.
            return Err(errno::EPERM);
        }
        let va = map::stacks_of(host);
        if !self.own_stacks(guest, va) && !self.sees_stacks(guest, host) {
            let l0 = self.make_l0(host, va)?;
            self.machine.write(stacks_slot(self.domain(guest).l1(), host), M::Arch::table(l0));
            self.machine.flush(guest);
        }
        Ok(0)
    }

    pub fn unshare_stacks(&mut self, host: Asid, guest: Asid) -> Answer {
        let (host, guest) = (self.alive(host)?, self.alive(guest)?);
        if self.sees_stacks(guest, host) {
            self.machine.write(stacks_slot(self.domain(guest).l1(), host), 0);
            self.machine.flush(guest);
        }
        Ok(0)
    }

    /// The stacks of a domain have changed: for it, and for all that see them.
    pub(crate) fn flush_stacks(&mut self, owner: u16) {
        self.machine.flush(owner);
        for other in self.numbers() {
            if self.sees_stacks(other, owner) {
                self.machine.flush(other);
            }
        }
    }
}
