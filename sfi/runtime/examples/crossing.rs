//! What crossings cost: lines `ID SAMPLE SAMPLE ...`, nanoseconds (of instances microseconds), in alternating
//! runs on one processor.
//!
//! `C`, `pipe`, `futex`; `null`, a call into a domain through `sm` without words or result; `WAY.SPEC.WORDS`,
//! where a way is `in`, `out` (to a function of the process) or `across` (to another domain), at level
//! `write`; `full.WAY.SPEC.WORDS` at level `full`. Ways out and across are measured by code in the domain
//! that does nothing else.

#[path = "../tests/common/mod.rs"]
mod common;

use pebble_sfi_runtime::{Imports, Instance, Linked, Module, Outcome, Portal};
use std::hint::black_box;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const CALLS: u64 = 200_000;
const SAMPLES: usize = 21;
const WORDS: usize = 6;
const SPECS: [&str; 4] = ["sm", "sf", "np", "nf"];

extern "C" fn null() {}

extern "C" fn nothing(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64) -> Outcome {
    Outcome { value: 0, status: 0 }
}

/// Time of the processor for this process, in nanoseconds: what else runs does not count. Both ends of a pipe
/// are on one processor, so this is the time of a round trip too.
struct Clock(f64);

impl Clock {
    fn now() -> f64 {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: a whole structure.
        unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
        time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
    }

    fn start() -> Clock {
        Clock(Clock::now())
    }

    fn per_call(&self, n: u64) -> f64 {
        (Clock::now() - self.0) / n as f64
    }
}

#[inline(never)]
fn null_calls(f: extern "C" fn(), n: u64) -> f64 {
    let start = Clock::start();
    for _ in 0..n {
        f();
    }
    start.per_call(n)
}

#[inline(never)]
fn calls(f: extern "C" fn(u64, u64, u64, u64, u64, u64) -> Outcome, n: u64) -> f64 {
    let start = Clock::start();
    for i in 0..n {
        black_box(f(i, 2, 3, 4, 5, 6));
    }
    start.per_call(n)
}

fn pin(cpu: usize) {
    // SAFETY: a whole set of processors.
    unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        libc::sched_setaffinity(0, size_of_val(&set), &set);
    }
}

fn pipe_round_trip(n: u64) -> f64 {
    let (mut a, mut b) = (std::io::pipe().unwrap(), std::io::pipe().unwrap());
    let thread = std::thread::spawn(move || {
        pin(0);
        let mut byte = [0];
        while a.0.read_exact(&mut byte).is_ok() && b.1.write_all(&byte).is_ok() {}
    });
    let mut byte = [0];
    let start = Clock::start();
    for _ in 0..n {
        a.1.write_all(&[1]).unwrap();
        b.0.read_exact(&mut byte).unwrap();
    }
    let took = start.per_call(n);
    drop((a.1, b.0));
    thread.join().unwrap();
    took
}

fn futex(word: &AtomicU32, operation: i32, value: u32) {
    // SAFETY: waits on, or wakes, a word that lives.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, value, std::ptr::null::<u8>()) };
}

fn futex_hand_off(n: u64) -> f64 {
    let word = Arc::new(AtomicU32::new(0));
    let other = word.clone();
    let wait = |word: &AtomicU32, mine: u32| {
        loop {
            let now = word.load(Ordering::Acquire);
            if now == mine || now == 9 {
                return now;
            }
            futex(word, libc::FUTEX_WAIT, now);
        }
    };
    let thread = std::thread::spawn(move || {
        pin(0);
        while wait(&other, 1) == 1 {
            other.store(0, Ordering::Release);
            futex(&other, libc::FUTEX_WAKE, 1);
        }
    });
    let start = Clock::start();
    for _ in 0..n {
        word.store(1, Ordering::Release);
        futex(&word, libc::FUTEX_WAKE, 1);
        wait(&word, 0);
    }
    let took = start.per_call(n);
    word.store(9, Ordering::Release);
    futex(&word, libc::FUTEX_WAKE, 1);
    thread.join().unwrap();
    took
}

/// A row, and what takes one sample of it.
type Measurement = (String, Box<dyn Fn() -> f64>);

fn row(id: impl Into<String>, act: impl Fn() -> f64 + 'static) -> Measurement {
    (id.into(), Box::new(act))
}

fn linked(level: u32, spec: &str) -> Arc<Linked> {
    let mut imports = Imports::new();
    imports.lenient = true;
    // SAFETY: takes anything and returns.
    unsafe { imports.function("host0", spec, null as *const (), 0).unwrap() };
    let module = Module::load("basic", common::build("basic", level)).unwrap_or_else(|e| panic!("{e}"));
    imports.link(&module).unwrap()
}

/// Calls in, out and across with each specification and number of words.
fn ways(level: u32, prefix: &str, rows: &mut Vec<Measurement>) {
    for spec in SPECS {
        for words in 0..=WORDS {
            let spec_with_words = format!("{spec}{}", "i".repeat(words));
            let id = |way: &str| format!("{prefix}{way}.{spec}.{words}");
            let linked = linked(level, &spec_with_words);
            let callee = Instance::new(&linked).unwrap();
            let into = callee.portal("null", &spec_with_words).unwrap();
            rows.push(row(id("in"), move || calls(black_box(into.entry()), CALLS)));
            let repeat = |portal: &Portal| {
                let start = Clock::start();
                portal.call(&[CALLS]).unwrap();
                start.per_call(CALLS)
            };
            let out = callee.portal("repeat", "smi").unwrap();
            rows.push(row(id("out"), move || repeat(&out)));
            let caller = Instance::new(&linked).unwrap();
            caller.connect("host0", &callee, "null", &spec_with_words).unwrap();
            let across = caller.portal("repeat", "smi").unwrap();
            rows.push(row(id("across"), move || repeat(&across)));
        }
    }
}

fn instances(linked: &Arc<Linked>) {
    let (mut made, mut called, mut gone) = (vec![], vec![], vec![]);
    let us = |start: &Clock| start.per_call(1000);
    for _ in 0..2000 {
        let start = Clock::start();
        let i = Instance::new(linked).unwrap();
        made.push(us(&start));
        let p = i.portal("null", "sm").unwrap();
        p.call(&[]).unwrap();
        called.push(us(&start));
        let start = Clock::start();
        drop((p, i));
        gone.push(us(&start));
    }
    print_row("instance", &made);
    print_row("instance.called", &called);
    print_row("instance.destroyed", &gone);
    let mut attached = vec![];
    let mut many = vec![];
    for _ in 0..2000 {
        let start = Clock::start();
        let i = Instance::new(linked).unwrap();
        i.attach().unwrap();
        attached.push(us(&start));
        many.push(i);
    }
    print_row("instance.attached", &attached);
}

fn print_row(id: &str, samples: &[f64]) {
    let samples: Vec<String> = samples.iter().map(|sample| format!("{sample:.3}")).collect();
    println!("{id} {}", samples.join(" "));
}

fn main() {
    pin(0);
    let plain = linked(1, "sm");
    let instance = Instance::new(&plain).unwrap();
    let portal = instance.portal("null", "sm").unwrap();
    // SAFETY: portal code keeps the C convention; its results are ignored. The portal is dropped last.
    let f = unsafe { std::mem::transmute::<*const (), extern "C" fn()>(portal.address() as *const ()) };
    let pointer: extern "C" fn(u64, u64, u64, u64, u64, u64) -> Outcome = nothing;
    let mut rows = vec![
        row("c", || null_calls(black_box(null), CALLS)),
        row("null", move || null_calls(black_box(f), CALLS)),
        row("c.6", move || calls(black_box(pointer), CALLS)),
        row("pipe", || pipe_round_trip(2000)),
        row("futex", || futex_hand_off(2000)),
    ];
    ways(1, "", &mut rows);
    ways(2, "full.", &mut rows);
    // Only those that begin so, if any are named.
    let only: Vec<String> = std::env::args().skip(1).collect();
    let wanted = |id: &str| only.is_empty() || only.iter().any(|begin| id.starts_with(begin.as_str()));
    rows.retain(|(id, _)| wanted(id));
    // The first round makes stacks, and does not count.
    let mut samples = vec![vec![]; rows.len()];
    for round in 0..=SAMPLES {
        for ((_, act), samples) in rows.iter().zip(&mut samples) {
            let sample = act();
            if round > 0 {
                samples.push(sample);
            }
        }
    }
    for ((id, _), samples) in rows.iter().zip(&samples) {
        print_row(id, samples);
    }
    if wanted("instance") {
        instances(&plain);
    }
    drop((rows, portal));
}
