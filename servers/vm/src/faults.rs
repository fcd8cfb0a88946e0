//! Faults: somebody answers for the address, or the domain dies and the process server is told why.
//!
//! A domain dies of its first fault, so it has at most one record, which it keeps until that is read or the
//! domain is forgotten.

use crate::ranges::Turn;
use crate::space::leaf_slot;
use crate::stacks::Growth;
use crate::{Answer, Ask, Machine, Vm};
use pebble_abi::errno::{self, Errno};
use pebble_abi::fault::Cause;
use pebble_abi::map::{self, PAGE};
use pebble_abi::sys;
use pebble_abi::words::{Asid, ThreadId, VirtAddr};
use pebble_arch::{Arch, Reach};

/// Why a domain died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    pub cause: Cause,
    pub thread: u8,
    /// The faulting address, the portal index, the instruction; of what the processor says besides, its
    /// number.
    pub value: u64,
    /// Of the instruction.
    pub address: u64,
}

/// What has become of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The domain was dead already, or the page has come meanwhile.
    Settled,
    /// It is dead, and there is news for the process server.
    Died,
    /// A handler is to be asked, the lock released, and [`Vm::answered`] told.
    Ask(Ask),
    /// Others of its family are being asked for: the thread may fault again.
    Later,
}

/// What is found where a page is wanted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Page {
    Missing,
    There,
    /// It was promised, and has come now.
    Comes,
}

impl<M: Machine> Vm<M> {
    /// A thread faulted in a domain. `code`: what the processor says why; `called`: the index that it has
    /// invoked, if it is that.
    pub fn fault(
        &mut self,
        code: u64,
        value: u64,
        VirtAddr(address): VirtAddr,
        asid: Asid,
        thread: ThreadId,
        called: u64,
    ) -> Outcome {
        let Ok(asid) = self.alive(asid) else { return Outcome::Settled };
        let index = called & (map::TABLE_ENTRIES as u64 - 1);
        let (cause, value) = M::Arch::cause(code, value, address);
        let (cause, value) = match cause {
            Cause::Call if self.held(asid, index) => (Cause::InvocationOverflow, index),
            Cause::Call => (cause, called),
            Cause::Fetch | Cause::Load | Cause::Store => {
                if self.find(asid, cause, value) != Page::Missing {
                    return Outcome::Settled;
                }
                match self.ask(asid, thread.get() as u8, value, cause) {
                    Some(Turn::Ask(ask)) => return Outcome::Ask(ask),
                    Some(Turn::Later) => return Outcome::Later,
                    Some(Turn::Refused) => (Cause::Handlers, value),
                    None if cause == Cause::Fetch => (cause, value),
                    None => match self.grow_stack(asid, value) {
                        Growth::Grown => return Outcome::Settled,
                        Growth::Full => (Cause::StackOverflow, value),
                        Growth::NoMemory => (Cause::NoMemory, value),
                        Growth::NoStack => (cause, value),
                    },
                }
            }
            Cause::Illegal if M::Arch::ILLEGAL_AT => (cause, self.instruction(asid, value)),
            _ => (cause, value),
        };
        self.die(asid, Fault { cause, thread: thread.get() as u8, value, address })
    }

    /// Brings the page that a load at this address would bring, of a stack or heap, without a fault: 1, or 0
    /// if it is there.
    pub fn touch(&mut self, caller: Asid, VirtAddr(address): VirtAddr) -> Answer {
        let asid = self.alive(caller)?;
        match self.find(asid, Cause::Load, address) {
            Page::There => return Ok(0),
            Page::Comes => return Ok(1),
            Page::Missing => {}
        }
        match self.grow_stack(asid, address) {
            Growth::Grown => Ok(1),
            _ => Err(errno::EFAULT),
        }
    }

    /// A handler has been asked. Whatever it says, a page that is there now saves the domain, and nothing
    /// else: of two handlers that are asked about one page for two threads, the second can provide none.
    pub fn answered(&mut self, ask: &Ask, VirtAddr(address): VirtAddr, thread: ThreadId) -> Outcome {
        self.asked(ask);
        let find = |vm: &mut Self| vm.find(ask.asid, ask.cause, ask.address);
        if self.alive(ask.asid.into()).is_err() || find(self) != Page::Missing {
            return Outcome::Settled;
        }
        let fault = Fault { cause: ask.cause, thread: thread.get() as u8, value: ask.address, address };
        self.die(ask.asid, fault)
    }

    fn die(&mut self, asid: u16, fault: Fault) -> Outcome {
        self.keep_dump(asid, fault.thread);
        if self.kill(asid).is_err() {
            return Outcome::Settled;
        }
        let d = self.domain_mut(asid);
        (d.cause, d.culprit, d.value, d.address) =
            (Some(fault.cause), fault.thread, fault.value, fault.address);
        Outcome::Died
    }

    /// What a domain has tried to execute.
    fn instruction(&self, asid: u16, va: u64) -> u64 {
        let word = self.page(asid, va).map_or(0, |page| self.machine.read(page + va % PAGE / 8 * 8));
        word >> (va % 8 * 8) & 0xffff_ffff
    }

    /// The page that user mode has faulted at, if it may do there what it has tried.
    #[inline(never)]
    fn find(&mut self, asid: u16, cause: Cause, va: u64) -> Page {
        let Some(l0) = self.l0(asid, va).filter(|_| va < map::USER_END) else { return Page::Missing };
        let word = leaf_slot(l0, va);
        let entry = self.machine.read(word);
        if !M::Arch::is_valid(entry) {
            let comes = entry == M::Arch::PROMISED && self.keep_promise(asid, word);
            return if comes { Page::Comes } else { Page::Missing };
        }
        let permitted = M::Arch::read(entry).is_some_and(|leaf| {
            leaf.reach == Reach::User
                && match cause {
                    Cause::Fetch => leaf.execute,
                    Cause::Load => true,
                    _ => leaf.write,
                }
        });
        if !permitted {
            return Page::Missing;
        }
        self.machine.flush(asid);
        Page::There
    }

    /// Whether the portal at this index leads anywhere but into a fault: the nucleus's own entries are no
    /// portals.
    fn held(&self, asid: u16, index: u64) -> bool {
        let Some(page) = self.page(asid, map::TABLE_VA + index * 8) else { return false };
        let word = self.machine.read(page + index * 8 % PAGE);
        let raises = [sys::UNWIND as u64, sys::THREAD_END as u64];
        let nucleus = index <= sys::INTERRUPT as u64 || raises.contains(&index);
        !nucleus && self.common().is_ok_and(|c| word != c.code.none)
    }

    /// A domain that died of a fault nobody has asked about yet. What was kept of those told before is gone.
    pub fn fault_next(&mut self) -> Result<(u16, Fault), Errno> {
        self.drop_dumps();
        for asid in self.numbers() {
            let d = self.domain_mut(asid);
            if let Some(cause) = d.cause.take() {
                return Ok((asid, Fault { cause, thread: d.culprit, value: d.value, address: d.address }));
            }
        }
        Err(errno::ENOENT)
    }
}
