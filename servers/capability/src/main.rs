//! The capability manager's component: entries around the library, one lock.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::abi::capability::{NEXT, NODE_BYTES};
use pebble::abi::errno::{self, Errno};
use pebble::link::More;
use pebble::region::CAPABILITIES;
use pebble::sync::{Guard, Lock};
use pebble::words::Asid;
use pebble_capability::{Flags, Manager, Table};

pebble::import! {
    LOCK = "semaphore.capability";
    FAMILY: pm::Family;
}
pebble::interfaces!();
pebble::component!(main);

/// No thread of its own.
fn main() -> i64 {
    0
}

/// The table that portal code sees too.
struct Shared;

impl Table for Shared {
    fn read(&self, node: usize, word: usize) -> u64 {
        CAPABILITIES.read(node as u64 * NODE_BYTES + word as u64 * 8)
    }

    fn write(&mut self, node: usize, word: usize, value: u64) {
        CAPABILITIES.write(node as u64 * NODE_BYTES + word as u64 * 8, value);
    }

    fn exchange_head(&mut self, old: u64, new: u64) -> bool {
        CAPABILITIES.exchange(NEXT as u64 * 8, old, new)
    }
}

static MANAGER: Lock<Manager<Shared>> = Lock::new(Manager::new(Shared));

fn manager() -> Guard<'static, Manager<Shared>> {
    MANAGER.use_semaphore(LOCK.index());
    MANAGER.lock()
}

/// For who shall hold one more. The portal manager asks this server too: no lock while it is asked.
fn manager_for(holder: Asid) -> Guard<'static, Manager<Shared>> {
    loop {
        let mut manager = manager();
        let Some(asid) = manager.unknown(holder) else { return manager };
        drop(manager);
        // Who is dead is nobody's; what it held is about to go.
        let family = FAMILY.call(asid).ok().and_then(|family| u16::try_from(family).ok());
        self::manager().belongs(asid, family.unwrap_or(asid.number()));
    }
}

fn word<V: Into<i64>>(outcome: Result<V, Errno>) -> i64 {
    outcome.map_or_else(|error| -error, Into::into)
}

/// Rights, with flags in bits 16 and up.
fn strength(word: u64) -> Result<(u16, Flags), Errno> {
    Ok((word as u16, Flags::from_bits(word >> 16)?))
}

extern "C" fn create(maker: Asid, kind: u64, object: u64, rights: u64) -> i64 {
    word(strength(rights).and_then(|(r, f)| manager_for(maker).create(maker, kind, object, r, f)))
}

extern "C" fn derive(holder: Asid, name: u64, rights: u64) -> i64 {
    word(strength(rights).and_then(|(r, f)| manager_for(holder).derive(holder, name, r, f)))
}

extern "C" fn look(holder: Asid, name: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    match manager().look(holder, name) {
        Ok(c) => {
            *more = [c.kind.into(), c.object.into(), c.rights.into(), c.flags.bits()];
            0
        }
        Err(error) => -error,
    }
}

extern "C" fn consume(holder: Asid, name: u64, rights: u64) -> i64 {
    let rights = u16::try_from(rights).map_err(|_| errno::EINVAL);
    word(rights.and_then(|r| manager().consume(holder, name, r)).map(|()| 0))
}

extern "C" fn revoke(holder: Asid, name: u64) -> i64 {
    word(manager().revoke(holder, name).map(|()| 0))
}

extern "C" fn drop_one(holder: Asid, name: u64) -> i64 {
    word(manager().discard(holder, name).map(|()| 0))
}

extern "C" fn holds(holder: Asid, kind: u64, object: u64, rights: u64) -> i64 {
    i64::from(manager().holds(holder, kind as u16, object as u32, rights as u16))
}

extern "C" fn grant(holder: Asid, kind: u64, object: u64, rights: u64) -> i64 {
    word(strength(rights).and_then(|(r, f)| manager_for(holder).grant(holder, kind, object, r, f)))
}

extern "C" fn forget(asid: Asid) -> i64 {
    manager().forget(asid);
    0
}

extern "C" fn count(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    let c = manager().count();
    *more = [c.used, c.free, c.tombstones, c.touched];
    0
}
