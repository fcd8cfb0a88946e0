//! Taking over what the image builder has laid out.
//!
//! The boot information is read in place, record by record, without a heap: the heap of this component would
//! be its own service. The borrowed records here mirror those of `pebble_boot` that hold strings, which are
//! bytes here; a test holds them together.

use crate::{BOOT_LIMIT, Common, Domain, Machine, State, Vm};
use core::marker::PhantomData;
use core::num::NonZeroU16;
use pebble_abi::errno::{self, Errno};
use pebble_abi::{map, scheduler};
use pebble_arch::{Arch, Leaf};
use pebble_boot::{CommonCode, Thread};
use serde::Deserialize;

#[derive(Deserialize)]
#[serde(bound(deserialize = "'de: 'a"))]
struct BootDomain<'a> {
    asid: u16,
    name: &'a [u8],
    root: u64,
    _table: u64,
    float: bool,
    _exclusive: bool,
    _fixed_stack: u64,
    priority: u8,
    pages: u32,
    stack_slots: u8,
    heap: u64,
    essential: bool,
    _server: bool,
}

/// What is skipped is known by its form: numbers `n`, strings `s`, bytes `b`. Name, domain, entry,
/// specification.
const INTERFACE: &[u8] = b"snns";
/// Client, kind and pattern of what it is about, verdict, first holders.
const RULE: &[u8] = b"snsns";
/// Name, address, bytes, interrupt.
const DEVICE: &[u8] = b"snnn";
/// Domain, index, interface, code, its length, constant.
const PORTAL: &[u8] = b"nnnnnn";
/// Number, name, initial value, owner, what a wait is.
const SEMAPHORE: &[u8] = b"nsnnb";

/// What follows the lists.
#[derive(Deserialize)]
struct Rest {
    code: CommonCode,
    image_end: u64,
    ram_end: u64,
    _code_used: u64,
    kernel_l0: [u64; 2],
    _stack_descs: u32,
    process: u16,
    empty_table: u64,
    gate: u64,
    dead_l1: u64,
    kernel_pte: u64,
}

/// A list of records, decoded one at a time.
struct List<'a, T> {
    left: u64,
    record: PhantomData<T>,
    bytes: &'a [u8],
}

impl<'a, T: Deserialize<'a>> List<'a, T> {
    fn new(bytes: &'a [u8]) -> Result<Self, Errno> {
        let (left, bytes) = number(bytes)?;
        Ok(List { left, record: PhantomData, bytes })
    }

    fn next(&mut self) -> Result<Option<T>, Errno> {
        if self.left == 0 {
            return Ok(None);
        }
        let (record, bytes) = postcard::take_from_bytes(self.bytes).map_err(|_| errno::EIO)?;
        (self.left, self.bytes) = (self.left - 1, bytes);
        Ok(Some(record))
    }
}

fn number(bytes: &[u8]) -> Result<(u64, &[u8]), Errno> {
    postcard::take_from_bytes(bytes).map_err(|_| errno::EIO)
}

/// The bytes behind a list of records of this form.
fn skip<'a>(bytes: &'a [u8], form: &[u8]) -> Result<&'a [u8], Errno> {
    let (records, mut bytes) = number(bytes)?;
    for _ in 0..records {
        for kind in form {
            let (value, rest) = if *kind == b'b' { (1, bytes) } else { number(bytes)? };
            // A string follows its length.
            let more = if *kind == b'n' { 0 } else { value as usize };
            bytes = rest.get(more..).ok_or(errno::EIO)?;
        }
    }
    Ok(bytes)
}

/// The encoded part, behind the words for the scheduler.
fn body(info: &[u8]) -> Option<&[u8]> {
    let word = |n: usize| Some(u64::from_le_bytes(info.get(n * 8..n * 8 + 8)?.try_into().ok()?) as usize);
    info.get((scheduler::FIRST + word(1)? + word(2)?) * 8..)
}

impl<M: Machine> Vm<M> {
    /// Domains, threads and free memory as the image left them.
    pub fn boot(&mut self, info: &[u8]) -> Result<(), Errno> {
        let mut domains = List::<BootDomain>::new(body(info).ok_or(errno::EIO)?)?;
        while let Some(d) = domains.next()? {
            self.adopt(&d)?;
        }
        let mut rest = domains.bytes;
        for form in [INTERFACE, RULE, DEVICE, PORTAL] {
            rest = skip(rest, form)?;
        }
        let mut threads = List::<Thread>::new(rest)?;
        if M::Arch::fixed(map::THREADS_VA).is_some() {
            self.threads.iter_mut().for_each(|thread| thread.block = true);
        }
        while let Some(t) = threads.next()? {
            let thread = self.threads.get_mut(t.tid as usize).ok_or(errno::EIO)?;
            *thread = crate::Thread { home: NonZeroU16::new(t.asid), slot: 0, block: true };
            self.busy[t.tid as usize / 64] |= 1 << (t.tid % 64);
            let home = self.domain_mut(t.asid);
            (home.threads, home.pages) = (home.threads + 1, home.pages + 1);
        }
        let rest = skip(threads.bytes, SEMAPHORE)?;
        let (rest, _) = postcard::take_from_bytes::<Rest>(rest).map_err(|_| errno::EIO)?;
        self.process = NonZeroU16::new(rest.process);
        self.frames.adopt(rest.image_end, rest.ram_end);
        let sink = self.frames.take(&mut self.machine).ok_or(errno::ENOMEM)?;
        let sink_table = self.frames.take_any(&mut self.machine).ok_or(errno::ENOMEM)?;
        for word in (sink_table..sink_table + map::PAGE).step_by(8) {
            self.machine.write(word, M::Arch::leaf(sink, Leaf::USER_RW));
        }
        self.common = Some(Common {
            code: rest.code,
            kernel_l0: rest.kernel_l0,
            kernel_pte: rest.kernel_pte,
            empty_table: rest.empty_table,
            gate: rest.gate,
            dead_l1: rest.dead_l1,
            sink,
            sink_table,
        });
        Ok(())
    }

    fn adopt(&mut self, d: &BootDomain) -> Result<(), Errno> {
        let l1 = self.table(d.root).ok_or(errno::EIO)?;
        if !(1..map::MAX_DOMAINS).contains(&(d.asid as usize)) {
            return Err(errno::EIO);
        }
        *self.domain_mut(d.asid) = Domain {
            state: State::Alive,
            boot: true,
            essential: d.essential,
            float: d.float,
            priority: d.priority,
            thread_limit: u8::MAX,
            family: 0,
            eager: true,
            slots: (1u64 << d.stack_slots.min(32)).wrapping_sub(1) as u32,
            root: d.root as u32,
            l1: l1 as u32,
            pages: d.pages,
            limit: BOOT_LIMIT,
            heap: d.heap as u32,
            brk: d.heap as u32,
            ..Domain::FREE
        };
        self.end = self.end.max(d.asid + 1);
        if d.name == b"portal-manager" {
            self.portal_manager = NonZeroU16::new(d.asid);
        }
        Ok(())
    }
}
