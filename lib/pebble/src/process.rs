//! Starting other programs: the process server's interfaces, opened at first use.

use crate::api::{self, Errno};
use crate::client::process;
use crate::link::{Handle, five};
use crate::portal::{Broken, call, call_wide};
use core::sync::atomic::{AtomicUsize, Ordering};
use pebble_abi::call::IO_BYTES;
use pebble_abi::errno;
use pebble_abi::link::{Startup, pack};

/// A portal opened by name when it is first needed.
pub struct Lazy {
    name: &'static str,
    index: AtomicUsize,
}

impl Lazy {
    pub const fn new(name: &'static str) -> Self {
        Lazy { name, index: AtomicUsize::new(0) }
    }

    pub fn index(&self) -> Result<usize, Errno> {
        match self.index.load(Ordering::Relaxed) {
            0 => {
                let index = api::portal_open(self.name)?;
                self.index.store(index, Ordering::Relaxed);
                Ok(index)
            }
            index => Ok(index),
        }
    }

    pub fn call(&self, p: [u64; 5]) -> Result<u64, Errno> {
        Errno::answer(call(self.index()?, p).map_err(Broken::errno)?)
    }

    /// With further results.
    pub fn call_wide(&self, p: [u64; 5]) -> Result<(u64, [u64; 4]), Errno> {
        let (value, more) = call_wide(self.index()?, p).map_err(Broken::errno)?;
        Ok((Errno::answer(value)?, more))
    }
}

impl Handle for Lazy {
    type Answer = Result<u64, Errno>;
    type Wide = Result<(u64, [u64; 4]), Errno>;

    #[inline]
    fn invoke<const N: usize>(&self, p: [u64; N]) -> Self::Answer {
        self.call(five(p))
    }

    #[inline]
    fn invoke_wide<const N: usize>(&self, p: [u64; N]) -> Self::Wide {
        self.call_wide(five(p))
    }
}

static SPAWN: process::Spawn<Lazy> = process::Spawn::lazy();
static ARGUMENT: process::Argument<Lazy> = process::Argument::lazy();
static STDIO: process::Stdio<Lazy> = process::Stdio::lazy();
static START: process::Start<Lazy> = process::Start::lazy();
static WAIT: process::Wait<Lazy> = process::Wait::lazy();
static KILL: process::Kill<Lazy> = process::Kill::lazy();

/// Opens now what would be opened at first use: for controllers, whose children see the gaps between their
/// own indices.
pub fn prepare() -> Result<(), Errno> {
    [&SPAWN.0, &ARGUMENT.0, &STDIO.0, &START.0, &WAIT.0, &KILL.0]
        .into_iter()
        .try_for_each(|lazy| lazy.index().map(|_| ()))
}

/// Longest path of a standard file.
pub const STDIO_PATH: usize = 32;

/// A program being made, then a child. Dropping it does not kill it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Child(pub u16);

impl Child {
    /// Loads the program; it does not run yet.
    pub fn load(path: &str) -> Result<Child, Errno> {
        let words = pack::<5>(path).ok_or(errno::ENAMETOOLONG)?;
        SPAWN.call(words).map(|asid| Child(asid as u16))
    }

    /// Adds an argument; the first is the program's name.
    pub fn argument(&self, text: &str) -> Result<(), Errno> {
        self.append(text, 0)
    }

    /// Adds a `NAME=value` to its environment, behind the last argument.
    pub fn environment(&self, text: &str) -> Result<(), Errno> {
        self.append(text, Startup::ENVIRONMENT)
    }

    fn append(&self, text: &str, whose: u64) -> Result<(), Errno> {
        let mut bytes = text.bytes().chain([0]).peekable();
        while bytes.peek().is_some() {
            let mut words = [0u64; 4];
            let mut count = 0;
            for byte in bytes.by_ref().take(IO_BYTES) {
                words[count / 8] |= u64::from(byte) << (count % 8 * 8);
                count += 1;
            }
            ARGUMENT.call(u64::from(self.0) | (count as u64 | whose) << 16, words)?;
        }
        Ok(())
    }

    /// Its standard file `n`: a path of at most [`STDIO_PATH`] bytes, which it opens itself when it first uses
    /// the file. What it writes to file 1 or 2 goes to the end.
    pub fn stdio(&self, n: usize, path: &str) -> Result<(), Errno> {
        let path = pack::<{ STDIO_PATH / 8 }>(path).ok_or(errno::ENAMETOOLONG)?;
        STDIO.call(u64::from(self.0) | (n as u64) << 16, path).map(|_| ())
    }

    pub fn start(&self) -> Result<(), Errno> {
        START.call(self.0.into()).map(|_| ())
    }

    /// Its exit status.
    pub fn wait(&self) -> Result<i64, Errno> {
        WAIT.call(self.0.into()).map(|status| status as i64)
    }

    pub fn kill(&self) -> Result<(), Errno> {
        KILL.call(self.0.into()).map(|_| ())
    }

    /// Loads and starts a program whose standard files are the console.
    pub fn run(path: &str, arguments: &[&str]) -> Result<Child, Errno> {
        let child = Child::load(path)?;
        let prepare = || {
            for argument in arguments {
                child.argument(argument)?;
            }
            for n in 0..3 {
                child.stdio(n, "/dev/console")?;
            }
            child.start()
        };
        match prepare() {
            Ok(()) => Ok(child),
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                Err(error)
            }
        }
    }
}
