//! `trace [--json FILE] PROGRAM ARGUMENTS`: runs a program and prints a line for each of its calls on
//! standard error: words, result, and the instructions that the machine executed meanwhile, for others too if
//! the call waited.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU16, Ordering::Relaxed};
use pebble::control::Answer;
use pebble::sync::Lock;
use pebble::{api, io, portal};
use pebble_tools::timeline::{Event, Timeline};
use pebble_tools::under::Failure;
use pebble_tools::{calls, rules, under};

pebble::program!(main);
pebble::handler!(entry = trace);

static TIMELINE: Lock<Timeline> = Lock::new(Timeline::new());
static KEEP: AtomicBool = AtomicBool::new(false);
static DOMAIN: AtomicU16 = AtomicU16::new(0);

fn trace(index: usize, p: [u64; 5]) -> Answer {
    let name = under::name(index);
    let shown = if name == calls::NAMELESS { format!("portal {index}") } else { name.clone() };
    let call = calls::call(&shown, &p);
    let ends = rules::ENDS.contains(&name.as_str());
    if ends {
        under::say(&format!("{call}\n"));
    }
    let (start, before) = (portal::time(), portal::counter());
    let answer = if ends { Answer::default() } else { under::pass(index, &name, p) };
    let (instructions, end) = (portal::counter() - before, portal::time());
    let result = calls::answer(&name, answer.value, answer.status, &answer.more);
    if !ends {
        under::say(&format!("{call} = {result}  [{instructions}]\n"));
    }
    if KEEP.load(Relaxed) {
        let (thread, ticks) = (api::get_thread_id(), end - start);
        TIMELINE.lock().add(Event { name, call, answer: result, thread, start, ticks, instructions });
    }
    // What ends the program does not come back.
    if ends { under::pass(index, "", p) } else { answer }
}

/// The file for the timeline.
fn make(path: &str) -> Result<io::File, Failure> {
    io::create(path).map_err(|error| {
        let what = error.text();
        Failure::new(format!("--json {path}: {what}; files can be made as /ram/NAME only"), error)
    })
}

fn main() -> i64 {
    let mut arguments: Vec<String> = io::args().skip(1).collect();
    let mut path = None;
    if arguments.first().is_some_and(|a| a == "--json") && arguments.len() > 1 {
        path = Some(arguments.remove(1));
        arguments.remove(0);
    }
    if arguments.first().is_none_or(|a| a.starts_with('-')) {
        return under::usage("trace [--json /ram/NAME] PROGRAM [ARGUMENT...]");
    }
    KEEP.store(path.is_some(), Relaxed);
    let prepared = under::prepare(|| {
        TIMELINE.prepare();
        path.as_deref().map(make).transpose()
    });
    let file = match prepared {
        Ok(file) => file,
        Err(failure) => return under::end("trace", Err(failure)),
    };
    let result = under::run(&arguments, entry, |child| DOMAIN.store(child, Relaxed));
    if let Some(file) = file {
        let timeline = TIMELINE.lock();
        let json = timeline.json(&arguments[0], DOMAIN.load(Relaxed));
        if let Err(error) = file.write(json.as_bytes()) {
            under::say(&format!("trace: the file: {error}\n"));
        }
        file.close();
        under::say(&format!("trace: {} calls in the file, {} left out\n", timeline.len(), timeline.lost));
    }
    under::end("trace", result)
}
