//! Stacks that grow: how far, at whose cost, and what of others' they leave alone.

use crate::world::*;
use pebble_abi::errno;
use pebble_abi::fault::Cause;
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, ThreadId, VirtAddr};
use pebble_vm::{FIRST_PAGES, Outcome, SURE};

const IMAGE: u64 = map::IMAGE_VA;
const STORE: u64 = 15;

fn touch(w: &mut World, asid: u64, at: u64) -> Outcome {
    let outcome = w.vm.fault(STORE, at, VirtAddr(IMAGE), Asid(asid), ThreadId(1), 0);
    w.check();
    outcome
}

fn charge(w: &World, asid: u64) -> u64 {
    w.vm.domain_info(Asid(asid)).unwrap().1[1]
}

/// A domain with its first thread: the end of its stack.
fn begin(w: &mut World, limit: u64) -> (u64, u64) {
    let d = w.vm.domain_create(0, limit, 12, 32).unwrap();
    w.vm.thread_spawn(Asid(d), VirtAddr(IMAGE), 0, 0).unwrap();
    w.check();
    (d, map::stack_top(d as u16, map::STACKS_PER_DOMAIN - 1))
}

#[test]
fn the_first_stack_grows_page_by_page_as_far_as_no_other_is() {
    let mut w = World::new();
    let (d, top) = begin(&mut w, 1000);
    let before = charge(&w, d);
    let pages = map::STACKS_STRIDE / PAGE / 2 - 1;
    // The fake machine has not so many pages.
    let touched = (FIRST_PAGES..pages).rev().step_by(4).collect::<Vec<_>>();
    for n in &touched {
        let at = top - n * PAGE - 8;
        assert_eq!(w.vm.fault(STORE, at, VirtAddr(IMAGE), Asid(d), ThreadId(1), 0), Outcome::Settled);
    }
    w.check();
    let sure = touched.iter().filter(|n| **n < SURE[0]).count();
    assert_eq!(charge(&w, d), before + (touched.len() - sure) as u64, "the upper ones are paid for");
    // Half of the slots are others'.
    let others = (0..40).take_while(|_| w.vm.stack(Asid(d), 1).is_ok()).count();
    assert_eq!(others, map::STACKS_PER_DOMAIN / 2);
    assert_eq!(w.vm.thread_create(Asid(d), 12, VirtAddr(IMAGE), 0, 0), Err(errno::EAGAIN));
    assert_eq!(touch(&mut w, d, top - map::STACKS_STRIDE / 2 + 8), Outcome::Died);
    assert_eq!(w.vm.fault_next().unwrap().1.cause, Cause::StackOverflow);
}

#[test]
fn it_stops_above_the_others_and_they_do_not_come_where_it_is() {
    let mut w = World::new();
    let (d, top) = begin(&mut w, 1000);
    let second = w.vm.thread_create(Asid(d), 12, VirtAddr(IMAGE), 0, 0).unwrap();
    let more = (1..18).map(|_| w.vm.stack(Asid(d), 1).unwrap()).collect::<Vec<_>>();
    let third = more[0];
    assert_eq!(third, map::stack_top(d as u16, 1));
    // What lies far below, with nothing between, is the stack's too.
    assert_eq!(touch(&mut w, d, map::stack_top(d as u16, 18) + 8), Outcome::Settled);
    let fourth = w.vm.stack(Asid(d), 1).unwrap();
    assert_eq!(fourth, map::stack_top(d as u16, 18));
    assert_eq!(w.vm.stack(Asid(d), 1), Err(errno::EAGAIN), "the next slot is the first stack's");
    // The others grow within their slots.
    assert_eq!(touch(&mut w, d, third - map::STACK_SLOT + PAGE), Outcome::Settled);
    // A slot that is free again is given away again, and what was there is gone.
    w.vm.thread_free(ThreadId(second.tid.into())).unwrap();
    w.check();
    assert_eq!(w.vm.stack(Asid(d), 1), Ok(map::stack_top(d as u16, 0)));
    let view = w.view(d as u16);
    assert_eq!(
        view.range(map::stacks_of(d as u16)..map::stack_top(d as u16, 0)).count(),
        FIRST_PAGES as usize
    );
    // Between the first stack and the others is a page that nobody gets.
    assert!(view.contains_key(&(top - PAGE)));
    assert_eq!(touch(&mut w, d, map::stack_top(d as u16, 18) + 8), Outcome::Settled, "it is there already");
    assert_eq!(touch(&mut w, d, fourth - map::STACK_SLOT + 8), Outcome::Died);
    assert_eq!(w.vm.fault_next().unwrap().1.cause, Cause::StackOverflow);
}

#[test]
fn without_a_page_the_domain_dies_of_that_and_another_does_not() {
    let mut w = World::new();
    let (d, top) = begin(&mut w, 5 + SURE[0] + 1 + 2);
    let (other, its) = begin(&mut w, 100);
    for n in 0..2 {
        assert_eq!(touch(&mut w, d, top - (SURE[0] + n) * PAGE - 8), Outcome::Settled);
    }
    assert_eq!(touch(&mut w, d, top - (SURE[0] + 2) * PAGE - 8), Outcome::Died);
    assert_eq!(w.vm.fault_next().unwrap().1.cause, Cause::NoMemory);
    // A stack that a domain does not see is none for it.
    let before = charge(&w, other);
    let (stranger, _) = begin(&mut w, 100);
    assert_eq!(touch(&mut w, stranger, its - FIRST_PAGES * PAGE - 8), Outcome::Died);
    assert_eq!(w.vm.fault_next().unwrap().1.cause, Cause::Store);
    assert_eq!(charge(&w, other), before);
}

#[test]
fn whoever_runs_on_it_it_is_its_owners() {
    let mut w = World::new();
    let (d, top) = begin(&mut w, 100);
    let (guest, _) = begin(&mut w, 100);
    w.vm.share_stacks(Asid(d), Asid(guest)).unwrap();
    let before = (charge(&w, d), charge(&w, guest));
    assert_eq!(touch(&mut w, guest, top - SURE[0] * PAGE - 8), Outcome::Settled);
    assert_eq!((charge(&w, d), charge(&w, guest)), (before.0 + 1, before.1));
    for asid in [d, guest] {
        assert!(w.view(asid as u16).contains_key(&(top - (SURE[0] + 1) * PAGE)));
    }
    w.vm.domain_kill(Asid(d)).unwrap();
    w.check();
    assert_eq!(touch(&mut w, guest, top - FIRST_PAGES * PAGE - 8), Outcome::Died, "it is gone");
}

#[test]
fn a_copy_has_all_of_it_and_grows_by_itself() {
    let mut w = World::new();
    let (d, top) = begin(&mut w, 200);
    let low = top - 40 * PAGE;
    assert_eq!(touch(&mut w, d, low), Outcome::Settled);
    let child = w.vm.domain_create(0, 200, 12, 8).unwrap();
    assert_eq!(w.vm.fork(Asid(d), Asid(child), VirtAddr(low + 64), VirtAddr(0)), Ok(0));
    w.check();
    let stack =
        |w: &World, asid: u64| w.view(asid as u16).range(low..top).map(|(va, _)| *va).collect::<Vec<_>>();
    assert_eq!(stack(&w, child), [low, top - 2 * PAGE, top - PAGE]);
    assert_eq!(stack(&w, d).len() as u64, FIRST_PAGES + 1);
    // It is sure of what its parent's is.
    let before = (charge(&w, d), charge(&w, child));
    for n in FIRST_PAGES..SURE[0] {
        assert_eq!(touch(&mut w, child, top - n * PAGE - 8), Outcome::Settled);
    }
    assert_eq!((charge(&w, d), charge(&w, child)), before);
    assert_eq!(touch(&mut w, child, low + 5 * PAGE), Outcome::Settled);
    assert_eq!((charge(&w, d), charge(&w, child)), (before.0, before.1 + 1));
    assert_eq!(stack(&w, d).len() as u64, FIRST_PAGES + 1);
}

#[test]
fn stacks_of_the_image_have_what_they_have() {
    let mut w = World::new();
    let sp = w.vm.stack(Asid(SERVER), 3).unwrap();
    let its = (1..6).map(|n| w.view(SERVER as u16).contains_key(&(sp - n * PAGE))).collect::<Vec<_>>();
    assert_eq!(its, [true, true, true, false, false]);
    assert_eq!(touch(&mut w, SERVER, sp - 3 * PAGE - 8), Outcome::Died);
    assert_eq!(w.vm.fault_next().unwrap().1.cause, Cause::StackOverflow);
}

/// What a domain asks for before a window shows it comes as at a touch; where a touch would be a fault, it is told so.
#[test]
fn who_asks_gets_what_a_touch_brings_and_does_not_die() {
    let mut w = World::new();
    let (d, top) = begin(&mut w, 5 + SURE[0] + 1 + 2);
    let (other, its) = begin(&mut w, 100);
    let ask = |w: &mut World, at: u64| {
        let answer = w.vm.touch(Asid(d), VirtAddr(at));
        w.check();
        answer
    };
    assert_eq!(ask(&mut w, top - 8), Ok(0));
    let low = top - (SURE[0] + 2) * PAGE;
    for at in [low, low + PAGE, top - SURE[0] * PAGE] {
        assert_eq!((ask(&mut w, at), ask(&mut w, at + 7)), (Ok(1), Ok(0)));
    }
    let before = (charge(&w, d), charge(&w, other));
    let wild = [0, IMAGE, its - 1, its - SURE[0] * PAGE, top, low - 1, map::USER_END, 1 << 63, u64::MAX];
    for at in wild.into_iter().chain([map::stacks_of(d as u16), map::stacks_of(d as u16) + 8]) {
        assert_eq!(ask(&mut w, at), Err(errno::EFAULT), "{at:#x}");
    }
    assert_eq!(w.vm.fault_next(), Err(errno::ENOENT), "nobody has died");
    assert_eq!((charge(&w, d), charge(&w, other)), before);
    w.vm.domain_kill(Asid(d)).unwrap();
    assert_eq!(ask(&mut w, top - 8), Err(errno::ESRCH));
}

/// Families take all that there is, page by page, and the image what programs leave: a program still has what
/// its stacks are sure of.
#[test]
fn what_a_stack_is_sure_of_comes_whatever_others_take() {
    let mut w = World::new();
    let (d, top) = begin(&mut w, 1000);
    w.vm.thread_create(Asid(d), 12, VirtAddr(IMAGE), 0, 0).unwrap();
    let second = map::stack_top(d as u16, 0);
    let copies = [top, second].map(|sp| {
        let copy = w.vm.domain_create(0, 1000, 12, 8).unwrap();
        w.vm.fork(Asid(d), Asid(copy), VirtAddr(sp - 64), VirtAddr(0)).unwrap();
        copy
    });
    let stacks = [(d, top, SURE[0]), (d, second, SURE[1])];
    let stacks = stacks.into_iter().chain([(copies[0], top, SURE[0]), (copies[1], second, SURE[1])]);
    let before = [d, copies[0], copies[1]].map(|asid| charge(&w, asid));
    while let Ok(hog) = w.vm.domain_create(0, 60_000, 12, 32) {
        let at = |n: u64| VirtAddr(IMAGE + n * PAGE);
        (0..30_000).take_while(|n| w.vm.map(Asid(hog), at(*n), 1, 3).is_ok()).count();
    }
    while w.vm.stack(Asid(SERVER), 1).is_ok() || w.vm.buffer(Asid(SERVER), 1).is_ok() {}
    w.vm.heap(Asid(d), VirtAddr(IMAGE)).unwrap();
    assert_eq!(w.vm.sbrk(Asid(d), 1), Err(errno::ENOMEM), "all is taken");
    for (asid, top, sure) in stacks {
        for n in FIRST_PAGES..sure {
            let outcome = touch(&mut w, asid, top - n * PAGE - 8);
            assert_eq!(outcome, Outcome::Settled, "page {n} of {asid}");
        }
    }
    assert_eq!([d, copies[0], copies[1]].map(|asid| charge(&w, asid)), before);
    assert_eq!(touch(&mut w, d, second - SURE[1] * PAGE - 8), Outcome::Died);
    assert_eq!(w.vm.fault_next().unwrap().1.cause, Cause::NoMemory);
}

#[test]
fn what_was_promised_is_free_again_with_the_thread_or_the_domain() {
    let mut w = World::new();
    let (d, top) = begin(&mut w, 1000);
    let before = (w.vm.stats()[0], charge(&w, d));
    for touched in [0, 1, 4] {
        let thread = w.vm.thread_create(Asid(d), 12, VirtAddr(IMAGE), 0, 0).unwrap();
        let its = map::stack_top(d as u16, 0);
        (0..touched).for_each(|n| _ = touch(&mut w, d, its - (FIRST_PAGES + 1 + n) * PAGE));
        assert_eq!(charge(&w, d), before.1 + SURE[1] + 1, "and its block");
        w.vm.thread_free(ThreadId(thread.tid.into())).unwrap();
        w.check();
        assert_eq!((w.vm.stats()[0], charge(&w, d)), before);
    }
    touch(&mut w, d, top - 5 * PAGE);
    assert_eq!((w.vm.stats()[0], charge(&w, d)), before, "it was paid for");
    let (other, _) = begin(&mut w, 1000);
    w.vm.domain_kill(Asid(other)).unwrap();
    w.check();
    let left = w.vm.domain_info(Asid(other)).unwrap().1[1];
    assert_eq!(w.vm.stats()[0] + left, before.0, "nothing is promised to the dead");
}

/// Whoever has taken all that it may have, and has been told so, goes on.
#[test]
fn a_heap_leaves_room_for_stacks() {
    for limit in [100, 400] {
        let mut w = World::new();
        let (d, top) = begin(&mut w, limit);
        w.vm.heap(Asid(d), VirtAddr(IMAGE)).unwrap();
        while w.vm.sbrk(Asid(d), PAGE as i64).is_ok() {}
        w.check();
        let room = (limit / 8).min(map::STACKS_STRIDE / PAGE / 2 - 1) / 4;
        for n in 0..room {
            let outcome = touch(&mut w, d, top - (SURE[0] + 1 + n) * PAGE);
            assert_eq!(outcome, Outcome::Settled, "page {n}: {:?}", w.vm.fault_next());
        }
    }
}
