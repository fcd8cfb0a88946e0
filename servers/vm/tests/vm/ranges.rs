//! Fault ranges, one promise at a time.

use crate::windows::*;
use crate::world::*;
use pebble_abi::errno;
use pebble_abi::map::{self, PAGE};
use pebble_vm::Outcome;

const IMAGE: u64 = map::IMAGE_VA;

#[test]
fn handlers_answer_for_their_ranges_alone() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let c = program(&mut w);
    let at = IMAGE + 100 * PAGE;
    let who = u64::from(b) | 77 << 16;
    assert_eq!(w.vm.range_set(a.into(), at + 1, 4, who), Err(errno::EINVAL));
    assert_eq!(w.vm.range_set(a.into(), map::HEAP_END, 1, who), Err(errno::EINVAL));
    assert_eq!(w.vm.range_set(a.into(), at, 4, u64::from(a) | 77 << 16), Err(errno::EINVAL), "itself");
    assert_eq!(
        w.vm.range_set(a.into(), at, 4, u64::from(b) | 3 << 16),
        Err(errno::EINVAL),
        "a system portal"
    );
    assert_eq!(w.vm.range_set(a.into(), at, 4, 99 | 77 << 16), Err(errno::ESRCH));
    w.vm.range_set(a.into(), at, 4, who).unwrap();
    assert_eq!(w.vm.range_set(a.into(), at + 3 * PAGE, 1, who), Err(errno::EEXIST));
    w.vm.range_set(a.into(), at + 4 * PAGE, 1, u64::from(c) | 78 << 16).unwrap();
    assert_eq!(w.vm.provide(b.into(), a.into(), at, HEAP, 6), Err(errno::EPERM), "nobody asks");

    let Outcome::Ask(ask) = w.vm.fault(15, at + 2 * PAGE + 8, IMAGE, a.into(), 3, 0) else { panic!() };
    assert_eq!((ask.index, ask.asid, ask.address, ask.cause), (77, a, at + 2 * PAGE + 8, 15));
    assert_eq!(w.vm.range_set(a.into(), at, 0, 0), Err(errno::EAGAIN), "it is asked");
    let target = at + 2 * PAGE;
    for (who, whom, to, from, flags, error) in [
        (c, a, target, HEAP, 6, errno::EPERM),
        (b, c, target, HEAP, 6, errno::EPERM),
        (b, a, at + 4 * PAGE, HEAP, 6, errno::EPERM),
        (b, a, target + 8, HEAP, 6, errno::EINVAL),
        (b, a, target, HEAP, 14, errno::EINVAL),
        (b, a, target, HEAP + 8, 6, errno::EFAULT),
        (b, a, target, IMAGE, 2, errno::EFAULT),
    ] {
        assert_eq!(w.vm.provide(who.into(), whom.into(), to, from, flags), Err(error), "{error} {to:#x}");
    }
    let [before_a, before_b] = [a, b].map(|d| pages(&w, d));
    let page = pa(w.view(b)[&HEAP]);
    let Outcome::Ask(again) = w.vm.fault(13, target, IMAGE, a.into(), 4, 0) else { panic!() };
    w.vm.provide(b.into(), a.into(), target, HEAP, 6).unwrap();
    assert_eq!(w.vm.provide(b.into(), a.into(), target, HEAP + PAGE, 6), Err(errno::EEXIST));
    assert_eq!((pages(&w, a), pages(&w, b)), (before_a + 1, before_b - 1));
    assert_eq!(pa(w.view(a)[&target]), page);
    w.check();
    assert_eq!(w.vm.answered(&ask, IMAGE, 3), Outcome::Settled);
    assert_eq!(w.vm.answered(&again, IMAGE, 4), Outcome::Settled, "another thread's handler was quicker");
    assert_eq!(w.vm.fault(15, target, IMAGE, a.into(), 3, 0), Outcome::Settled, "it is there");
    assert_eq!(
        w.vm.provide(b.into(), a.into(), at, HEAP + PAGE, 6),
        Err(errno::EPERM),
        "it is not asked now"
    );
    assert_eq!(w.vm.range_set(a.into(), at, 0, 0), Ok(77));
    assert_eq!(w.vm.range_set(a.into(), at, 0, 0), Err(errno::ENOENT));

    // Not beyond its limit.
    let small = w.vm.domain_create(0, 5 + 2 + 1, 12, 8).unwrap();
    w.vm.range_set(small, at, 4, who).unwrap();
    let Outcome::Ask(ask) = w.vm.fault(13, at, IMAGE, small, 3, 0) else { panic!() };
    assert_eq!(w.vm.provide(b.into(), small, at, HEAP + PAGE, 6), Ok(0));
    assert_eq!(w.vm.provide(b.into(), small, at + PAGE, HEAP + 2 * PAGE, 6), Err(errno::ENOMEM));
    assert_eq!(w.vm.answered(&ask, IMAGE, 3), Outcome::Settled);
    w.check();

    // Read-only is not enough for a write.
    let Outcome::Ask(ask) = w.vm.fault(15, at + 4 * PAGE, IMAGE + 2, a.into(), 9, 0) else { panic!() };
    w.vm.provide(c.into(), a.into(), at + 4 * PAGE, HEAP, 2).unwrap();
    assert_eq!(w.vm.answered(&ask, IMAGE + 2, 9), Outcome::Died);
    let (asid, fault) = w.vm.fault_next().unwrap();
    assert_eq!((asid, fault.cause, fault.value, fault.thread), (a, 15, at + 4 * PAGE, 9));
    w.check();
}

#[test]
fn few_handlers_are_asked_at_once_and_none_that_is_dead() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let at = IMAGE + 100 * PAGE;
    for n in 0..8 {
        w.vm.range_set(a.into(), at + n * PAGE, 1, u64::from(b) | 77 << 16).unwrap();
    }
    assert_eq!(w.vm.range_set(a.into(), at + 8 * PAGE, 1, u64::from(b) | 77 << 16), Err(errno::EAGAIN));
    let ask = |w: &mut World, n: u64| w.vm.fault(13, at + n * PAGE, IMAGE, a.into(), 1, 0);
    let Outcome::Ask(first) = ask(&mut w, 0) else { panic!() };
    let Outcome::Ask(second) = ask(&mut w, 1) else { panic!() };
    assert_eq!(ask(&mut w, 2), Outcome::Later);
    w.vm.domain_kill(b.into()).unwrap();
    w.check();
    assert_eq!(w.vm.answered(&first, IMAGE, 1), Outcome::Died);
    assert_eq!(w.vm.answered(&second, IMAGE, 1), Outcome::Settled, "dead already");
    w.vm.domain_free(a.into()).unwrap();
    let (c, d) = two(&mut w);
    w.vm.range_set(c.into(), at, 1, u64::from(d) | 77 << 16).unwrap();
    w.vm.domain_kill(d.into()).unwrap();
    assert_eq!(w.vm.fault(13, at, IMAGE, c.into(), 1, 0), Outcome::Died, "nobody answers");
    w.check();
}
