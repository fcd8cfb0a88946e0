//! What others do for the process server, typed.

use pebble::abi::{errno, map};
use pebble::api::{self, Errno};
use pebble::link::Import;
use pebble_process::{PAGE_LIMIT, THREAD_LIMIT};

pebble::import! {
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
    INTERFACE_INFO = "pm.interface_info";
    DOMAIN_ATTACH = "pm.domain_attach";
    OPEN_FOR = "pm.open_for";
    RETIRE = "pm.retire";
    RECLAIM = "pm.reclaim";
    NAME = "name.domain";
    ABORT = "scheduler.domain_abort";
    REAP = "scheduler.reap";
    FILE_GONE = "file.gone";
    CONSOLE_GONE = "console.gone";
    PIPE_GONE = "pipe.gone";
    REAPER = "semaphore.reaper";
    WORK = "semaphore.fault";
}

fn ask(service: &Import, p: [u64; 5]) -> Result<u64, Errno> {
    match service.call(p) {
        Ok(value) if value >= 0 => Ok(value as u64),
        Ok(error) => Err(-error),
        Err(_) => Err(errno::EIO),
    }
}

// --- making ------------------------------------------------------------------------------------

pub fn create(float: bool, priority: u64) -> Result<u16, Errno> {
    ask(&DOMAIN_CREATE, [float.into(), PAGE_LIMIT, priority, THREAD_LIMIT, 0]).map(|d| d as u16)
}

/// Its name in the name server's rules.
pub fn name(domain: u16, [a, b]: [u64; 2]) -> Result<u64, Errno> {
    ask(&NAME, [domain.into(), a, b, 0, 0])
}

/// Fresh pages, zero.
pub fn map(domain: u16, address: u64, pages: u64, rights: u64) -> Result<u64, Errno> {
    ask(&MAP, [domain.into(), address, pages, rights, 0])
}

pub fn heap(domain: u16, address: u64) -> Result<u64, Errno> {
    ask(&HEAP, [domain.into(), address, 0, 0, 0])
}

/// Runs `write` while pages of a domain are at the beginning of the loader's window.
pub fn with_pages(domain: u16, address: u64, pages: u64, write: impl FnOnce()) -> Result<(), Errno> {
    ask(&ATTACH, [domain.into(), address, pages, 0, 0])?;
    write();
    ask(&DETACH, [0, pages, 0, 0, 0]).map(|_| ())
}

/// The system portals.
pub fn fill_table(domain: u16) -> Result<u64, Errno> {
    ask(&DOMAIN_ATTACH, [domain.into(), 0, 0, 0, 0])
}

/// A portal in the domain's table: its index.
pub fn open_for(domain: u16, name: &str) -> Result<u64, Errno> {
    let [a, b, c] = pebble::abi::link::pack::<3>(name).ok_or(errno::ENAMETOOLONG)?;
    ask(&OPEN_FOR, [domain.into(), a, b, c, 0])
}

pub fn spawn_thread(domain: u16, entry: u64) -> Result<u64, Errno> {
    ask(&THREAD_SPAWN, [domain.into(), entry, 0, 0, 0])
}

// --- ending ------------------------------------------------------------------------------------

pub struct FaultRecord {
    pub domain: u16,
    pub cause: u64,
    pub value: u64,
    pub address: u64,
    pub thread: u16,
}

pub fn next_fault() -> Option<FaultRecord> {
    match FAULT_NEXT.call_wide([0; 5]) {
        Ok((domain, [cause, value, address, thread])) if domain >= 0 => {
            Some(FaultRecord { domain: domain as u16, cause, value, address, thread: thread as u16 })
        }
        _ => None,
    }
}

/// Its threads run no further; its memory is free.
pub fn kill(domain: u16) {
    let _ = ask(&DOMAIN_KILL, [domain.into(), 0, 0, 0, 0]);
}

/// Its threads find their way out, its portals and names answer nobody, and the servers let go of what it had.
pub fn withdraw(domain: u16) {
    let _ = ask(&ABORT, [domain.into(), 0, 0, 0, 0]);
    let _ = ask(&RETIRE, [domain.into(), 0, 0, 0, 0]);
    gone(domain);
}

fn gone(domain: u16) {
    for server in [&FILE_GONE, &CONSOLE_GONE, &PIPE_GONE] {
        let _ = ask(server, [domain.into(), 0, 0, 0, 0]);
    }
}

/// Tries to free everything but the number of a dead domain: possible when it has no thread and no thread refers to it.
pub fn reclaim(domain: u16) -> bool {
    let threads =
        DOMAIN_INFO.call_wide([domain.into(), 0, 0, 0, 0]).map_or(0, |(_, [_, _, threads, _])| threads);
    if threads > 0 || ask(&RECLAIM, [domain.into(), 0, 0, 0, 0]) == Err(errno::EAGAIN) {
        return false;
    }
    // A thread that was still inside a server may have opened something since the domain was withdrawn.
    gone(domain);
    true
}

/// The number may be used again.
pub fn free(domain: u16) {
    let _ = ask(&DOMAIN_FREE, [domain.into(), 0, 0, 0, 0]);
}

/// Waits for a thread to exit and frees it.
pub fn reap() {
    let _ = api::sem_wait(REAPER.index());
    if let Ok(thread) = ask(&REAP, [0; 5]) {
        let _ = ask(&THREAD_FREE, [thread, 0, 0, 0, 0]);
    }
}

/// Whether a domain can still do anything: it has threads, or interfaces that others' threads come through.
pub fn active(domain: u16) -> bool {
    const INTERFACES: u64 = 1024;
    match DOMAIN_INFO.call_wide([domain.into(), 0, 0, 0, 0]) {
        Ok((1, [_, _, 0, _])) => {
            (0..INTERFACES).any(|n| ask(&INTERFACE_INFO, [n, 0, 0, 0, 0]) == Ok(domain.into()))
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
