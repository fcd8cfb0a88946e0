//! What the shell asks the servers.
//!
//! Their portals are opened at first use: a shell that may not look around still runs programs, and says
//! which interface it was refused.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;
use pebble::abi::errno;
use pebble::abi::link::{pack, unpack};
use pebble::abi::map::MAX_THREADS;
use pebble::api::Errno;
use pebble::client::{name, pipe, pm, process, scheduler, vm};
use pebble::link::{Handle, five};
use pebble::process::Lazy;
use pebble::words::{Asid, PortalIndex};

/// An interface, and what became of asking it.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    interface: &'static str,
    pub error: Errno,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.interface, self.error)
    }
}

struct Service {
    name: &'static str,
    portal: Lazy,
}

impl Service {
    const fn new(name: &'static str) -> Self {
        Service { name, portal: Lazy::new(name) }
    }

    fn failure(&self, error: Errno) -> Failure {
        Failure { interface: self.name, error }
    }

    fn call(&self, p: [u64; 5]) -> Result<u64, Failure> {
        self.portal.call(p).map_err(|error| self.failure(error))
    }

    fn call_wide(&self, p: [u64; 5]) -> Result<(u64, [u64; 4]), Failure> {
        self.portal.call_wide(p).map_err(|error| self.failure(error))
    }
}

impl Handle for Service {
    type Answer = Result<u64, Failure>;
    type Wide = Result<(u64, [u64; 4]), Failure>;

    #[inline]
    fn invoke<const N: usize>(&self, p: [u64; N]) -> Self::Answer {
        self.call(five(p))
    }

    #[inline]
    fn invoke_wide<const N: usize>(&self, p: [u64; N]) -> Self::Wide {
        self.call_wide(five(p))
    }
}

/// The answer, where `ENOENT` says that there is no more.
fn next<T>(answer: Result<T, Failure>) -> Result<Option<T>, Failure> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(failure) if failure.error == errno::ENOENT => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// `NAME: server::Method;`: the interface as a [`Service`].
macro_rules! services {
    ($($name:ident: $server:ident::$method:ident;)*) => {$(
        static $name: $server::$method<Service> = $server::$method(Service::new(<$server::$method>::NAME));
    )*};
}

services! {
    PIPE_CREATE: pipe::Create;
    PIPE_ABANDON: pipe::Abandon;
    KILL: process::Kill;
    PROCESS_LIST: process::List;
    PROCESS_LOG: process::Log;
    DOMAIN_INFO: vm::DomainInfo;
    THREAD_INFO: scheduler::ThreadInfo;
    NAME_LIST: name::List;
    PORTAL_INFO: pm::PortalInfo;
    INTERFACE_INFO: pm::InterfaceInfo;
    COUNT: pm::Count;
    VM_STATS: vm::Stats;
    PM_STATS: pm::Stats;
    REPLACE: process::Replace;
}

fn text(words: &[u64]) -> String {
    let mut bytes = [0; 24];
    let len = unpack(words, &mut bytes[..words.len() * 8]);
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}

/// The token of a new pipe.
pub fn pipe() -> Result<u64, Failure> {
    PIPE_CREATE.call()
}

/// Sides of a pipe for [`abandon`].
pub const READING: u64 = 1;
pub const WRITING: u64 = 2;

/// Nobody will open these sides of the pipe any more. One that is gone already is abandoned enough.
pub fn abandon(pipe: u64, sides: u64) {
    let _ = PIPE_ABANDON.call(pipe, sides);
}

/// The process server tells components apart by so many letters.
const COMPONENT_LETTERS: usize = 16;
/// Longest path of a file for [`replace`].
pub const REPLACEMENT_PATH: usize = 24;

/// Another instance, out of this file, in the place of a server: its domain.
pub fn replace(server: &str, path: &str) -> Result<u64, Failure> {
    let failure = |error| REPLACE.0.failure(error);
    let known = server.get(..COMPONENT_LETTERS).unwrap_or(server);
    let name = pack(known).ok_or_else(|| failure(errno::ENAMETOOLONG))?;
    let path = pack(path).ok_or_else(|| failure(errno::ENAMETOOLONG))?;
    REPLACE.call(name, path)
}

pub fn kill(domain: u16) -> Result<(), Failure> {
    KILL.call(domain.into()).map(|_| ())
}

pub struct Domain {
    pub asid: u16,
    pub name: String,
    /// In words.
    pub state: &'static str,
}

/// Programs, and the components of the image.
pub fn domains() -> Result<Vec<Domain>, Failure> {
    let mut domains = Vec::new();
    let mut from = 0;
    while let Some((asid, [a, b, state, _])) = next(PROCESS_LIST.call(Asid(from)))? {
        let state = match state & 0xffff {
            0 => "loading",
            1 => "suspended",
            2 => "alive",
            3 => "dying",
            _ => "dead",
        };
        domains.push(Domain { asid: asid as u16, name: text(&[a, b]), state });
        from = asid + 1;
    }
    Ok(domains)
}

/// The console's log.
pub fn log() -> Result<Vec<u8>, Failure> {
    let (mut bytes, mut from) = (Vec::new(), 0);
    loop {
        let (end, words) = PROCESS_LOG.call(from)?;
        let count = (end >> 48) as usize;
        // As much as there is; and no more, though others write meanwhile.
        if count == 0 || bytes.len() >= LOG_MOST {
            return Ok(bytes);
        }
        bytes.extend_from_slice(&words.map(u64::to_le_bytes).as_flattened()[..count.min(32)]);
        from = end & ((1 << 48) - 1);
    }
}

/// Bytes of the log that are looked at.
const LOG_MOST: usize = 8192;

/// Priority and pages of a domain; none if it is gone.
pub fn extent(asid: u16) -> Result<Option<(u8, u64)>, Failure> {
    let (state, [_, pages, _, flags]) = DOMAIN_INFO.call(asid.into())?;
    Ok((state != 0).then_some(((flags >> 8) as u8, pages)))
}

#[derive(Clone, Copy)]
pub struct Thread {
    pub number: u16,
    pub home: u16,
    pub priority: u8,
    /// In words.
    pub state: &'static str,
    pub ticks: u64,
    pub switches: u64,
}

/// All threads there are.
pub fn threads() -> Result<Vec<Thread>, Failure> {
    let mut threads = Vec::new();
    for number in 0..MAX_THREADS as u16 {
        let (_, [state, who, ticks, switches]) = THREAD_INFO.call(number.into())?;
        let state = match state & 0xff {
            0 => continue,
            1 => "ready",
            2 => "running",
            3 => "asleep",
            4 | 8 => "waiting",
            6 => "queued",
            7 => "held",
            _ => "exited",
        };
        let (priority, home) = (who as u8, (who >> 8) as u16);
        threads.push(Thread { number, home, priority, state, ticks, switches });
    }
    Ok(threads)
}

/// Names of interfaces with their domains.
pub fn names() -> Result<Vec<(String, u16)>, Failure> {
    let mut names = Vec::new();
    let mut from = 0;
    while let Some((_, [a, b, c, owner])) = next(NAME_LIST.call(from))? {
        names.push((text(&[a, b, c]), owner as u16));
        from = owner >> 16;
    }
    Ok(names)
}

/// What a portal leads to, as the portal manager says it in place of an interface's number.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    Interface(u64),
    /// P and V of a semaphore.
    Wait,
    Signal,
    Closed,
    /// Generated code that calls nobody.
    Code,
}

pub struct Portal {
    pub index: u64,
    pub goal: Goal,
    pub target: u16,
    pub code: u64,
    pub spec: String,
    pub calls: Option<u64>,
}

pub fn portals(domain: u16) -> Result<Vec<Portal>, Failure> {
    let mut portals = Vec::new();
    let mut from = 0;
    while let Some((index, [where_to, spec, calls, _])) =
        next(PORTAL_INFO.call(domain.into(), PortalIndex(from)))?
    {
        let goal = match where_to & 0xffff {
            0xffff => Goal::Code,
            0xfffe => Goal::Wait,
            0xfffd => Goal::Signal,
            0xfffc => Goal::Closed,
            number => Goal::Interface(number),
        };
        portals.push(Portal {
            index,
            goal,
            target: (where_to >> 16) as u16,
            code: where_to >> 32,
            spec: text(&[spec]),
            calls: (calls != u64::MAX).then_some(calls),
        });
        from = index + 1;
    }
    Ok(portals)
}

/// The name of an interface.
pub fn interface(number: u64) -> Result<String, Failure> {
    let (_, [a, b, c, _]) = INTERFACE_INFO.call(number)?;
    Ok(text(&[a, b, c]))
}

/// Has the portals of a domain made again with, or without, a counter in them.
pub fn count(domain: u16, on: bool) -> Result<(), Failure> {
    COUNT.call(domain.into(), on.into()).map(|_| ())
}

/// Free pages, all pages, domains, threads; portals, bytes of code, semaphores, interfaces.
pub fn totals() -> Result<([u64; 4], [u64; 4]), Failure> {
    let (_, memory) = VM_STATS.call()?;
    let (_, portals) = PM_STATS.call()?;
    Ok((memory, portals))
}
