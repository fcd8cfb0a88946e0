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
use pebble::portal::{self, Wide};
use pebble::process::Lazy;

/// An interface, and what became of asking it.
#[derive(Clone, Copy, Debug)]
pub struct Failure {
    interface: &'static str,
    pub error: Errno,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}: {}", self.interface, errno::text(self.error))
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

    fn wide(&self, a: u64, b: u64) -> Result<(u64, [u64; 4]), Failure> {
        let index = self.portal.index().map_err(|error| self.failure(error))?;
        let (value, more): Wide =
            portal::call_wide(index, [a, b, 0, 0, 0]).map_err(|_| self.failure(errno::EIO))?;
        if value < 0 { Err(self.failure(-value)) } else { Ok((value as u64, more)) }
    }

    /// As [`wide`](Self::wide), where `ENOENT` says that there is no more.
    fn next(&self, a: u64, b: u64) -> Result<Option<(u64, [u64; 4])>, Failure> {
        match self.wide(a, b) {
            Ok(answer) => Ok(Some(answer)),
            Err(failure) if failure.error == errno::ENOENT => Ok(None),
            Err(failure) => Err(failure),
        }
    }
}

static PIPE_CREATE: Service = Service::new("pipe.create");
static PIPE_ABANDON: Service = Service::new("pipe.abandon");
static KILL: Service = Service::new("process.kill");
static PROCESS_LIST: Service = Service::new("process.list");
static PROCESS_LOG: Service = Service::new("process.log");
static DOMAIN_INFO: Service = Service::new("vm.domain_info");
static THREAD_INFO: Service = Service::new("scheduler.thread_info");
static NAME_LIST: Service = Service::new("name.list");
static PORTAL_INFO: Service = Service::new("pm.portal_info");
static INTERFACE_INFO: Service = Service::new("pm.interface_info");
static COUNT: Service = Service::new("pm.count");
static VM_STATS: Service = Service::new("vm.stats");
static PM_STATS: Service = Service::new("pm.stats");

fn text(words: &[u64]) -> String {
    let mut bytes = [0; 24];
    let len = unpack(words, &mut bytes[..words.len() * 8]);
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}

/// The token of a new pipe.
pub fn pipe() -> Result<u64, Failure> {
    PIPE_CREATE.call([0; 5])
}

/// Sides of a pipe for [`abandon`].
pub const READING: u64 = 1;
pub const WRITING: u64 = 2;

/// Nobody will open these sides of the pipe any more. One that is gone already is abandoned enough.
pub fn abandon(pipe: u64, sides: u64) {
    let _ = PIPE_ABANDON.call([pipe, sides, 0, 0, 0]);
}

static REPLACE: Service = Service::new("process.replace");

/// The process server tells components apart by so many letters.
const COMPONENT_LETTERS: usize = 16;
/// Longest path of a file for [`replace`].
pub const REPLACEMENT_PATH: usize = 24;

/// Another instance, out of this file, in the place of a server: its domain.
pub fn replace(server: &str, path: &str) -> Result<u64, Failure> {
    let failure = |error| REPLACE.failure(error);
    let known = server.get(..COMPONENT_LETTERS).unwrap_or(server);
    let [a, b] = pack::<2>(known).ok_or_else(|| failure(errno::ENAMETOOLONG))?;
    let [c, d, e] = pack::<3>(path).ok_or_else(|| failure(errno::ENAMETOOLONG))?;
    REPLACE.portal.call([a, b, c, d, e]).map_err(failure)
}

pub fn kill(domain: u16) -> Result<(), Failure> {
    KILL.call([domain.into(), 0, 0, 0, 0]).map(|_| ())
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
    while let Some((asid, [a, b, state, _])) = PROCESS_LIST.next(from, 0)? {
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
        let (end, words) = PROCESS_LOG.wide(from, 0)?;
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
    let (state, [_, pages, _, flags]) = DOMAIN_INFO.wide(asid.into(), 0)?;
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
        let (_, [state, who, ticks, switches]) = THREAD_INFO.wide(number.into(), 0)?;
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
    while let Some((_, [a, b, c, owner])) = NAME_LIST.next(from, 0)? {
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
    while let Some((index, [where_to, spec, calls, _])) = PORTAL_INFO.next(domain.into(), from)? {
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
    let (_, [a, b, c, _]) = INTERFACE_INFO.wide(number, 0)?;
    Ok(text(&[a, b, c]))
}

/// Has the portals of a domain made again with, or without, a counter in them.
pub fn count(domain: u16, on: bool) -> Result<(), Failure> {
    COUNT.call([domain.into(), on.into(), 0, 0, 0]).map(|_| ())
}

/// Free pages, all pages, domains, threads; portals, bytes of code, semaphores, interfaces.
pub fn totals() -> Result<([u64; 4], [u64; 4]), Failure> {
    let (_, memory) = VM_STATS.wide(0, 0)?;
    let (_, portals) = PM_STATS.wide(0, 0)?;
    Ok((memory, portals))
}
