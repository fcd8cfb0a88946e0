//! An instance: a segment with a module in it, and the portals that lead there.

use crate::arena;
use crate::debugger::{self, Named};
use crate::error::{Error, system};
use crate::fault::{self, CallError, Cause};
use crate::imports::Linked;
use crate::layout::*;
use crate::module::Module;
use crate::os;
use crate::policy::Policy;
use crate::portal::Portal;
use crate::record::{self as stacks, Given, Mark};
use crate::slots::{self, Slots};
use crate::sys::Resources;
use crate::thread::MAX_LINKS;
use crate::window::{Extent, Windows};
use pebble_portal::sfi::record;
use std::ffi::CString;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// What an instance is to portals, threads and the signal handler. It lives as long as a portal leads to it.
pub struct Shared {
    pub number: u32,
    pub slot: u32,
    /// Of the segment.
    pub base: u64,
    pub module: Arc<Module>,
    pub linked: Arc<Linked>,
    /// 0, or why no call gets in any more: a [`Cause`].
    state: AtomicU32,
    given: Mutex<Out>,
    links: Mutex<Vec<Portal>>,
    /// What it may use of the process, if it may use anything.
    pub resources: OnceLock<Resources>,
    pub windows: Mutex<Windows>,
    named: OnceLock<Named>,
}

#[derive(Default)]
struct Out {
    stacks: Vec<Given>,
    unused_data: Vec<u32>,
    made_data: u32,
}

/// A fault domain with a module in it. Cheap to clone; gone when the last clone and the last portal are.
#[derive(Clone)]
pub struct Instance {
    pub(crate) shared: Arc<Shared>,
}

static NUMBERS: AtomicU32 = AtomicU32::new(1);

pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Instance {
    pub fn new(linked: &Arc<Linked>) -> Result<Instance, Error> {
        fault::install()?;
        let slots = slots::slots()?;
        let slot = slots.take()?;
        let module = linked.module.clone();
        let shared = Arc::new(Shared {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            slot,
            base: slots.segment(slot),
            module,
            linked: linked.clone(),
            state: AtomicU32::new(0),
            given: Mutex::default(),
            links: Mutex::default(),
            resources: OnceLock::new(),
            windows: Mutex::default(),
            named: OnceLock::new(),
        });
        // From here on dropping it gives the slot back.
        shared.map(slots)?;
        slots.settle(slot, Arc::as_ptr(&shared).cast_mut());
        if let Some(named) = debugger::name(&shared) {
            let _ = shared.named.set(named);
        }
        Ok(Instance { shared })
    }

    pub fn number(&self) -> u32 {
        self.shared.number
    }

    /// Address of the segment.
    pub fn base(&self) -> u64 {
        self.shared.base
    }

    pub fn module(&self) -> &Arc<Module> {
        &self.shared.module
    }

    /// A portal to an exported function, by its specification or, with an empty one, by the module's own.
    pub fn portal(&self, export: &str, spec: &str) -> Result<Portal, Error> {
        Portal::into_domain(&self.shared, export, spec, 0, &[])
    }

    /// The same whose windows reach as far as is said.
    pub fn portal_over(&self, export: &str, spec: &str, extents: &[Extent]) -> Result<Portal, Error> {
        Portal::into_domain(&self.shared, export, spec, 0, extents)
    }

    /// The same with a constant for `c`.
    pub fn portal_with(&self, export: &str, spec: &str, constant: u64) -> Result<Portal, Error> {
        Portal::into_domain(&self.shared, export, spec, constant, &[])
    }

    /// Lets this instance's import lead directly to another instance's export.
    pub fn connect(&self, import: &str, to: &Instance, export: &str, spec: &str) -> Result<(), Error> {
        let imports = &self.shared.module.imports;
        let index = imports.iter().position(|i| i.name == import);
        let index = index.ok_or_else(|| Error::NoImport(vec![import.into()]))?;
        let mut links = lock(&self.shared.links);
        if links.len() == MAX_LINKS {
            return Err(Error::NoStack);
        }
        let portal =
            Portal::between(&self.shared, &to.shared, export, spec, links.len() as u16, index as u16)?;
        slots::slots()?.set_context(self.shared.slot, TABLE + index as u64 * 8, portal.address());
        links.push(portal);
        Ok(())
    }

    /// Ends every call in the instance, from any thread: each comes back with a fault, as do later ones, until [`Instance::reset`].
    pub fn cancel(&self) {
        self.shared.poison(Cause::Cancelled);
    }

    /// Why no call gets in any more.
    pub fn poisoned(&self) -> Option<Cause> {
        self.shared.poisoned()
    }

    /// Memory, stacks and heap as when it was new. Portals stay; no call may be outstanding.
    pub fn reset(&self) -> Result<(), Error> {
        let slots = slots::slots()?;
        if self.busy() {
            return Err(Error::Busy);
        }
        self.shared.unmap(slots)?;
        if let Some(resources) = self.shared.resources.get() {
            resources.reset(self.shared.module.end());
        }
        self.shared.map(slots)?;
        for portal in lock(&self.shared.links).iter() {
            slots.set_context(self.shared.slot, TABLE + u64::from(portal.index()) * 8, portal.address());
        }
        self.shared.state.store(0, Ordering::Release);
        Ok(())
    }

    /// Whether a call into it is outstanding on some thread.
    pub fn busy(&self) -> bool {
        lock(&self.shared.given).stacks.iter().any(|given| given.mark.busy())
    }

    /// Makes the calling thread's stack, which its first call would make otherwise.
    pub fn attach(&self) -> Result<(), Error> {
        crate::thread::attach_to(&self.shared).map(drop)
    }

    /// Lets it use what the policy allows, once. Its memory begins at an offset, behind the module.
    pub fn grant(&self, policy: &Arc<Policy>, begin: u64) {
        let begin = begin.max(self.shared.module.end());
        self.shared.resources.get_or_init(|| Resources::new(policy, begin));
    }

    /// What it has called `exit` with.
    pub fn exit_code(&self) -> Option<i32> {
        self.shared.resources.get()?.exit_code()
    }

    pub fn read(&self, at: u64, to: &mut [u8]) -> Result<(), Error> {
        self.shared.read(at, to)
    }

    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        self.shared.write(at, bytes)
    }

    /// The text at an address of the domain's, up to its NUL, which must come within so many bytes.
    pub fn text(&self, at: u64, most: usize) -> Result<CString, CallError> {
        let mut text = Vec::new();
        while text.len() < most {
            let here = at.wrapping_add(text.len() as u64);
            // To the end of the page: the next one may not be there.
            let room = (PAGE - here % PAGE).min((most - text.len()) as u64) as usize;
            let mut piece = vec![0; room];
            self.shared.read(here, &mut piece).map_err(|_| CallError::NoText)?;
            let end = piece.iter().position(|byte| *byte == 0);
            text.extend(&piece[..end.unwrap_or(room)]);
            if end.is_some() {
                return CString::new(text).map_err(|_| CallError::NoText);
            }
        }
        Err(CallError::NoText)
    }
}

impl Shared {
    fn map(&self, slots: &Slots) -> Result<(), Error> {
        let table = &self.linked.table;
        let bytes = page_up(TABLE + table.len() as u64 * 8);
        slots.set_context(self.slot, 0, self.base);
        slots.set_context(self.slot, 8, self.base + DATA_STACKS_END);
        for (at, portal) in (TABLE..).step_by(8).zip(table) {
            slots.set_context(self.slot, at, *portal);
        }
        slots.map_context(self.slot, bytes).map_err(system("mapping a context page"))?;
        self.module.map(self.base).map_err(system("mapping a module"))
    }

    /// Empties the segment; records of its stacks are dead, so their threads come to `attach` again.
    fn unmap(&self, slots: &Slots) -> Result<(), Error> {
        let mut given = lock(&self.given);
        for stack in std::mem::take(&mut *given).stacks {
            let home = stack.mark.get(record::HOME) == stack.mark.0;
            match home {
                true => {
                    stack.mark.kill();
                    stacks::shrink(stack.mark);
                }
                false => stacks::give_return_stack(slots, self.slot, stack.mark),
            }
        }
        lock(&self.windows).clear();
        os::vacate(self.base, SEGMENT).map_err(system("emptying a segment"))
    }

    pub fn take_data_stack(&self) -> Result<u32, Error> {
        let mut given = lock(&self.given);
        if let Some(index) = given.unused_data.pop() {
            return Ok(index);
        }
        if given.made_data == MAX_DATA_STACKS {
            return Err(Error::NoStack);
        }
        given.made_data += 1;
        Ok(given.made_data - 1)
    }

    pub fn give_out(&self, stack: Given) {
        lock(&self.given).stacks.push(stack);
    }

    /// The instance that its link leads to.
    pub fn linked(&self, link: u32) -> Option<Arc<Shared>> {
        lock(&self.links).get(link as usize).map(|portal| portal.callee().clone())
    }

    /// From the handler and from other threads: the code is gone, so whoever is in it, or comes back to it, faults.
    /// Whether this was the first reason.
    pub fn poison(&self, cause: Cause) -> bool {
        let first = self.state.compare_exchange(0, cause as u32, Ordering::AcqRel, Ordering::Acquire).is_ok();
        let text = self.module.text_pages();
        // Pages that exist can lose rights; there is no other way to fail.
        let _ = os::protect(self.base + text.start, text.end - text.start, os::PROT_NONE);
        first
    }

    pub fn poisoned(&self) -> Option<Cause> {
        Cause::from_number(self.state.load(Ordering::Acquire))
    }

    fn range(&self, at: u64, bytes: usize) -> Result<u64, Error> {
        let offset = if at >= self.base { at - self.base } else { at };
        let end = offset.checked_add(bytes as u64).ok_or(Error::OutOfBounds)?;
        if offset < CONTEXT || end > DATA_STACKS_END {
            Err(Error::OutOfBounds)
        } else {
            Ok(self.base + offset)
        }
    }

    /// Reads the segment at an address or offset; what is not mapped is an error, found by the kernel.
    pub fn read(&self, at: u64, to: &mut [u8]) -> Result<(), Error> {
        let from = self.range(at, to.len())?;
        let local = libc::iovec { iov_base: to.as_mut_ptr().cast(), iov_len: to.len() };
        let remote = libc::iovec { iov_base: from as *mut _, iov_len: to.len() };
        // SAFETY: copies within this process; the kernel checks the segment's side.
        let n = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
        if n == to.len() as isize { Ok(()) } else { Err(Error::OutOfBounds) }
    }

    pub fn write(&self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let to = self.range(at, bytes.len())?;
        let local = libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() };
        let remote = libc::iovec { iov_base: to as *mut _, iov_len: bytes.len() };
        // SAFETY: as in `read`; the range is in the segment, so nothing of the process changes.
        let n = unsafe { libc::process_vm_writev(libc::getpid(), &local, 1, &remote, 1, 0) };
        if n == bytes.len() as isize { Ok(()) } else { Err(Error::OutOfBounds) }
    }

    /// Writes memory that this crate has just mapped writable.
    pub fn poke(&self, at: u64, bytes: &[u8]) -> Result<(), Error> {
        let to = self.range(at, bytes.len())?;
        // SAFETY: the caller has mapped the range; a domain's own threads may write it meanwhile, which bytes survive.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(slots) = slots::existing() {
            slots.settle(self.slot, std::ptr::null_mut());
            let _ = self.unmap(slots);
            slots.give(self.slot);
        }
    }
}

/// A thread ends: its stacks in the slot are nobody's any more.
pub(crate) fn forget_thread(slots: &Slots, slot: u32, home: Mark) {
    let shared = slots.instance(slot);
    let alive = home.slot() != stacks::DEAD && !shared.is_null();
    if alive {
        // SAFETY: the record is not dead, so the instance is not gone; its owner keeps it while a thread that uses it ends.
        let shared = unsafe { &*shared };
        let mut given = lock(&shared.given);
        let (mine, others) = given.stacks.iter().partition(|g: &&Given| g.mark.get(record::HOME) == home.0);
        let mine: Vec<Given> = mine;
        given.stacks = others;
        for stack in mine {
            let begin = stacks::data_stack_end(shared, stack.data) - DATA_STACK;
            let _ = os::vacate(begin, DATA_STACK);
            given.unused_data.push(stack.data);
            if stack.mark != home {
                stacks::give_return_stack(slots, slot, stack.mark);
            }
        }
    }
    stacks::give_return_stack(slots, slot, home);
}

/// Portal code that goes when its last user does.
pub(crate) struct Code(pub u64);

impl Drop for Code {
    fn drop(&mut self) {
        arena::release(self.0);
    }
}
