//! The portals that every domain has (`pebble_abi::sys`), typed.

use crate::portal::{Broken, call, call_once, time};
use pebble_abi::{control, errno, link, map, sys};

/// What a service answered: its error number (positive).
pub type Errno = i64;

fn answer(result: Result<i64, Broken>) -> Result<u64, Errno> {
    match result {
        Ok(value) if value >= 0 => Ok(value as u64),
        Ok(error) => Err(-error),
        Err(_) => Err(errno::EIO),
    }
}

pub fn get_asid() -> u16 {
    call_once(sys::SYS_GET_ASID, []).unwrap_or(0) as u16
}

pub fn get_thread_id() -> u16 {
    call_once(sys::SYS_GET_THREAD_ID, []).unwrap_or(0) as u16
}

/// Ticks of 100 ns since power-on.
pub fn hrtime() -> u64 {
    call_once(sys::SYS_HRTIME, []).unwrap_or(0) as u64
}

pub fn yield_now() {
    let _ = call_once(sys::SYS_YIELD, []);
}

/// Sleeps until an absolute time in ticks.
pub fn hrsleep(until: u64) -> Result<u64, Errno> {
    answer(call_once(sys::SYS_HRSLEEP, [until]))
}

/// Starts a thread in this domain; it ends when `entry` returns. Priority 0: that of the caller.
pub fn thread_create(entry: extern "C" fn(u64), argument: u64, priority: u8) -> Result<u16, Errno> {
    answer(call(sys::SYS_THREAD_CREATE, [entry as usize as u64, argument, priority.into()])).map(|t| t as u16)
}

pub fn sbrk(bytes: i64) -> Result<u64, Errno> {
    answer(call(sys::SYS_SBRK, [bytes as u64]))
}

/// Ends the domain.
pub fn exit(status: i64) -> ! {
    loop {
        let _ = call(sys::SYS_EXIT, [status as u64]);
    }
}

fn name_words(name: &str) -> Result<[u64; 3], Errno> {
    link::pack::<3>(name).ok_or(errno::ENAMETOOLONG)
}

/// A portal to what is offered under that name.
pub fn portal_open(name: &str) -> Result<usize, Errno> {
    let [a, b, c] = name_words(name)?;
    for _ in 0..PATIENCE {
        match answer(call(sys::SYS_PORTAL_OPEN, [a, b, c])) {
            // An exporter's policy is being asked; one at a time.
            Err(errno::EBUSY) => drop(hrsleep(time() + map::TIME_HZ / 1000)),
            opened => return opened.map(|i| i as usize),
        }
    }
    Err(errno::EBUSY)
}

/// How often an open is tried while others' are being decided, with a millisecond in between.
const PATIENCE: u32 = 1000;

/// Who may open an own interface, the name server's rules apart. Portals that are open stay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Guard {
    /// Whoever the rules allow: so it is at first.
    Names,
    /// Nobody who is not admitted afterwards.
    List,
    /// This domain too.
    Admit(u16),
    /// For whom the portal at this index answers 1: it is called with the domain that opens, and the interface's number, and has 50 ms.
    Ask(usize),
}

pub fn portal_guard(interface: u16, guard: Guard) -> Result<u64, Errno> {
    let (way, word) = match guard {
        Guard::Names => (control::guard::NAMES, 0),
        Guard::List => (control::guard::LIST, 0),
        Guard::Admit(domain) => (control::guard::ADMIT, domain.into()),
        Guard::Ask(index) => (control::guard::ASK, index as u64),
    };
    answer(call(sys::SYS_CONTROL, [control::GUARD | way << 16, interface.into(), word]))
}

/// Offers `entry` to other domains. The specification has at most 8 characters here; `results` is its `>n`.
pub fn portal_register(name: &str, spec: &str, entry: u64, results: u8) -> Result<u16, Errno> {
    let [a, b, c] = name_words(name)?;
    let [spec] = link::pack::<1>(spec).ok_or(errno::EINVAL)?;
    answer(call(sys::SYS_PORTAL_REGISTER, [a, b, c, spec, entry | (results as u64) << 32])).map(|i| i as u16)
}

/// Number of this domain's own interface of that name.
pub fn own_interface(name: &str) -> Result<u64, Errno> {
    let [a, b, c] = name_words(name)?;
    answer(call(sys::SYS_INTERFACE, [a, b, c]))
}

/// Index of P; V is the next. A wait on it ends with EINTR when the waiting thread's domain dies.
pub fn sem_create(initial: u64) -> Result<usize, Errno> {
    answer(call(sys::SYS_SEM_CREATE, [initial, 0])).map(|i| i as usize)
}

/// As [`sem_create`], for locks: a wait inside a server goes on even if the thread's own domain has died.
pub fn sem_create_patient(initial: u64) -> Result<usize, Errno> {
    answer(call(sys::SYS_SEM_CREATE, [initial, 1])).map(|i| i as usize)
}

pub fn sem_open(name: &str) -> Result<usize, Errno> {
    let [a, b, c] = name_words(name)?;
    answer(call(sys::SYS_SEM_OPEN, [a, b, c])).map(|i| i as usize)
}

pub fn sem_publish(index: usize, name: &str) -> Result<u64, Errno> {
    let [a, b, c] = name_words(name)?;
    answer(call(sys::SYS_SEM_PUBLISH, [index as u64, a, b, c]))
}

/// P. Fails when the wait was cut short. The scheduler is replaced without a call being told of it, so none is repeated.
#[inline]
pub fn sem_wait(index: usize) -> Result<u64, Errno> {
    answer(call_once(index, []))
}

/// V.
#[inline]
pub fn sem_post(index: usize) -> Result<u64, Errno> {
    answer(call_once(index + 1, []))
}

/// For servers, inside a call: `count` portals into this domain, its interfaces from `interface` on with `constant` compiled in, in
/// the table of the domain that called.
pub fn portal_create(interface: u64, count: u64, constant: u64) -> Result<usize, Errno> {
    answer(call(sys::SYS_PORTAL_CREATE, [interface, count, constant])).map(|i| i as usize)
}

/// For servers, inside a call: takes portals into this domain away from the domain that called.
pub fn portal_remove(index: usize, count: usize) -> Result<u64, Errno> {
    answer(call(sys::SYS_PORTAL_REMOVE, [index as u64, count as u64]))
}

/// Gives up own portals.
pub fn portal_close(index: usize, count: usize) -> Result<u64, Errno> {
    answer(call(sys::SYS_PORTAL_CLOSE, [index as u64, count as u64]))
}
