//! One error type a boundary: loading, making instances and portals. What a domain does wrong is a
//! [`crate::Fault`].

use crate::fault::CallError;
use crate::layout::{DATA_STACK, MAX_DATA_STACKS, RETURN_STACK};
use crate::thread::MAX_LINKS;
use pebble_portal::SpecError;
use pebble_portal::fault::emit::x86_64::EmitError;
use pebble_portal::fault::verify::x86_64::Refusal;
use std::fmt;
use std::io;

/// Why a file is no module, and at which byte of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    pub offset: u64,
    pub reason: &'static str,
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {:#x}: {}", self.offset, self.reason)
    }
}

impl std::error::Error for Malformed {}

/// Loading a module.
#[derive(Debug)]
pub enum LoadError {
    Read(io::Error),
    Malformed(Malformed),
    /// The verifier's word: rule and address.
    Refused(String),
    /// Memory for the code.
    System(io::Error),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Read(e) => write!(f, "cannot read the module: {e}"),
            LoadError::Malformed(e) => write!(f, "not a module: {e}"),
            LoadError::Refused(why) => write!(f, "refused by the verifier: {why}"),
            LoadError::System(e) => write!(f, "no memory for the module: {e}{}", remedy(e)),
        }
    }
}

/// What to do about an error of the kernel's.
fn remedy(error: &io::Error) -> &'static str {
    match error.raw_os_error() {
        Some(libc::ENOMEM) => {
            "; let the process have more (ulimit -v, vm.overcommit_memory, vm.max_map_count)"
        }
        Some(libc::EMFILE | libc::ENFILE) => "; let the process have more open files (ulimit -n)",
        _ => "",
    }
}

impl std::error::Error for LoadError {}

impl From<Malformed> for LoadError {
    fn from(e: Malformed) -> LoadError {
        LoadError::Malformed(e)
    }
}

/// What a signal handler is told.
pub(crate) const REENTERED: &str = "this thread is in a fault domain or in its runtime: a signal handler \
    that interrupted it can neither call portals nor reset instances";

/// Everything after loading.
#[derive(Debug)]
pub enum Error {
    System {
        doing: &'static str,
        error: io::Error,
    },
    /// More instances than the address space has slots for.
    NoSlot,
    /// More threads or nested stacks in one instance than it has room for.
    NoStack,
    /// More connections to other instances.
    NoLink,
    /// More portals than the code area holds.
    NoCode,
    Spec(SpecError),
    Portal(EmitError),
    /// The portal verifier does not accept what the compiler has made.
    Refused(Refusal),
    NoExport(String),
    /// The module's own specification asks for something of the host's, which has given none itself: the
    /// letter, and its place.
    Consent {
        export: String,
        spec: String,
        letter: char,
        at: usize,
    },
    NoImport(Vec<String>),
    /// A call into the instance is outstanding, or another thread has left it by `longjmp`.
    Busy,
    /// A signal handler asks, which has interrupted a domain, a portal or this runtime on its thread.
    Reentered,
    /// The memory does not belong to the instance, or to no region.
    OutOfBounds,
    /// No room in the window area, or the place is taken.
    NoWindow,
    EmptyRegion,
    /// The argument (from 0) is no window, or what counts its bytes is no word.
    NoExtent(usize),
    /// A constructor of the module has not come to its end.
    Constructor(Box<CallError>),
    /// This process is a child of the one that made the instances; it may call them, and make no more.
    Forked,
    /// The host demands level `full`; or no timer, and there is one here.
    NotFull,
    Timer(u32),
    /// The second fence cannot be a wall for this.
    NoLandlock(&'static str),
    /// Behind the second fence nothing more becomes executable.
    Fenced,
    /// The instance has so many bytes, wants so many more, and may have so many.
    Memory {
        has: u64,
        wants: u64,
        limit: u64,
    },
    /// More than one instance, where segment bases cannot be set from user mode.
    NoSegmentBase,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::System { doing, error } => write!(f, "{doing}: {error}{}", remedy(error)),
            Error::NoSlot => write!(f, "too many instances: no slot of address space is left"),
            Error::NoStack => write!(
                f,
                "an instance has room for {MAX_DATA_STACKS} stacks, one for each thread that has called it \
                 and lives, and one more if by a portal that begins with n; let fewer threads call it, or \
                 make more instances"
            ),
            Error::NoLink => write!(f, "an instance is connected to at most {MAX_LINKS} exports of others"),
            Error::NoCode => write!(f, "too many portals: the code area is full"),
            Error::Spec(e) => write!(f, "portal specification: {e}"),
            Error::Portal(e) => write!(f, "portal: {e}"),
            Error::Refused(e) => {
                write!(f, "the portal verifier refused a portal, which is a mistake of the compiler: {e}")
            }
            Error::Consent { export, spec, letter, at } => write!(
                f,
                "'{export}' asks for \"{spec}\", of which letter {} ('{letter}') gives it something of the \
                 host's; a host that agrees passes the specification itself when it opens the portal",
                at + 1
            ),
            Error::NoExport(name) => write!(f, "the module does not export '{name}'"),
            Error::NoImport(names) => {
                write!(f, "nobody provides what the module imports: {}", names.join(", "))
            }
            Error::Busy => {
                write!(
                    f,
                    "a call into the instance is outstanding, or longjmp left it unfinished: then the thread \
                     that jumped can reset it, with pbl_instance_reset"
                )
            }
            Error::Reentered => write!(f, "{REENTERED}"),
            Error::OutOfBounds => write!(f, "the memory is not the instance's, or belongs to no region"),
            Error::NoWindow => write!(f, "no room for this window or shared region"),
            Error::EmptyRegion => write!(f, "a region has one byte at least"),
            Error::NoExtent(argument) => {
                let n = argument + 1;
                write!(
                    f,
                    "a length is given for argument {n}, which is no window (w r o), or counts with no word \
                     (i c)"
                )
            }
            Error::Constructor(why) => {
                write!(
                    f,
                    "a constructor of the module's (a global object, or a function with that attribute) did \
                     not end well: {why}"
                )
            }
            Error::Forked => {
                write!(
                    f,
                    "a forked child can neither make nor reset instances, nor open portals or come in with a \
                     new thread: its parent shares their tables; start another program (exec) for that"
                )
            }
            Error::NotFull => write!(
                f,
                "the module is of level write, whose code can read all of the process's memory, and level \
                 full is demanded; compile it with -fpbl-level=full"
            ),
            Error::Timer(at) => {
                write!(
                    f,
                    "the module reads a clock of the processor's at {at:#x} (rdtsc), and none is demanded; \
                     compile it with -fpbl-no-timer"
                )
            }
            Error::NoLandlock(who) => write!(
                f,
                "{who} cannot be fenced: this kernel has no Landlock, or an old one (files want Linux 5.13, \
                 ports 6.7, and \"landlock\" in /sys/kernel/security/lsm); run it without the second fence, \
                 or in a container"
            ),
            Error::Fenced => write!(
                f,
                "the process is behind the second fence, where no portal can be made any more: make \
                 instances and portals before"
            ),
            Error::Memory { has, wants, limit } => {
                let kib = |bytes: &u64| bytes.div_ceil(1024);
                write!(
                    f,
                    "the instance may have {} KiB of memory, and has {} with its image, stacks ({STACK_KIB} \
                     KiB each), heap and mappings",
                    limit / 1024,
                    kib(has)
                )?;
                if *wants > 0 {
                    write!(f, ", and needs {} more", kib(wants))?;
                }
                write!(f, "; let its policy give it more (--memory, Policy::memory, pbl_policy_memory)")
            }
            Error::NoSegmentBase => {
                write!(
                    f,
                    "a second instance needs the FSGSBASE instructions (Linux 5.9, Ivy Bridge); without them \
                     a process has one at a time"
                )
            }
        }
    }
}

impl std::error::Error for Error {}

impl From<SpecError> for Error {
    fn from(e: SpecError) -> Error {
        Error::Spec(e)
    }
}

impl From<Refusal> for Error {
    fn from(e: Refusal) -> Error {
        Error::Refused(e)
    }
}

impl From<EmitError> for Error {
    fn from(e: EmitError) -> Error {
        Error::Portal(e)
    }
}

const STACK_KIB: u64 = (DATA_STACK + RETURN_STACK) / 1024;

pub fn system(doing: &'static str) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::System { doing, error }
}
