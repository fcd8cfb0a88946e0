//! The name server's component: entries around [`Registry`], one lock.
//!
//! It takes over from the image builder at the first request: the rules of the system's manifest, the names of the domains
//! that are there from the start, and their interfaces, whose numbers are their positions in the boot information.
//! The lock's semaphore comes from the image too: the portal manager calls with its own lock held, so nobody here may
//! ask it for one.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::boxed::Box;
use pebble::abi::errno;
use pebble::abi::link::{pack, unpack};
use pebble::link::More;
use pebble::sync::Lock;
use pebble::window;
use pebble_boot::BootInfo;
use pebble_name::{Error, Registry};

pebble::import! {
    LOCK = "semaphore.name";
}
pebble::export!("name.lookup", "npiiii", lookup: fn(u64, u64, u64, u64));
pebble::export!("name.register", "npiiiii", register: fn(u64, u64, u64, u64, u64));
pebble::export!("name.withdraw", "npi", withdraw: fn(u64));
pebble::export!("name.pass", "npii", pass: fn(u64, u64));
pebble::export!("name.domain", "npiii", domain: fn(u64, u64, u64));
pebble::export_wide!("name.list", "npi>4", list);
pebble::component!(main);

/// No thread of its own.
fn main() -> i64 {
    0
}

struct State {
    registry: Registry<'static>,
    /// Whether the boot information is in.
    ready: bool,
}

static STATE: Lock<State> = Lock::new(State { registry: Registry::new(), ready: false });

/// One request; its result is the word that goes back. Without valid rules nothing is answered.
fn request(work: impl FnOnce(&mut Registry<'static>) -> Result<u64, Error>) -> i64 {
    STATE.use_semaphore(LOCK.index());
    let mut state = STATE.lock();
    if !state.ready {
        if take_over(&mut state.registry).is_none() {
            return -errno::EIO;
        }
        state.ready = true;
    }
    work(&mut state.registry).map_or_else(|error| -error.errno(), |value| value as i64)
}

#[cold]
fn take_over(registry: &mut Registry<'static>) -> Option<()> {
    let BootInfo { domains, interfaces, rules, .. } = BootInfo::decode(window::boot_info()).ok()?;
    registry.policy(Box::leak(rules.into_boxed_slice())).ok()?;
    for domain in domains {
        registry.domain(domain.asid, &domain.name).ok()?;
    }
    for (number, interface) in (0..).zip(interfaces) {
        // A name that no client could spell is nobody's loss.
        if let Some(name) = pack(&interface.name) {
            let _ = registry.register(interface.asid, name, number);
        }
    }
    Some(())
}

/// A number that names no domain becomes one that the registry refuses.
fn asid(word: u64) -> u16 {
    u16::try_from(word).unwrap_or(u16::MAX)
}

extern "C" fn lookup(client: u64, a: u64, b: u64, c: u64) -> i64 {
    request(|r| r.lookup(asid(client), [a, b, c]).map(u64::from))
}

extern "C" fn register(owner: u64, a: u64, b: u64, c: u64, interface: u64) -> i64 {
    request(|r| r.register(asid(owner), [a, b, c], interface as u32).map(|()| 0))
}

/// The domain is dead.
extern "C" fn withdraw(owner: u64) -> i64 {
    request(|r| Ok(r.gone(asid(owner)) as u64))
}

extern "C" fn pass(interface: u64, owner: u64) -> i64 {
    request(|r| r.pass(interface as u32, asid(owner)).map(|()| 0))
}

extern "C" fn domain(number: u64, a: u64, b: u64) -> i64 {
    let mut bytes = [0; 16];
    let len = unpack(&[a, b], &mut bytes);
    let name = core::str::from_utf8(&bytes[..len]).unwrap_or("");
    request(|r| r.domain(asid(number), name).map(|()| 0))
}

/// The interface; its name, its domain with the position to ask for next in bits 16 and up.
extern "C" fn list(position: u64, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    request(|r| {
        let from = usize::try_from(position).unwrap_or(usize::MAX);
        let (at, entry) = r.list(from).ok_or(Error::Unknown)?;
        let [a, b, c] = entry.name;
        *more = [a, b, c, u64::from(entry.owner) | (at as u64 + 1) << 16];
        Ok(entry.interface.into())
    })
}
