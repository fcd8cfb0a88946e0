//! Pages of heaps, which come when they are touched, and are paid for from the start.

use crate::forks::fork;
use crate::windows::*;
use crate::world::*;
use pebble_abi::errno;
use pebble_abi::fault::Cause;
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, ThreadId, VirtAddr};
use pebble_vm::{Machine, Outcome};

const FETCH: u64 = 12;
const LOAD: u64 = 13;
const STORE: u64 = 15;

/// A program with four pages of a heap that it has touched, and so many that it has not: where they begin.
fn with_untouched(w: &mut World, pages: u64) -> (u16, u64) {
    let d = program(w);
    let at = w.vm.sbrk(d.into(), (pages * PAGE) as i64).unwrap();
    w.check();
    (d, at)
}

fn fault(w: &mut World, d: u16, code: u64, at: u64) -> Outcome {
    let outcome = w.vm.fault(code, at, VirtAddr(map::IMAGE_VA), d.into(), ThreadId(1), 0);
    w.check();
    outcome
}

fn free(w: &World) -> u64 {
    w.vm.stats()[0]
}

#[test]
fn a_page_comes_at_the_first_touch_and_is_paid_for_before() {
    let mut w = World::new();
    let (d, at) = with_untouched(&mut w, 8);
    let (paid, left) = (pages(&w, d), free(&w));
    assert!(!w.view(d).contains_key(&at));
    for (n, code) in [LOAD, STORE].into_iter().enumerate() {
        let at = at + n as u64 * PAGE;
        assert_eq!(fault(&mut w, d, code, at + 16), Outcome::Settled);
        let page = pa(w.view(d)[&at]);
        assert!((page..page + PAGE).step_by(8).all(|at| w.vm.machine.read(at) == 0));
        w.vm.machine.write(page, 5);
        // It has come, whatever faults now.
        assert_eq!(fault(&mut w, d, code, at), Outcome::Settled);
        assert_eq!((pa(w.view(d)[&at]), w.vm.machine.read(page)), (page, 5));
    }
    assert_eq!(w.vm.touch(d.into(), VirtAddr(at + 2 * PAGE + 8)), Ok(1));
    assert_eq!(w.vm.touch(d.into(), VirtAddr(at + 2 * PAGE)), Ok(0));
    assert_eq!((pages(&w, d), free(&w)), (paid, left));
    // What the heap no longer has does not come; what it has again is fresh.
    w.vm.sbrk(d.into(), -(6 * PAGE as i64)).unwrap();
    w.check();
    assert_eq!((pages(&w, d), free(&w)), (paid - 6, left + 6));
    assert_eq!(w.vm.touch(d.into(), VirtAddr(at + 2 * PAGE)), Err(errno::EFAULT));
    w.vm.sbrk(d.into(), PAGE as i64).unwrap();
    w.check();
    assert!(w.vm.touch(d.into(), VirtAddr(at + 2 * PAGE)).is_ok());
    let page = pa(w.view(d)[&(at + 2 * PAGE)]);
    assert!((page..page + PAGE).step_by(8).all(|at| w.vm.machine.read(at) == 0));
    // Nobody executes it, and beside it there is nothing.
    assert_eq!(w.vm.touch(d.into(), VirtAddr(at + 3 * PAGE)), Err(errno::EFAULT));
    assert_eq!(fault(&mut w, d, FETCH, at + PAGE), Outcome::Died);
    w.vm.domain_free(d.into()).unwrap();
    w.check();
}

#[test]
fn nobody_takes_what_is_promised() {
    let mut w = World::new();
    let (d, at) = with_untouched(&mut w, 200);
    // Others take all that there is: of theirs, too, half is untouched.
    for _ in 0..8 {
        let Ok(other) = w.vm.domain_create(0, 2000, 12, 8) else { break };
        let _ = w.vm.heap(Asid(other), VirtAddr(HEAP));
        let other = other as u16;
        while let Ok(end) = w.vm.sbrk(other.into(), 8 * PAGE as i64) {
            w.touch(other, end, 4);
        }
    }
    w.check();
    assert!(w.vm.domain_create(0, 2000, 12, 8).is_err(), "there is nothing left");
    let all = program_pages(&w);
    for n in 0..200 {
        assert_eq!(fault(&mut w, d, STORE, at + n * PAGE), Outcome::Settled, "page {n}");
    }
    assert_eq!(program_pages(&w), all);
    w.vm.domain_kill(d.into()).unwrap();
    w.check();
}

fn program_pages(w: &World) -> u64 {
    (5..30).filter(|d| w.state(*d) == 1).map(|d| pages(w, d)).sum()
}

#[test]
fn what_must_not_want_for_memory_has_it_at_once() {
    let mut w = World::new();
    let d = w.vm.domain_create(map::EAGER, 400, 12, 8).unwrap();
    w.vm.heap(Asid(d), VirtAddr(HEAP)).unwrap();
    for asid in [d, SERVER] {
        let at = w.vm.sbrk(Asid(asid), 3 * PAGE as i64).unwrap();
        w.check();
        assert!((0..3).all(|n| w.view(asid as u16).contains_key(&(at + n * PAGE))));
    }
}

/// Who uses what it gets is spared the faults, as long as it does not get much more than it has used.
#[test]
fn a_heap_that_is_used_up_gets_its_pages_at_once() {
    let mut w = World::new();
    let d = program(&mut w);
    let mut grow = |pages: u64, touch: bool| {
        let at = w.vm.sbrk(d.into(), (pages * PAGE) as i64).unwrap();
        w.check();
        let came = (0..pages).filter(|n| w.view(d).contains_key(&(at + n * PAGE))).count() as u64;
        w.touch(d, at + (pages - 1) * PAGE, u64::from(touch));
        came
    };
    assert_eq!(grow(2, true), 2);
    assert_eq!(grow(4, false), 0, "more than half of what it has");
    assert_eq!(grow(4, true), 0, "it has not used the last");
    assert_eq!(grow(7, true), 7);
}

#[test]
fn what_has_not_come_is_not_lent_but_moves_as_what_has() {
    let mut w = World::new();
    let (d, at) = with_untouched(&mut w, 8);
    let other = program(&mut w);
    for letter in [b'r', b'w', b'o', b't'] {
        assert!(w.lend(d, other, letter, at, 1).is_none(), "{letter}");
        w.check();
    }
    w.touch(d, at, 1);
    assert!(w.lend(d, other, b'w', at, 1).is_some());
    // What is torn away leaves a hole, which nobody fills.
    w.touch(d, at + PAGE, 1);
    let paid = pages(&w, d);
    assert!(w.lend(d, other, b't', at + PAGE, 1).is_some());
    w.check();
    assert_eq!(pages(&w, d), paid - 1);
    assert_eq!(w.vm.touch(d.into(), VirtAddr(at + PAGE)), Err(errno::EFAULT));
    // The VM manager has it come.
    let place = w.vm.receive_window(d.into(), 1).unwrap();
    w.vm.window_claim(d.into(), VirtAddr(at + 2 * PAGE)).unwrap();
    w.check();
    w.vm.window_move(d.into(), VirtAddr(at + 3 * PAGE), VirtAddr(place)).unwrap();
    w.check();
    let page = pa(w.view(d)[&place]);
    assert!((page..page + PAGE).step_by(8).all(|at| w.vm.machine.read(at) == 0));
    assert_eq!(pages(&w, d), paid - 1);
}

/// A handler answers for what nobody has promised, and provides nothing else.
#[test]
fn a_promise_goes_before_a_handler() {
    let mut w = World::new();
    let (d, at) = with_untouched(&mut w, 2);
    let other = program(&mut w);
    w.vm.range_set(d.into(), VirtAddr(at), 4, u64::from(other) | 60 << 16 | 31 << 32).unwrap();
    assert_eq!(fault(&mut w, d, LOAD, at), Outcome::Settled);
    let Outcome::Ask(ask) = fault(&mut w, d, LOAD, at + 2 * PAGE) else { panic!("nobody is asked") };
    let provide = |w: &mut World, at| w.vm.provide(other.into(), d.into(), VirtAddr(at), VirtAddr(HEAP), 3);
    assert_eq!(provide(&mut w, at + PAGE), Err(errno::EEXIST));
    assert_eq!(provide(&mut w, at + 2 * PAGE), Ok(0));
    assert_eq!(w.vm.answered(&ask, VirtAddr(0), ThreadId(1)), Outcome::Settled);
    w.check();
    assert_eq!(fault(&mut w, d, LOAD, at + PAGE), Outcome::Settled);
}

#[test]
fn a_copy_is_promised_what_its_parent_has_not_touched() {
    let mut w = World::new();
    let (d, at) = with_untouched(&mut w, 300);
    w.vm.thread_create(d.into(), 12, VirtAddr(map::IMAGE_VA), 0, 0).unwrap();
    w.touch(d, at + 7 * PAGE, 1);
    let sp = map::stack_top(d, 0) - 64;
    // One that may have too few cannot be.
    let small = w.vm.domain_create(0, 300, 12, 8).unwrap();
    w.check();
    assert_eq!(fork(&mut w, d.into(), small, sp), Err(errno::ENOMEM));
    w.vm.domain_kill(Asid(small)).unwrap();
    w.check();
    let child = w.vm.domain_create(0, 400, 12, 8).unwrap() as u16;
    w.check();
    fork(&mut w, d.into(), child.into(), sp).unwrap();
    w.check();
    let touched = |w: &World, d: u16| w.view(d).range(at..map::HEAP_END).count();
    assert_eq!((touched(&w, d), touched(&w, child)), (1, 1));
    // Each gets its own.
    for (asid, value) in [(d, 1), (child, 2)] {
        assert_eq!(fault(&mut w, asid, STORE, at), Outcome::Settled);
        let page = pa(w.view(asid)[&at]);
        w.vm.machine.write(page, value);
    }
    assert_eq!(w.vm.machine.read(pa(w.view(d)[&at])), 1);
    w.vm.domain_kill(d.into()).unwrap();
    w.check();
    let again = w.vm.domain_create(0, 400, 12, 8).unwrap();
    w.check();
    fork(&mut w, child.into(), again, sp).unwrap();
    w.check();
    assert_eq!(fault(&mut w, again as u16, LOAD, at + 299 * PAGE), Outcome::Settled);
    assert_eq!(fault(&mut w, again as u16, LOAD, at + 300 * PAGE), Outcome::Died);
    assert_eq!(w.vm.fault_next().unwrap().1.cause, Cause::Load);
}
