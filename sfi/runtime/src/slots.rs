//! The reservation: one stretch of address space, cut into slots, that belongs to fault domains alone.
//!
//! Problem: guard zones must stay empty whatever the process maps, and the signal handler must know at once
//! whose address it was. Strategy: one inaccessible mapping made once, indexed by shifting; a table of
//! pointers to the instances in it. A process may ask for the reservation to begin at the bottom of its
//! address space: then the first slot's segment lies at address zero, where a processor adds a segment base
//! at no cost. A slot's return stacks outlive the instances in it: a thread's current mark points into one of
//! them, and the comparison that finds it out of date must not fault. So their places stay that thread's
//! until it ends, with a dead record in each; and all of a slot's dead stacks are one mapping, of a file that
//! holds nothing else, so that mappings are as many as instances and threads that are alive.

use crate::error::{Error, system};
use crate::fork;
use crate::instance::Shared;
use crate::layout::*;
use crate::os;
use pebble_portal::fault::record;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock};

/// What a slot keeps whoever is in it.
#[derive(Default)]
pub struct Slot {
    /// Return stacks that are nobody's, and dead.
    pub unused: Vec<u32>,
    /// Return stacks ever made.
    pub made: u32,
}

pub struct Slots {
    /// Of the first slot; 4 GiB below zero where its segment lies at zero.
    begin: u64,
    /// Of the area for portal code.
    pub code: u64,
    pub count: usize,
    free: Mutex<Vec<u32>>,
    pub slots: Vec<Mutex<Slot>>,
    instances: Vec<AtomicPtr<Shared>>,
    /// Context pages of all slots: domains read them in their segments, the runtime writes them here.
    contexts: OwnedFd,
    contexts_at: u64,
    /// As long as the return stacks of a slot, with a dead record at the end of each that has been used. None
    /// if files may not be so long.
    dead: Option<OwnedFd>,
    process: u32,
}

static SLOTS: OnceLock<Slots> = OnceLock::new();
static AT_ZERO: AtomicBool = AtomicBool::new(false);

/// From now on (before the first instance) the first slot's segment is to lie at address zero: its accesses
/// are quicker. If the process uses the lowest 12 GiB itself, all slots lie elsewhere.
pub fn segment_at_zero() {
    AT_ZERO.store(true, Ordering::Relaxed);
}

/// Bit of AT_HWCAP2: user mode may use the FSGSBASE instructions.
const HWCAP2_FSGSBASE: u64 = 2;

/// Whether code outside the kernel can set segment bases. Portals do so where a thread may be in several
/// instances; without it, a process has one slot, and the kernel sets the base when a thread first comes.
pub fn sets_bases() -> bool {
    // SAFETY: reads the auxiliary vector.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & HWCAP2_FSGSBASE != 0 }
}

fn most_slots() -> usize {
    if sets_bases() { MAX_SLOTS } else { 1 }
}

/// As many slots as there is room for: their begin, the place for portal code, and their number. Domains know
/// where they are; so that it tells them nothing of where the kernel has put the process's libraries, stack
/// and heap, they are put where a random number says.
fn anywhere() -> Result<(u64, u64, usize), Error> {
    let mut count = most_slots();
    loop {
        let bytes = (count as u64 + 1) * SLOT;
        match somewhere(bytes).map_or_else(|| os::reserve(bytes), Ok) {
            Ok(at) => {
                let begin = at.next_multiple_of(SLOT);
                let end = begin + count as u64 * SLOT;
                // What is left of one slot lies behind them or before them.
                let behind = at + bytes - end >= GUARD + CODE;
                return Ok((begin, if behind { end + GUARD } else { at }, count));
            }
            Err(_) if count > 1 => count /= 2,
            Err(e) => {
                return Err(system("reserving 32 GiB of address space, the least that one instance takes")(
                    e,
                ));
            }
        }
    }
}

/// New address space in the lower half, in which the kernel puts nothing of a process's own unless it is
/// asked to; none if there is no room.
fn somewhere(bytes: u64) -> Option<u64> {
    const TRIES: usize = 16;
    let places = HALF.end.checked_sub(HALF.start + bytes)? / SLOT;
    (0..TRIES).find_map(|_| {
        let mut random = [0; 8];
        // SAFETY: writes eight bytes of ours.
        let got = unsafe { libc::getrandom(random.as_mut_ptr().cast(), random.len(), 0) };
        let at = HALF.start + u64::from_le_bytes(random) % (places + 1) * SLOT;
        (got == 8 && os::reserve_at(at, bytes).is_ok()).then_some(at)
    })
}

/// Below position-independent programs.
const HALF: std::ops::Range<u64> = 1 << 40..84 << 40;

/// The same from the bottom of the address space, if all of the first slot is free there.
fn lowest() -> Option<(u64, u64, usize)> {
    let from = CONTEXT;
    // Below, the kernel lets nobody map some pages: they are a guard already.
    let null_guard = (0..from).step_by(PAGE as usize).find_map(|at| match os::reserve_at(at, from - at) {
        Err(e) if e.kind() == std::io::ErrorKind::PermissionDenied => None,
        other => Some(other.map(|()| at)),
    });
    let null_guard = null_guard.unwrap_or(Ok(from)).ok()?;
    let mut counts = std::iter::successors(Some(most_slots()), |n| Some(n / 2)).take_while(|n| *n > 0);
    let count = counts.find(|n| os::reserve_at(from, *n as u64 * SLOT + CODE - from).is_ok());
    if count.is_none() && null_guard < from {
        os::unmap(null_guard, from - null_guard);
    }
    let count = count?;
    Some((0u64.wrapping_sub(GUARD), count as u64 * SLOT, count))
}

fn make() -> Result<Slots, Error> {
    fork::prepare().map_err(system("preparing for forks"))?;
    os::register_for_barriers().map_err(system("asking the kernel for barriers (membarrier)"))?;
    // Last of all, since it is the largest: what is made before it is given back if there is no room.
    let bytes = most_slots() as u64 * CONTEXT_BYTES;
    let contexts = os::memory_file(c"pebble-sfi-contexts", bytes).map_err(system("making context pages"))?;
    let contexts_at = os::anywhere(bytes, os::PROT_READ | os::PROT_WRITE, &contexts)
        .map_err(system("mapping context pages"))?;
    let at_zero = if AT_ZERO.load(Ordering::Relaxed) { lowest() } else { None };
    let (begin, code, count) =
        at_zero.map_or_else(anywhere, Ok).inspect_err(|_| os::unmap(contexts_at, bytes))?;
    Ok(Slots {
        begin,
        code,
        count,
        free: Mutex::new((0..count as u32).rev().collect()),
        slots: (0..count).map(|_| Mutex::default()).collect(),
        instances: (0..count).map(|_| AtomicPtr::default()).collect(),
        contexts,
        contexts_at,
        dead: os::may_be_as_long(SLOT - GUARD - RETURN_STACKS)
            .then(|| os::memory_file(c"pebble-sfi-dead", SLOT - GUARD - RETURN_STACKS).ok())
            .flatten(),
        process: std::process::id(),
    })
}

/// Made at the first use.
pub fn slots() -> Result<&'static Slots, Error> {
    static MAKING: Mutex<()> = Mutex::new(());
    if let Some(slots) = SLOTS.get() {
        // Context pages and portal code are the parent's too.
        return if slots.process == std::process::id() { Ok(slots) } else { Err(Error::Forked) };
    }
    let _one = MAKING.lock().unwrap_or_else(|e| e.into_inner());
    if SLOTS.get().is_none() {
        let made = make()?;
        let _ = SLOTS.set(made);
    }
    SLOTS.get().ok_or(Error::NoSlot)
}

/// While it is held, no instance that [`Slots::instance`] has named goes.
pub fn pin() -> MutexGuard<'static, ()> {
    static PINNED: Mutex<()> = Mutex::new(());
    PINNED.lock().unwrap_or_else(|e| e.into_inner())
}

/// For the signal handler: no lock, and nothing is made.
pub fn existing() -> Option<&'static Slots> {
    SLOTS.get()
}

impl Slots {
    pub fn take(&self) -> Result<u32, Error> {
        let none = if sets_bases() { Error::NoSlot } else { Error::NoSegmentBase };
        self.free.lock().unwrap_or_else(|e| e.into_inner()).pop().ok_or(none)
    }

    pub fn give(&self, slot: u32) {
        self.free.lock().unwrap_or_else(|e| e.into_inner()).push(slot);
    }

    pub fn in_use(&self) -> usize {
        self.count - self.free.lock().unwrap_or_else(|e| e.into_inner()).len()
    }

    /// Base of a slot's segment.
    pub fn segment(&self, slot: u32) -> u64 {
        self.begin.wrapping_add(u64::from(slot) * SLOT + GUARD)
    }

    /// The slot whose stretch holds the address.
    pub fn slot_of(&self, address: u64) -> Option<u32> {
        let slot = address.wrapping_sub(self.begin) >> SLOT_SHIFT;
        // Below a segment at zero lies the other end of the address space.
        let end = self.begin.wrapping_add(self.count as u64 * SLOT);
        (slot < self.count as u64 && address < end).then_some(slot as u32)
    }

    /// The slot of a segment by the base's upper half.
    pub fn by_base(&self, upper: u32) -> Option<u32> {
        self.slot_of(u64::from(upper) << 32)
    }

    pub fn settle(&self, slot: u32, instance: *mut Shared) {
        if let Some(place) = self.instances.get(slot as usize) {
            place.store(instance, Ordering::Release);
        }
    }

    /// Null, or an instance that lives at least until the slot is given back.
    pub fn instance(&self, slot: u32) -> *mut Shared {
        self.instances.get(slot as usize).map_or(std::ptr::null_mut(), |i| i.load(Ordering::Acquire))
    }

    /// Mark of a return stack: the address of its last byte.
    pub fn mark(&self, slot: u32, stack: u32) -> u64 {
        self.segment(slot) + RETURN_STACKS + (u64::from(stack) + 1) * RETURN_STACK - 1
    }

    /// Number of a return stack of a slot, by its mark.
    pub fn stack(&self, slot: u32, mark: u64) -> u32 {
        ((mark - self.segment(slot) - RETURN_STACKS) / RETURN_STACK) as u32
    }

    /// Puts a dead record, and no memory, in the place of a return stack that nobody is in nor will be.
    /// Whether this could be done.
    pub fn retire(&self, slot: u32, mark: u64) -> bool {
        let Some(dead) = &self.dead else { return false };
        let at = u64::from(self.stack(slot, mark)) * RETURN_STACK;
        let field = at + RETURN_STACK - (record::BYTES - record::SLOT) as u64;
        os::write_at(dead, field, &u64::MAX.to_le_bytes()).is_ok()
            && os::shared(mark - (RETURN_STACK - 1), RETURN_STACK, os::PROT_READ, dead, at).is_ok()
    }

    /// Whether an address lies in return stacks, and in which slot.
    pub fn return_stack(&self, address: u64) -> Option<u32> {
        let slot = self.slot_of(address)?;
        (address >= self.segment(slot) + RETURN_STACKS).then_some(slot)
    }

    pub fn map_context(&self, slot: u32, bytes: u64) -> std::io::Result<()> {
        let offset = u64::from(slot) * CONTEXT_BYTES;
        os::shared(self.segment(slot) + CONTEXT, bytes, os::PROT_READ, &self.contexts, offset)
    }

    /// Context pages in use, of which a forked child has its own. For who has pinned instances.
    pub fn pieces(&self) -> impl Iterator<Item = os::Piece> {
        (0..self.count as u32).filter_map(|slot| {
            // SAFETY: null, or an instance, which stays while it is pinned.
            let instance = unsafe { self.instance(slot).as_ref() }?;
            let from = self.contexts_at + u64::from(slot) * CONTEXT_BYTES;
            let (to, bytes) = (self.segment(slot) + CONTEXT, instance.context_bytes());
            Some(os::Piece { from, to, bytes, prot: os::PROT_READ })
        })
    }

    /// A word of the slot's context page.
    pub fn set_context(&self, slot: u32, at: u64, value: u64) {
        assert!(at.is_multiple_of(8) && at < CONTEXT_BYTES && (slot as usize) < self.count, "a context word");
        let word = (self.contexts_at + u64::from(slot) * CONTEXT_BYTES + at) as *mut u64;
        // SAFETY: inside the mapping made in `make`, aligned, and never unmapped; domains only read it,
        // whenever they like.
        unsafe { word.write_volatile(value) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bottom_is_taken_whole_or_not_at_all() {
        // The process's own pages: in the segment, behind it, where the return stacks are.
        for own in [0x40_0000, SEGMENT, RETURN_STACKS] {
            os::reserve_at(own, PAGE).unwrap();
            assert_eq!(lowest(), None, "{own:#x}");
            os::unmap(own, PAGE);
        }
        // Nothing was kept.
        os::reserve_at(CONTEXT, RETURN_STACKS).unwrap();
        os::unmap(CONTEXT, RETURN_STACKS);
        let (begin, code, count) = lowest().unwrap();
        assert_eq!(begin.wrapping_add(GUARD), 0);
        let end = begin.wrapping_add(count as u64 * SLOT);
        assert_eq!(code, end + GUARD);
        for at in [CONTEXT, SEGMENT, RETURN_STACKS, end - PAGE, code, code + CODE - PAGE] {
            assert!(os::reserve_at(at, PAGE).is_err(), "{at:#x}");
        }
        os::unmap(CONTEXT, code + CODE - CONTEXT);
    }
}
