//! Replacing a server while it is called: what the old instance and the new one do.
//!
//! **Problem.** A new version takes over between two calls: none may be lost, done twice, or fail.
//!
//! **Strategy.** A server's state is behind one [`Lock`], so between two calls is when nobody has that lock.
//! To hand over, the old instance takes it, writes its state into a string of bytes, and gives it up
//! *closed*: whoever gets it from then on, at once or after waiting, leaves with status `MOVED`, having done
//! nothing, and the client's library repeats the call until it reaches the successor. A closed lock looks
//! like a taken one, so an open one costs nothing more. Threads that wait for an event are woken
//! ([`Handover::wake`]), want the lock again, and leave by the same way. If the successor refuses, the lock
//! opens again.
//!
//! **Invariants.**
//! * A call that has got the lock open has it until it gives it up; the state is not touched by anybody else.
//! * The state that is handed over is the one after the last call that took place, and no call takes place
//!   until `RESUME`.
//! * Entries that take the lock keep the caller's state (`p` or `f`): they may leave in the middle of a
//!   function.
//!
//! [`replaceable!`](crate::replaceable) makes the two interfaces; `pebble_abi::handover` says what they are
//! asked.

use crate::api::Errno;
use crate::link::More;
use crate::sync::Lock;
use crate::{api, portal};
use alloc::vec::Vec;
use core::slice;
use core::sync::atomic::{AtomicUsize, Ordering};
use pebble_abi::{errno, handover as ask, map, sys};

/// The state of a server that can be replaced.
pub trait Handover {
    /// Where the bytes are gathered: a `Vec<u8>`, or for servers without a heap [`Pages`], or [`Fixed`].
    type Bytes: Bytes;
    /// Writes the state, as if nobody waited for anything, and changes nothing. `newest`: the latest format
    /// that the successor reads. Returns the format used.
    fn save(&self, newest: u64, bytes: &mut Self::Bytes) -> Result<u64, Errno>;
    /// Wakes every thread that waits for an event, and forgets that it waited; the server's own ones too. The
    /// lock is closed.
    fn wake(&mut self) {}
    /// In the successor: becomes what `save` has written, or refuses.
    fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), Errno>;
}

/// A string of bytes that grows.
pub trait Bytes {
    fn clear(&mut self);
    /// False, and no byte is appended, when there is no room.
    fn append(&mut self, bytes: &[u8]) -> bool;
    fn get(&self) -> &[u8];
}

impl Bytes for Vec<u8> {
    fn clear(&mut self) {
        Vec::clear(self);
    }

    fn append(&mut self, bytes: &[u8]) -> bool {
        let room = self.try_reserve(bytes.len()).is_ok();
        if room {
            self.extend_from_slice(bytes);
        }
        room
    }

    fn get(&self) -> &[u8] {
        self
    }
}

/// At most `N` bytes.
pub struct Fixed<const N: usize> {
    len: usize,
    bytes: [u8; N],
}

impl<const N: usize> Fixed<N> {
    pub const fn new() -> Self {
        Fixed { len: 0, bytes: [0; N] }
    }
}

impl<const N: usize> Default for Fixed<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Bytes for Fixed<N> {
    fn clear(&mut self) {
        self.len = 0;
    }

    fn append(&mut self, bytes: &[u8]) -> bool {
        let Some(room) = self.bytes.get_mut(self.len..self.len + bytes.len()) else { return false };
        room.copy_from_slice(bytes);
        self.len += bytes.len();
        true
    }

    fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Bytes in fresh pages, which are there only while a replacement is under way. For components in which
/// nothing else asks for memory.
pub struct Pages {
    at: u64,
    room: usize,
    len: usize,
}

impl Pages {
    pub const fn new() -> Self {
        Pages { at: 0, room: 0, len: 0 }
    }

    /// One page more, behind those that are there.
    fn grow(&mut self) -> bool {
        let Ok(at) = api::sbrk(map::PAGE as i64) else { return false };
        if self.room == 0 {
            self.at = at;
        }
        self.room += map::PAGE as usize;
        self.at + self.room as u64 == at + map::PAGE
    }
}

impl Default for Pages {
    fn default() -> Self {
        Self::new()
    }
}

impl Bytes for Pages {
    fn clear(&mut self) {
        let _ = api::sbrk(-(self.room as i64));
        *self = Self::new();
    }

    fn append(&mut self, bytes: &[u8]) -> bool {
        while self.room - self.len < bytes.len() {
            if !self.grow() {
                return false;
            }
        }
        // SAFETY: `sbrk` has given this component `room` bytes from `at` on, and nobody else.
        let all = unsafe { slice::from_raw_parts_mut(self.at as *mut u8, self.room) };
        all[self.len..][..bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        true
    }

    fn get(&self) -> &[u8] {
        if self.len == 0 {
            return &[];
        }
        // SAFETY: as above; so many bytes have been written.
        unsafe { slice::from_raw_parts(self.at as *const u8, self.len) }
    }
}

/// Where a server's life begins: at boot it goes on at once; a successor waits here, its preparations made,
/// until it is in charge. Called by `main`, before it touches a device or does anything else that the old
/// instance still does.
pub fn ready() {
    if PHASE.compare_exchange(PREPARED, WAITING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
        while PHASE.load(Ordering::Acquire) == WAITING {
            let _ = api::hrsleep(portal::time() + map::TIME_HZ / 1000);
        }
    }
}

/// Of an instance: in charge, or on its way there.
static PHASE: AtomicUsize = AtomicUsize::new(IN_CHARGE);
const IN_CHARGE: usize = 0;
const PREPARED: usize = 1;
const WAITING: usize = 2;

/// Index of the portal through which calls leave.
static EXIT: AtomicUsize = AtomicUsize::new(0);

/// Ends the call that this thread is in with status `MOVED`, in a server that has got the portal for that and
/// is not itself being replaced. The thread holds no lock, and nothing that has a destructor; the entry's
/// portal restores the caller's registers (`p` or `f`).
#[cfg(target_os = "none")]
#[cold]
pub fn call_again() -> ! {
    // SAFETY: the portal runs the error return of the frame by which the domain was entered. Nothing of this
    // activation is used again.
    unsafe { crate::arch::call::leave(sys::LEAVE_MOVED, crate::arch::call::Word::uninit()) }
}

/// Ends the call that this thread is in with status `MOVED`. The thread holds no lock.
#[cold]
pub(crate) fn leave() -> ! {
    // SAFETY: the portal runs the error return of the frame by which the domain was entered, which restores
    // the caller's registers: what takes a lock that can be closed is behind a `p` or `f` portal (see above).
    // Nothing of this activation is used again.
    unsafe { crate::arch::call::leave(EXIT.load(Ordering::Relaxed), crate::arch::call::Word::uninit()) }
}

fn answer(result: Result<u64, Errno>) -> i64 {
    result.map_or_else(|error| -error, |value| value as i64)
}

/// The entry `X.handover`.
#[doc(hidden)]
pub fn hand_over<T: Handover>(
    lock: &Lock<T>,
    bytes: &Lock<T::Bytes>,
    what: u64,
    a: u64,
    b: u64,
    more: &mut More,
) -> i64 {
    answer(match what {
        ask::LEAVE => leave_all(lock, bytes, a, b, more),
        ask::READ => {
            let bytes = bytes.lock();
            let rest = usize::try_from(a).ok().and_then(|a| bytes.get().get(a..)).unwrap_or_default();
            let chunk = &rest[..rest.len().min(ask::CHUNK)];
            for (word, part) in more.iter_mut().zip(chunk.chunks(8)) {
                *word = part.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
            }
            Ok(chunk.len() as u64)
        }
        ask::RESUME => {
            bytes.lock().clear();
            lock.open();
            Ok(0)
        }
        _ => Err(errno::EINVAL),
    })
}

fn leave_all<T: Handover>(
    lock: &Lock<T>,
    bytes: &Lock<T::Bytes>,
    newest: u64,
    exit: u64,
    more: &mut More,
) -> Result<u64, Errno> {
    if exit == 0 || lock.is_closed() {
        return Err(errno::EINVAL);
    }
    let mut bytes = bytes.lock();
    bytes.clear();
    let mut state = lock.lock();
    let format = state.save(newest, &mut bytes)?;
    more[0] = bytes.get().len() as u64;
    EXIT.store(exit as usize, Ordering::Relaxed);
    lock.close();
    state.wake();
    Ok(format)
}

/// The entry `X.takeover`.
#[doc(hidden)]
pub fn take_over<T: Handover>(lock: &Lock<T>, bytes: &Lock<T::Bytes>, what: u64, words: [u64; 4]) -> i64 {
    answer(match what & 0xff {
        ask::PREPARE => {
            PHASE.store(PREPARED, Ordering::Release);
            Ok(0)
        }
        ask::WAITS => Ok((PHASE.load(Ordering::Acquire) == WAITING).into()),
        // Whoever is in charge is not overwritten.
        _ if PHASE.load(Ordering::Acquire) == IN_CHARGE => Err(errno::EPERM),
        ask::APPEND => {
            let mut chunk = [0; ask::CHUNK];
            chunk.chunks_mut(8).zip(words).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
            let chunk = usize::try_from(what >> 8).ok().and_then(|count| chunk.get(..count));
            match chunk.map(|chunk| bytes.lock().append(chunk)) {
                Some(true) => Ok(0),
                Some(false) => Err(errno::ENOMEM),
                None => Err(errno::EINVAL),
            }
        }
        ask::FINISH => {
            let mut bytes = bytes.lock();
            let whole = bytes.get().len() as u64 == words[1];
            let loaded = if whole { lock.lock().load(words[0], bytes.get()) } else { Err(errno::EINVAL) };
            bytes.clear();
            loaded.map(|()| {
                PHASE.store(IN_CHARGE, Ordering::Release);
                0
            })
        }
        _ => Err(errno::EINVAL),
    })
}

/// `replaceable!(LOCK: State, Bytes::new())`: the server whose state is behind `LOCK`, a `Lock<State>` where
/// `State` is [`Handover`](crate::handover::Handover), can be replaced, if its description says so. With two
/// names behind it, for components without a description, it exports the two interfaces too:
/// `replaceable!(LOCK: State, Bytes::new(), "server.handover", "server.takeover")`.
#[macro_export]
macro_rules! replaceable {
    ($lock:ident: $state:ty, $bytes:expr) => {
        #[inline(always)]
        fn handed_over() -> &'static $crate::sync::Lock<<$state as $crate::handover::Handover>::Bytes> {
            static BYTES: $crate::sync::Lock<<$state as $crate::handover::Handover>::Bytes> =
                $crate::sync::Lock::new($bytes);
            &BYTES
        }

        extern "C" fn handover(
            what: u64,
            a: u64,
            b: u64,
            _: u64,
            _: u64,
            _: u64,
            more: &mut $crate::link::More,
        ) -> i64 {
            $crate::handover::hand_over(&$lock, handed_over(), what, a, b, more)
        }

        extern "C" fn takeover(what: u64, a: u64, b: u64, c: u64, d: u64) -> i64 {
            $crate::handover::take_over(&$lock, handed_over(), what, [a, b, c, d])
        }
    };
    ($lock:ident: $state:ty, $bytes:expr, $out:literal, $in:literal) => {
        const _: () = {
    $crate::replaceable!($lock: $state, $bytes);
            $crate::export_wide!($out, "npiii>4", handover);
    $crate::export!($in, "npiiiii", takeover: fn(u64, u64, u64, u64, u64));
        };
    };
}
