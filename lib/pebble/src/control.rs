//! Interposition: children all of whose portals lead to a handler here.
//!
//! [`handler!`](crate::handler) makes an entry of a function that gets each call of a child. [`pass`] goes on
//! with the call as the child would have made it; what it returns, status and further results included, is
//! the [`Answer`] that the child gets. Children are copies of this domain ([`fork`]), or programs that have
//! been spawned and not started ([`control`]). A handler may have a second function, for plain portals such
//! as a semaphore's, whose calls go on with [`pass_plain`]: that is eight instructions beside the stub's two
//! legs.

use crate::api::{Errno, PortalError, answer, made, spec_words};
use crate::arch::control::{copied, detour, fork_frame, pass_index, pass_to};
use crate::portal::{call, call_wide};
use core::sync::atomic::{AtomicUsize, Ordering};
use pebble_abi::control::{APART, BEHALF_INDEX, CREATE_CHILD, NAME, NOTICE, NOTIFY, PLACE};
use pebble_abi::{errno, link, sys};

/// What a portal, or a handler for it, answers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    pub value: i64,
    /// Transport status (`pebble_abi::status`).
    pub status: u64,
    pub more: [u64; 6],
}

impl From<i64> for Answer {
    fn from(value: i64) -> Self {
        Answer { value, ..Answer::default() }
    }
}

/// The entry of a handler, as [`handler!`](crate::handler) makes it.
pub type Entry = extern "C" fn() -> i64;

/// What a plain portal answers, one that takes no words and gives no further results. In registers it is what
/// a portal returns.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Plain {
    pub value: i64,
    pub status: u64,
}

impl From<Answer> for Plain {
    fn from(Answer { value, status, .. }: Answer) -> Self {
        Plain { value, status }
    }
}

/// `handler!(entry = function)`: an [`Entry`] for `fn(usize, [u64; 5]) -> Answer`. `handler!(entry =
/// function, plain = other)`: calls of plain portals that are not the system's go to another function,
/// `fn(usize) -> Plain`, without a detour over memory.
#[macro_export]
#[allow_internal_unsafe]
macro_rules! handler {
    ($entry:ident = $function:path) => {
        $crate::handler!(@ $entry, $function, |index| $function(index, [0; 5]).into());
    };
    ($entry:ident = $function:path, plain = $plain:path) => {
        $crate::handler!(@ $entry, $function, $plain);
    };
    (@ $entry:ident, $function:path, $plain:expr) => {
        #[unsafe(naked)]
        extern "C" fn $entry() -> i64 {
            extern "C" fn plain(index: u64) -> $crate::control::Plain {
                let function: fn(usize) -> $crate::control::Plain = $plain;
                function(index as usize)
            }
            extern "C" fn call(
                index: u64,
                a: u64,
                b: u64,
                c: u64,
                d: u64,
                e: u64,
                answer: &mut $crate::control::Answer,
            ) {
                let function: fn(usize, [u64; 5]) -> $crate::control::Answer = $function;
                *answer = function(index as usize, [a, b, c, d, e]);
            }
            $crate::handles!(plain, call)
        }
    };
}

/// First portal on behalf of the child that is being served; 0 until there is a child.
static BEHALF: AtomicUsize = AtomicUsize::new(0);

/// Index of the first portal on behalf, after [`prepare`]: a child that is a controller calls these for its
/// own children.
pub fn behalf() -> usize {
    BEHALF.load(Ordering::Relaxed)
}

/// Goes on with a child's call: system portals act on the child.
pub fn pass(index: usize, p: [u64; 5]) -> Answer {
    let place = PLACE.get(index).copied().unwrap_or(0);
    let behalf = BEHALF.load(Ordering::Relaxed);
    let index = if place > 0 && behalf > 0 { behalf + usize::from(place) - 1 } else { index };
    let mut answer = Answer::default();
    // SAFETY: as for any portal call, and the answer has room for all result registers.
    unsafe { pass_to(index as u64, p[0], p[1], p[2], p[3], p[4], &mut answer) };
    answer
}

/// Goes on with a call of a plain portal: [`pass`] where there is nothing to pass.
#[inline]
pub fn pass_plain(index: usize) -> Plain {
    // SAFETY: as for any portal call; this one has neither words nor further results.
    unsafe { pass_index(index as u64) }
}

/// Before there is a child: it may call at once. By itself for who cares at which indices the portals on
/// behalf lie.
pub fn prepare() -> Result<(), Errno> {
    prepare_from(0)
}

/// As [`prepare`]; what this domain opens from now on has indices out of the reach of children that are
/// controllers, too.
pub fn prepare_apart() -> Result<(), Errno> {
    prepare_from(APART)
}

fn prepare_from(own: u64) -> Result<(), Errno> {
    let first = answer(call(sys::SYS_CONTROL, [BEHALF_INDEX, own, 0, 0]))?;
    BEHALF.store(first as usize, Ordering::Relaxed);
    Ok(())
}

/// A copy of this domain with the calling thread alone: its number; 0 in the copy. The copy's program must
/// not rely on other threads.
pub fn fork(handler: Entry) -> Result<u16, Errno> {
    prepare()?;
    // SAFETY: the registers that a call keeps are on the stack, which the copy has too.
    answer(Ok(unsafe { fork_frame(handler as usize as u64) })).map(|child| child as u16)
}

/// [`fork_frame`] has pushed the preserved registers there.
pub(crate) extern "C" fn copy(handler: u64, sp: u64) -> i64 {
    let child = match answer(call(sys::SYS_PROCESS, [0, handler, sp, 0])) {
        Ok(child) => child,
        Err(error) => return -error,
    };
    let started = answer(call(sys::SYS_PROCESS, [child, 0, copied as *const () as u64, sp]));
    started.map_or_else(|error| -error, |child| child as i64)
}

/// Walls around a child that has been spawned and not started.
pub fn control(child: u16, handler: Entry) -> Result<(), Errno> {
    prepare()?;
    answer(call(sys::SYS_PROCESS, [child.into(), handler as usize as u64, 0, 0])).map(|_| ())
}

/// The name of the interface behind one of this domain's own portals; a controller's children have what it
/// has.
pub fn name(index: usize) -> Result<[u64; 3], Errno> {
    match call_wide(sys::SYS_CONTROL, [NAME, index as u64, 0, 0, 0]) {
        Ok((0, [a, b, c, _])) => Ok([a, b, c]),
        Ok((error, _)) => Err(Errno::of(error)),
        Err(_) => Err(errno::EIO),
    }
}

/// A stub at an index of a child, whatever was there; an empty specification takes it away.
pub fn create_child(
    child: u16,
    index: usize,
    spec: &str,
    constant: u64,
    handler: Entry,
) -> Result<(), PortalError> {
    let (letters, results) = spec.split_once('>').unwrap_or((spec, "0"));
    let [first, rest] = spec_words(letters)?;
    let results: u64 = results.parse().map_err(|_| errno::EINVAL)?;
    let what = CREATE_CHILD | u64::from(child) << 16 | (index as u64) << 32;
    let entry = handler as usize as u64 | results << 32 | rest << 40;
    made(call_wide(sys::SYS_CONTROL, [what, first, constant, entry])).map(|_| ())
}

/// What is told of changes of the own table: index and specification, empty if the portal is gone.
pub type Notify = fn(usize, &str);

static NOTIFIED: AtomicUsize = AtomicUsize::new(0);

/// `function` runs before any call returns that changed the table of this domain.
pub fn notify(function: Option<Notify>) -> Result<(), Errno> {
    let resume = if function.is_some() { detour as *const () as u64 } else { 0 };
    NOTIFIED.store(function.map_or(0, |f| f as usize), Ordering::Relaxed);
    answer(call(sys::SYS_CONTROL, [NOTIFY, resume, 0, 0])).map(|_| ())
}

/// Tells all changes; where to go on.
pub(crate) extern "C" fn changes() -> u64 {
    loop {
        let (found, [index, first, rest, _]) =
            call_wide(sys::SYS_CONTROL, [NOTICE, 0, 0, 0]).unwrap_or_default();
        if found <= 0 {
            return index;
        }
        let mut bytes = [0; 16];
        let len = link::unpack(&[first, rest], &mut bytes);
        let function = NOTIFIED.load(Ordering::Relaxed);
        if function != 0 {
            // SAFETY: `notify` has stored it.
            let function: Notify = unsafe { core::mem::transmute(function) };
            function(index as usize, core::str::from_utf8(&bytes[..len]).unwrap_or_default());
        }
    }
}
