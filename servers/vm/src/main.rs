//! The VM manager's component: entries around the library, one lock.
//!
//! Order of locks: every server may call this one; this one calls the scheduler alone, and holds its lock
//! while it does so only where the scheduler cannot switch. The way of a fault is short: lock, kill, post.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use pebble::abi::errno::{self, Errno};
use pebble::abi::map;
use pebble::link::More;
use pebble::region::{self, PHYSICAL};
use pebble::sync::{Guard, Lock};
use pebble::words::{Asid, PhysAddr, ThreadId, VirtAddr};
use pebble_vm::{Answer, Batch, Machine, Outcome, Start, Vm};

pebble::import! {
    FLUSH = "nucleus.flush";
    IDLE = "nucleus.idle";
    TOP = "nucleus.top";
    PRIORITY = "scheduler.priority";
    LOCK = "semaphore.vm";
    FAULT = "semaphore.fault";
    THREAD_START = "scheduler.thread_start";
    THREAD_INFO = "scheduler.thread_info";
}
// The exception portals ignore the specification. Through any other portal the arguments are constants:
// nobody can feign a fault.
pebble::interfaces!();
pebble::component!(main);

/// Somebody has been here since the idle thread found nothing to do.
static CALLED: AtomicBool = AtomicBool::new(false);

/// The idle thread: lowest priority, always ready. It is here since this server is never replaced, and
/// nothing goes on when it dies: so the scheduler always has somebody to run. While nobody else wants to, it
/// zeroes free pages.
fn main() -> i64 {
    let mut batch = Batch::default();
    loop {
        while CALLED.load(Relaxed) && launder(&mut batch) {
            batch.iter().filter(|page| **page != 0).for_each(|page| Real.zero_page(*page));
        }
        let _ = IDLE.call([0; 5]);
    }
}

/// Above all programs, below the image's own threads.
const BUSY: u64 = 16;

/// Hands over the pages that have been zeroed, and gets others; whether there are any. Whoever has the lock
/// now will be back. If somebody who computes for ever came while the idle thread has the lock, all who want
/// it would wait for as long: so programs cannot interrupt it there.
fn launder(batch: &mut Batch) -> bool {
    set_priority(BUSY);
    let found = VM.try_lock().is_some_and(|mut vm| {
        let found = vm.launder(batch);
        CALLED.store(found, Relaxed);
        found
    });
    set_priority(0);
    found
}

#[inline(never)]
fn set_priority(priority: u64) {
    let _ = PRIORITY.call([pebble::api::get_thread_id().into(), priority, 0, 0, 0]);
}

/// The memory that the image builder has mapped here, and the flush portal. Not a part of every caller: there
/// are many.
struct Real;

impl Machine for Real {
    type Arch = pebble_arch::Native;

    #[inline(never)]
    fn read(&self, pa: u64) -> u64 {
        PHYSICAL.read(pa.wrapping_sub(map::RAM_PA))
    }

    #[inline(never)]
    fn write(&mut self, pa: u64, word: u64) {
        PHYSICAL.write(pa.wrapping_sub(map::RAM_PA), word);
    }

    fn zeros(&self, pa: u64, count: u64) -> u64 {
        PHYSICAL.zeros(pa.wrapping_sub(map::RAM_PA), count)
    }

    fn zero_page(&mut self, pa: u64) {
        PHYSICAL.fill_page(pa.wrapping_sub(map::RAM_PA), 0);
    }

    fn fill_page(&mut self, pa: u64, word: u64) {
        PHYSICAL.fill_page(pa.wrapping_sub(map::RAM_PA), word);
    }

    fn copy_page(&mut self, from: u64, to: u64) {
        PHYSICAL.copy_page(from.wrapping_sub(map::RAM_PA), to.wrapping_sub(map::RAM_PA));
    }

    #[inline(never)]
    fn flush(&mut self, asid: u16) {
        let _ = FLUSH.call([asid.into(), 0, 0, 0, 0]);
    }

    #[inline(never)]
    fn exchange(&mut self, pa: u64, old: u64, new: u64) -> bool {
        PHYSICAL.exchange(pa.wrapping_sub(map::RAM_PA), old, new)
    }

    /// The scheduler counts how often a thread has lost the processor while it was ready; nothing here waits.
    #[inline(never)]
    fn switches(&self) -> u64 {
        let thread = pebble::api::get_thread_id();
        THREAD_INFO.call_wide([thread.into(), 0, 0, 0, 0]).map_or(0, |(_, more)| more[3])
    }

    #[inline(never)]
    fn top(&self) -> u64 {
        TOP.call([0; 5]).map_or(0, |top| top as u64)
    }
}

static VM: Lock<Vm<Real>> = Lock::new(Vm::new(Real));

/// The state, under its lock, after taking over from the image builder at first use. An image that it cannot
/// read stops the system.
fn vm() -> Guard<'static, Vm<Real>> {
    VM.use_semaphore(LOCK.index());
    let mut vm = VM.lock();
    CALLED.store(true, Relaxed);
    if !vm.booted() {
        let taken = vm.boot(region::boot_info());
        assert!(taken.is_ok());
    }
    vm
}

fn word(answer: Answer) -> i64 {
    match answer {
        Ok(value) => value as i64,
        Err(error) => -error,
    }
}

/// Ticks until a fault whose handler could not be asked is looked at again: short, since who waits so holds a
/// stack that others need.
const PATIENCE: u64 = map::TIME_HZ / 10_000;

extern "C" fn fault(
    code: u64,
    value: u64,
    address: VirtAddr,
    asid: Asid,
    thread: ThreadId,
    called: u64,
) -> i64 {
    let mut outcome = vm().fault(code, value, address, asid, thread, called);
    if let Outcome::Ask(ask) = outcome {
        let _ = pebble::portal::call(ask.index.into(), [asid.get(), ask.address, ask.cause as u64]);
        outcome = vm().answered(&ask, address, thread);
    }
    if outcome == Outcome::Later {
        let _ = pebble::api::hrsleep(pebble::portal::time() + PATIENCE);
    }
    if outcome == Outcome::Died {
        let _ = pebble::portal::call(FAULT.index() + 1, [0; 5]);
    }
    0
}

extern "C" fn sbrk(asid: Asid, bytes: u64) -> i64 {
    word(vm().sbrk(asid, bytes as i64))
}

/// Tells the scheduler of a thread, the lock released: it may run before this call returns.
fn start(thread: Result<Start, Errno>) -> i64 {
    let Start { tid, priority, home, family } = match thread {
        Ok(start) => start,
        Err(error) => return -error,
    };
    match THREAD_START.call([tid.into(), priority.into(), u64::from(home) | u64::from(family) << 16, 0, 0]) {
        Ok(0) => tid.into(),
        refused => {
            let _ = vm().thread_free(tid.into());
            refused.unwrap_or(-errno::EIO)
        }
    }
}

extern "C" fn thread_create(
    home: Asid,
    caller: ThreadId,
    entry: VirtAddr,
    argument: u64,
    priority: u64,
) -> i64 {
    let inherited = match THREAD_INFO.call_wide([caller.get(), 0, 0, 0, 0]) {
        Ok((0, more)) => more[1] & 0xff,
        _ => 0,
    };
    let thread = vm().thread_create(home, inherited, entry, argument, priority);
    start(thread)
}

extern "C" fn thread_spawn(home: Asid, entry: VirtAddr, argument: u64, priority: u64) -> i64 {
    let thread = vm().thread_spawn(home, entry, argument, priority);
    start(thread)
}

/// Only a thread that the scheduler has forgotten, which it does when it hands it to its reaper.
extern "C" fn thread_free(tid: ThreadId) -> i64 {
    match THREAD_INFO.call_wide([tid.get(), 0, 0, 0, 0]) {
        Ok((0, [0, ..])) => word(vm().thread_free(tid)),
        Ok((0, _)) => -errno::EAGAIN,
        _ => -errno::ESRCH,
    }
}

extern "C" fn domain_create(float: u64, pages: u64, priority: u64, threads: u64) -> i64 {
    word(vm().domain_create(float, pages, priority, threads))
}

extern "C" fn map_pages(asid: Asid, address: VirtAddr, pages: u64, flags: u64) -> i64 {
    word(vm().map(asid, address, pages, flags))
}

extern "C" fn heap(asid: Asid, address: VirtAddr) -> i64 {
    word(vm().heap(asid, address))
}

extern "C" fn attach(caller: Asid, asid: Asid, address: VirtAddr, pages: u64, offset: u64) -> i64 {
    word(vm().attach(caller, asid, address, pages, offset))
}

extern "C" fn detach(caller: Asid, offset: u64, pages: u64) -> i64 {
    word(vm().detach(caller, offset, pages))
}

extern "C" fn domain_kill(asid: Asid) -> i64 {
    word(vm().domain_kill(asid))
}

extern "C" fn domain_free(asid: Asid) -> i64 {
    word(vm().domain_free(asid))
}

extern "C" fn stack(asid: Asid, pages: u64) -> i64 {
    word(vm().stack(asid, pages))
}

extern "C" fn code_page(caller: Asid, page: u64) -> i64 {
    word(vm().code_page(caller, page))
}

extern "C" fn table_page(caller: Asid, asid: Asid, page: u64) -> i64 {
    word(vm().table_page(caller, asid, page))
}

extern "C" fn share_stacks(owner: Asid, other: Asid) -> i64 {
    word(vm().share_stacks(owner, other))
}

extern "C" fn unshare_stacks(host: Asid, guest: Asid) -> i64 {
    word(vm().unshare_stacks(host, guest))
}

extern "C" fn windows(caller: Asid, asid: Asid) -> i64 {
    word(vm().windows(caller, asid))
}

extern "C" fn space(caller: Asid, asid: Asid) -> i64 {
    word(vm().space(caller, asid))
}

extern "C" fn buffer(asid: Asid, pages: u64) -> i64 {
    word(vm().buffer(asid, pages))
}

extern "C" fn buffer_free(asid: Asid, address: VirtAddr) -> i64 {
    word(vm().buffer_free(asid, address))
}

extern "C" fn window_close(asid: Asid, address: VirtAddr) -> i64 {
    word(vm().window_close(asid, address))
}

extern "C" fn window_claim(asid: Asid, address: VirtAddr) -> i64 {
    word(vm().window_claim(asid, address))
}

extern "C" fn window_move(asid: Asid, from: VirtAddr, to: VirtAddr) -> i64 {
    word(vm().window_move(asid, from, to))
}

extern "C" fn receive_window(asid: Asid, pages: u64) -> i64 {
    word(vm().receive_window(asid, pages))
}

extern "C" fn touch(caller: Asid, address: VirtAddr) -> i64 {
    word(vm().touch(caller, address))
}

extern "C" fn show(caller: Asid, asid: Asid, address: VirtAddr, pages: u64) -> i64 {
    word(vm().show(caller, asid, address, pages))
}

extern "C" fn map_shown(caller: Asid, asid: Asid, address: VirtAddr, from: VirtAddr, pages: u64) -> i64 {
    word(vm().map_shown(caller, asid, address, from, pages))
}

extern "C" fn hide(caller: Asid, address: VirtAddr, pages: u64) -> i64 {
    word(vm().hide(caller, address, pages))
}

extern "C" fn flip(asid: Asid, address: VirtAddr, other: Asid, there: VirtAddr, pages: u64) -> i64 {
    word(vm().flip((asid, address), (other, there), pages))
}

extern "C" fn range_set(asid: Asid, address: VirtAddr, pages: u64, who: u64) -> i64 {
    word(vm().range_set(asid, address, pages, who))
}

extern "C" fn provide(caller: Asid, asid: Asid, address: VirtAddr, page: VirtAddr, flags: u64) -> i64 {
    word(vm().provide(caller, asid, address, page, flags))
}

/// Piece by piece: others need the lock too.
extern "C" fn fork(parent: Asid, child: Asid, sp: VirtAddr) -> i64 {
    let mut from = VirtAddr(0);
    loop {
        let next = vm().fork(parent, child, sp, from);
        match next {
            Ok(next) if next != 0 => from = VirtAddr(next),
            done => {
                region::fence_i();
                return word(done);
            }
        }
    }
}

extern "C" fn thread_fork(child: Asid, entry: VirtAddr, sp: VirtAddr, value: u64) -> i64 {
    let thread = vm().thread_fork(child, entry, sp, value);
    start(thread)
}

extern "C" fn map_foreign(asid: Asid, address: VirtAddr, pa: u64, pages: u64) -> i64 {
    word(vm().map_foreign(asid, address, PhysAddr(pa), pages))
}

extern "C" fn dead_entry(caller: Asid, index: u64, entry: u64) -> i64 {
    word(vm().dead_entry(caller, index, entry))
}

extern "C" fn family(asid: Asid, family: u64) -> i64 {
    word(vm().family(asid, family))
}

extern "C" fn discharge(asid: Asid) -> i64 {
    word(vm().discharge(asid))
}

extern "C" fn domain_info(asid: Asid, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    match vm().domain_info(asid) {
        Ok((state, words)) => {
            *more = words;
            state as i64
        }
        Err(error) => -error,
    }
}

extern "C" fn fault_next(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    match vm().fault_next() {
        Ok((asid, fault)) => {
            *more = [fault.cause as u64, fault.value, fault.address, fault.thread.into()];
            asid.into()
        }
        Err(error) => -error,
    }
}

extern "C" fn dump(asid: Asid, offset: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    match vm().dump(asid, offset) {
        Ok((top, words)) => {
            *more = words;
            top as i64
        }
        Err(error) => -error,
    }
}

extern "C" fn thread_bits(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    *more = vm().thread_bits();
    0
}

extern "C" fn stats(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    *more = vm().stats();
    0
}
