//! Where portal code lies: one area of the process that is executable here and writable elsewhere.
//!
//! Domains can read its addresses, in their portal tables. It lies beside the slots, so they learn from it
//! where fault domains are, and nothing of where the process's libraries, stack and heap are.
//!
//! Portals that say the same are one portal: code is found again by what it was compiled from, and counted.

use crate::debugger::{self, Named};
use crate::error::{Error, system};
use crate::layout::{CODE, page_up};
use crate::os;
use crate::slots;
use pebble_portal::fault::emit::x86_64::emit;
use pebble_portal::fault::verify::x86_64::verify;
use pebble_portal::fault::{Crossing, Door};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

const BYTES: u64 = CODE;
/// Portals begin at cache lines.
const LINE: usize = 64;

/// All that a portal was compiled from.
type Key = (Vec<u8>, [u64; 12]);

/// What a portal was compiled from, its lines, and what a debugger knows of it.
type Owner = (Key, usize, Option<Named>);

#[derive(Default)]
pub struct Arena {
    /// Where it is written; 0 when nobody may write it any more.
    writable: u64,
    used: u64,
    /// Free pieces by their length in lines.
    free: HashMap<usize, Vec<u64>>,
    portals: HashMap<Key, (u64, usize)>,
    owners: HashMap<u64, Owner>,
}

static ARENA: Mutex<Option<Arena>> = Mutex::new(None);
/// Where it is executed; 0 before there is one. Read by the signal handler.
static BEGIN: AtomicU64 = AtomicU64::new(0);

/// Whether the address is in portal code.
pub fn contains(address: u64) -> bool {
    let begin = BEGIN.load(Ordering::Acquire);
    begin != 0 && address.wrapping_sub(begin) < BYTES
}

fn key(door: &Door, c: &Crossing) -> Key {
    let flags = u64::from(c.control)
        | u64::from(c.hide) << 1
        | u64::from(c.wide) << 2
        | u64::from(c.x87) << 3
        | (c.way as u64) << 4
        | u64::from(c.caller_control) << 6
        | u64::from(c.caller_x87) << 7;
    let numbers = [
        flags | u64::from(c.touched) << 16 | u64::from(c.link) << 32 | u64::from(c.index) << 48,
        u64::from(c.caller_slot) | u64::from(c.callee_slot) << 32,
        c.entry,
        c.current as u64,
        c.no_stack,
        c.lend,
        c.give_back,
        c.description,
        c.constant,
        u64::from(c.caller),
        door.stack as u64,
        door.state as u64,
    ];
    (door.args.to_vec(), numbers)
}

impl Arena {
    fn new(begin: u64) -> std::io::Result<Arena> {
        let file = os::memory_file(c"pebble-sfi-portals", BYTES)?;
        let writable = os::anywhere(BYTES, os::PROT_READ | os::PROT_WRITE, &file)?;
        os::shared(begin, BYTES, os::PROT_READ | os::PROT_EXEC, &file, 0)
            .inspect_err(|_| os::unmap(writable, BYTES))?;
        BEGIN.store(begin, Ordering::Release);
        Ok(Arena { writable, ..Arena::default() })
    }

    /// The code that there is, of which a forked child has its own, unless nobody can change it any more.
    pub fn piece(&self) -> Option<os::Piece> {
        let (from, bytes) = (self.writable, page_up(self.used));
        let (to, prot) = (BEGIN.load(Ordering::Acquire), os::PROT_READ | os::PROT_EXEC);
        (from != 0 && bytes > 0).then_some(os::Piece { from, to, bytes, prot })
    }

    /// Copies code to a free place.
    fn place(&mut self, code: &[u8]) -> Result<u64, Error> {
        if self.writable == 0 {
            return Err(Error::Fenced);
        }
        let lines = code.len().div_ceil(LINE);
        let bytes = (lines * LINE) as u64;
        let at = match self.free.get_mut(&lines).and_then(Vec::pop) {
            Some(at) => at,
            None if self.used + bytes > BYTES => return Err(Error::NoCode),
            None => {
                self.used += bytes;
                self.used - bytes
            }
        };
        let to = (self.writable + at) as *mut u8;
        // SAFETY: a piece of the writable mapping that is nobody's: no portal in it is known to anybody.
        unsafe {
            std::ptr::write_bytes(to, 0xcc, bytes as usize);
            std::ptr::copy_nonoverlapping(code.as_ptr(), to, code.len());
        }
        Ok(BEGIN.load(Ordering::Acquire) + at)
    }
}

pub type Held = MutexGuard<'static, Option<Arena>>;

/// Nobody makes or ends portals.
pub fn hold() -> Held {
    ARENA.lock().unwrap_or_else(|e| e.into_inner())
}

fn arena() -> Result<MutexGuard<'static, Option<Arena>>, Error> {
    let mut guard = hold();
    if guard.is_none() {
        let begin = slots::existing().ok_or(Error::NoSlot)?.code;
        *guard = Some(Arena::new(begin).map_err(system("making the area of portal code"))?);
    }
    Ok(guard)
}

/// Code that stays for ever, such as the portals of `setjmp`.
pub fn fixed(code: &[u8]) -> Result<u64, Error> {
    arena()?.as_mut().ok_or(Error::NoCode)?.place(code)
}

/// Compiles a portal, or finds it. [`release`] gives it back.
pub fn portal(door: &Door, c: &Crossing) -> Result<u64, Error> {
    let mut guard = arena()?;
    let arena = guard.as_mut().ok_or(Error::NoCode)?;
    let key = key(door, c);
    if let Some((at, users)) = arena.portals.get_mut(&key) {
        *users += 1;
        return Ok(*at);
    }
    let code = emit(door, c)?;
    verify(&code.bytes, code.pool_at.into(), door, c)?;
    let at = arena.place(&code.bytes)?;
    arena.portals.insert(key.clone(), (at, 1));
    let named = debugger::name_portal(at, door, c, &code);
    arena.owners.insert(at, (key, code.bytes.len().div_ceil(LINE), named));
    Ok(at)
}

/// No more code, for ever: nothing of the process's is executable and can be written.
pub fn close() {
    if let Some(arena) = hold().as_mut().filter(|arena| arena.writable != 0) {
        os::unmap(arena.writable, BYTES);
        arena.writable = 0;
    }
}

pub fn release(at: u64) {
    let mut guard = hold();
    let Some(arena) = guard.as_mut() else { return };
    let Some((key, lines, _)) = arena.owners.get(&at) else { return };
    if let Some((_, users)) = arena.portals.get_mut(key) {
        *users -= 1;
        if *users > 0 {
            return;
        }
    }
    arena.portals.remove(key);
    arena.free.entry(*lines).or_default().push(at - BEGIN.load(Ordering::Acquire));
    arena.owners.remove(&at);
}
