//! The tables of the commands that look at the system, and the units in them.
//!
//! The component fills one record per line from what the servers tell; everything about their looks is here.

use alloc::format;
use alloc::string::{String, ToString};

use pebble_abi::map::{PAGE, TIME_HZ};

use crate::table::Align::{Left, Right};
use crate::table::Table;

/// A domain, or a thread of one.
#[derive(Clone, Debug, Default)]
pub struct Process<'a> {
    pub asid: u16,
    pub name: &'a str,
    /// None: the line is the whole domain's.
    pub thread: Option<u16>,
    pub priority: u8,
    pub state: &'a str,
    /// Ticks run.
    pub ticks: u64,
    /// Pages held; not shown for a thread.
    pub pages: u64,
}

pub fn ps<'a>(processes: impl IntoIterator<Item = Process<'a>>) -> String {
    let mut table = Table::new([
        ("DOMAIN", Right),
        ("THREAD", Right),
        ("PRIORITY", Right),
        ("STATE", Left),
        ("TIME", Right),
        ("MEMORY", Right),
        ("NAME", Left),
    ]);
    for p in processes {
        let memory = if p.thread.is_some() { String::new() } else { bytes(p.pages * PAGE) };
        let thread = p.thread.map_or(String::new(), |t| t.to_string());
        table.row([
            p.asid.to_string(),
            thread,
            p.priority.to_string(),
            p.state.into(),
            seconds(p.ticks),
            memory,
            p.name.into(),
        ]);
    }
    table.render()
}

/// Heaps of servers: live allocations, their bytes, bytes of the heap.
pub fn heaps<'a>(heaps: impl IntoIterator<Item = (&'a str, [u64; 3])>) -> String {
    let mut table = Table::new([("ALLOCATIONS", Right), ("BYTES", Right), ("HEAP", Right), ("NAME", Left)]);
    for (name, [live, used, size]) in heaps {
        table.row([live.to_string(), used.to_string(), bytes(size), name.into()]);
    }
    table.render()
}

/// An entry of a portal table.
#[derive(Clone, Debug, Default)]
pub struct Portal<'a> {
    pub index: usize,
    pub name: &'a str,
    pub spec: &'a str,
    /// Domain that it leads to; none for a short-circuit portal.
    pub target: Option<&'a str>,
    pub code: u64,
    /// Calls so far, if it has been compiled to count them.
    pub calls: Option<u64>,
}

pub fn portals<'a>(portals: impl IntoIterator<Item = Portal<'a>>) -> String {
    let mut table = Table::new([
        ("INDEX", Right),
        ("NAME", Left),
        ("SPEC", Left),
        ("TARGET", Left),
        ("BYTES", Right),
        ("CALLS", Right),
    ]);
    for p in portals {
        table.row([
            p.index.to_string(),
            p.name.into(),
            p.spec.into(),
            p.target.unwrap_or("-").into(),
            p.code.to_string(),
            p.calls.map_or("-".into(), |n| n.to_string()),
        ]);
    }
    table.render()
}

/// A registered interface.
#[derive(Clone, Debug, Default)]
pub struct Interface<'a> {
    pub name: &'a str,
    pub owner: u16,
    pub owner_name: &'a str,
}

pub fn names<'a>(interfaces: impl IntoIterator<Item = Interface<'a>>) -> String {
    let mut table = Table::new([("NAME", Left), ("DOMAIN", Right), ("", Left)]);
    for i in interfaces {
        table.row([i.name.into(), i.owner.to_string(), i.owner_name.into()]);
    }
    table.render()
}

/// A thread over an interval.
#[derive(Clone, Debug, Default)]
pub struct Load<'a> {
    pub asid: u16,
    pub thread: u16,
    pub priority: u8,
    /// Ticks run in the interval.
    pub ticks: u64,
    pub switches: u64,
    pub name: &'a str,
}

/// The busiest first is the caller's to see to; `interval` in ticks.
pub fn top<'a>(loads: impl IntoIterator<Item = Load<'a>>, interval: u64) -> String {
    let mut table = Table::new([
        ("DOMAIN", Right),
        ("THREAD", Right),
        ("PRIORITY", Right),
        ("LOAD", Right),
        ("SWITCHES", Right),
        ("NAME", Left),
    ]);
    for l in loads {
        table.row([
            l.asid.to_string(),
            l.thread.to_string(),
            l.priority.to_string(),
            percent(l.ticks, interval),
            l.switches.to_string(),
            l.name.into(),
        ]);
    }
    table.render()
}

/// `956`, `12 K`, `1.5 M`.
pub fn bytes(count: u64) -> String {
    const K: u64 = 1 << 10;
    const M: u64 = 1 << 20;
    match count {
        0..K => count.to_string(),
        K..M => format!("{} K", count / K),
        _ => format!("{}.{} M", count / M, count % M * 10 / M),
    }
}

/// Ticks as seconds with hundredths.
pub fn seconds(ticks: u64) -> String {
    format!("{}.{:02}", ticks / TIME_HZ, ticks % TIME_HZ * 100 / TIME_HZ)
}

/// An interval of so many ticks, to the millisecond.
pub fn interval(ticks: u64) -> String {
    format!("{}.{:03} s", ticks / TIME_HZ, ticks % TIME_HZ * 1000 / TIME_HZ)
}

/// With tenths.
pub fn percent(part: u64, whole: u64) -> String {
    let tenths = u128::from(part) * 1000 / u128::from(whole.max(1));
    format!("{}.{} %", tenths / 10, tenths % 10)
}
