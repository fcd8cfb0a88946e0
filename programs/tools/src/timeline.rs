//! A timeline of calls, as Chrome's tracing view and Perfetto read it: JSON, an event for each call.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;

/// Of a tick.
const NANOSECONDS: u64 = 1_000_000_000 / pebble_abi::map::TIME_HZ;

/// Most events that are kept: what memory and a console can bear.
pub const MAX: usize = 8192;

pub struct Event {
    pub name: String,
    pub call: String,
    pub answer: String,
    pub thread: u16,
    /// In ticks, as all times here.
    pub start: u64,
    pub ticks: u64,
    pub instructions: u64,
}

#[derive(Default)]
pub struct Timeline {
    events: Vec<Event>,
    /// Events beyond [`MAX`].
    pub lost: u64,
}

impl Timeline {
    pub const fn new() -> Self {
        Timeline { events: Vec::new(), lost: 0 }
    }

    pub fn add(&mut self, event: Event) {
        if self.events.len() < MAX { self.events.push(event) } else { self.lost += 1 }
    }

    pub fn len(&self) -> usize {
        self.events.len()
    }

    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// The file. Times are in microseconds.
    pub fn json(&self, program: &str, domain: u16) -> String {
        let mut out = format!(
            "[{{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":{domain},\"args\":{{\"name\":{}}}}}",
            quoted(program)
        );
        for e in &self.events {
            let micro = |ticks: u64| {
                let tenths = ticks * NANOSECONDS / 100;
                format!("{}.{}", tenths / 10, tenths % 10)
            };
            let _ = write!(
                out,
                ",\n{{\"name\":{},\"cat\":\"portal\",\"ph\":\"X\",\"ts\":{},\"dur\":{},\"pid\":{domain},\"tid\":{},\
                 \"args\":{{\"call\":{},\"result\":{},\"instructions\":{}}}}}",
                quoted(&e.name),
                micro(e.start),
                micro(e.ticks),
                e.thread,
                quoted(&e.call),
                quoted(&e.answer),
                e.instructions
            );
        }
        out.push_str("]\n");
        out
    }
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\0'..' ' => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}
