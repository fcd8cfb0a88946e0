//! Fault ranges, one promise at a time.

use crate::windows::*;
use crate::world::*;
use pebble_abi::errno;
use pebble_abi::fault::Cause;
use pebble_abi::map::{self, PAGE};
use pebble_abi::share::HANDLERS;
use pebble_abi::words::{Asid, ThreadId, VirtAddr};
use pebble_vm::Outcome;

const IMAGE: u64 = map::IMAGE_VA;

#[test]
fn handlers_answer_for_their_ranges_alone() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let c = program(&mut w);
    let at = IMAGE + 100 * PAGE;
    let who = u64::from(b) | 77 << 16 | STACKS;
    assert_eq!(w.vm.range_set(a.into(), VirtAddr(at + 1), 4, who), Err(errno::EINVAL));
    assert_eq!(w.vm.range_set(a.into(), VirtAddr(map::HEAP_END), 1, who), Err(errno::EINVAL));
    assert_eq!(
        w.vm.range_set(a.into(), VirtAddr(at), 4, u64::from(a) | 77 << 16 | STACKS),
        Err(errno::EINVAL),
        "itself"
    );
    assert_eq!(
        w.vm.range_set(a.into(), VirtAddr(at), 4, u64::from(b) | 3 << 16),
        Err(errno::EINVAL),
        "a system portal"
    );
    assert_eq!(w.vm.range_set(a.into(), VirtAddr(at), 4, 99 | 77 << 16), Err(errno::ESRCH));
    w.vm.range_set(a.into(), VirtAddr(at), 4, who).unwrap();
    assert_eq!(w.vm.range_set(a.into(), VirtAddr(at + 3 * PAGE), 1, who), Err(errno::EEXIST));
    w.vm.range_set(a.into(), VirtAddr(at + 4 * PAGE), 1, u64::from(c) | 78 << 16 | STACKS).unwrap();
    assert_eq!(
        w.vm.provide(b.into(), a.into(), VirtAddr(at), VirtAddr(HEAP), 3),
        Err(errno::EPERM),
        "nobody asks"
    );

    let Outcome::Ask(ask) = w.vm.fault(15, at + 2 * PAGE + 8, VirtAddr(IMAGE), a.into(), ThreadId(3), 0)
    else {
        panic!()
    };
    assert_eq!((ask.index, ask.asid, ask.address, ask.cause), (77, a, at + 2 * PAGE + 8, Cause::Store));
    assert_eq!(w.vm.range_set(a.into(), VirtAddr(at), 0, 0), Err(errno::EAGAIN), "it is asked");
    let target = at + 2 * PAGE;
    for (who, whom, to, from, flags, error) in [
        (c, a, target, HEAP, 3, errno::EPERM),
        (b, c, target, HEAP, 3, errno::EPERM),
        (b, a, at + 4 * PAGE, HEAP, 3, errno::EPERM),
        (b, a, target + 8, HEAP, 3, errno::EINVAL),
        (b, a, target, HEAP, 7, errno::EINVAL),
        (b, a, target, HEAP + 8, 3, errno::EFAULT),
        (b, a, target, IMAGE, 1, errno::EFAULT),
    ] {
        assert_eq!(
            w.vm.provide(who.into(), whom.into(), VirtAddr(to), VirtAddr(from), flags),
            Err(error),
            "{error} {to:#x}"
        );
    }
    let [before_a, before_b] = [a, b].map(|d| pages(&w, d));
    let page = pa(w.view(b)[&HEAP]);
    assert_eq!(w.vm.fault(13, target, VirtAddr(IMAGE), a.into(), ThreadId(4), 0), Outcome::Later);
    w.vm.provide(b.into(), a.into(), VirtAddr(target), VirtAddr(HEAP), 3).unwrap();
    assert_eq!(
        w.vm.provide(b.into(), a.into(), VirtAddr(target), VirtAddr(HEAP + PAGE), 3),
        Err(errno::EEXIST)
    );
    assert_eq!((pages(&w, a), pages(&w, b)), (before_a + 1, before_b - 1));
    assert_eq!(pa(w.view(a)[&target]), page);
    w.check();
    assert_eq!(w.vm.answered(&ask, VirtAddr(IMAGE), ThreadId(3)), Outcome::Settled);
    assert_eq!(
        w.vm.fault(13, target, VirtAddr(IMAGE), a.into(), ThreadId(4), 0),
        Outcome::Settled,
        "it is there"
    );
    assert_eq!(
        w.vm.provide(b.into(), a.into(), VirtAddr(at), VirtAddr(HEAP + PAGE), 3),
        Err(errno::EPERM),
        "it is not asked now"
    );
    assert_eq!(w.vm.range_set(a.into(), VirtAddr(at), 0, 0), Ok(77));
    assert_eq!(w.vm.range_set(a.into(), VirtAddr(at), 0, 0), Err(errno::ENOENT));

    // Not beyond its limit.
    let small = w.vm.domain_create(0, 5 + 2 + 1, 12, 8).unwrap();
    w.vm.family(Asid(small), a.into()).unwrap();
    w.vm.range_set(Asid(small), VirtAddr(at), 4, who).unwrap();
    let Outcome::Ask(ask) = w.vm.fault(13, at, VirtAddr(IMAGE), Asid(small), ThreadId(3), 0) else {
        panic!()
    };
    assert_eq!(w.vm.provide(b.into(), Asid(small), VirtAddr(at), VirtAddr(HEAP + PAGE), 3), Ok(0));
    assert_eq!(
        w.vm.provide(b.into(), Asid(small), VirtAddr(at + PAGE), VirtAddr(HEAP + 2 * PAGE), 3),
        Err(errno::ENOMEM)
    );
    assert_eq!(w.vm.answered(&ask, VirtAddr(IMAGE), ThreadId(3)), Outcome::Settled);
    w.check();

    // Read-only is not enough for a write.
    let Outcome::Ask(ask) = w.vm.fault(15, at + 4 * PAGE, VirtAddr(IMAGE + 2), a.into(), ThreadId(9), 0)
    else {
        panic!()
    };
    w.vm.provide(c.into(), a.into(), VirtAddr(at + 4 * PAGE), VirtAddr(HEAP), 1).unwrap();
    assert_eq!(w.vm.answered(&ask, VirtAddr(IMAGE + 2), ThreadId(9)), Outcome::Died);
    let (asid, fault) = w.vm.fault_next().unwrap();
    assert_eq!((asid, fault.cause, fault.value, fault.thread), (a, Cause::Store, at + 4 * PAGE, 9));
    w.check();
}

/// So many stacks the VM manager has when the system starts, as the portal manager says it.
const STACKS: u64 = 4 << 32;

#[test]
fn a_family_has_two_places_and_no_others() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let (c, d) = (program(&mut w), program(&mut w));
    let at = IMAGE + 100 * PAGE;
    let who = |handler: u16| u64::from(handler) | 77 << 16 | STACKS;
    for n in 0..8 {
        w.vm.range_set(a.into(), VirtAddr(at + n * PAGE), 1, who(b)).unwrap();
    }
    assert_eq!(w.vm.range_set(a.into(), VirtAddr(at + 8 * PAGE), 1, who(b)), Err(errno::EAGAIN));
    // One more family needs two more stacks; who belongs to one that has places needs none.
    assert_eq!(w.vm.range_set(c.into(), VirtAddr(at), 1, who(d)), Err(errno::ESTACKS));
    w.vm.range_set(c.into(), VirtAddr(at), 1, who(d) + (2 << 32)).unwrap();
    w.vm.family(b.into(), a.into()).unwrap();
    w.vm.range_set(b.into(), VirtAddr(at), 1, who(d)).unwrap();
    let fault = |w: &mut World, asid: u16, n: u64, thread| {
        w.vm.fault(13, at + n * PAGE, VirtAddr(IMAGE), asid.into(), thread, 0)
    };
    let Outcome::Ask(first) = fault(&mut w, a, 0, ThreadId(1)) else { panic!() };
    assert_eq!(fault(&mut w, a, 1, ThreadId(2)), Outcome::Later, "its turn has not come");
    assert_eq!(fault(&mut w, b, 0, ThreadId(3)), Outcome::Later, "nor that of its family");
    let Outcome::Ask(others) = fault(&mut w, c, 0, ThreadId(4)) else { panic!("another family's place") };
    // The handler faults; so does whoever answers for it.
    let Outcome::Ask(second) = fault(&mut w, b, 0, ThreadId(1)) else { panic!("a second handler") };
    assert_eq!(fault(&mut w, c, 0, ThreadId(1)), Outcome::Died, "a third one");
    assert_eq!(w.vm.fault_next().unwrap().1.cause, Cause::Handlers);
    assert_eq!(w.vm.answered(&others, VirtAddr(IMAGE), ThreadId(4)), Outcome::Settled, "dead already");
    assert_eq!(w.vm.answered(&second, VirtAddr(IMAGE), ThreadId(1)), Outcome::Died);
    w.check();
    assert_eq!(w.vm.answered(&first, VirtAddr(IMAGE), ThreadId(1)), Outcome::Died);
    w.check();
}

/// Also when no range is left: the handler still has the thread.
#[test]
fn whoever_is_asked_for_the_dead_keeps_their_place() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let (c, at) = (program(&mut w), IMAGE + 100 * PAGE);
    let who = u64::from(b) | 77 << 16 | STACKS;
    w.vm.range_set(a.into(), VirtAddr(at), 1, who).unwrap();
    let Outcome::Ask(ask) = w.vm.fault(13, at, VirtAddr(IMAGE), a.into(), ThreadId(1), 0) else { panic!() };
    w.vm.domain_kill(a.into()).unwrap();
    assert_eq!(w.vm.range_set(c.into(), VirtAddr(at), 1, who), Err(errno::ESTACKS));
    assert_eq!(w.vm.answered(&ask, VirtAddr(IMAGE), ThreadId(1)), Outcome::Settled);
    w.vm.domain_free(a.into()).unwrap();
    w.vm.range_set(c.into(), VirtAddr(at), 1, who).unwrap();
    w.check();
}

#[test]
fn there_is_an_end_to_families_with_handlers() {
    let mut w = World::new();
    let (handler, _) = two(&mut w);
    let at = IMAGE + 100 * PAGE;
    let set = |w: &mut World, asid: u16| {
        w.vm.range_set(asid.into(), VirtAddr(at), 1, u64::from(handler) | 77 << 16 | 30 << 32)
    };
    let many = HANDLERS.all - HANDLERS.reserve;
    for _ in 0..many / HANDLERS.family {
        let one = program(&mut w);
        set(&mut w, one).unwrap();
    }
    let further = program(&mut w);
    assert_eq!(set(&mut w, further), Err(errno::EHANDLERS));
    w.vm.family(further.into(), 0).unwrap();
    set(&mut w, further).unwrap();
}

#[test]
fn nobody_who_is_dead_is_asked() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let (at, who) = (IMAGE + 100 * PAGE, u64::from(b) | 77 << 16 | STACKS);
    w.vm.range_set(a.into(), VirtAddr(at), 1, who).unwrap();
    let Outcome::Ask(ask) = w.vm.fault(13, at, VirtAddr(IMAGE), a.into(), ThreadId(1), 0) else { panic!() };
    w.vm.domain_kill(b.into()).unwrap();
    w.check();
    assert_eq!(w.vm.answered(&ask, VirtAddr(IMAGE), ThreadId(1)), Outcome::Died);
    w.vm.domain_free(a.into()).unwrap();
    let (c, d) = two(&mut w);
    w.vm.range_set(c.into(), VirtAddr(at), 1, u64::from(d) | 77 << 16 | STACKS).unwrap();
    w.vm.domain_kill(d.into()).unwrap();
    assert_eq!(
        w.vm.fault(13, at, VirtAddr(IMAGE), c.into(), ThreadId(1), 0),
        Outcome::Died,
        "nobody answers"
    );
    w.check();
}
