//! Interrupt latency, as the embedded paper measures it (Bruno et al. 1999, "Interrupt latency"): a thread
//! sleeps until random absolute times; latency is when it runs minus when it should have run, while another
//! thread loads the system.
//!
//! The moment when the clock moves, on the instruction counter, is found once, so the latency is exact to the
//! instruction.

use crate::calibrate::{PER_TICK, calibrate};
use crate::{Bench, STOP};
use core::sync::atomic::Ordering::Relaxed;
use pebble::abi::map::TIME_HZ;
use pebble::api;
use pebble::portal::{call, counter, time};
use pebble_bench::{Job, Load, ROUNDS};

/// Bounds of the random delay, in ticks.
const DELAY: (u64, u64) = (TIME_HZ / 1_000_000 * 6, TIME_HZ / 1_000_000 * 40);

pub fn all(bench: &Bench) {
    let offset = calibrate();
    // The measuring thread outranks the load.
    let _ = crate::PRIORITY.call([api::get_thread_id().into(), 12]);
    for (id, load, workers) in [
        ("irq.idle", Load::Idle, 1),
        ("irq.sc", Load::ShortCircuit, 1),
        ("irq.ipc", Load::Call, 1),
        ("irq.yield", Load::Yield, 1),
        ("irq.sem", Load::Semaphore, 2),
    ] {
        bench.start(Job::Load(load), workers);
        if load == Load::Semaphore {
            // The token.
            let _ = call(crate::RING1.index() + 1, []);
        }
        let mut samples = bench.samples(1);
        let mut random = 0x2545_f491_4f6c_dd1d_u64;
        for _ in 0..ROUNDS {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let due = time() + DELAY.0 + random % (DELAY.1 - DELAY.0);
            let _ = api::hrsleep(due);
            samples.add(counter() - (due * PER_TICK).wrapping_add(offset));
        }
        STOP.store(1, Relaxed);
        bench.join(workers);
        bench.emit(id, samples);
    }
}
