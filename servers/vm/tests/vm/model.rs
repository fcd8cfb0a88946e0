//! Random histories with hostile arguments: after every request no page is lost or owned twice, no stale
//! translation survives, and nothing that is free is visible.

use crate::portals::Lent;
use crate::world::*;
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, ThreadId, VirtAddr};
use pebble_vm::Outcome;
use proptest::prelude::*;

/// Small numbers, addresses of interest, and nonsense.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        6 => 0u64..12,
        4 => (0u64..40).prop_map(|n| map::IMAGE_VA + n * PAGE),
        2 => (0u64..600).prop_map(|n| n * PAGE),
        1 => Just(map::STARTUP_VA),
        1 => Just(map::HEAP_END - PAGE),
        1 => Just(map::stacks_of(5)),
        1 => Just(map::USER_END),
        1 => Just((-8192i64) as u64),
        1 => Just(u64::MAX - 0xfff),
        1 => any::<u64>(),
    ]
}

/// A domain: usually one of the first programs.
fn domain() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 4u64..9, 1 => 0u64..4, 1 => any::<u64>()]
}

type Step = (u8, u64, u64, u64, u64);

fn step() -> impl Strategy<Value = Step> {
    (0u8..98, domain(), number(), number(), number())
}

fn apply(w: &mut World, (what, d, a, b, c): Step) {
    let vm = &mut w.vm;
    let pages = b % 40;
    match what {
        0..4 => _ = vm.domain_create(a & 1, if b < 12 { 20 + b * 20 } else { b }, a % 33, c % 300),
        4..9 => _ = vm.map(Asid(d), VirtAddr(a), pages, [1, 3, 5, 7, c][(b % 5) as usize]),
        9 => _ = vm.map(Asid(d), VirtAddr(a), b, c),
        10..12 => _ = vm.heap(Asid(d), VirtAddr(a)),
        12..17 => _ = vm.sbrk(Asid(d), a as i64),
        17 => _ = vm.sbrk(Asid(d), -(a as i64 & 0xffff)),
        18..22 => _ = vm.thread_create(Asid(d), a, VirtAddr(b), c, a % 12),
        22..24 => _ = vm.thread_spawn(Asid(d), VirtAddr(map::IMAGE_VA), b, a),
        24..27 => _ = vm.thread_free(ThreadId(a)),
        27..29 => _ = vm.stack(Asid(d), a),
        29..32 => _ = vm.attach(Asid(PROCESS), Asid(d), VirtAddr(a), pages, c),
        32 => _ = vm.attach(Asid(a), Asid(d), VirtAddr(a), b, c),
        33 => _ = vm.detach(Asid(PROCESS), a, b),
        34 => _ = vm.detach(Asid(PROCESS), 0, 4096),
        35 => _ = vm.code_page(if b < 9 { Asid(PM) } else { Asid(d) }, a),
        36 => _ = vm.table_page(if b < 9 { Asid(PM) } else { Asid(d) }, Asid(d), a),
        37 => _ = vm.share_stacks(Asid(d), Asid(a)),
        38 if b < 4 => _ = vm.unshare_stacks(Asid(a), Asid(d)),
        38 => _ = vm.share_stacks(Asid(a), Asid(d)),
        39..41 => _ = vm.domain_kill(Asid(d)),
        41 => {
            _ = vm.fault(
                a,
                b,
                VirtAddr(c),
                if d == VM || d == PM { Asid(9) } else { Asid(d) },
                ThreadId(a),
                b,
            )
        }
        42 => {
            let mentioned = |l: &Lent| u64::from(l.caller) == d || u64::from(l.callee) == d;
            if !w.calls.iter().any(mentioned) && !w.asks.iter().any(|a| u64::from(a.asid) == d) {
                _ = vm.domain_free(Asid(d));
            }
        }
        43 => _ = vm.fault_next(),
        44..46 => _ = vm.buffer(Asid(d), b % 6),
        46 => _ = vm.buffer_free(Asid(d), VirtAddr(buffer(b))),
        47..49 => _ = vm.receive_window(Asid(d), 1 + b % 2),
        49..51 => _ = vm.window_close(Asid(d), VirtAddr(slot(a))),
        51 => _ = vm.window_close(Asid(d), VirtAddr(buffer(a))),
        52 => _ = vm.window_move(Asid(d), VirtAddr(slot(a)), VirtAddr(slot(b))),
        53 => _ = vm.window_move(Asid(d), VirtAddr(buffer(a)), VirtAddr(buffer(b))),
        54 => _ = vm.window_move(Asid(d), VirtAddr(a), VirtAddr(b)),
        55 => _ = vm.windows(Asid(b % 4), Asid(d)),
        56 => _ = vm.range_set(Asid(d), VirtAddr(a), pages, (4 + c % 5) | 60 << 16 | (c % 31) << 32),
        57 => _ = vm.range_set(Asid(d), VirtAddr(a), 0, 0),
        58 => _ = vm.provide(Asid(d), Asid(4 + b % 5), VirtAddr(a), VirtAddr(c), 3),
        59..61 => fork(w, d, 4 + a % 6),
        61..63 => {
            let asked = w.asks.pop();
            if let Some(ask) = asked {
                let from = w.page_of(c, a).unwrap_or(a);
                let _ = w.vm.provide(Asid(c), ask.asid.into(), VirtAddr(ask.address), VirtAddr(from), 3);
                w.vm.answered(&ask, VirtAddr(0), ThreadId(0));
            }
        }
        63..65 => {
            let d = if d % 9 == VM || d % 9 == PM { 5 } else { d % 9 };
            if let Outcome::Ask(ask) = vm.fault(13, a, VirtAddr(0), Asid(d), ThreadId(b % 16), 0) {
                w.asks.push(ask);
            }
        }
        65..74 => {
            let letter = b"wrotgwOoO"[usize::from(what) - 65];
            let place = map::WINDOWS_VA + (256 + a % 4) * PAGE;
            let goal = if b.is_multiple_of(2) { place } else { slot(a) };
            let at = if letter == b'g' { goal } else { w.page_of(d, a).unwrap_or(a) };
            w.thread = b % 3;
            w.lend(d as u16, (4 + c % 5) as u16, letter, at, 1);
        }
        74..77 => {
            let letter = b"wrotgO"[(c % 6) as usize];
            let at = buffer(if a % 3 == 0 { a } else { 0 });
            w.thread = a % 3;
            w.lend(d as u16, (4 + b % 5) as u16, letter, at, 2 + b % 2);
        }
        84..88 => {
            // Stacks grow, or their users die of it.
            let d = if d % 9 == VM || d % 9 == PM { 5 } else { d % 9 };
            let whose = if a.is_multiple_of(4) { 4 + b % 5 } else { d };
            let stack = map::stacks_of(whose as u16) + c % map::STACKS_STRIDE;
            let at = if c.is_multiple_of(2) { stack } else { map::IMAGE_VA + c % 40 * PAGE };
            match b % 3 {
                0 => _ = vm.touch(Asid(d), VirtAddr(at)),
                _ => _ = vm.fault(15, at, VirtAddr(0), Asid(d), ThreadId(b % 16), 0),
            }
        }
        88..90 => {
            let at = VirtAddr(map::ARCHIVE_VA + a % 4 * PAGE);
            _ = vm.show(Asid(if b.is_multiple_of(4) { c } else { SERVER }), Asid(d), at, b % 5);
        }
        92..94 => {
            let (from, to) = (VirtAddr(map::ARCHIVE_VA + a % 4 * PAGE), map::IMAGE_VA + c % 40 * PAGE);
            let caller = if b.is_multiple_of(4) { d } else { SERVER };
            _ = vm.map_shown(Asid(caller), Asid(4 + a % 6), VirtAddr(to), from, b % 4 << 16 | 1 | c & 7);
        }
        90..92 => _ = vm.hide(Asid(d), VirtAddr(map::ARCHIVE_VA + a % 4 * PAGE), b % 5),
        94..98 => {
            let (one, other) = (w.page_of(d, a).unwrap_or(a), w.page_of(4 + b % 5, c).unwrap_or(c));
            let sides = [(Asid(d), VirtAddr(one)), (Asid(4 + b % 5), VirtAddr(other))];
            if let Ok(flipped) = w.vm.flip(sides[0], sides[1], b % 6) {
                w.alone(sides[0], flipped);
                w.alone(sides[1], flipped);
            }
        }
        82..84 => w.idle(b % 20),
        80..82 => {
            let at = [slot(a), buffer(a), a][(b % 3) as usize];
            let page = w.page_of(d, a).unwrap_or(a);
            _ = w.vm.window_claim(Asid(d), if what == 80 { VirtAddr(at) } else { VirtAddr(page) });
        }
        _ => {
            if !w.calls.is_empty() {
                // A thread's calls end in order.
                let thread = w.calls[a as usize % w.calls.len()].thread;
                let n = w.last_of(thread).unwrap_or(0);
                let lent = w.calls[n];
                // A callee that means well has put something there.
                if let Some(page) = w.page_of(lent.callee.into(), b) {
                    let _ = w.vm.window_move(lent.callee.into(), VirtAddr(page), VirtAddr(lent.at));
                }
                let _ = w.vm.window_move(lent.callee.into(), VirtAddr(buffer(b)), VirtAddr(lent.at));
                w.give_back(n);
            }
        }
    }
}

fn buffer(n: u64) -> u64 {
    map::BUFFERS_VA + n % 16 * map::BUFFER_STRIDE
}

/// One of the first slots or places.
fn slot(n: u64) -> u64 {
    map::WINDOWS_VA + (n % 4 + n / 4 % 2 * 256) * PAGE
}

fn fork(w: &mut World, parent: u64, child: u64) {
    let mut from = 0;
    let sp = map::stack_top(parent as u16, 0);
    loop {
        match w.vm.fork(Asid(parent), Asid(child), VirtAddr(sp), VirtAddr(from)) {
            Ok(0) => {
                let _ = w.vm.thread_fork(Asid(child), VirtAddr(map::IMAGE_VA), VirtAddr(sp - 64), 0);
                return;
            }
            Ok(next) => from = next,
            Err(_) => return,
        }
        w.check();
    }
}

/// Programs with something to lend.
fn furnish(w: &mut World) {
    for _ in 0..3 {
        let d = w.vm.domain_create(0, 200, 12, 8).unwrap();
        w.vm.map(Asid(d), VirtAddr(map::IMAGE_VA), 2, 5).unwrap();
        w.vm.heap(Asid(d), VirtAddr(map::IMAGE_VA + 2 * PAGE)).unwrap();
        w.vm.sbrk(Asid(d), 6 * PAGE as i64).unwrap();
        w.touch(d as u16, map::IMAGE_VA + 2 * PAGE, 4);
        w.vm.stack(Asid(d), 2).unwrap();
        w.vm.buffer(Asid(d), 2 + d % 2).unwrap();
    }
    w.check();
}

/// Kills, frees, forgets all programs.
fn bury(w: &mut World) {
    for ask in core::mem::take(&mut w.asks) {
        w.vm.answered(&ask, VirtAddr(0), ThreadId(0));
    }
    for asid in 5..256 {
        let _ = w.vm.domain_kill(Asid(asid));
    }
    for tid in 0..256 {
        let _ = w.vm.thread_free(ThreadId(tid));
    }
    // As long as threads may return, nobody is forgotten.
    while !w.calls.is_empty() {
        w.give_back(w.calls.len() - 1);
        w.check();
    }
    for asid in 5..256 {
        let _ = w.vm.domain_free(Asid(asid));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn every_history_keeps_the_invariants(steps in proptest::collection::vec(step(), 1..80)) {
        let mut w = World::new();
        furnish(&mut w);
        for step in steps {
            apply(&mut w, step);
            w.check();
        }
        bury(&mut w);
        w.check();
        // What remains taken is what the image's domains have, and they never lose count.
        let charged: u64 = (1..5).map(|d| w.vm.domain_info(Asid(d)).unwrap().1[1]).sum();
        let [free, all, domains, threads] = w.vm.stats();
        prop_assert_eq!(free + charged + 8, all);
        prop_assert!(domains <= 4 && threads <= 256);
    }

    #[test]
    fn nonsense_is_refused_by_everything(
        what in 0u8..59,
        d in any::<u64>(),
        a in any::<u64>(),
        b in any::<u64>(),
        c in any::<u64>(),
    ) {
        let mut w = World::new();
        w.vm.domain_create(0, 100, 10, 4).unwrap();
        let before = w.vm.stats();
        apply(&mut w, (what, d | 1 << 20, a | 1 << 40, b | 1 << 60, c));
        w.check();
        prop_assert_eq!(w.vm.stats(), before);
    }
}
