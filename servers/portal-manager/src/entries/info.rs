//! Information: portals of a domain, interfaces, how much is in use, and how often a domain's portals have
//! been called.

use crate::{request, survey, tidy};
use pebble::abi::{errno, map, sys};
use pebble::link::More;
use pebble::words::Asid;
use pebble_arch::Native;
use pebble_portal_manager::{Goal, Machine, frames};

pub extern "C" fn portal_info(asid: Asid, from: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    request(|m, machine| {
        let domain = m.domain(asid)?;
        let start = usize::try_from(from).unwrap_or(usize::MAX);
        let used = domain.slots.used().skip_while(|(n, _)| *n < start).find(|(n, s)| {
            let common = [sys::SYS_GET_THREAD_ID, sys::SYS_HRTIME].contains(n);
            s.run.len > 0 || common
        });
        let (index, slot) = used.map(|(n, s)| (n, *s)).ok_or(errno::ENOENT)?;
        let calls =
            slot.counter.map_or(u64::MAX, |c| machine.data(map::counter_va(c.into()) - map::KDATA_VA));
        let slow = |name: &str| m.interfaces.iter().position(|i| i.name == name).unwrap_or(usize::MAX) as u16;
        // The interface that the portal leads to, and the number by which it is told.
        let (leads, shown) = match slot.goal {
            Goal::Interface(i) => (i, i),
            Goal::Wait(_) => (slow("scheduler.p"), 0xfffe),
            Goal::Signal(_) => (slow("scheduler.v"), 0xfffd),
            Goal::Closed(_) => (u16::MAX, 0xfffc),
            _ => (u16::MAX, u16::MAX),
        };
        let interface = u64::from(shown);
        let led = m.interfaces.get(leads as usize);
        let spec = led.map_or(0, |i| i.text()[0]);
        let target = if let Goal::Closed(dead) = slot.goal { dead } else { led.map_or(0, |i| i.asid) };
        *more =
            [interface | u64::from(target) << 16 | u64::from(slot.run.len) << 32, spec, calls, slot.constant];
        Ok(index as u64)
    })
}

pub extern "C" fn interface_info(
    interface: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    _: u64,
    more: &mut More,
) -> i64 {
    request(|m, _| {
        let i = usize::try_from(interface).ok().and_then(|n| m.interfaces.get(n)).filter(|i| i.asid != 0);
        let i = i.ok_or(errno::ENOENT)?;
        let [a, b, c] = i.name.words().unwrap_or_default();
        *more = [a, b, c, i.text()[0]];
        Ok(i.asid.into())
    })
}

/// What kind of frame it is that returns to this address of portal code.
pub extern "C" fn frame(ret: u64) -> i64 {
    request(|_, machine| frames::description::<Native>(machine, ret).ok_or(errno::ENOENT))
}

pub extern "C" fn stats(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    request(|m, machine| {
        let current = survey(machine)?;
        m.sweep(machine, current);
        *more = m.stats();
        Ok(0)
    })
}

/// Whether calls of the domain's portals are counted, from now on.
pub extern "C" fn count(asid: Asid, on: u64) -> i64 {
    request(|m, machine| {
        tidy(m, machine)?;
        m.count(machine, asid, on != 0).map(|()| 0)
    })
}
