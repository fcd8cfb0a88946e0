//! The undertaker: prints what went wrong, buries the dying, wakes who waits for them.
//!
//! It looks at everything there is to do, again and again, until nothing is left; then it waits for the
//! semaphore that whoever makes work signals. Between two looks at the dying it lets their threads run: they
//! were raised to its own priority, so a yield is enough when they have only to find their way out. One that
//! is in a stranger's server may never come out: soon it is no more urgent than its domain was.

use crate::loader;
use crate::replacement;
use crate::report::Crash;
use crate::services::{self, FaultRecord};
use crate::{CONSOLE, TABLE, WAITING};
use core::fmt;
use pebble::abi::link;
use pebble::abi::map::TIME_HZ;
use pebble::api;
use pebble::io::{self, File};
use pebble::portal;
use pebble::words::Asid;
use pebble_process::crash::Patience;
use pebble_process::elf;
use pebble_process::fault::Fault;
use pebble_process::startup;
use pebble_process::table::PATIENCE;

/// Looks at a dying domain before sleeping between them, rather than yielding.
const EAGER: u32 = 8;
/// Ticks between looks, and between those at a domain that has lasted long.
const PAUSE: u64 = TIME_HZ / 1000;
const LONG_PAUSE: u64 = TIME_HZ / 100;

pub fn run() -> ! {
    let (mut console, mut patience) = (Console(None), [Patience::for_crashes(), Patience::for_names()]);
    loop {
        while let Some(refusal) = loader::next_refusal() {
            console.line(format_args!("{refusal}\n"));
        }
        while let Some(record) = services::next_fault() {
            fault(&mut console, &mut patience, &record);
        }
        let youngest = look_after_the_dying();
        settle();
        match youngest {
            None => services::wait_for_work(),
            Some(looks) if looks < EAGER => api::yield_now(),
            Some(looks) => {
                let pause = if looks < PATIENCE { PAUSE } else { LONG_PAUSE };
                let _ = api::hrsleep(portal::time() + pause);
            }
        }
    }
}

/// One step for each; the fewest looks that any of them has had.
fn look_after_the_dying() -> Option<u32> {
    let (mut after, mut youngest) = (Asid(0), None);
    loop {
        let Some((domain, looks)) = TABLE.lock().next_dying(after) else { return youngest };
        // Never freed at the first look: faults that it had before it was killed are read in between.
        if looks == 0 {
            services::kill(domain);
            services::withdraw(domain, name_of(domain));
            let component = TABLE.lock().component(domain);
            if let Some(name) = component {
                replacement::has_died(domain, &name);
            }
        } else if services::reclaim(domain, name_of(domain)) {
            TABLE.lock().buried(domain);
        } else if looks == EAGER {
            services::calm(domain);
        }
        after = domain;
        youngest = Some(youngest.map_or(looks, |fewest: u32| fewest.min(looks)));
    }
}

/// What it is called, for who keeps what it has said.
fn name_of(domain: Asid) -> [u64; 2] {
    let entry = TABLE.lock().list(domain);
    entry.map_or([0; 2], |entry| startup::name(&entry.path))
}

/// Wakes whose wait is over, and frees what nobody will ask for.
fn settle() {
    let mut from = Asid(0);
    while let Some(child) = { TABLE.lock().over(from) } {
        WAITING.wake(child.get() as usize);
        from = Asid(child.get() + 1);
    }
    loop {
        let Some(domain) = TABLE.lock().unmourned() else { return };
        services::free(domain);
    }
}

fn fault(console: &mut Console, [patience, names]: &mut [Patience; 2], record: &FaultRecord) {
    let FaultRecord { domain, cause, value, address, thread } = *record;
    let known = TABLE.lock().fault(domain, cause);
    let (path, boot) = known.unwrap_or(([0; 5], true));
    let mut bytes = [0; link::PATHLEN];
    let len = link::unpack(&path, &mut bytes);
    let path_text = core::str::from_utf8(&bytes[..len]).unwrap_or("?");
    let name = path_text.rsplit('/').next().unwrap_or(path_text);
    // Components of the image have no file to look into. That of a program may be long, and there may be many
    // that die.
    let granted = |bytes| names.granted(bytes, portal::time(), TIME_HZ);
    let file = if boot { None } else { loader::read_if(&path, granted).ok() };
    let symbol = file.as_deref().and_then(|data| elf::symbol(data, address.get()));
    let fault = Fault { domain, name, thread, cause, value, address, symbol };
    console.line(format_args!("{fault}\n"));
    Crash { domain, path: &path, file: file.as_deref() }.print(console, patience);
}

/// The console, opened when there is first something to say; opened again when it has failed.
pub struct Console(Option<File>);

impl Console {
    pub fn line(&mut self, line: fmt::Arguments) {
        struct Line {
            bytes: [u8; 256],
            len: usize,
        }
        impl fmt::Write for Line {
            fn write_str(&mut self, text: &str) -> fmt::Result {
                let count = text.len().min(self.bytes.len() - self.len);
                self.bytes[self.len..self.len + count].copy_from_slice(&text.as_bytes()[..count]);
                self.len += count;
                Ok(())
            }
        }
        let mut text = Line { bytes: [0; 256], len: 0 };
        let _ = fmt::Write::write_fmt(&mut text, line);
        if self.0.is_none() {
            self.0 = io::open(CONSOLE).ok();
        }
        if let Some(file) = &self.0 {
            if file.write(&text.bytes[..text.len]).is_err() {
                self.0 = None;
            }
        }
    }
}
