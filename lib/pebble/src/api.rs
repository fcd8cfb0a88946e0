//! The portals that every domain has (`pebble_abi::sys`), typed.

use crate::portal::{Broken, Wide, call, call_once, call_wide, call_wide_once, repeat, time};
use core::fmt;
use pebble_abi::consent::Letters;
use pebble_abi::specification::{Reason, SpecificationError};
use pebble_abi::{control, errno, link, map, status, sys};

pub use pebble_abi::errno::Errno;

/// What a service has answered; a call that failed is `EIO`.
#[inline]
pub fn answer(result: Result<i64, Broken>) -> Result<u64, Errno> {
    result.map_or(Err(errno::EIO), Errno::answer)
}

pub fn get_asid() -> u16 {
    call_once(sys::SYS_GET_ASID, []).unwrap_or(0) as u16
}

pub fn get_thread_id() -> u16 {
    call_once(sys::SYS_GET_THREAD_ID, []).unwrap_or(0) as u16
}

/// Ticks since power-on, of which a second has `map::TIME_HZ`.
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
        let _ = call(sys::SYS_EXIT, [crate::io::last_word(status)]);
    }
}

fn name_words(name: &str) -> Result<[u64; 3], Errno> {
    link::pack::<3>(name).ok_or(errno::ENAMETOOLONG)
}

/// A portal to what is offered under that name, if it takes no more than any stranger may have: `n`, `p`,
/// `f`, words, and what the portal supplies; or if the image's manifest answers for the interface. What takes
/// more is opened by [`portal_open_as`].
pub fn portal_open(name: &str) -> Result<usize, Errno> {
    Ok(portal_open_with(name, Letters::NONE)?.index)
}

/// A portal to what is offered under that name with this very specification, whose letters are given.
pub fn portal_open_as(name: &str, spec: &str) -> Result<usize, PortalError> {
    let opened = portal_open_with(name, Letters::of(spec))?;
    if opened.spec.as_str() == spec {
        return Ok(opened.index);
    }
    let _ = portal_close(opened.index, 1);
    Err(PortalError::Other(opened.spec))
}

/// A portal to what is offered under that name, which may take these letters besides what any stranger may
/// have.
pub fn portal_open_with(name: &str, given: Letters) -> Result<Opened, PortalError> {
    let [a, b, c] = name_words(name)?;
    // Names and letters are words, so no page of a stack must come for them, which may take a portal itself.
    let attempt = || call_wide_once(sys::SYS_PORTAL_OPEN, [a, b, c, given.word()]);
    for _ in 0..PATIENCE {
        match attempt().or_else(|broken| repeat(broken, attempt)) {
            // An exporter's policy is being asked; one at a time.
            Ok((error, _)) if error == -errno::EBUSY => drop(hrsleep(time() + map::TIME_HZ / 1000)),
            answer => {
                let (index, [first, rest, ..]) = made(answer)?;
                return Ok(Opened { index: index as usize, spec: SpecText::new([first, rest]) });
            }
        }
    }
    Err(PortalError::Errno(errno::EBUSY))
}

/// An open portal, and the specification that its exporter has written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    pub index: usize,
    pub spec: SpecText,
}

/// The text of a specification, as calls pass it: whoever only wants the portal does not pay for the text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SpecText([u8; link::SPECLEN]);

impl SpecText {
    fn new([first, rest]: [u64; 2]) -> Self {
        let mut bytes = [0; link::SPECLEN];
        bytes[..8].copy_from_slice(&first.to_le_bytes());
        bytes[8..].copy_from_slice(&rest.to_le_bytes());
        SpecText(bytes)
    }

    pub fn as_str(&self) -> &str {
        let len = self.0.iter().position(|letter| *letter == 0).unwrap_or(link::SPECLEN);
        core::str::from_utf8(&self.0[..len]).unwrap_or_default()
    }
}

impl fmt::Debug for SpecText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

/// Why there is no portal, or no interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortalError {
    Errno(Errno),
    /// Something is wrong with a specification, which is this domain's.
    Specification(u16, SpecificationError),
    /// The exporter asks for a letter that is not given: status `CONSENT`, which names letter and domains.
    Refused(Broken),
    /// The interface has this specification, not the one that was expected.
    Other(SpecText),
}

impl fmt::Display for PortalError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PortalError::Errno(error) => error.fmt(f),
            PortalError::Specification(domain, error) => {
                write!(f, "specification of domain {domain}, {error}")
            }
            PortalError::Refused(why) => why.fmt(f),
            PortalError::Other(spec) => write!(f, "{}: {}", errno::EPROTO, spec.as_str()),
        }
    }
}

impl From<Errno> for PortalError {
    fn from(error: Errno) -> Self {
        PortalError::Errno(error)
    }
}

impl From<PortalError> for Errno {
    fn from(why: PortalError) -> Self {
        match why {
            PortalError::Errno(error) => error,
            PortalError::Specification(_, error) => error.errno(),
            PortalError::Refused(_) => errno::EPROTOTYPE,
            PortalError::Other(_) => errno::EPROTO,
        }
    }
}

impl PortalError {
    /// Out of an error number and the word beside it.
    pub fn new(error: Errno, why: u64) -> Self {
        match SpecificationError::from_status(why) {
            Some((domain, error)) => PortalError::Specification(domain, error),
            None if error == errno::EPROTOTYPE && status::code(why) == status::CONSENT => {
                PortalError::Refused(Broken(why))
            }
            None => PortalError::Errno(error),
        }
    }
}

/// What the portal manager has made: a number and further words; or why there is none in the first of them.
pub fn made(answer: Result<Wide, Broken>) -> Result<(u64, [u64; 4]), PortalError> {
    match answer {
        Ok((value @ 0.., more)) => Ok((value as u64, more)),
        Ok((error, [why, ..])) => Err(PortalError::new(Errno::of(error), why)),
        Err(_) => Err(errno::EIO.into()),
    }
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
    /// For whom the portal at this index answers 1: it is called with the domain that opens, and the
    /// interface's number, and has 50 ms.
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

/// Offers `entry` to other domains. The specification has at most 11 characters here; `results` is its `>n`.
pub fn portal_register(name: &str, spec: &str, entry: u64, results: u8) -> Result<u16, PortalError> {
    let [a, b, c] = name_words(name)?;
    let [first, rest] = spec_words(spec)?;
    let entry = entry | u64::from(results) << 32 | rest << 40;
    made(call_wide(sys::SYS_PORTAL_REGISTER, [a, b, c, first, entry])).map(|(number, _)| number as u16)
}

/// Characters of a specification that a call passes, those before `>`.
const SPEC_LETTERS: usize = 11;

/// These characters: eight in one word, three in the other.
pub(crate) fn spec_words(letters: &str) -> Result<[u64; 2], PortalError> {
    let words = link::pack::<2>(letters).filter(|_| letters.len() <= SPEC_LETTERS);
    words.ok_or_else(|| {
        PortalError::Specification(get_asid(), SpecificationError::new(Reason::TooLong, SPEC_LETTERS))
    })
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

/// A semaphore without units for a lock, patient as that of [`sem_create_patient`]: while somebody waits on
/// that of a component of the image, whoever holds the lock gets to run.
pub fn sem_create_lock() -> Result<usize, Errno> {
    answer(call(sys::SYS_SEM_CREATE, [0, 2])).map(|i| i as usize)
}

/// As [`sem_create`]: a wait inside a server goes on even if the thread's own domain has died.
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

/// P. Fails when the wait was cut short. The scheduler is replaced without a call being told of it, so none
/// is repeated.
#[inline]
pub fn sem_wait(index: usize) -> Result<u64, Errno> {
    answer(call_once(index, []))
}

/// V.
#[inline]
pub fn sem_post(index: usize) -> Result<u64, Errno> {
    answer(call_once(index + 1, []))
}

/// For servers, inside a call: `count` portals into this domain, its interfaces from `interface` on with
/// `constant` compiled in, in the table of the domain that called.
pub fn portal_create(interface: u64, count: u64, constant: u64) -> Result<usize, PortalError> {
    made(call_wide(sys::SYS_PORTAL_CREATE, [interface, count, constant])).map(|(index, _)| index as usize)
}

/// The same for interfaces whose specifications are known to be good.
pub(crate) fn portal_create_known(interface: u64, count: u64, constant: u64) -> Result<usize, Errno> {
    answer(call(sys::SYS_PORTAL_CREATE, [interface, count, constant])).map(|index| index as usize)
}

/// For servers, inside a call: takes portals into this domain away from the domain that called.
pub fn portal_remove(index: usize, count: usize) -> Result<u64, Errno> {
    answer(call(sys::SYS_PORTAL_REMOVE, [index as u64, count as u64]))
}

/// Gives up own portals.
pub fn portal_close(index: usize, count: usize) -> Result<u64, Errno> {
    answer(call(sys::SYS_PORTAL_CLOSE, [index as u64, count as u64]))
}
