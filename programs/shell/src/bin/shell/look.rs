//! The commands that look at the system: what the servers tell, put into the tables of
//! [`pebble_shell::format`].

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use pebble::abi::map::{PAGE, TIME_HZ};
use pebble::abi::sys;
use pebble::api;
use pebble::io::File;
use pebble::portal;
use pebble_shell::format::{self, Interface, Load, Portal, Process};

use crate::builtins::{domain, print, usage};
use crate::servers::{self, Domain, Failure, Goal, Thread};
use crate::terminal::Mode;
use crate::{Shell, jobs};

fn reason(failure: Failure) -> String {
    failure.to_string()
}

/// The name of a domain among those listed.
fn name_of(domains: &[Domain], asid: u16) -> &str {
    domains.iter().find(|domain| domain.asid == asid).map_or("?", |domain| domain.name.as_str())
}

pub fn ps(_: &mut Shell, _: &[String], out: File) -> Result<i64, String> {
    let (domains, threads) = (servers::domains().map_err(reason)?, servers::threads().map_err(reason)?);
    let mut rows = Vec::new();
    for Domain { asid, name, state } in &domains {
        let Some((priority, pages)) = servers::extent(*asid).map_err(reason)? else { continue };
        let own = || threads.iter().filter(|thread| thread.home == *asid);
        let ticks = own().map(|thread| thread.ticks).sum();
        rows.push(Process { asid: *asid, name, thread: None, priority, state, ticks, pages });
        rows.extend(own().map(|thread| Process {
            asid: *asid,
            name,
            thread: Some(thread.number),
            priority: thread.priority,
            state: thread.state,
            ticks: thread.ticks,
            pages: 0,
        }));
    }
    print(out, &format::ps(rows))
}

pub fn names(_: &mut Shell, _: &[String], out: File) -> Result<i64, String> {
    let (domains, mut names) = (servers::domains().map_err(reason)?, servers::names().map_err(reason)?);
    names.sort();
    let rows = names.iter().map(|(name, owner)| Interface {
        name,
        owner: *owner,
        owner_name: name_of(&domains, *owner),
    });
    print(out, &format::names(rows))
}

pub fn portals(_: &mut Shell, arguments: &[String], out: File) -> Result<i64, String> {
    let (mut asid, mut count) = (None, None);
    for argument in arguments {
        match argument.as_str() {
            "--count" => count = Some(true),
            "--no-count" => count = Some(false),
            name if asid.is_none() && !name.starts_with('-') => asid = Some(domain(name)?),
            _ => return usage(),
        }
    }
    let asid = asid.unwrap_or_else(api::get_asid);
    if let Some(on) = count {
        servers::count(asid, on).map_err(reason)?;
    }
    let domains = servers::domains().map_err(reason)?;
    let portals = servers::portals(asid).map_err(reason)?;
    let mut names = Vec::new();
    for portal in &portals {
        names.push(match portal.goal {
            Goal::Interface(number) => servers::interface(number).unwrap_or_default(),
            Goal::Wait => "P".into(),
            Goal::Signal => "V".into(),
            Goal::Closed => "(closed)".into(),
            Goal::Code => fixed_name(portal.index).into(),
        });
    }
    let rows = portals.iter().zip(&names).map(|(portal, name)| Portal {
        index: portal.index as usize,
        name,
        spec: &portal.spec,
        target: (portal.target != 0).then(|| name_of(&domains, portal.target)),
        code: portal.code,
        calls: portal.calls,
    });
    print(out, &format::portals(rows))
}

/// What is at an index that is the same in every domain.
fn fixed_name(index: u64) -> &'static str {
    match index as usize {
        sys::RETURN => "(return)",
        sys::EXCEPTION => "(exception)",
        sys::INTERRUPT => "(interrupt)",
        index => {
            let mut named = sys::ALL.iter().copied().chain(sys::FIXED);
            named.find(|(at, _)| *at == index).map_or("", |(_, name)| name)
        }
    }
}

pub fn mem(_: &mut Shell, arguments: &[String], out: File) -> Result<i64, String> {
    match arguments {
        [] => {}
        [live] if live == "--live" => return print(out, &format::heaps(pebble::heap::told())),
        _ => return usage(),
    }
    let ([free, all, domains, threads], [portals, code, semaphores, interfaces]) =
        servers::totals().map_err(reason)?;
    let (free, used, all) = (free * PAGE, (all - free.min(all)) * PAGE, all * PAGE);
    let (free, used, all) = (format::bytes(free), format::bytes(used), format::bytes(all));
    let code = format::bytes(code);
    print(
        out,
        &format!(
            "memory      {used} of {all}, {free} free\ndomains     {domains}\nthreads     {threads}\n\
             portals     {portals}, {code} of code\nsemaphores  {semaphores}\ninterfaces  {interfaces}\n"
        ),
    )
}

pub fn log(_: &mut Shell, arguments: &[String], out: File) -> Result<i64, String> {
    if arguments.len() > 1 {
        return usage();
    }
    let (domains, bytes) = (servers::domains().map_err(reason)?, servers::log().map_err(reason)?);
    let living = |asid: u8| name_of(&domains, asid.into()).into();
    print(out, &pebble_shell::log::show(&bytes, living, arguments.first().map(String::as_str)))
}

/// A key was pressed while the table of `top` is shown.
static KEY: AtomicBool = AtomicBool::new(false);

/// A thread's work: waits for a key. The word is the first portal of the terminal.
extern "C" fn await_key(input: u64) {
    let _ = File(input as usize).read(&mut [0; 32]);
    KEY.store(true, Ordering::Relaxed);
}

pub fn top(shell: &mut Shell, _: &[String], out: File) -> Result<i64, String> {
    let mut before = (servers::threads().map_err(reason)?, portal::time());
    let live = shell.terminal.mode == Mode::Edit && out == shell.terminal.output();
    if !live {
        if jobs::pause(TIME_HZ) {
            return Ok(137);
        }
        return print(out, &round(&mut before)?);
    }
    KEY.store(false, Ordering::Relaxed);
    shell.terminal.raw(true);
    let waiter = api::thread_create(await_key, shell.terminal.input().0 as u64, 0);
    let mut outcome = waiter.map(|_| 0).map_err(|error| error.text().into());
    while outcome.is_ok() {
        let until = before.1 + TIME_HZ;
        while !KEY.load(Ordering::Relaxed) && portal::time() < until {
            let _ = api::hrsleep(until.min(portal::time() + TIME_HZ / 20));
        }
        if KEY.load(Ordering::Relaxed) {
            break;
        }
        outcome = round(&mut before).map(|table| {
            let _ = out.write(format!("\x1b[H\x1b[2J{table}Any key ends this.\n").as_bytes());
            0
        });
    }
    shell.terminal.raw(false);
    outcome
}

/// The table of the interval since `before`, which becomes now.
fn round(before: &mut (Vec<Thread>, u64)) -> Result<String, String> {
    let domains = servers::domains().map_err(reason)?;
    let now = (servers::threads().map_err(reason)?, portal::time());
    let mut loads: Vec<Load> = Vec::new();
    for thread in &now.0 {
        let earlier = before.0.iter().find(|t| t.number == thread.number && t.home == thread.home);
        let (ticks, switches) = earlier.map_or((0, 0), |t| (t.ticks, t.switches));
        loads.push(Load {
            asid: thread.home,
            thread: thread.number,
            priority: thread.priority,
            ticks: thread.ticks.saturating_sub(ticks),
            switches: thread.switches.saturating_sub(switches),
            name: name_of(&domains, thread.home),
        });
    }
    loads.sort_by_key(|load| core::cmp::Reverse(load.ticks));
    let text = format::top(loads, now.1 - before.1);
    *before = now;
    Ok(text)
}
