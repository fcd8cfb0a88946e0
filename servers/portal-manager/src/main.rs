//! The portal manager's component: entries around the library, one lock.
//!
//! Order of locks: portal manager, then name server, VM manager, scheduler; none of these calls the portal
//! manager. The clock does, under its lock, and is called without ours.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

mod entries;

extern crate alloc;

use alloc::vec::Vec;
use entries::info::{count, frame, interface_info, portal_info, stats};
use entries::interposition::{client_of, control, control_new, on_behalf, subject, whose};
use entries::open::Opening;
use entries::replacement::{
    abandon, adopt, busy, commit, holder, import, keep_role, let_leave, offer, pass, prepare, reach,
    register_for,
};
use pebble::abi::consent::Letters;
use pebble::abi::link::unpack;
use pebble::abi::scheduler::Wait;
use pebble::abi::{errno, map};
use pebble::api::{self, Errno};
use pebble::link::{Import, More};
use pebble::portal;
use pebble::region::{self, CODE, SHARED_DATA, TABLES, THREADS, Words};
use pebble::sync::{Guard, Lock};
use pebble::words::{Asid, ThreadId};
use pebble_boot::BootInfo;
use pebble_portal::hardware::instance::Site;
use pebble_portal_manager::Machine;
use pebble_portal_manager::frames::Current;
use pebble_portal_manager::manager::MAX_PORTALS;
use pebble_portal_manager::replacement::NOBODY;

pebble::import! {
    TOP = "nucleus.top";
    LOCK = "semaphore.pm";
    LOOKUP = "name.lookup";
    NAME = "name.register";
    WITHDRAW = "name.withdraw";
    PASS = "name.pass";
    DOMAIN_INFO = "vm.domain_info";
    CODE_PAGE = "vm.code_page";
    TABLE_PAGE = "vm.table_page";
    STACK = "vm.stack";
    DEAD_ENTRY = "vm.dead_entry";
    SHARE_STACKS = "vm.share_stacks";
    UNSHARE_STACKS = "vm.unshare_stacks";
    THREAD_BITS = "vm.thread_bits";
    SEM_ALLOC = "scheduler.sem_alloc";
    SEM_FREE = "scheduler.sem_free";
    SPACE = "vm.space";
    WINDOWS = "vm.windows";
    RANGE_SET = "vm.range_set";
    BOUND = "clock.bound";
    UNBOUND = "clock.unbound";
    SBRK = "vm.sbrk_for";
    THREAD_CREATE = "vm.thread_create_for";
}
pebble::interfaces!();
pebble::component!(main);

fn main() -> i64 {
    0
}

/// Pages of a stack made for a domain's stack queue.
const STACK_PAGES: u64 = 4;

/// The memory and services of the running system.
struct Real {
    /// Threads with a block, as the VM manager said when this request began.
    bits: [u64; 4],
}

/// In the place of an error number: a server that is being replaced has not done what it was asked.
const AGAIN: Errno = Errno::new(i64::MAX);

fn answer(import: &Import, p: [u64; 5]) -> Result<u64, Errno> {
    match portal::call_once(import.index(), p) {
        Ok(value) => Errno::answer(value),
        Err(broken) if broken.moved() => Err(AGAIN),
        Err(_) => Err(errno::EIO),
    }
}

/// The answer is an address of the nucleus's half, a negative word like an error.
fn address(import: &Import, asid: u16) -> Result<u64, Errno> {
    match import.call([asid.into(), 0, 0, 0, 0]) {
        Ok(error @ -4095..=-1) => Err(Errno::of(error)),
        Ok(address) => Ok(address as u64),
        Err(_) => Err(errno::EIO),
    }
}

/// Where portal code is written.
struct Place(Words);

impl Site for Place {
    fn copy(&mut self, doubles: &[u64]) -> bool {
        let copied = self.0.copy(doubles);
        region::fence_i();
        copied
    }

    // What is filled in is a constant, and no instruction.
    #[inline(always)]
    fn set(&mut self, at: usize, double: u64) {
        self.0.write(at, double);
    }

    #[inline(always)]
    fn get(&self, at: usize) -> u64 {
        self.0.read(at)
    }
}

impl Machine for Real {
    fn set_table(&mut self, asid: u16, index: u16, word: u64) {
        TABLES.write(u64::from(asid) * map::TABLE_BYTES + u64::from(index) * 8, word);
    }

    fn set_dead_entry(&mut self, index: u16, word: u64) {
        let _ = DEAD_ENTRY.call([index.into(), word]);
    }

    fn table(&self, asid: u16, index: u16) -> u64 {
        TABLES.read(u64::from(asid) * map::TABLE_BYTES + u64::from(index) * 8)
    }

    fn site(&mut self, offset: u64, doubles: usize) -> impl Site {
        Place(CODE.words(offset, doubles))
    }

    fn code_word(&self, offset: u64) -> u64 {
        CODE.read(offset)
    }

    fn threads(&self) -> impl Iterator<Item = u16> {
        let (bits, mut n, mut word) = (self.bits, 0, self.bits[0]);
        core::iter::from_fn(move || {
            while word == 0 {
                n += 1;
                word = *bits.get(n)?;
            }
            let bit = word.trailing_zeros();
            word &= word - 1;
            Some(n as u16 * 64 + bit as u16)
        })
    }

    fn thread_word(&self, tid: u16, offset: u64) -> u64 {
        THREADS.read(u64::from(tid) * map::PAGE + offset)
    }

    fn set_thread_word(&mut self, tid: u16, offset: u64, word: u64) {
        THREADS.write(u64::from(tid) * map::PAGE + offset, word);
    }

    fn data(&self, offset: u64) -> u64 {
        SHARED_DATA.read(offset)
    }

    fn set_data(&mut self, offset: u64, word: u64) {
        SHARED_DATA.write(offset, word);
    }

    fn exchange_data(&mut self, offset: u64, old: u64, new: u64) -> bool {
        SHARED_DATA.exchange(offset, old, new)
    }

    fn grow_code(&mut self, page: u32) -> Result<(), Errno> {
        answer(&CODE_PAGE, [page.into(), 0, 0, 0, 0]).map(|_| ())
    }

    fn grow_table(&mut self, asid: u16, page: u32) -> Result<(), Errno> {
        answer(&TABLE_PAGE, [asid.into(), page.into(), 0, 0, 0]).map(|_| ())
    }

    fn stack(&mut self, asid: u16) -> Result<u64, Errno> {
        answer(&STACK, [asid.into(), STACK_PAGES, 0, 0, 0])
    }

    fn share_stacks(&mut self, host: u16, guest: u16) -> Result<(), Errno> {
        answer(&SHARE_STACKS, [host.into(), guest.into(), 0, 0, 0]).map(|_| ())
    }

    fn unshare_stacks(&mut self, host: u16, guest: u16) {
        // Of the dead the VM manager has taken them already.
        let _ = UNSHARE_STACKS.call([host.into(), guest.into(), 0, 0, 0]);
    }

    fn space(&mut self, asid: u16) -> Result<u64, Errno> {
        address(&SPACE, asid)
    }

    fn windows(&mut self, asid: u16) -> Result<u64, Errno> {
        address(&WINDOWS, asid)
    }

    fn free_semaphore(&mut self, id: u16) {
        // One waiter a call.
        while SEM_FREE.call([id.into(), 0, 0, 0, 0]) == Ok(1) {}
    }
}

type Manager = pebble_portal_manager::Manager<pebble_arch::Native>;

static MANAGER: Lock<Option<Manager>> = Lock::new(None);

/// The manager, under its lock, after taking over from the image builder at first use. Its frame is gone
/// before a request has one.
#[inline(never)]
fn manager() -> Result<Guard<'static, Option<Manager>>, Errno> {
    MANAGER.use_semaphore(LOCK.index());
    let mut guard = MANAGER.lock();
    if guard.is_none() {
        let mut fresh = beginning()?;
        fresh.prepare(&mut Real { bits: [0; 4] })?;
        *guard = Some(fresh);
    }
    Ok(guard)
}

/// What the image builder has laid out. Its frame is gone before anything is compiled.
#[inline(never)]
fn beginning() -> Result<Manager, Errno> {
    let info = BootInfo::decode(region::boot_info()).map_err(|_| errno::EIO)?;
    Manager::new(&info)
}

/// One request: its result as the word that goes back.
fn request(mut work: impl FnMut(&mut Manager, &mut Real) -> Result<u64, Errno>) -> i64 {
    serve(&mut work)
}

/// The same, and why nothing was made, in the first further word.
fn explained(more: &mut More, mut work: impl FnMut(&mut Manager, &mut Real) -> Result<u64, Errno>) -> i64 {
    request(|m, machine| {
        let outcome = work(m, machine);
        more[0] = m.request.refused;
        outcome
    })
}

/// What a request does, whichever it is.
type Work<'a> = &'a mut dyn FnMut(&mut Manager, &mut Real) -> Result<u64, Errno>;

/// Where the name server is being replaced the caller is told to call again, as if this server were: whoever
/// waited here would hold a stack, and who replaces the name server needs one.
// Once, and not in each of forty entries.
#[inline(never)]
fn serve(work: Work) -> i64 {
    let outcome = manager().and_then(|mut guard| match guard.as_mut() {
        Some(manager) => {
            let machine = &mut Real { bits: [0; 4] };
            (manager.request.serving, manager.request.giving, manager.request.refused) = (None, None, 0);
            let answer = work(manager, machine);
            if answer == Err(AGAIN) {
                // Some successor has this code already.
                manager.let_leave(machine, Asid(api::get_asid().into()))?;
            }
            if manager.news() {
                manager.announce(machine, current()?);
            }
            answer
        }
        None => Err(errno::EIO),
    });
    if outcome == Err(AGAIN) {
        pebble::handover::call_again();
    }
    outcome.map_or_else(|error| -error, |value| value as i64)
}

/// The thread that asks, and the threads there are: for reading invocation stacks.
fn survey(machine: &mut Real) -> Result<Current, Errno> {
    let (_, bits) = THREAD_BITS.call_wide([0; 5]).map_err(|_| errno::EIO)?;
    machine.bits = bits;
    current()
}

fn current() -> Result<Current, Errno> {
    let top = TOP.call([0; 5]).map_err(|_| errno::EIO)? as u64;
    Ok(Current { tid: ((top - map::THREADS_VA) / map::PAGE) as u16, top })
}

/// Closed portals' code, once enough has gathered.
fn tidy(manager: &mut Manager, machine: &mut Real) -> Result<(), Errno> {
    if manager.untidy() {
        let current = survey(machine)?;
        manager.sweep(machine, current);
    }
    Ok(())
}

/// A name out of its words.
fn name<'a>(words: [u64; 3], bytes: &'a mut [u8; 24]) -> Result<&'a str, Errno> {
    let len = unpack(&words, bytes);
    core::str::from_utf8(&bytes[..len]).ok().filter(|n| !n.is_empty()).ok_or(errno::EINVAL)
}

extern "C" fn open(asid: Asid, a: u64, b: u64, c: u64, given: u64, _: u64, more: &mut More) -> i64 {
    let itself = Opening { names: [asid, asid], opener: asid, subject: asid };
    entries::open::open(|_, _| Ok(itself), [a, b, c], given, more)
}

/// The loader opens what a program imports. Its outermost controller must be allowed to, too: it is who
/// calls.
extern "C" fn open_for(asid: Asid, a: u64, b: u64, c: u64, _: u64, _: u64, more: &mut More) -> i64 {
    let who = |m: &mut Manager, _: &mut Real| {
        m.domain(asid)?;
        let opener = m.outermost(asid.number()).into();
        Ok(Opening { names: [asid, opener], opener, subject: asid })
    };
    entries::open::open(who, [a, b, c], Letters::NONE.word(), more)
}

extern "C" fn register(asid: Asid, a: u64, b: u64, c: u64, spec: u64, entry: u64, more: &mut More) -> i64 {
    explained(more, |m, machine| do_register(m, machine, asid, [a, b, c, spec, entry]))
}

fn do_register(m: &mut Manager, machine: &mut Real, asid: Asid, p: [u64; 5]) -> Result<u64, Errno> {
    let [a, b, c, first, entry] = p;
    let mut bytes = [0; 24];
    let name = name([a, b, c], &mut bytes)?;
    let spec = m.parse(asid, first, entry)?;
    let number = m.register(machine, asid, name, spec, entry & 0xffff_ffff)?;
    answer(&NAME, [asid.get(), a, b, c, number.into()]).inspect_err(|_| m.unregister(number))?;
    Ok(number.into())
}

extern "C" fn interface(asid: Asid, a: u64, b: u64, c: u64) -> i64 {
    request(|m, _| {
        let mut bytes = [0; 24];
        m.own_interface(asid, name([a, b, c], &mut bytes)?).map(u64::from)
    })
}

extern "C" fn create(
    server: Asid,
    client: Asid,
    interface: u64,
    count: u64,
    constant: u64,
    _: u64,
    more: &mut More,
) -> i64 {
    explained(more, |m, machine| {
        tidy(m, machine)?;
        let client = client_of(m, machine, client)?;
        m.create(machine, server, client, interface, count, constant).map(u64::from)
    })
}

extern "C" fn remove(server: Asid, client: Asid, first: u64, count: u64) -> i64 {
    request(|m, machine| {
        let client = client_of(m, machine, client)?;
        m.remove(machine, server, client, first, count)?;
        tidy(m, machine).map(|()| 0)
    })
}

extern "C" fn close(asid: Asid, first: u64, count: u64) -> i64 {
    request(|m, machine| {
        m.close(machine, asid, first, count, None)?;
        tidy(m, machine).map(|()| 0)
    })
}

extern "C" fn sem_create(asid: Asid, initial: u64, wait: u64) -> i64 {
    request(|m, machine| do_sem_create(m, machine, asid, asid, [initial, wait]))
}

/// P and V in the table of `asid`.
fn do_sem_create(
    m: &mut Manager,
    machine: &mut Real,
    asid: Asid,
    owner: Asid,
    [initial, wait]: [u64; 2],
) -> Result<u64, Errno> {
    tidy(m, machine)?;
    // So far from the end of a word that no V can reach it.
    if initial > i32::MAX as u64 {
        return Err(errno::EINVAL);
    }
    m.domain(owner)?;
    m.grant_semaphore(owner)?;
    // A lock of a program's is its own affair.
    let wait = match wait {
        0 => Wait::Interruptible,
        2 if m.is_image(owner) => Wait::Lock,
        _ => Wait::Patient,
    };
    let id = answer(&SEM_ALLOC, [initial, owner.get(), wait as u64, 0, 0])? as u16;
    m.own_semaphore(Some(owner), id);
    let index = m.semaphore(machine, asid, id);
    if index.is_err() {
        m.own_semaphore(None, id);
        machine.free_semaphore(id);
    }
    index.map(u64::from)
}

extern "C" fn sem_publish(asid: Asid, index: u64, a: u64, b: u64, c: u64) -> i64 {
    request(|m, _| {
        let mut bytes = [0; 24];
        let id = m.semaphore_at(asid, index)?;
        m.publish(asid, name([a, b, c], &mut bytes)?, id).map(|()| 0)
    })
}

extern "C" fn sem_open(asid: Asid, a: u64, b: u64, c: u64) -> i64 {
    request(|m, machine| {
        let mut bytes = [0; 24];
        let id = m.published(name([a, b, c], &mut bytes)?)?;
        m.semaphore(machine, asid, id).map(u64::from)
    })
}

/// What portal code must know of a living domain, and its family.
fn view(asid: Asid) -> Result<(pebble_portal::hardware::Domain, u64), Errno> {
    let (state, [space, _, _, flags]) =
        DOMAIN_INFO.call_wide([asid.get(), 0, 0, 0, 0]).map_err(|_| errno::EIO)?;
    if state != 1 {
        return Err(errno::ESRCH);
    }
    let view = pebble_portal::hardware::Domain {
        asid: asid.number(),
        space,
        float: flags & 1 == 1,
        ..Default::default()
    };
    Ok((view, flags >> 32))
}

extern "C" fn domain_attach(asid: Asid) -> i64 {
    request(|m, machine| {
        let (view, family) = view(asid)?;
        m.set_family(asid, family)?;
        m.attach(machine, view).map(|()| 0)
    })
}

/// The family of a domain, for servers that give something away.
extern "C" fn family(asid: Asid) -> i64 {
    request(|m, _| {
        m.domain(asid)?;
        Ok(m.family(asid.number()).into())
    })
}

extern "C" fn retire(asid: Asid) -> i64 {
    let mut vacant = Vec::new();
    let outcome = request(|m, machine| {
        vacant = m.retire(machine, asid)?;
        Ok(0)
    });
    if outcome == 0 {
        pass(&vacant, NOBODY);
        let _ = WITHDRAW.call([asid.get(), 0, 0, 0, 0]);
    }
    outcome
}

extern "C" fn reclaim(asid: Asid) -> i64 {
    request(|m, machine| {
        let current = survey(machine)?;
        m.reclaim(machine, asid, current).map(|()| 0)
    })
}

/// For the clock: where the call that it was given was made, by whom, and of which family that is.
extern "C" fn call_site() -> i64 {
    request(|m, machine| {
        let site = m.call_site(machine, current()?)?;
        Ok(site | u64::from(m.family((site >> 16) as u16)) << 32)
    })
}

/// `site`: offset of the invocation stack's top word below the call, the domain that has made it << 16, 1 <<
/// 32: no longer patient. → who had the call, 1 << 16 if the thread's wait may be cut short whatever it is
/// for.
extern "C" fn unwind(tid: ThreadId, site: u64) -> i64 {
    let mut told = Vec::new();
    let outcome = request(|m, machine| {
        let current = current()?;
        let ended =
            m.unwind(machine, current, tid.number(), site & 0xffff, (site >> 16) as u16, site >> 32 == 0)?;
        told = ended.told;
        Ok(u64::from(ended.callee) | u64::from(ended.cut) << 16)
    });
    for index in told {
        let _ = portal::call_once(index.into(), []);
    }
    outcome
}

/// So many portals the domain may have besides those that it was born with.
extern "C" fn limit(asid: Asid, portals: u64) -> i64 {
    request(|m, _| {
        m.domain(asid)?.most = Some((portals as usize).min(MAX_PORTALS));
        Ok(0)
    })
}

/// One of the domain's threads has ended, whichever way: its controllers need a stack less for it.
extern "C" fn thread_gone(asid: Asid) -> i64 {
    request(|m, _| {
        m.domain(asid)?;
        m.unserve(asid.number(), 1);
        Ok(0)
    })
}
