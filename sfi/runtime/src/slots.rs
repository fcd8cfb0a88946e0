//! The reservation: one stretch of address space, cut into slots, that belongs to fault domains alone.
//!
//! Problem: guard zones must stay empty whatever the process maps, and the signal handler must know at once whose address it
//! was. Strategy: one inaccessible mapping made once, indexed by shifting; a table of pointers to the instances in it.
//! A slot's return stacks outlive the instances in it: a thread's current mark points into one of them, and the comparison that
//! finds it out of date must not fault. They are marked dead instead, and used again by the same thread.

use crate::error::{Error, system};
use crate::instance::Shared;
use crate::layout::*;
use crate::os;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Mutex, OnceLock};

/// What a slot keeps whoever is in it.
#[derive(Default)]
pub struct Slot {
    /// Return stacks that are mapped and nobody's.
    pub unused: Vec<u32>,
    /// Return stacks ever made.
    pub made: u32,
}

pub struct Slots {
    pub begin: u64,
    pub count: usize,
    free: Mutex<Vec<u32>>,
    pub slots: Vec<Mutex<Slot>>,
    instances: Vec<AtomicPtr<Shared>>,
    /// Context pages of all slots: domains read them in their segments, the runtime writes them here.
    contexts: OwnedFd,
    contexts_at: u64,
    process: u32,
}

static SLOTS: OnceLock<Slots> = OnceLock::new();

/// Bit of AT_HWCAP2: user mode may use the FSGSBASE instructions.
const HWCAP2_FSGSBASE: u64 = 2;

fn make() -> Result<Slots, Error> {
    // SAFETY: reads the auxiliary vector.
    if unsafe { libc::getauxval(libc::AT_HWCAP2) } & HWCAP2_FSGSBASE == 0 {
        return Err(Error::NoSegmentBase);
    }
    let mut count = MAX_SLOTS;
    let at = loop {
        match os::reserve((count as u64 + 1) * SLOT) {
            Ok(at) => break at,
            Err(_) if count > 16 => count /= 2,
            Err(e) => return Err(system("reserving address space")(e)),
        }
    };
    let begin = at.next_multiple_of(SLOT);
    let bytes = count as u64 * CONTEXT_BYTES;
    let contexts = os::memory_file(c"pebble-sfi-contexts", bytes).map_err(system("making context pages"))?;
    let contexts_at = os::anywhere(bytes, os::PROT_READ | os::PROT_WRITE, &contexts)
        .map_err(system("mapping context pages"))?;
    Ok(Slots {
        begin,
        count,
        free: Mutex::new((0..count as u32).rev().collect()),
        slots: (0..count).map(|_| Mutex::default()).collect(),
        instances: (0..count).map(|_| AtomicPtr::default()).collect(),
        contexts,
        contexts_at,
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

/// For the signal handler: no lock, and nothing is made.
pub fn existing() -> Option<&'static Slots> {
    SLOTS.get()
}

impl Slots {
    pub fn take(&self) -> Result<u32, Error> {
        self.free.lock().unwrap_or_else(|e| e.into_inner()).pop().ok_or(Error::NoSlot)
    }

    pub fn give(&self, slot: u32) {
        self.free.lock().unwrap_or_else(|e| e.into_inner()).push(slot);
    }

    pub fn in_use(&self) -> usize {
        self.count - self.free.lock().unwrap_or_else(|e| e.into_inner()).len()
    }

    /// Base of a slot's segment.
    pub fn segment(&self, slot: u32) -> u64 {
        self.begin + u64::from(slot) * SLOT + GUARD
    }

    /// The slot whose stretch holds the address.
    pub fn slot_of(&self, address: u64) -> Option<u32> {
        let slot = address.checked_sub(self.begin)? >> SLOT_SHIFT;
        (slot < self.count as u64).then_some(slot as u32)
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

    /// Whether an address lies in return stacks, and in which slot.
    pub fn return_stack(&self, address: u64) -> Option<u32> {
        let slot = self.slot_of(address)?;
        (address >= self.segment(slot) + RETURN_STACKS).then_some(slot)
    }

    pub fn map_context(&self, slot: u32, bytes: u64) -> std::io::Result<()> {
        let offset = u64::from(slot) * CONTEXT_BYTES;
        os::shared(self.segment(slot) + CONTEXT, bytes, os::PROT_READ, &self.contexts, offset)
    }

    /// A word of the slot's context page.
    pub fn set_context(&self, slot: u32, at: u64, value: u64) {
        assert!(at.is_multiple_of(8) && at < CONTEXT_BYTES && (slot as usize) < self.count, "a context word");
        let word = (self.contexts_at + u64::from(slot) * CONTEXT_BYTES + at) as *mut u64;
        // SAFETY: inside the mapping made in `make`, aligned, and never unmapped; domains only read it, whenever they like.
        unsafe { word.write_volatile(value) };
    }
}
