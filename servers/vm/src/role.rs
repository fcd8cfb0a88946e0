//! What a component's domain has and a program's has not: devices, shared pages of the image, and that the
//! system stops without it. Given to a domain that takes a component's place, and taken from the one that had
//! it.

use crate::space::pages_in;
use crate::{Answer, Machine, Vm};
use pebble_abi::errno;
use pebble_abi::map::{self, PAGE, READ, WRITE};
use pebble_abi::words::{Asid, PhysAddr, VirtAddr};
use pebble_arch::{Arch, Leaf};

impl<M: Machine> Vm<M> {
    /// Pages of a device, or of the image, in a domain that the process server makes. They stay whose they
    /// are: not charged, never lent, never freed. `pages`: with `READ` and `WRITE` in the low 16 bits.
    pub fn map_foreign(
        &mut self,
        asid: Asid,
        VirtAddr(address): VirtAddr,
        PhysAddr(pa): PhysAddr,
        pages: u64,
    ) -> Answer {
        let asid = self.program(asid)?;
        let (pages, rights) = (pages >> 16, pages & 0xffff);
        let range = pages_in(map::STARTUP_VA..map::USER_END, address, pages)?;
        let end = pages.checked_mul(PAGE).and_then(|bytes| pa.checked_add(bytes)).ok_or(errno::EINVAL)?;
        let ram = map::RAM_PA..map::RAM_PA + map::RAM_BYTES;
        let outside = end <= ram.start || pa >= ram.end;
        // The sink is the first page behind the image.
        let image = pa >= ram.start && end <= self.common()?.sink;
        if !(outside || image) || !pa.is_multiple_of(PAGE) {
            return Err(errno::EFAULT);
        }
        if rights & READ == 0 || rights & !(READ | WRITE) != 0 {
            return Err(errno::EINVAL);
        }
        self.make_place(asid, range.clone())?;
        let leaf = if rights & WRITE != 0 { Leaf::FOREIGN_RW } else { Leaf::FOREIGN_R };
        for (va, pa) in range.step_by(PAGE as usize).zip((pa..).step_by(PAGE as usize)) {
            self.put(asid, va, M::Arch::leaf(pa, leaf));
        }
        self.machine.flush(asid);
        Ok(0)
    }

    /// An entry of the table that all dead domains share: where their threads end, when the scheduler is
    /// another one.
    pub fn dead_entry(&mut self, caller: Asid, index: u64, word: u64) -> Answer {
        self.portal_manager(caller)?;
        let in_code = (map::CODE_VA..map::CODE_VA + map::CODE_BYTES).contains(&word);
        if index >= map::TABLE_ENTRIES_PER_PAGE as u64 || !in_code {
            return Err(errno::EINVAL);
        }
        let table = self.dead_table()?;
        self.machine.write(table + index * 8, word);
        Ok(0)
    }

    pub(crate) fn dead_table(&self) -> Answer {
        let l0 = self.table(self.common()?.dead_l1).ok_or(errno::EIO)?;
        Ok(M::Arch::address(self.machine.read(l0)))
    }

    /// With whom a program shares what is scarce.
    pub fn family(&mut self, asid: Asid, family: u64) -> Answer {
        let asid = self.program(asid)?;
        if family >= map::MAX_DOMAINS as u64 {
            return Err(errno::EINVAL);
        }
        self.domain_mut(asid).family = family as u8;
        Ok(0)
    }

    /// Another domain is in this one's place: it may be killed like a program.
    pub fn discharge(&mut self, asid: Asid) -> Answer {
        let asid = self.alive(asid)?;
        self.domain_mut(asid).essential = false;
        Ok(0)
    }
}
