//! Replacement: what the process server asks for when one component takes another's place.

use crate::{PASS, explained, name, open, register, request, survey, tidy, view};
use alloc::vec::Vec;
use core::num::NonZeroU16;
use pebble::abi::errno;
use pebble::link::More;
use pebble::words::Asid;

pub extern "C" fn adopt(role: u64, asid: Asid) -> i64 {
    request(|m, machine| view(asid).and_then(|(view, _)| m.adopt(machine, role, view)).map(|()| 0))
}

/// A portal of the role, or what the domain may open anyway.
pub extern "C" fn import(asid: Asid, a: u64, b: u64, c: u64) -> i64 {
    let held = request(|m, machine| {
        let mut bytes = [0; 24];
        m.import(machine, asid, name([a, b, c], &mut bytes)?).map(u64::from)
    });
    if held == -errno::EACCES { open(asid, a, b, c, 0, 0, &mut [0; 4]) } else { held }
}

/// `entry`: bits 32 to 34 further result words, 40 and up the domain.
pub extern "C" fn offer(a: u64, b: u64, c: u64, first: u64, entry: u64, _: u64, more: &mut More) -> i64 {
    explained(more, |m, _| {
        let mut bytes = [0; 24];
        let asid = Asid(entry >> 40);
        let spec = m.parse(asid, first, entry & 0xff_ffff_ffff)?;
        m.offer(asid, name([a, b, c], &mut bytes)?, spec, entry & 0xffff_ffff).map(|()| 0)
    })
}

/// The caller's portal to what a successor offers.
pub extern "C" fn reach(caller: Asid, asid: Asid, a: u64, b: u64, c: u64) -> i64 {
    request(|m, machine| {
        let mut bytes = [0; 24];
        m.reach(machine, caller, asid, name([a, b, c], &mut bytes)?).map(u64::from)
    })
}

pub extern "C" fn let_leave(asid: Asid) -> i64 {
    request(|m, machine| m.let_leave(machine, asid).map(|()| 0))
}

pub extern "C" fn register_for(
    a: u64,
    b: u64,
    c: u64,
    spec: u64,
    entry: u64,
    _: u64,
    more: &mut More,
) -> i64 {
    register(Asid(entry >> 40), a, b, c, spec, entry & 0xff_ffff_ffff, more)
}

pub extern "C" fn holder(role: u64) -> i64 {
    request(|m, _| Ok(NonZeroU16::new(role as u16).and_then(|role| m.holder(role)).unwrap_or(0).into()))
}

pub extern "C" fn prepare(asid: Asid) -> i64 {
    request(|m, machine| {
        tidy(m, machine)?;
        m.prepare_successor(machine, asid).map(|()| 0)
    })
}

pub extern "C" fn commit(asid: Asid) -> i64 {
    let mut interfaces = Vec::new();
    let outcome = request(|m, machine| {
        let current = survey(machine)?;
        interfaces = m.commit(machine, asid, current)?;
        Ok(0)
    });
    pass(&interfaces, asid.number());
    outcome
}

/// Tells the name server whose these interfaces are now. Without the lock: it may be the one that is being
/// replaced.
pub fn pass(interfaces: &[u16], owner: u16) {
    for interface in interfaces {
        let _ = PASS.call([u64::from(*interface), owner.into()]);
    }
}

pub extern "C" fn busy(asid: Asid) -> i64 {
    request(|m, machine| {
        let current = survey(machine)?;
        Ok(m.busy(machine, asid, current).into())
    })
}

pub extern "C" fn abandon(asid: Asid) -> i64 {
    request(|m, machine| {
        m.abandon(machine, asid);
        Ok(0)
    })
}

pub extern "C" fn keep_role(role: u64, keep: u64) -> i64 {
    request(|m, machine| m.keep_role(machine, role, keep != 0).map(|()| 0))
}
