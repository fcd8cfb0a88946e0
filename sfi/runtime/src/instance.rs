//! An instance: a segment with a module in it, and the portals that lead there.

use crate::arena;
use crate::deadline;
use crate::debugger::{self, Named};
use crate::ending;
use crate::error::{Error, system};
use crate::fault::{CallError, Cause};
use crate::imports::Linked;
use crate::layout::*;
use crate::left;
use crate::module::Module;
use crate::opening::{self, Closed, Opening};
use crate::os;
use crate::policy::Policy;
use crate::portal::Portal;
use crate::record::{self as stacks, Given, Mark};
use crate::slots::{self, Slots};
use crate::sys::Resources;
use crate::thread::{self, Inside, MAX_LINKS};
use crate::trap;
use crate::window::{Extent, Windows};
use pebble_portal::fault::record;
use std::ffi::CString;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, TryLockError, Weak};
use std::time::{Duration, Instant};

/// What an instance is to portals, threads and the signal handler. It lives as long as a portal leads to it.
pub struct Shared {
    /// For threads, which outlive it or not.
    pub me: Weak<Shared>,
    pub number: u32,
    pub slot: u32,
    /// Of the segment.
    pub base: u64,
    pub module: Arc<Module>,
    pub linked: Arc<Linked>,
    /// 0, or why no call gets in any more: a [`Cause`], or [`RESETTING`]; or [`ASKED`].
    state: AtomicU32,
    /// 0, or the [`Cause`] for which somebody wants every call in it ended, with all that those calls wait
    /// for.
    ended: AtomicU32,
    /// Threads that are changing the state and the text's rights with it.
    poisoning: AtomicU32,
    /// Held while stacks are made and while all are ended.
    given: Mutex<Out>,
    links: Mutex<Vec<Portal>>,
    /// What it may use of the process.
    pub resources: Resources,
    pub windows: Mutex<Windows>,
    named: OnceLock<Named>,
    pub opening: Opening,
    /// For the constructors.
    time: Duration,
}

const RESETTING: u32 = u32::MAX;
/// Nothing is wrong with it, but its code cannot be executed for a moment: see [`crate::ending`].
const ASKED: u32 = u32::MAX - 1;

/// Bytes of a stack, which is two.
const STACK: u64 = DATA_STACK + RETURN_STACK;

/// The stacks that an instance has given out.
#[derive(Default)]
pub struct Out {
    pub stacks: Vec<Given>,
    unused_data: Vec<u32>,
    made_data: u32,
}

impl Out {
    /// Room for a data stack; with its return stack it counts as the instance's memory.
    pub fn take_data_stack(&mut self, resources: &Resources) -> Result<u32, Error> {
        if self.unused_data.is_empty() && self.made_data == MAX_DATA_STACKS {
            return Err(Error::NoStack);
        }
        resources.charge(STACK)?;
        Ok(self.unused_data.pop().unwrap_or_else(|| {
            self.made_data += 1;
            self.made_data - 1
        }))
    }

    pub fn give_data_stack(&mut self, resources: &Resources, index: u32) {
        self.unused_data.push(index);
        resources.release(STACK);
    }

    /// No thread is in any of the stacks, nor will be. To portals they are dead from now on; those that had
    /// found them alive are waited for.
    fn close(&self, base: u64) -> Result<(), Error> {
        self.stacks.iter().for_each(|given| given.mark.kill());
        os::barrier().map_err(system("waiting for other threads"))?;
        let patience = Instant::now() + Duration::from_secs(1);
        loop {
            // In this order: a thread that is not on its way any more has its frame where the next line
            // looks.
            let moving = self.stacks.iter().any(|given| given.mark.moving());
            let busy = self.stacks.iter().any(|given| given.mark.busy());
            if busy || (moving && Instant::now() > patience) {
                self.stacks.iter().for_each(|given| given.mark.revive(base));
                return Err(Error::Busy);
            }
            if !moving {
                // Nobody asks for calls in it any more: whoever looks for them has the lock, too.
                self.stacks.iter().for_each(|given| ending::settled(given.mark));
                return Ok(());
            }
            std::thread::yield_now();
        }
    }
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
    /// A fresh one, whose constructors have run: those of global objects, if the module is no program. They
    /// may take ten seconds.
    pub fn new(linked: &Arc<Linked>) -> Result<Instance, Error> {
        Instance::new_within(linked, opening::TIME)
    }

    /// The same with another limit for constructors, which holds for those of a reset as well.
    pub fn new_within(linked: &Arc<Linked>, time: Duration) -> Result<Instance, Error> {
        trap::install()?;
        let slots = slots::slots()?;
        let slot = slots.take()?;
        let module = linked.module.clone();
        let resources = Resources::new(&module);
        let shared = Arc::new_cyclic(|me| Shared {
            me: me.clone(),
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            slot,
            base: slots.segment(slot),
            module,
            linked: linked.clone(),
            state: AtomicU32::new(0),
            ended: AtomicU32::new(0),
            poisoning: AtomicU32::new(0),
            given: Mutex::default(),
            links: Mutex::default(),
            resources,
            windows: Mutex::default(),
            named: OnceLock::new(),
            opening: Opening::default(),
            time,
        });
        // From here on dropping it gives the slot back.
        shared.map(slots)?;
        slots.settle(slot, Arc::as_ptr(&shared).cast_mut());
        if let Some(named) = debugger::name(&shared) {
            let _ = shared.named.set(named);
        }
        opening::construct(&shared, time)?;
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

    /// A portal to an exported function, by its specification or, with an empty one, by the module's own if
    /// only words cross by that: what else the caller gives, it says.
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
            return Err(Error::NoLink);
        }
        let portal =
            Portal::between(&self.shared, &to.shared, export, spec, links.len() as u16, index as u16)?;
        slots::slots()?.set_context(self.shared.slot, TABLE + index as u64 * 8, portal.address());
        links.push(portal);
        Ok(())
    }

    /// Ends every call in the instance, from any thread: each comes back with a fault, as do later ones,
    /// until [`Instance::reset`]. A call that waits for one into another domain comes back too: that domain
    /// has 10 ms of processor time to answer, and is ended like this one if it does not.
    pub fn cancel(&self) {
        self.shared.end(Cause::Cancelled);
        deadline::hunt(&self.shared);
    }

    /// Why no call gets in any more.
    pub fn poisoned(&self) -> Option<Cause> {
        self.shared.poisoned()
    }

    /// Memory, stacks and heap as when it was new, and constructors have run once more. Portals stay; no call
    /// may be outstanding. Calls of other threads that come meanwhile wait, as does another reset; a
    /// cancellation that comes meanwhile holds.
    ///
    /// Calls that the thread itself has left by `longjmp` are given up.
    pub fn reset(&self) -> Result<(), Error> {
        let here = 0u8;
        self.reset_from(&raw const here as u64)
    }

    /// The same by a function of the process whose frame begins at `at`.
    pub(crate) fn reset_from(&self, at: u64) -> Result<(), Error> {
        let closed = self.begin_reset(at)?;
        let made = opening::construct(&self.shared, self.shared.time);
        drop(closed);
        made
    }

    /// All of a reset but constructors: until the answer is dropped, other threads wait for those.
    fn begin_reset(&self, at: u64) -> Result<Closed<'_>, Error> {
        let _inside = Inside::enter().ok_or(Error::Reentered)?;
        let slots = slots::slots()?;
        let mut out = self.shared.open_stacks();
        thread::with(|thread| left::give_up(thread, at, &out));
        out.close(self.shared.base)?;
        let before = self.shared.state.swap(RESETTING, Ordering::SeqCst);
        self.shared.ended.store(0, Ordering::SeqCst);
        while self.shared.poisoning.load(Ordering::SeqCst) != 0 {
            std::thread::yield_now();
        }
        let closed = self.shared.opening.close();
        let made = self.shared.renew(slots, &mut out);
        let before = Cause::from_number(before).unwrap_or(Cause::Cancelled);
        let after = if made.is_ok() { 0 } else { before as u32 };
        let state = &self.shared.state;
        let _ = state.compare_exchange(RESETTING, after, Ordering::SeqCst, Ordering::SeqCst);
        self.shared.settle();
        made.map(|()| closed)
    }

    /// Whether a call into it is outstanding on some thread.
    pub fn busy(&self) -> bool {
        self.shared.stacks().stacks.iter().any(|given| given.mark.busy())
    }

    /// Makes the calling thread's stack, which its first call would make otherwise.
    pub fn attach(&self) -> Result<(), Error> {
        crate::thread::attach_to(&self.shared).map(drop)
    }

    /// Lets it use what the policy allows, once; before that it has memory, clock and random numbers. Its
    /// memory begins at an offset, behind the module. If it has more memory than the policy allows, no call
    /// gets in any more: [`Cause::Limit`].
    pub fn grant(&self, policy: &Arc<Policy>, begin: u64) {
        let _ = self.granted(policy, begin);
    }

    pub(crate) fn granted(&self, policy: &Arc<Policy>, begin: u64) -> Result<(), Error> {
        let fits = self.shared.resources.grant(policy, begin.max(self.shared.module.end()));
        if fits.is_err() {
            self.shared.poison(Cause::Limit);
        }
        fits
    }

    /// What it has called `exit` with.
    pub fn exit_code(&self) -> Option<i32> {
        self.shared.resources.exit_code()
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
    /// What is mapped of its context pages.
    pub fn context_bytes(&self) -> u64 {
        page_up(TABLE + self.linked.table.len() as u64 * 8)
    }

    fn map(&self, slots: &Slots) -> Result<(), Error> {
        let table = &self.linked.table;
        slots.set_context(self.slot, 0, self.base);
        slots.set_context(self.slot, 8, self.base + DATA_STACKS_END);
        for (at, portal) in (TABLE..).step_by(8).zip(table) {
            slots.set_context(self.slot, at, *portal);
        }
        slots.map_context(self.slot, self.context_bytes()).map_err(system("mapping a context page"))?;
        self.module.map(self.base).map_err(system("mapping a module"))
    }

    /// The stacks it has given out. Whoever waits here is no portal's caller to those who wait for threads on
    /// their way.
    pub fn stacks(&self) -> MutexGuard<'_, Out> {
        lock(&self.given)
    }

    /// The same for who cannot wait.
    pub fn stacks_now(&self) -> Option<MutexGuard<'_, Out>> {
        match self.given.try_lock() {
            Ok(stacks) => Some(stacks),
            Err(TryLockError::Poisoned(stacks)) => Some(stacks.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Nobody is in it.
    fn renew(&self, slots: &Slots, out: &mut Out) -> Result<(), Error> {
        self.unmap(slots, out, false)?;
        self.resources.reset(self.module.end())?;
        self.map(slots)?;
        for portal in lock(&self.links).iter() {
            slots.set_context(self.slot, TABLE + u64::from(portal.index()) * 8, portal.address());
        }
        Ok(())
    }

    /// Empties the segment; records of its stacks are dead, so their threads come to `attach` again. `last`:
    /// in another instance, if at all.
    fn unmap(&self, slots: &Slots, out: &mut Out, last: bool) -> Result<(), Error> {
        for stack in std::mem::take(out).stacks {
            let home = stack.mark.get(record::HOME) == stack.mark.0;
            match home {
                true if last => stacks::retire(slots, self.slot, stack.mark),
                true => {
                    stack.mark.kill();
                    // The others are no longer this thread's.
                    stack.mark.set(record::SIBLING, 0);
                    stacks::shrink(stack.mark);
                }
                false => stacks::give_return_stack(slots, self.slot, stack.mark),
            }
        }
        let mut windows = lock(&self.windows);
        windows.clear();
        // The null guard is empty anyhow, and of a segment at zero not everybody's to map.
        os::vacate(self.base + CONTEXT, SEGMENT - CONTEXT).map_err(system("emptying a segment"))
    }

    /// The instance that its link leads to.
    pub fn linked(&self, link: u32) -> Option<Arc<Shared>> {
        lock(&self.links).get(link as usize).map(|portal| portal.callee().clone())
    }

    /// From the handler and from other threads: the code is gone, so whoever is in it, or comes back to it,
    /// faults. Whether this was the first reason.
    pub fn poison(&self, cause: Cause) -> bool {
        self.change(|state| matches!(state, 0 | RESETTING | ASKED).then_some(cause as u32))
    }

    /// Poisons it, and says that the calls in it are to end wherever they are.
    pub fn end(&self, cause: Cause) {
        self.ended.store(cause as u32, Ordering::SeqCst);
        self.poison(cause);
    }

    pub fn ended(&self) -> Option<Cause> {
        Cause::from_number(self.ended.load(Ordering::SeqCst))
    }

    /// From now on whoever executes its code comes to [`crate::ending::answer`]. Whether this is so.
    pub fn ask(&self) -> bool {
        self.change(|state| (state == 0).then_some(ASKED));
        self.is_asked()
    }

    pub fn is_asked(&self) -> bool {
        self.state.load(Ordering::SeqCst) == ASKED
    }

    pub fn let_go(&self) {
        self.change(|state| (state == ASKED).then_some(0));
    }

    /// Whether the state has changed, and the text's rights with it.
    fn change(&self, to: impl Fn(u32) -> Option<u32>) -> bool {
        self.poisoning.fetch_add(1, Ordering::SeqCst);
        let changed = self.state.fetch_update(Ordering::SeqCst, Ordering::SeqCst, to).is_ok();
        if changed {
            self.settle();
        }
        self.poisoning.fetch_sub(1, Ordering::SeqCst);
        changed
    }

    /// Gives the text the rights that the state says. Whoever changes the state does so; the last to change
    /// rights has seen the last state.
    fn settle(&self) {
        let text = self.module.text_pages();
        loop {
            let state = self.state.load(Ordering::SeqCst);
            let rights = match state {
                RESETTING => return,
                0 => os::PROT_READ | os::PROT_EXEC,
                ASKED => os::PROT_READ,
                _ => os::PROT_NONE,
            };
            // Pages that exist can change rights; there is no other way to fail.
            let _ = os::protect(self.base + text.start, text.end - text.start, rights);
            if self.state.load(Ordering::SeqCst) == state {
                return;
            }
        }
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
        // SAFETY: the caller has mapped the range; a domain's own threads may write it meanwhile, which bytes
        // survive.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to as *mut u8, bytes.len()) };
        Ok(())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        if let Some(slots) = slots::existing() {
            let pinned = slots::pin();
            slots.settle(self.slot, std::ptr::null_mut());
            drop(pinned);
            let _ = self.unmap(slots, &mut self.stacks(), true);
            slots.give(self.slot);
        }
    }
}

/// A thread ends: its stacks in the slot are nobody's any more. The instance, unless it is gone, or going on
/// another thread.
pub(crate) fn forget_thread(slots: &Slots, slot: u32, home: Mark, instance: Option<Arc<Shared>>) {
    if let Some(shared) = instance {
        let mut given = shared.stacks();
        let (mine, others) = given.stacks.iter().partition(|g: &&Given| g.mark.get(record::HOME) == home.0);
        let mine: Vec<Given> = mine;
        given.stacks = others;
        for stack in mine {
            let begin = stacks::data_stack_end(&shared, stack.data) - DATA_STACK;
            let _ = os::vacate(begin, DATA_STACK);
            given.give_data_stack(&shared.resources, stack.data);
            if stack.mark != home {
                stacks::give_return_stack(slots, slot, stack.mark);
            }
        }
        stacks::retire(slots, slot, home);
    }
    stacks::give_place(slots, slot, home);
}

/// Portal code that goes when its last user does.
pub(crate) struct Code(pub u64);

impl Drop for Code {
    fn drop(&mut self) {
        arena::release(self.0);
    }
}
