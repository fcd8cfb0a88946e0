//! The VM manager: page tables, domains, stacks, heaps, threads' blocks, and what becomes of a domain that
//! faults.
//!
//! Problem: many domains, created and killed at any moment by callers whose arguments may be anything, share
//! one physical memory. Strategy: the page tables are the only record of who owns which page. A domain owns
//! exactly
//! * its root, its level-1 table, its portal table, and the level-0 tables under its level-1 table (but those
//!   of other domains' stacks);
//! * every page mapped in its *image range* and in its own stack range. The image range ends at `HEAP_END`,
//!   for a domain of the image at `BOOTINFO_VA`, where such a domain may have boot information and device
//!   registers, unless its heap begins behind these: they are marked as somebody else's.
//!
//! So death is one walk. Everything else that it may have mapped (devices, boot information, pages of the
//! archive that are shown, the windows of trusted servers, stacks shared by `s` portals) belongs to somebody
//! else.
//!
//! Invariants:
//! * no page has two owners; a free page is mapped nowhere; a page is zeroed before it is taken ([`frames`]);
//! * a page that ceases to be mapped is flushed from the domains that saw it before the lock is released, so
//!   before anybody can get it;
//! * no page of a domain is both writable and executable for it;
//! * what a program has not touched of its heap has no pages yet. They are charged to it, and no others get
//!   them;
//! * a failed request changes nothing but level-0 tables, which stay with their domain;
//! * programs leave [`RESERVE`] pages and [`RESERVE_THREADS`] threads to the domains of the image.
//!
//! The logic is pure: memory and flushes are a [`Machine`]. The component adds portals and one lock.
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod boot;
mod buffers;
mod domains;
mod dumps;
mod faults;
mod flip;
mod fork;
mod frames;
mod ranges;
mod role;
mod shared;
mod shown;
mod slots;
mod space;
mod stacks;
mod threads;

pub use faults::{Fault, Outcome};
pub use frames::{BATCH, Batch};
pub use ranges::Ask;
pub use stacks::{FIRST_PAGES, SURE};
pub use threads::Start;

use core::num::NonZeroU16;
use core::ops::Range;
use dumps::{Dumps, NO_DUMPS};
use frames::Frames;
use pebble_abi::errno::{self, Errno};
use pebble_abi::fault::Cause;
use pebble_abi::words::Asid;
use pebble_abi::{map, share};
use pebble_arch::Arch;
use pebble_boot::CommonCode;
use shared::Attachment;

/// Pages that only the image's domains may take.
pub const RESERVE: usize = share::PAGES.reserve;
const _: () = assert!(BATCH <= RESERVE, "what a program is granted is there");
/// Threads that only the image's domains may create.
pub const RESERVE_THREADS: usize = share::THREADS.reserve;
/// Page limit of the image's domains.
pub const BOOT_LIMIT: u16 = 16384;

/// What the VM manager needs of the machine.
pub trait Machine {
    /// Whose page tables and frames these are.
    type Arch: Arch;
    /// The word at a physical address.
    fn read(&self, pa: u64) -> u64;
    fn write(&mut self, pa: u64, word: u64);
    /// How many of the words from this address on are zero before one is not, `count` at most.
    fn zeros(&self, pa: u64, count: u64) -> u64 {
        (0..count).find(|n| self.read(pa + n * 8) != 0).unwrap_or(count)
    }
    fn zero_page(&mut self, pa: u64);
    /// The same word all over a page.
    fn fill_page(&mut self, pa: u64, word: u64) {
        (pa..pa + map::PAGE).step_by(8).for_each(|at| self.write(at, word));
    }
    fn copy_page(&mut self, from: u64, to: u64);
    /// Drops what the processor remembers of a domain's page tables.
    fn flush(&mut self, asid: u16);
    /// Stores `new` at a physical address if the word there is `old`, in one step even against portal code;
    /// whether it did.
    fn exchange(&mut self, pa: u64, old: u64, new: u64) -> bool;
    /// A number that changes whenever another thread has run between.
    fn switches(&self) -> u64;
    /// Address of the calling thread's topmost word on its invocation stack.
    fn top(&self) -> u64;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Free,
    Alive,
    /// Killed; its root, level-1 table and portal table wait for [`Vm::domain_free`].
    Dead,
}

#[derive(Clone, Copy)]
struct Domain {
    state: State,
    /// Came with the image: nobody maps into it, starts threads in it, or moves its heap.
    boot: bool,
    /// Is not killed on demand.
    essential: bool,
    float: bool,
    /// It has all pages of its stacks and heap from the start, and must not want for one later: components of
    /// the image, and what takes their place.
    eager: bool,
    priority: u8,
    /// What it died of (none: nothing, or that has been told), and the thread that it was.
    cause: Option<Cause>,
    culprit: u8,
    /// The domain whose stacks' addresses its own copies have, if it is a fork; or 0.
    stacks: u8,
    /// Threads whose home it is, and their limit.
    threads: u8,
    thread_limit: u8,
    /// With whom it shares what is scarce: see [`pebble_abi::share`].
    family: u8,
    /// Stack slots in use.
    slots: u32,
    /// Root and level-1 table.
    root: u32,
    l1: u32,
    /// Pages it is charged for, those it owns and its threads' blocks, but for those that windows have moved:
    /// [`Vm::charge`].
    pages: u32,
    limit: u16,
    /// Of these, what its stacks are sure of and have not touched ([`stacks`]), and what it has not touched of
    /// its heap: those entries say so.
    promised: u16,
    /// Where the heap begins (0: not set) and ends.
    heap: u32,
    brk: u32,
    /// Of the fault.
    value: u64,
    address: u64,
}

impl Domain {
    const FREE: Domain = Domain {
        state: State::Free,
        boot: false,
        essential: false,
        float: false,
        eager: false,
        priority: 0,
        cause: None,
        culprit: 0,
        stacks: 0,
        threads: 0,
        thread_limit: 0,
        family: 0,
        slots: 0,
        root: 0,
        l1: 0,
        pages: 0,
        limit: 0,
        promised: 0,
        heap: 0,
        brk: 0,
        value: 0,
        address: 0,
    };

    fn root(&self) -> u64 {
        self.root.into()
    }

    fn l1(&self) -> u64 {
        self.l1.into()
    }
}

// There are many.
const _: () = assert!(size_of::<Domain>() == 56);

/// A thread's block stays mapped, and kept for that number, once it exists: its translation is the same in
/// all domains and could be flushed from none of them alone. Where blocks are fixed, all exist from the
/// start.
#[derive(Clone, Copy)]
struct Thread {
    /// `None`: free.
    home: Option<NonZeroU16>,
    /// Stack slot in its home.
    slot: u8,
    block: bool,
}

/// What is the same for all domains; physical addresses.
#[derive(Clone, Copy)]
struct Common {
    code: CommonCode,
    kernel_l0: [u64; 2],
    kernel_pte: u64,
    empty_table: u64,
    gate: u64,
    dead_l1: u64,
    /// Where the loader writes when what it writes to is gone.
    sink: u64,
    /// A table full of it.
    sink_table: u64,
}

pub struct Vm<M: Machine> {
    pub machine: M,
    frames: Frames,
    domains: [Domain; map::MAX_DOMAINS],
    /// All domains from this number on are free.
    end: u16,
    /// Pages that all domains together are promised.
    promised: u32,
    threads: [Thread; map::MAX_THREADS],
    /// Those that have a home, a bit each.
    busy: [u64; map::MAX_THREADS / 64],
    attachments: [Option<Attachment>; shared::ATTACHMENTS],
    dumps: Dumps,
    /// Threads that wait for handlers.
    asking: [Option<ranges::Asking>; share::HANDLERS.all],
    /// `None` until [`Vm::boot`].
    common: Option<Common>,
    /// Domains of the portal manager and of the process server, if the system has them.
    portal_manager: Option<NonZeroU16>,
    process: Option<NonZeroU16>,
}

/// The word that goes back, or a positive error number.
pub type Answer = Result<u64, Errno>;

impl<M: Machine> Vm<M> {
    pub const fn new(machine: M) -> Self {
        Vm {
            machine,
            frames: Frames::new(),
            domains: [Domain::FREE; map::MAX_DOMAINS],
            end: 1,
            promised: 0,
            threads: [Thread { home: None, slot: 0, block: false }; map::MAX_THREADS],
            busy: [0; _],
            attachments: [None; shared::ATTACHMENTS],
            dumps: NO_DUMPS,
            asking: [None; _],
            common: None,
            portal_manager: None,
            process: None,
        }
    }

    pub fn booted(&self) -> bool {
        self.common.is_some()
    }

    fn common(&self) -> Result<Common, Errno> {
        self.common.ok_or(errno::EIO)
    }

    /// A domain that lives.
    fn alive(&self, asid: Asid) -> Result<u16, Errno> {
        match usize::try_from(asid.get()).ok().and_then(|n| self.domains.get(n)) {
            Some(d) if d.state == State::Alive => Ok(asid.get() as u16),
            _ => Err(errno::ESRCH),
        }
    }

    /// The domain of a server of the system's, if it lives.
    fn living(&self, server: Option<NonZeroU16>) -> Option<u16> {
        server.map(NonZeroU16::get).filter(|asid| self.domain(*asid).state == State::Alive)
    }

    /// A domain that lives and did not come with the image.
    fn program(&self, asid: Asid) -> Result<u16, Errno> {
        let asid = self.alive(asid)?;
        if self.domain(asid).boot { Err(errno::EPERM) } else { Ok(asid) }
    }

    fn domain(&self, asid: u16) -> &Domain {
        &self.domains[asid as usize % map::MAX_DOMAINS]
    }

    fn domain_mut(&mut self, asid: u16) -> &mut Domain {
        &mut self.domains[asid as usize % map::MAX_DOMAINS]
    }

    /// Numbers of all domains that there are, and of some that are free.
    fn numbers(&self) -> Range<u16> {
        1..self.end
    }

    /// Where all that is mapped belongs to the domain: its image, its heap.
    fn image_range(&self, asid: u16) -> Range<u64> {
        let d = self.domain(asid);
        map::STARTUP_VA..if d.boot && u64::from(d.heap) < map::LARGE_HEAP_VA {
            map::BOOTINFO_VA
        } else {
            map::HEAP_END
        }
    }

    /// Blocks of threads that nobody has: as good as free pages.
    fn idle_blocks(&self) -> usize {
        if M::Arch::fixed(map::THREADS_VA).is_some() {
            return 0;
        }
        self.threads.iter().filter(|t| t.block && t.home.is_none()).count()
    }

    /// For the idle thread: these pages have been zeroed, and others are to be. Whether there are any. It has
    /// no lock meanwhile.
    pub fn launder(&mut self, batch: &mut Batch) -> bool {
        self.frames.launder(&mut self.machine, batch)
    }

    /// Free pages, all pages, domains, threads.
    pub fn stats(&self) -> [u64; 4] {
        let domains = self.domains.iter().filter(|d| d.state != State::Free).count();
        let threads = self.threads.iter().filter(|t| t.home.is_some()).count();
        let free = self.unclaimed() + self.idle_blocks();
        [free as u64, self.frames.all() as u64, domains as u64, threads as u64]
    }
}
