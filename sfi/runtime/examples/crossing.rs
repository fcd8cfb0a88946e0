//! What crossings cost: nanoseconds, medians of alternating runs.

#[path = "../tests/common/mod.rs"]
mod common;

use pebble_sfi_runtime::{Imports, Instance, Module, Outcome};
use std::hint::black_box;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

extern "C" fn nothing(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64) -> Outcome {
    Outcome { value: 0, status: 0 }
}

#[inline(never)]
fn calls(f: extern "C" fn(u64, u64, u64, u64, u64, u64) -> Outcome, n: u64) -> f64 {
    let start = Instant::now();
    for i in 0..n {
        black_box(f(i, 2, 3, 4, 5, 6));
    }
    start.elapsed().as_nanos() as f64 / n as f64
}

#[inline(never)]
fn null_calls(f: extern "C" fn(), n: u64) -> f64 {
    let start = Instant::now();
    for _ in 0..n {
        f();
    }
    start.elapsed().as_nanos() as f64 / n as f64
}

extern "C" fn null() {}

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
    let start = Instant::now();
    for _ in 0..n {
        a.1.write_all(&[1]).unwrap();
        b.0.read_exact(&mut byte).unwrap();
    }
    let took = start.elapsed().as_nanos() as f64 / n as f64;
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
    let start = Instant::now();
    for _ in 0..n {
        word.store(1, Ordering::Release);
        futex(&word, libc::FUTEX_WAKE, 1);
        wait(&word, 0);
    }
    let took = start.elapsed().as_nanos() as f64 / n as f64;
    word.store(9, Ordering::Release);
    futex(&word, libc::FUTEX_WAKE, 1);
    thread.join().unwrap();
    took
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    pin(0);
    const N: u64 = 1_000_000;
    let linked = common::basic(1);
    let full = common::basic(2);
    let (a, b, f) =
        (Instance::new(&linked).unwrap(), Instance::new(&linked).unwrap(), Instance::new(&full).unwrap());
    let mut quick = Imports::new();
    quick.lenient = true;
    // SAFETY: takes anything and returns.
    unsafe { quick.function("host0", "sm", nothing as *const (), 0).unwrap() };
    let module = Module::load("basic", common::build("basic", 1)).unwrap();
    let host = Instance::new(&quick.link(&module).unwrap()).unwrap();
    a.connect("host0", &b, "null", "sm").unwrap();
    let portal = |i: &Instance, name: &str, spec: &str| i.portal(name, spec).unwrap();
    let portals = [
        ("sm, 0 words", portal(&a, "null", "sm")),
        ("sm, 6 words", portal(&a, "null", "smiiiiii")),
        ("sp", portal(&a, "null", "sp")),
        ("sf", portal(&a, "null", "sf")),
        ("nm", portal(&a, "null", "nm")),
        ("np", portal(&a, "null", "np")),
        ("nf", portal(&a, "null", "nf")),
        ("sm, level full", portal(&f, "null", "sm")),
        ("sm, callback (with the call in)", portal(&host, "callback", "sm")),
        ("sm, to another domain (with the call in)", portal(&a, "callback", "sm")),
    ];
    let pointer = black_box(nothing as extern "C" fn(u64, u64, u64, u64, u64, u64) -> Outcome);
    let mut rows: Vec<(String, Vec<f64>)> = vec![("C call through a pointer".into(), vec![])];
    rows.push(("C call through a pointer, no words".into(), vec![]));
    rows.push(("sm, no words, no result".into(), vec![]));
    rows.extend(portals.iter().map(|(name, _)| (name.to_string(), vec![])));
    for _ in 0..21 {
        rows[0].1.push(calls(pointer, N));
        rows[1].1.push(null_calls(black_box(null), N));
        // SAFETY: portal code keeps the C convention; its results are ignored.
        let f =
            unsafe { std::mem::transmute::<*const (), extern "C" fn()>(portals[0].1.address() as *const ()) };
        rows[2].1.push(null_calls(black_box(f), N));
        for (row, (_, portal)) in rows[3..].iter_mut().zip(&portals) {
            row.1.push(calls(black_box(portal.entry()), N));
        }
    }
    let rounds = |f: &dyn Fn(u64) -> f64| (0..5).map(|_| f(20_000)).collect();
    rows.push(("pipe round trip, same core".into(), rounds(&pipe_round_trip)));
    rows.push(("futex hand-off round trip, same core".into(), rounds(&futex_hand_off)));
    let c = median(rows[0].1.clone());
    for (name, values) in rows {
        let ns = median(values);
        println!("{name:45} {ns:9.2} ns  {:7.2} x", ns / c);
    }
    let mut made = vec![];
    let mut called = vec![];
    let mut gone = vec![];
    for _ in 0..2000 {
        let start = Instant::now();
        let i = Instance::new(&linked).unwrap();
        made.push(start.elapsed().as_nanos() as f64 / 1000.0);
        let p = i.portal("null", "sm").unwrap();
        p.call(&[]).unwrap();
        called.push(start.elapsed().as_nanos() as f64 / 1000.0);
        let start = Instant::now();
        drop((p, i));
        gone.push(start.elapsed().as_nanos() as f64 / 1000.0);
    }
    println!("instance made                                 {:9.2} us", median(made));
    println!("instance made, portal opened, first call back {:9.2} us", median(called));
    println!("instance destroyed                            {:9.2} us", median(gone));
    let start = Instant::now();
    let many: Vec<Instance> = (0..2000).map(|_| Instance::new(&linked).unwrap()).collect();
    many.iter().for_each(|i| i.attach().unwrap());
    println!(
        "instance made and attached, 2000 alive        {:9.2} us",
        start.elapsed().as_nanos() as f64 / 2e6
    );
}
