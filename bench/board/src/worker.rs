//! A worker: one thread in its own domain that does what the driver says.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::api;
use pebble::io;
// Semaphores are not moved, and the ring is measured: the stub is the bare one.
use pebble::portal::call_once as call;
use pebble_bench::{Job, Load, ROUNDS};

extern crate alloc;

pebble::import! {
    START = "semaphore.start";
    DONE = "semaphore.done";
    JOB = "bench.job";
    NULL = "bench.null";
    RINGS = "bench.ring";
    STOPPED = "bench.stopped";
    OWN = "semaphore.own";
    NEXT = "semaphore.next";
    FIRST = "semaphore.first";
    SECOND = "semaphore.second";
}
pebble::component!(main);

fn main() -> i64 {
    let _ = RINGS.bound();
    loop {
        let _ = call(START.index(), []);
        if let Ok((kind, [a, b, last, _])) = JOB.call_wide([api::get_asid().into()])
            && let Some(job) = Job::decode([kind as u64, a, b])
        {
            work(job, last != 0);
        }
        let _ = call(DONE.index() + 1, []);
    }
}

fn work(job: Job, last: bool) {
    match job {
        Job::Yield => (0..ROUNDS).for_each(|_| api::yield_now()),
        Job::SemaphoreRing(_) => {
            let next = if last { FIRST.index() } else { NEXT.index() } + 1;
            for _ in 0..ROUNDS {
                let _ = call(OWN.index(), []);
                let _ = call(next, []);
            }
        }
        Job::PipeRing { read, write } => pipe_ring(read, write),
        Job::Load(load) => background(load, last),
    }
}

fn pipe_ring(read: u64, write: u64) {
    let (Ok(from), Ok(to)) =
        (io::open(&alloc::format!("/pipe/{read:016x}/r")), io::open(&alloc::format!("/pipe/{write:016x}/w")))
    else {
        return;
    };
    let mut byte = [0];
    for _ in 0..ROUNDS {
        if from.read(&mut byte) != Ok(1) || to.write(&byte).is_err() {
            break;
        }
    }
    from.close();
    to.close();
}

/// Until the driver says stop, which is asked often enough not to matter and rarely enough not to be the
/// load.
fn background(load: Load, last: bool) {
    // A pair of workers; the driver is not in it.
    let next = if last { SECOND.index() } else { NEXT.index() } + 1;
    while STOPPED.call([]) == Ok(0) {
        for _ in 0..1000 {
            match load {
                Load::Idle => core::hint::spin_loop(),
                Load::ShortCircuit => {
                    api::get_asid();
                }
                Load::Call => {
                    let _ = NULL.call([]);
                }
                Load::Yield => api::yield_now(),
                Load::Semaphore => {
                    let _ = call(OWN.index(), []);
                    let _ = call(next, []);
                }
            }
        }
    }
    // Nobody is left waiting for the token.
    let _ = call(next, []);
}
