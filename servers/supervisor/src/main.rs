//! The supervisor: puts a new instance in the place of a component that has died, as the policy says.
//!
//! Restarts are made one after the other: a pause of `backoff` delays those of others too. Clients of the
//! dead are answered `CLOSED` with its number until the new instance is there, or for good.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use pebble::abi::link::{pack, unpack};
use pebble::abi::{errno, map};
use pebble::api::{self, Errno};
use pebble::io;
use pebble::portal::time;
use pebble_supervisor::{History, Kind, Policy, Verdict, parse};

pebble::import! {
    REPLACE: process::Replace;
    KEEP: process::Keep;
    DEATH: process::Death;
}
pebble::component!(main);

/// The policy; what a system adds to that of the system that it includes.
const FILES: [&str; 2] = ["etc/supervisor", "etc/supervisor.more"];

fn main() -> i64 {
    let mut watched: Vec<(Policy, History)> = Vec::new();
    for file in FILES {
        let Ok(text) = read(file) else { continue };
        let (policies, wrong) = parse(&text);
        wrong.iter().for_each(|line| say(&format!("{file}:{line}: not a policy")));
        for policy in policies {
            if policy.kind != Kind::Never {
                if let Err(error) = keep(&policy.component, true) {
                    say(&format!("{}: {error}", policy.component));
                }
            }
            watched.push((policy, History::default()));
        }
    }
    loop {
        if let Ok((domain, [a, b, ..])) = DEATH.call()
            && domain >= 0
        {
            let mut bytes = [0; 16];
            let len = unpack(&[a, b], &mut bytes);
            let name = core::str::from_utf8(&bytes[..len]).unwrap_or_default();
            // A longer name is known by its beginning.
            match watched.iter_mut().find(|(policy, _)| policy.component.get(..len) == Some(name)) {
                Some((policy, history)) => attend(policy, history, domain),
                None => say(&format!("{name} has died: no policy")),
            }
        }
    }
}

fn attend(policy: &Policy, history: &mut History, dead: i64) {
    let name = &policy.component;
    loop {
        match history.died(policy, time()) {
            Verdict::GiveUp => {
                let _ = keep(name, false);
                return say(&format!(
                    "{name} (domain {dead}) has died: giving up after {} restarts",
                    policy.limit
                ));
            }
            Verdict::Restart(pause) => {
                if pause > 0 {
                    let _ = api::hrsleep(time() + pause);
                }
                match replace(policy) {
                    Ok(domain) => {
                        return say(&format!("{name} (domain {dead}) has died: domain {domain} now"));
                    }
                    Err(error) => {
                        say(&format!("{name}: {}: {error}", policy.path));
                        let _ = api::hrsleep(time() + map::TIME_HZ / 100);
                    }
                }
            }
        }
    }
}

fn keep(component: &str, keep: bool) -> Result<(), Errno> {
    let name = pack(component).ok_or(errno::ENAMETOOLONG)?;
    api::answer(KEEP.call(name, keep.into())).map(|_| ())
}

fn replace(policy: &Policy) -> Result<u64, Errno> {
    let name = pack(&policy.component).ok_or(errno::ENAMETOOLONG)?;
    let path = pack(&policy.path).ok_or(errno::ENAMETOOLONG)?;
    api::answer(REPLACE.call(name, path))
}

/// A whole text.
fn read(path: &str) -> Result<String, Errno> {
    let file = io::open(path)?;
    let (mut text, mut bytes) = (Vec::new(), [0; 32]);
    loop {
        match file.read(&mut bytes) {
            Ok(0) => break,
            Ok(count) => text.extend_from_slice(&bytes[..count]),
            Err(error) => {
                file.close();
                return Err(error);
            }
        }
    }
    file.close();
    String::from_utf8(text).map_err(|_| errno::EINVAL)
}

/// A line on the console, opened for it: it may be another one each time.
fn say(line: &str) {
    if let Ok(console) = io::open("/dev/console") {
        let _ = console.write(format!("supervisor: {line}\n").as_bytes());
        console.close();
    }
}
