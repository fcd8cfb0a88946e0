//! What others do for the process server, typed.

use pebble::abi::fault::Cause;
use pebble::abi::specification::{Reason, SpecificationError};
use pebble::abi::{errno, link, map};
use pebble::api::{self, Errno, PortalError};
use pebble::link::Import;
use pebble::words::{Asid, PortalIndex, ThreadId, VirtAddr};
use pebble_boot::Grant;
use pebble_process::manifest::{Limits, WHOLE};

pebble::import! {
    pub WILL_WAKE = "scheduler.will_wake";
    pub WAKE = "scheduler.wake";
    DOMAIN_CREATE = "vm.domain_create";
    MAP = "vm.map";
    HEAP = "vm.heap";
    ATTACH = "vm.attach";
    DETACH = "vm.detach";
    THREAD_SPAWN = "vm.thread_spawn";
    DOMAIN_INFO = "vm.domain_info";
    DOMAIN_KILL = "vm.domain_kill";
    DOMAIN_FREE = "vm.domain_free";
    THREAD_FREE = "vm.thread_free";
    FAULT_NEXT = "vm.fault_next";
    DUMP = "vm.dump";
    FRAME = "pm.frame";
    PORTAL_INFO = "pm.portal_info";
    CONSOLE_LOG = "console.log";
    STATS = "vm.stats";
    INTERFACE_INFO = "pm.interface_info";
    DOMAIN_ATTACH = "pm.domain_attach";
    CONTROL = "pm.control_new";
    SUBJECT = "pm.subject";
    FORK = "vm.fork";
    THREAD_FORK = "vm.thread_fork";
    OPEN_FOR = "pm.open_for";
    LIMIT = "pm.limit";
    THREAD_GONE = "pm.thread_gone";
    RETIRE = "pm.retire";
    RECLAIM = "pm.reclaim";
    NAME = "name.domain";
    ABORT = "scheduler.domain_abort";
    REAP = "scheduler.reap";
    SHARE = "scheduler.share";
    PRIORITY = "scheduler.priority";
    THREAD_INFO = "scheduler.thread_info";
    FILE_FIXED = "file.fixed";
    FILE_GONE = "file.gone";
    CONSOLE_GONE = "console.gone";
    PIPE_GONE = "pipe.gone";
    CLOCK_GONE = "clock.gone";
    CAPABILITIES_GONE = "?cap.forget";
    DEVICE_GONE = "?device.gone";
    HOLDER = "pm.holder";
    ADOPT = "pm.adopt";
    IMPORT = "pm.import";
    OFFER = "pm.offer";
    REACH = "pm.reach";
    PREPARE = "pm.prepare";
    COMMIT = "pm.commit";
    ABANDON = "pm.abandon";
    BUSY = "pm.busy";
    KEEP = "pm.keep_role";
    LET_LEAVE = "pm.let_leave";
    REGISTER_FOR = "pm.register_for";
    MAP_FOREIGN = "vm.map_foreign";
    MAP_SHOWN = "vm.map_shown";
    DISCHARGE = "vm.discharge";
    FAMILY = "vm.family";
    REAPER = "semaphore.reaper";
    WORK = "semaphore.fault";
}

fn ask(service: &Import, p: [u64; 5]) -> Result<u64, Errno> {
    api::answer(service.call(p))
}

// --- making ------------------------------------------------------------------------------------

pub fn create(float: bool, priority: u64, limits: &Limits) -> Result<Asid, Errno> {
    ask(&DOMAIN_CREATE, [float.into(), limits.pages, priority, limits.threads, 0]).map(Asid)
}

/// Pages that the machine has left.
pub fn free_pages() -> Result<u64, Errno> {
    match STATS.call_wide([0; 5]) {
        Ok((0, [free, ..])) => Ok(free),
        _ => Err(errno::EIO),
    }
}

/// With whom it shares what is scarce: said before it has any.
pub fn family(domain: Asid, family: Asid) -> Result<u64, Errno> {
    ask(&FAMILY, [domain.get(), family.get(), 0, 0, 0])
}

/// So many portals it may open.
pub fn limit(domain: Asid, portals: u64) -> Result<u64, Errno> {
    ask(&LIMIT, [domain.get(), portals, 0, 0, 0])
}

/// Its name in the name server's rules.
pub fn name(domain: Asid, [a, b]: [u64; 2]) -> Result<u64, Errno> {
    ask(&NAME, [domain.get(), a, b, 0, 0])
}

/// The number of a file whose contents never change; 0 of another.
pub fn fixed(path: &[u64; 5]) -> Result<u64, Errno> {
    ask(&FILE_FIXED, *path)
}

/// Fresh pages, zero.
pub fn map(domain: Asid, address: VirtAddr, pages: u64, rights: u64) -> Result<u64, Errno> {
    ask(&MAP, [domain.get(), address.get(), pages, rights, 0])
}

/// Pages of the archive that this server sees.
pub fn map_shown(
    domain: Asid,
    address: VirtAddr,
    from: VirtAddr,
    pages: u64,
    rights: u64,
) -> Result<u64, Errno> {
    ask(&MAP_SHOWN, [domain.get(), address.get(), from.get(), pages << 16 | rights, 0])
}

pub fn heap(domain: Asid, address: VirtAddr) -> Result<u64, Errno> {
    ask(&HEAP, [domain.get(), address.get(), 0, 0, 0])
}

/// Runs `write` while pages of a domain are at the beginning of the loader's window.
pub fn with_pages(domain: Asid, address: VirtAddr, pages: u64, write: impl FnOnce()) -> Result<(), Errno> {
    ask(&ATTACH, [domain.get(), address.get(), pages, 0, 0])?;
    write();
    ask(&DETACH, [0, pages, 0, 0, 0]).map(|_| ())
}

/// The system portals.
pub fn fill_table(domain: Asid) -> Result<u64, Errno> {
    ask(&DOMAIN_ATTACH, [domain.get(), 0, 0, 0, 0])
}

/// A portal in the domain's table: its index.
pub fn open_for(domain: Asid, name: &str) -> Result<PortalIndex, PortalError> {
    let [a, b, c] = link::pack::<3>(name).ok_or(errno::ENAMETOOLONG)?;
    api::made(OPEN_FOR.call_wide([domain.get(), a, b, c, 0])).map(|(index, _)| PortalIndex(index))
}

pub fn spawn_thread(domain: Asid, entry: VirtAddr) -> Result<u64, Errno> {
    ask(&THREAD_SPAWN, [domain.get(), entry.get(), 0, 0, 0])
}

// --- interposition -----------------------------------------------------------------------------

/// Whom a call is for.
pub struct Subject {
    pub domain: Asid,
    /// The controlled domain that the caller serves, and its controller and handler: for what it starts.
    pub served: Option<Asid>,
    pub control: Option<(Asid, VirtAddr)>,
}

pub fn subject() -> Result<Subject, Errno> {
    match SUBJECT.call_wide([0; 5]) {
        Ok((domain, [_, served, controller, handler])) if domain > 0 => Ok(Subject {
            domain: Asid(domain as u64),
            served: (served != 0).then_some(Asid(served)),
            control: (served != 0).then_some((Asid(controller), VirtAddr(handler))),
        }),
        _ => Err(errno::EIO),
    }
}

/// All portals of a domain that does not run lead to the handler in its controller; `copy`: it has as many.
pub fn control(domain: Asid, controller: Asid, handler: VirtAddr, copy: bool) -> Result<u64, Errno> {
    ask(&CONTROL, [domain.get(), controller.get(), handler.get(), copy.into(), 0])
}

/// The child gets a copy of the parent's memory, of its stacks only that in which `sp` points.
pub fn copy_memory(parent: Asid, child: Asid, sp: VirtAddr) -> Result<u64, Errno> {
    ask(&FORK, [parent.get(), child.get(), sp.get(), 0, 0])
}

/// The thread of a copy.
pub fn thread_fork(child: Asid, entry: VirtAddr, sp: VirtAddr) -> Result<u64, Errno> {
    ask(&THREAD_FORK, [child.get(), entry.get(), sp.get(), 0, 0])
}

/// Of a living domain: whether it uses floating point, its priority.
pub fn traits(domain: Asid) -> Result<(bool, u64), Errno> {
    match DOMAIN_INFO.call_wide([domain.get(), 0, 0, 0, 0]) {
        Ok((1, [_, _, _, flags])) => Ok((flags & 1 == 1, flags >> 8 & 0xff)),
        _ => Err(errno::ESRCH),
    }
}

/// An interface of the domain: its number.
pub fn register(domain: Asid, name: &str, spec: &str, entry: u64) -> Result<u64, PortalError> {
    described(&REGISTER_FOR, domain, link::pack::<3>(name).ok_or(errno::ENAMETOOLONG)?, spec, entry)
}

/// A request with name, specification (up to 8 letters, then `>n`), entry and domain.
fn described(
    service: &Import,
    domain: Asid,
    [a, b, c]: [u64; 3],
    spec: &str,
    entry: u64,
) -> Result<u64, PortalError> {
    let (letters, results) = spec.split_once('>').unwrap_or((spec, "0"));
    let wrong = |reason, at| PortalError::Specification(domain.number(), SpecificationError::new(reason, at));
    let [first] = link::pack::<1>(letters).ok_or(wrong(Reason::TooLong, 8))?;
    let results: u64 = results.parse().map_err(|_| wrong(Reason::BadResults, letters.len() + 1))?;
    let answer = service.call_wide([a, b, c, first, entry | results << 32 | domain.get() << 40]);
    api::made(answer).map(|(number, _)| number)
}

// --- replacing -----------------------------------------------------------------------------------

pub fn create_component(float: bool, priority: u8) -> Result<Asid, Errno> {
    ask(
        &DOMAIN_CREATE,
        [u64::from(float) | map::EAGER, COMPONENT_PAGES, priority.into(), COMPONENT_THREADS, 0],
    )
    .map(Asid)
}

const COMPONENT_PAGES: u64 = 8192;
const COMPONENT_THREADS: u64 = 32;

/// The living domain that has a role.
pub fn holder(role: u16) -> Result<Option<Asid>, Errno> {
    ask(&HOLDER, [role.into(), 0, 0, 0, 0]).map(|domain| Some(Asid(domain)).filter(|d| *d != Asid(0)))
}

pub fn map_foreign(domain: Asid, g: &Grant) -> Result<u64, Errno> {
    let rights = map::READ | if g.write { map::WRITE } else { 0 };
    ask(&MAP_FOREIGN, [domain.get(), g.va, g.pa, u64::from(g.pages) << 16 | rights, 0])
}

pub fn adopt(role: u16, domain: Asid) -> Result<u64, Errno> {
    ask(&ADOPT, [role.into(), domain.get(), 0, 0, 0])
}

/// A portal that the role has, in the successor's table: its index.
pub fn import(domain: Asid, name: &str) -> Result<PortalIndex, PortalError> {
    let [a, b, c] = link::pack::<3>(name).ok_or(errno::ENAMETOOLONG)?;
    Ok(PortalIndex(ask(&IMPORT, [domain.get(), a, b, c, 0])?))
}

pub fn offer(domain: Asid, name: [u64; 3], spec: &str, entry: u64) -> Result<u64, PortalError> {
    described(&OFFER, domain, name, spec, entry)
}

/// A portal of this domain to what a successor offers under that name.
pub fn reach(domain: Asid, [a, b, c]: &[u64; 3]) -> Result<usize, Errno> {
    ask(&REACH, [domain.get(), *a, *b, *c, 0]).map(|index| index as usize)
}

/// A portal of this domain to an interface.
pub fn open_own(&[a, b, c]: &[u64; 3]) -> Result<usize, Errno> {
    ask(&OPEN_FOR, [api::get_asid().into(), a, b, c, 0]).map(|index| index as usize)
}

/// Compiles the portals of all clients.
pub fn prepare(domain: Asid) -> Result<u64, Errno> {
    ask(&PREPARE, [domain.get(), 0, 0, 0, 0])
}

/// From now on they lead to the successor.
pub fn commit(domain: Asid) -> Result<u64, Errno> {
    ask(&COMMIT, [domain.get(), 0, 0, 0, 0])
}

pub fn abandon(domain: Asid) {
    let _ = ask(&ABANDON, [domain.get(), 0, 0, 0, 0]);
}

/// The domain gets the portal through which calls leave with status `MOVED`.
pub fn let_leave(domain: Asid) -> Result<u64, Errno> {
    ask(&LET_LEAVE, [domain.get(), 0, 0, 0, 0])
}

/// Whether a thread is in a call that the domain has not answered.
pub fn busy(domain: Asid) -> bool {
    ask(&BUSY, [domain.get(), 0, 0, 0, 0]) == Ok(1)
}

/// Names of the role stay reserved when its domain dies.
pub fn keep_role(role: u16, keep: bool) -> Result<u64, Errno> {
    ask(&KEEP, [role.into(), keep.into(), 0, 0, 0])
}

/// The system no longer stops if the domain does.
pub fn discharge(domain: Asid) {
    let _ = ask(&DISCHARGE, [domain.get(), 0, 0, 0, 0]);
}

// --- ending ------------------------------------------------------------------------------------

pub struct FaultRecord {
    pub domain: Asid,
    pub cause: Cause,
    pub value: u64,
    pub address: VirtAddr,
    pub thread: ThreadId,
}

pub fn next_fault() -> Option<FaultRecord> {
    match FAULT_NEXT.call_wide([0; 5]) {
        Ok((domain, [cause, value, address, thread])) if domain >= 0 => Some(FaultRecord {
            domain: Asid(domain as u64),
            cause: Cause::of(cause),
            value,
            address: VirtAddr(address),
            thread: ThreadId(thread),
        }),
        _ => None,
    }
}

/// Four words kept of a domain that has died of a fault, and the offset of the fault's frame.
pub fn dump(domain: Asid, offset: u64) -> Option<(u64, [u64; 4])> {
    match DUMP.call_wide([domain.get(), offset, 0, 0, 0]) {
        Ok((top @ 0.., words)) => Some((top as u64, words)),
        _ => None,
    }
}

/// What kind of frame it is that returns to this address: words, caller, callee, index, 16 bits each.
pub fn frame(address: VirtAddr) -> Option<u64> {
    ask(&FRAME, [address.get(), 0, 0, 0, 0]).ok()
}

/// The name of the interface that a domain's portal leads to.
pub fn portal_name(domain: Asid, index: PortalIndex) -> Option<[u64; 3]> {
    let (found, [shown, ..]) = PORTAL_INFO.call_wide([domain.get(), index.get(), 0, 0, 0]).ok()?;
    let (owner, [a, b, c, _]) = INTERFACE_INFO.call_wide([shown & 0xffff, 0, 0, 0, 0]).ok()?;
    (found as u64 == index.get() && owner > 0).then_some([a, b, c])
}

/// The next bytes of the console's log, from this one on.
pub fn log(from: u64) -> Result<(u64, [u64; 4]), Errno> {
    match CONSOLE_LOG.call_wide([from, 0, 0, 0, 0]) {
        Ok((end, words)) => Ok((Errno::answer(end)?, words)),
        Err(_) => Err(errno::EIO),
    }
}

/// Its manifest's share of the processor, if that is not the whole.
pub fn keep_share(domain: Asid, limits: &Limits) -> Result<(), Errno> {
    if limits.cpu == WHOLE { Ok(()) } else { share(domain, limits.cpu).map(|_| ()) }
}

/// A thread's priority.
pub fn priority(thread: ThreadId) -> u64 {
    THREAD_INFO.call_wide([thread.get(), 0, 0, 0, 0]).map_or(0, |(_, more)| more[1] & 0xff)
}

pub fn set_priority(thread: ThreadId, priority: u64) {
    let _ = ask(&PRIORITY, [thread.get(), priority, 0, 0, 0]);
}

/// So many percent of the processor, at most.
pub fn share(domain: Asid, percent: u64) -> Result<u64, Errno> {
    ask(&SHARE, [domain.get(), percent, 0, 0, 0])
}

/// The scheduler lets go of a domain's threads, a few a call.
fn abort(what: u64) {
    let mut from = 0;
    while let Ok(next @ 1..) = ask(&ABORT, [what | from << 32, 0, 0, 0, 0]) {
        from = next;
    }
}

/// Its threads run no further; its memory is free.
pub fn kill(domain: Asid) {
    let _ = ask(&DOMAIN_KILL, [domain.get(), 0, 0, 0, 0]);
}

/// Its threads find their way out, its portals and names answer nobody, and the servers let go of what it
/// had.
pub fn withdraw(domain: Asid, name: [u64; 2]) {
    abort(domain.get());
    let _ = ask(&RETIRE, [domain.get(), 0, 0, 0, 0]);
    // Who has come meanwhile, to wait for a stack of the domain's, calls again and finds the portal closed.
    abort(domain.get());
    gone(domain, name);
}

/// Its threads have had time enough to find their way out: one that somebody does not let go is no more
/// urgent now than the domain was.
pub fn calm(domain: Asid) {
    if let Ok((_, [_, _, _, flags])) = DOMAIN_INFO.call_wide([domain.get(), 0, 0, 0, 0]) {
        let priority = flags >> 8 & 0xff;
        abort(domain.get() | (priority + 1) << 16);
    }
}

fn gone(domain: Asid, [a, b]: [u64; 2]) {
    for server in [&FILE_GONE, &CONSOLE_GONE, &PIPE_GONE, &CLOCK_GONE, &CAPABILITIES_GONE, &DEVICE_GONE]
        .into_iter()
        .filter(|server| server.bound())
    {
        let _ = ask(server, [domain.get(), a, b, 0, 0]);
    }
}

/// Tries to free everything but the number of a dead domain: possible when it has no thread and no thread
/// refers to it.
pub fn reclaim(domain: Asid, name: [u64; 2]) -> bool {
    let threads =
        DOMAIN_INFO.call_wide([domain.get(), 0, 0, 0, 0]).map_or(0, |(_, [_, _, threads, _])| threads);
    if threads > 0 || ask(&RECLAIM, [domain.get(), 0, 0, 0, 0]) == Err(errno::EAGAIN) {
        return false;
    }
    // A thread that was still inside a server may have opened something since the domain was withdrawn.
    gone(domain, name);
    true
}

/// The number may be used again.
pub fn free(domain: Asid) {
    let _ = ask(&DOMAIN_FREE, [domain.get(), 0, 0, 0, 0]);
}

/// Waits for a thread to exit and frees it. Whose it was.
pub fn reap() -> Option<Asid> {
    let _ = api::sem_wait(REAPER.index());
    let freed = ask(&REAP, [0; 5]).and_then(|thread| ask(&THREAD_FREE, [thread, 0, 0, 0, 0]));
    let home = freed.ok()?;
    // Who returns from its first function comes past no controller: none has seen it end.
    let _ = ask(&THREAD_GONE, [home, 0, 0, 0, 0]);
    Some(Asid(home))
}

/// Whether a domain can still do anything: it has threads, or interfaces that others' threads come through.
pub fn active(domain: Asid) -> bool {
    const INTERFACES: u64 = 1024;
    match DOMAIN_INFO.call_wide([domain.get(), 0, 0, 0, 0]) {
        Ok((1, [_, _, 0, _])) => {
            (0..INTERFACES).any(|n| ask(&INTERFACE_INFO, [n, 0, 0, 0, 0]) == Ok(domain.get()))
        }
        _ => true,
    }
}

// --- the undertaker's semaphore ------------------------------------------------------------------

/// There is work for the undertaker. VM signals faults on the same semaphore.
pub fn signal() {
    let _ = api::sem_post(WORK.index());
}

pub fn wait_for_work() {
    let _ = api::sem_wait(WORK.index());
}

/// Pages that the loader's window holds at once.
pub const WINDOW_PAGES: u64 = 64;
const _: () = assert!(WINDOW_PAGES * map::PAGE <= 0x100_0000);
