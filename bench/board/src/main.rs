//! The driver: measures everything that `bench` reports, one row after the other, and powers the machine off.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

mod calibrate;
mod latency;
mod windows;

use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::sys;
use pebble::api;
use pebble::io::{self, File};
use pebble::link::More;
use pebble::portal::{COUNTED, call_once as call, counter, timed_call};
use pebble::power::Power;
use pebble_bench::{Job, ROUNDS, Samples};

pebble::import! {
    START1 = "semaphore.start1";
    START2 = "semaphore.start2";
    START3 = "semaphore.start3";
    START4 = "semaphore.start4";
    START5 = "semaphore.start5";
    START6 = "semaphore.start6";
    START7 = "semaphore.start7";
    PRIORITY = "scheduler.priority";
    DONE = "semaphore.done";
    RING = "semaphore.ring0";
    RING1 = "semaphore.ring1";
    FREE = "semaphore.bench-free";
    FLOAT = "semaphore.float";
    FLOAT_DONE = "semaphore.float-done";
    SM = "link2.sm";
    SM4 = "link2.sm4";
    NP4 = "link2.np4";
    NP = "link2.np";
    SELF_SM = "bench.self.sm";
    SELF_NP = "bench.self.np";
    CHAIN_SM4 = "link6.chain.sm";
    CHAIN_NP4 = "link6.chain.np";
    CHAIN_SM8 = "link2.chain.sm";
    CHAIN_NP8 = "link2.chain.np";
    PIPE_CREATE: pipe::Create;
}
pebble::export_wide!("bench.job", "npi>4", job);
pebble::export!("bench.null", "sm", null);
pebble::export!("bench.self.sm", "sm", null);
pebble::export!("bench.self.np", "np", null);
pebble::export!("bench.ring", "np", null);
pebble::export!("bench.stopped", "np", stopped);
pebble::component!(main);

const POWER: Power = Power::new(0);

/// What the next worker that asks will do; how many workers take part; how many have asked.
static KIND: [AtomicU64; 3] = [const { AtomicU64::new(0) }; 3];
static PIPES: [AtomicU64; 8] = [const { AtomicU64::new(0) }; 8];
static ASKED: AtomicU64 = AtomicU64::new(0);
static WORKERS: AtomicU64 = AtomicU64::new(0);
static STOP: AtomicU64 = AtomicU64::new(0);

extern "C" fn null() -> i64 {
    0
}

extern "C" fn stopped() -> i64 {
    STOP.load(Relaxed) as i64
}

/// Kind; two words; whether it is the last in the ring.
extern "C" fn job(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    let n = ASKED.fetch_add(1, Relaxed);
    let [kind, mut a, mut b] = [0, 1, 2].map(|i| KIND[i].load(Relaxed));
    if let Some(Job::PipeRing { .. }) = Job::decode([kind, a, b]) {
        // Worker n reads what its left neighbour (the driver for the first) writes.
        a = PIPES[n as usize % 8].load(Relaxed);
        b = PIPES[(n as usize + 1) % 8].load(Relaxed);
    }
    *more = [a, b, u64::from(n + 1 == WORKERS.load(Relaxed)), 0];
    kind as i64
}

/// Console, and the cost of reading the counter.
struct Bench {
    console: File,
    base: u32,
}

impl Bench {
    fn samples(&self, per: u32) -> Samples {
        Samples::new(per, self.base)
    }

    fn emit(&self, id: &str, samples: Samples) {
        let _ = self.console.write(alloc::format!("@bench {}\n", samples.row(id, COUNTED)).as_bytes());
    }

    /// What is no row: a step that failed.
    fn say(&self, what: &str) {
        let _ = self.console.write(alloc::format!("@bench! {what}\n").as_bytes());
    }

    fn call(&self, id: &str, per: u32, index: usize) {
        let mut samples = self.samples(per);
        // With a slice of its own from the beginning: no tick falls into a sample.
        let _ = api::hrsleep(pebble::portal::time() + pebble::portal::MILLISECOND / 100);
        for _ in 0..ROUNDS {
            samples.add(timed_call(index, [1, 2, 3, 4, 0]));
        }
        self.emit(id, samples);
    }

    /// Lets the first `workers` workers begin a job, one after the other, so that each knows its place.
    fn start(&self, job: Job, workers: u64) {
        let words = job.encode();
        (0..3).for_each(|i| KIND[i].store(words[i], Relaxed));
        ASKED.store(0, Relaxed);
        STOP.store(0, Relaxed);
        WORKERS.store(workers, Relaxed);
        let starts = [&START1, &START2, &START3, &START4, &START5, &START6, &START7];
        for (n, start) in starts.iter().enumerate().take(workers as usize) {
            let _ = call(start.index() + 1, []);
            while ASKED.load(Relaxed) <= n as u64 {
                let _ = api::hrsleep(pebble::portal::time() + pebble::portal::MILLISECOND / 100);
            }
        }
    }

    fn join(&self, workers: u64) {
        STOP.store(1, Relaxed);
        for _ in 0..workers {
            let _ = call(DONE.index(), []);
        }
    }
}

fn main() -> i64 {
    let Ok(console) = io::open("/dev/console") else { return 1 };
    let base = (0..100)
        .map(|_| {
            let a = counter();
            counter() - a
        })
        .min()
        .unwrap_or(0);
    let bench = Bench { console, base: base as u32 };
    legs(&bench);
    yields(&bench);
    semaphores(&bench);
    pipes(&bench);
    opens(&bench);
    windows::all(&bench);
    latency::all(&bench);
    let _ = bench.console.write(b"@bench end\n");
    let _ = api::hrsleep(pebble::portal::time() + 10 * pebble::portal::MILLISECOND);
    POWER.off(0);
    0
}

fn legs(bench: &Bench) {
    bench.call("portal.short_circuit", 1, sys::SYS_GET_ASID);
    bench.call("portal.leg.sm.0", 2, SM.index());
    bench.call("portal.leg.sm.4", 2, SM4.index());
    bench.call("portal.leg.np.4", 2, NP4.index());
    let _ = call(FLOAT.index() + 1, []);
    let _ = call(FLOAT_DONE.index(), []);
    // Two legs for each domain after the first; a domain alone calls itself.
    for (domains, legs, sm, np) in [
        (1, 2, SELF_SM.index(), SELF_NP.index()),
        (2, 2, SM.index(), NP.index()),
        (4, 6, CHAIN_SM4.index(), CHAIN_NP4.index()),
        (8, 14, CHAIN_SM8.index(), CHAIN_NP8.index()),
    ] {
        bench.call(&alloc::format!("portal.chain.sm.{domains}"), legs, sm);
        bench.call(&alloc::format!("portal.chain.np.{domains}"), legs, np);
    }
}

fn yields(bench: &Bench) {
    for domains in [1u64, 2, 4, 8] {
        bench.start(Job::Yield, domains - 1);
        let mut samples = bench.samples(domains as u32);
        for _ in 0..ROUNDS {
            samples.add(timed_call(sys::SYS_YIELD, [0; 5]));
        }
        bench.join(domains - 1);
        bench.emit(&alloc::format!("yield.{domains}"), samples);
    }
}

fn semaphores(bench: &Bench) {
    bench.call("sem.v.hybrid", 1, FREE.index() + 1);
    bench.call("sem.p.hybrid", 1, FREE.index());
    for domains in [1u64, 2, 4, 8] {
        bench.start(Job::SemaphoreRing(domains), domains - 1);
        // Alone, the driver's own semaphore comes round at once.
        let next = if domains == 1 { RING.index() } else { RING1.index() } + 1;
        let mut samples = bench.samples(domains as u32);
        for _ in 0..ROUNDS {
            let before = counter();
            let _ = call(next, []);
            let _ = call(RING.index(), []);
            samples.add(counter() - before);
        }
        bench.join(domains - 1);
        bench.emit(&alloc::format!("sem.ring.{domains}"), samples);
    }
}

/// Token rings of pipes. `ring` is what is left of `latency` when the work of one pipe in one domain, where
/// nobody waits, is taken off.
fn pipes(bench: &Bench) {
    let open = |token: u64, side: char| io::open(&alloc::format!("/pipe/{token:016x}/{side}"));
    let create = || PIPE_CREATE.call().unwrap_or(-1) as u64;
    let mut byte = [0];
    let token = create();
    let (Ok(read), Ok(write)) = (open(token, 'r'), open(token, 'w')) else { return };
    let work: Vec<u64> = (0..ROUNDS)
        .map(|_| {
            let before = counter();
            let _ = write.write(&byte);
            let _ = read.read(&mut byte);
            counter() - before
        })
        .collect();
    let work = work.iter().sum::<u64>() / work.len() as u64;
    read.close();
    write.close();
    for domains in [2u64, 4, 8] {
        let tokens: Vec<u64> = (0..domains).map(|_| create()).collect();
        // Pipe n leads to member n of the ring; the driver is member 0, worker k (from 0) member k + 1.
        for (n, pipe) in PIPES.iter().enumerate() {
            pipe.store(tokens[(n + 1) % domains as usize], Relaxed);
        }
        let (Ok(read), Ok(write)) = (open(tokens[0], 'r'), open(tokens[1], 'w')) else { return };
        bench.start(Job::PipeRing { read: 0, write: 0 }, domains - 1);
        let (mut latency, mut ring) = (bench.samples(domains as u32), bench.samples(domains as u32));
        for _ in 0..ROUNDS {
            let before = counter();
            let _ = write.write(&byte);
            let _ = read.read(&mut byte);
            let took = counter() - before;
            latency.add(took);
            ring.add(took.saturating_sub(work * domains));
        }
        bench.join(domains - 1);
        read.close();
        write.close();
        bench.emit(&alloc::format!("pipe.latency.{domains}"), latency);
        bench.emit(&alloc::format!("pipe.ring.{domains}"), ring);
    }
}

fn opens(bench: &Bench) {
    for spec in ["smcii", "npcii"] {
        let name = alloc::format!("link2.{spec}");
        let mut samples = bench.samples(1);
        for _ in 0..ROUNDS {
            let before = counter();
            let index = api::portal_open(&name);
            samples.add(counter() - before);
            match index {
                Ok(index) => {
                    let _ = api::portal_close(index, 1);
                }
                Err(error) => return bench.say(&alloc::format!("{name}: {error}")),
            }
        }
        bench.emit(&alloc::format!("portal.open.{spec}"), samples);
    }
}
