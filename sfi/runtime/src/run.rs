//! A sandboxed command-line program: `_start` with arguments and environment, until it exits.

use crate::deadline::Limit;
use crate::error::{Error, LoadError};
use crate::fault::{CallError, Cause, Fault};
use crate::imports::Imports;
use crate::instance::Instance;
use crate::layout::PAGE;
use crate::module::Module;
use crate::policy::Policy;
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// How a program ended otherwise than by exiting.
#[derive(Debug)]
pub enum RunError {
    Load(LoadError),
    Set(Error),
    Call(CallError),
    Fault(Box<Fault>),
}

impl fmt::Display for RunError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunError::Load(e) => e.fmt(f),
            RunError::Set(e) => e.fmt(f),
            RunError::Call(e) => e.fmt(f),
            RunError::Fault(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for RunError {}

impl From<Error> for RunError {
    fn from(e: Error) -> RunError {
        RunError::Set(e)
    }
}

/// Runs the program in `file` under the policy; `arguments` begin with its name. Its exit code.
pub fn run(
    file: &Path,
    arguments: &[impl AsRef<OsStr>],
    policy: impl Into<Arc<Policy>>,
    limit: impl Into<Limit>,
) -> Result<i32, RunError> {
    let policy = policy.into();
    let module = Module::open(file).map_err(RunError::Load)?;
    let mut imports = Imports::new();
    imports.lenient = true;
    imports.no_timer = policy.no_timer;
    imports.system_calls()?;
    run_module(&module, &imports, arguments, policy, limit)
}

/// The same for a module that is loaded, with imports of one's own besides `pbl_syscall`.
pub fn run_module(
    module: &Arc<Module>,
    imports: &Imports,
    arguments: &[impl AsRef<OsStr>],
    policy: impl Into<Arc<Policy>>,
    limit: impl Into<Limit>,
) -> Result<i32, RunError> {
    let instance = Instance::new(&imports.link(module)?)?;
    let policy = policy.into();
    let start = first_words(&instance, arguments, &policy)?;
    instance.granted(&policy, start.end)?;
    let portal = instance.portal("_start", "smi")?;
    if policy.fence {
        // Behind it this thread could not learn how large its stack is.
        instance.attach()?;
        crate::fence::raise(&policy)?;
    }
    match portal.call_within(limit, &[start.at]) {
        // `_start` that comes back has `main`'s value, unless its last act was a jump to `exit`.
        Ok(value) => Ok(instance.exit_code().unwrap_or(value as i32)),
        Err(CallError::Fault(fault)) if fault.cause == Cause::Exit => Ok(instance.exit_code().unwrap_or(0)),
        Err(CallError::Fault(fault)) => Err(RunError::Fault(fault)),
        Err(error) => Err(RunError::Call(error)),
    }
}

struct Start {
    at: u64,
    /// Offset of the first page that is free.
    end: u64,
}

/// The block that a C library finds at its start: count, arguments, environment, auxiliary vector, and the
/// strings.
fn first_words(
    instance: &Instance,
    arguments: &[impl AsRef<OsStr>],
    policy: &Policy,
) -> Result<Start, Error> {
    const AT_PAGESZ: u64 = 6;
    const AT_RANDOM: u64 = 25;
    let strings = |texts: Vec<&[u8]>| texts.into_iter().map(|t| [t, b"\0"].concat()).collect::<Vec<_>>();
    let arguments = strings(arguments.iter().map(|a| a.as_ref().as_bytes()).collect());
    let environment = strings(policy.environment.iter().map(|v| v.as_bytes()).collect());
    let words = 1 + arguments.len() + 1 + environment.len() + 1 + 6;
    let mut random = [0u8; 16];
    // SAFETY: writes sixteen bytes of ours; without them the domain's canary is weak, which is its own
    // matter.
    unsafe { libc::getrandom(random.as_mut_ptr().cast(), 16, 0) };
    let offset = instance.shared.module.end();
    let at = instance.shared.base + offset;
    let mut text = Vec::new();
    let place = |bytes: &[u8], text: &mut Vec<u8>| {
        let here = at + words as u64 * 8 + text.len() as u64;
        text.extend(bytes);
        here
    };
    let mut block = vec![arguments.len() as u64];
    block.extend(arguments.iter().map(|t| place(t, &mut text)).collect::<Vec<_>>());
    block.push(0);
    block.extend(environment.iter().map(|t| place(t, &mut text)).collect::<Vec<_>>());
    block.push(0);
    let random = place(&random, &mut text);
    block.extend([AT_PAGESZ, PAGE, AT_RANDOM, random, 0, 0]);
    let mut bytes: Vec<u8> = block.iter().flat_map(|w| w.to_le_bytes()).collect();
    bytes.extend(text);
    let pages = (bytes.len() as u64).next_multiple_of(PAGE);
    crate::os::anonymous(at, pages, crate::os::PROT_READ | crate::os::PROT_WRITE)
        .map_err(crate::error::system("placing arguments"))?;
    instance.shared.poke(offset, &bytes)?;
    Ok(Start { at, end: offset + pages })
}
