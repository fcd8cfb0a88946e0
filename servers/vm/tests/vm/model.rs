//! Random histories with hostile arguments: after every request no page is lost or owned twice, no stale translation survives, and nothing that
//! is free is visible.

use crate::world::*;
use pebble_abi::map::{self, PAGE};
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
    (0u8..44, domain(), number(), number(), number())
}

fn apply(w: &mut World, (what, d, a, b, c): Step) {
    let vm = &mut w.vm;
    let pages = b % 40;
    match what {
        0..4 => _ = vm.domain_create(a & 1, if b < 12 { 20 + b * 20 } else { b }, a % 33, c % 300),
        4..9 => _ = vm.map(d, a, pages, [2, 6, 10, 14, c][(b % 5) as usize]),
        9 => _ = vm.map(d, a, b, c),
        10..12 => _ = vm.heap(d, a),
        12..17 => _ = vm.sbrk(d, a as i64),
        17 => _ = vm.sbrk(d, -(a as i64 & 0xffff)),
        18..22 => _ = vm.thread_create(d, a, b, c, a % 12),
        22..24 => _ = vm.thread_spawn(d, map::IMAGE_VA, b, a),
        24..27 => _ = vm.thread_free(a),
        27..29 => _ = vm.stack(d, a),
        29..32 => _ = vm.attach(PROCESS, d, a, pages, c),
        32 => _ = vm.attach(a, d, a, b, c),
        33 => _ = vm.detach(PROCESS, a, b),
        34 => _ = vm.detach(PROCESS, 0, 4096),
        35 => _ = vm.code_page(if b < 9 { PM } else { d }, a),
        36 => _ = vm.table_page(if b < 9 { PM } else { d }, d, a),
        37 => _ = vm.share_stacks(d, a),
        38 => _ = vm.share_stacks(a, d),
        39..41 => _ = vm.domain_kill(d),
        41 => _ = vm.fault(a, b, c, if d == VM || d == PM { 9 } else { d }, a, b),
        42 => _ = vm.domain_free(d),
        _ => _ = vm.fault_next(),
    }
}

/// Kills, frees, forgets all programs.
fn bury(w: &mut World) {
    for asid in 5..256 {
        let _ = w.vm.domain_kill(asid);
    }
    for tid in 0..256 {
        let _ = w.vm.thread_free(tid);
    }
    for asid in 5..256 {
        let _ = w.vm.domain_free(asid);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn every_history_keeps_the_invariants(steps in proptest::collection::vec(step(), 1..80)) {
        let mut w = World::new();
        for step in steps {
            apply(&mut w, step);
            w.check();
        }
        bury(&mut w);
        w.check();
        // What remains taken is what the image's domains have, and they never lose count.
        let charged: u64 = (1..5).map(|d| w.vm.domain_info(d).unwrap().1[1]).sum();
        let [free, all, domains, threads] = w.vm.stats();
        prop_assert_eq!(free + charged + 8, all);
        prop_assert!(domains <= 4 && threads <= 256);
    }

    #[test]
    fn nonsense_is_refused_by_everything(what in 0u8..44, d in any::<u64>(), a in any::<u64>(), b in any::<u64>(), c in any::<u64>()) {
        let mut w = World::new();
        w.vm.domain_create(0, 100, 10, 4).unwrap();
        let before = w.vm.stats();
        apply(&mut w, (what, d | 1 << 20, a | 1 << 40, b | 1 << 60, c));
        w.check();
        prop_assert_eq!(w.vm.stats(), before);
    }
}
