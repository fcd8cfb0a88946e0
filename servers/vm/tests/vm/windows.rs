//! Windows, buffers, ranges and forks, one promise at a time. The other side is the portal code of [`crate::portals`].

use crate::portals::{BORROWED, OPEN};
use crate::world::*;
use pebble_abi::errno;
use pebble_abi::map::{self, PAGE};
use pebble_vm::{Machine, Outcome};

const IMAGE: u64 = map::IMAGE_VA;
pub const HEAP: u64 = IMAGE + 2 * PAGE;
pub const MARKS: u64 = 3 << 8;

pub fn program(w: &mut World) -> u16 {
    let asid = w.vm.domain_create(0, 400, 12, 8).unwrap();
    w.vm.map(asid, IMAGE, 2, 10).unwrap();
    w.vm.heap(asid, HEAP).unwrap();
    w.vm.sbrk(asid, 4 * PAGE as i64).unwrap();
    w.check();
    asid as u16
}

pub fn two(w: &mut World) -> (u16, u16) {
    (program(w), program(w))
}

fn pages(w: &World, asid: u16) -> u64 {
    w.vm.domain_info(asid.into()).unwrap().1[1]
}

pub fn pa(entry: u64) -> u64 {
    entry >> 10 << 12
}

/// The word of a one-page slot or place.
pub fn word(w: &World, asid: u16, va: u64) -> u64 {
    pa(w.vm.machine.read(w.l1[&asid] + (va >> 21 & 511) * 8)) + (va >> 12 & 511) * 8
}

#[test]
fn only_the_portal_manager_learns_where_tables_are() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    assert_eq!(w.vm.windows(a.into(), b.into()), Err(errno::EPERM));
    assert_eq!(w.vm.space(PROCESS, b.into()), Err(errno::EPERM));
    assert_eq!(w.vm.windows(PM, 99), Err(errno::ESRCH));
    let before = pages(&w, a);
    let control = w.vm.windows(PM, a.into()).unwrap();
    assert_eq!(w.vm.windows(PM, a.into()), Ok(control));
    assert_eq!(pages(&w, a), before + 2, "control page and slot table");
    assert_eq!(w.vm.space(PM, a.into()), Ok(map::direct(w.l1[&a])));
    assert!(control > 1 << 63);
    w.control.insert(a, control & 0xffff_ffff);
    w.check();
    let read = |at: u64| w.vm.machine.read(at & 0xffff_ffff);
    let mut desc = read(control + map::WINDOW_PAGES);
    for n in 0..110 {
        assert_eq!(desc, control + map::WINDOW_DESC + n * map::WINDOW_DESC_BYTES);
        assert_eq!(read(desc + 8), map::WINDOWS_VA + n * PAGE);
        assert_eq!(read(desc + 16), map::direct(word(&w, a, map::WINDOWS_VA + n * PAGE)));
        desc = read(desc);
    }
    assert_eq!(desc, 0);
    let mut desc = read(control + map::WINDOW_BUFFERS);
    for n in 8..16 {
        let va = map::BUFFERS_VA + n * map::BUFFER_STRIDE;
        assert_eq!((read(desc + 8), read(desc + 16)), (va, map::direct(w.l1[&a] + (va >> 21) * 8)));
        desc = read(desc);
    }
    assert_eq!(desc, 0);
}

#[test]
fn what_is_not_a_domains_own_is_marked() {
    let mut w = World::new();
    let d = program(&mut w);
    w.vm.thread_create(d.into(), 12, IMAGE, 0, 0).unwrap();
    w.vm.attach(PROCESS, d.into(), IMAGE, 1, 0).unwrap();
    w.vm.code_page(PM, 5).unwrap();
    let mark = |w: &mut World, asid: u64, va: u64| w.view(asid as u16)[&va] & MARKS;
    assert_eq!(mark(&mut w, PROCESS, map::LOADER_VA), MARKS);
    assert_eq!(mark(&mut w, PM, map::PM_CODE_VA + 5 * PAGE), MARKS);
    assert_eq!(mark(&mut w, PM, map::PM_TABLES_VA + u64::from(d) * map::TABLE_BYTES), MARKS);
    assert_eq!(mark(&mut w, PM, map::PM_THREADS_VA + PAGE), MARKS);
    assert_eq!(mark(&mut w, d.into(), map::GATE_VA), MARKS);
    for own in [IMAGE, HEAP, map::stack_top(d, 0) - PAGE] {
        assert_eq!(mark(&mut w, d.into(), own), 0);
    }
    w.vm.domain_kill(d.into()).unwrap();
    assert_eq!(mark(&mut w, PROCESS, map::LOADER_VA), MARKS, "the sink too");
}

#[test]
fn a_window_over_freed_memory_shows_the_sink() {
    // By the heap's shrinking, a stack's end, and death; borrowed and open, lent on or not.
    for how in 0..3 {
        let mut w = World::new();
        let (a, b) = two(&mut w);
        let c = program(&mut w);
        let start = w.vm.thread_create(a.into(), 12, IMAGE, 0, 0).unwrap();
        let va = if how == 1 { map::stack_top(a, 0) - PAGE } else { HEAP + 3 * PAGE };
        let lent = w.lend(a, b, b'w', va, 1).unwrap();
        let on = w.lend(b, c, b'r', lent.at, 1).unwrap();
        let open = if how == 1 { lent } else { w.lend(a, b, b'o', va, 1).unwrap() };
        w.check();
        let page = pa(w.view(a)[&va]);
        assert_eq!(pa(w.view(c)[&on.at]), page);
        match how {
            0 => _ = w.vm.sbrk(a.into(), -(PAGE as i64)).unwrap(),
            1 => _ = w.vm.thread_free(start.tid.into()).unwrap(),
            _ => _ = w.vm.domain_kill(a.into()).unwrap(),
        }
        w.check();
        let sinks = [(b, lent.at), (c, on.at), (b, open.at)].map(|(d, at)| w.view(d)[&at]);
        assert!(sinks.iter().all(|s| pa(*s) == pa(sinks[0]) && pa(*s) != page), "{how}");
        assert_eq!(sinks[0] & MARKS, BORROWED, "the call still ends it");
        while !w.calls.is_empty() {
            w.give_back(w.calls.len() - 1);
            w.check();
        }
        assert!(!w.view(b).contains_key(&lent.at));
    }
}

#[test]
fn a_page_that_is_passed_on_during_the_search_is_found() {
    // b comes before c; c has the page and, while b's slots have been looked at already, lends it to b and returns.
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let c = program(&mut w);
    let lent = w.lend(a, c, b'w', HEAP + 3 * PAGE, 1).unwrap();
    w.lend(a, b, b'w', HEAP, 1).unwrap();
    w.give_back(1);
    w.check();
    let (from, to) = (word(&w, c, lent.at), word(&w, b, map::WINDOWS_VA));
    let entry = w.vm.machine.read(from);
    *w.vm.machine.ambush.borrow_mut() =
        Some((word(&w, b, map::WINDOWS_VA + 109 * PAGE), vec![(to, entry), (from, 0)]));
    w.vm.sbrk(a.into(), -(PAGE as i64)).unwrap();
    assert!(w.vm.machine.ambush.borrow().is_none(), "it took place");
    let seen = w.view(b)[&map::WINDOWS_VA];
    assert_ne!(pa(seen), pa(entry));
    assert_eq!(seen & MARKS, BORROWED);
}

#[test]
fn a_page_that_moves_at_the_last_moment_has_one_owner() {
    // `t` takes the page between the look at its word and the store.
    let mut w = World::new();
    let (a, b) = two(&mut w);
    w.lend(a, b, b'w', HEAP, 1).unwrap();
    w.give_back(0);
    let va = HEAP + 3 * PAGE;
    let entry = w.view(a)[&va];
    let [count_a, count_b] = [a, b].map(|d| w.control[&d] + map::WINDOW_MOVED);
    let stores = vec![
        (word(&w, a, va), 0),
        (word(&w, b, map::WINDOWS_VA + 300 * PAGE), entry),
        (count_a, u64::MAX),
        (count_b, 1),
    ];
    w.check();
    *w.vm.machine.ambush.borrow_mut() = Some((word(&w, a, va), stores));
    w.vm.sbrk(a.into(), -(PAGE as i64)).unwrap();
    w.check();
    assert_eq!(w.view(b)[&(map::WINDOWS_VA + 300 * PAGE)], entry);
}

#[test]
fn buffers_have_a_twin_and_are_charged_whole() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    for wrong in [0, 513, u64::MAX] {
        assert_eq!(w.vm.buffer(a.into(), wrong), Err(errno::EINVAL));
    }
    let before = pages(&w, a);
    assert_eq!(w.vm.buffer(a.into(), 512), Err(errno::ENOMEM), "its limit");
    let small = w.vm.domain_create(0, 5 + 4, 12, 8).unwrap();
    assert_eq!(w.vm.buffer(small, 3), Err(errno::ENOMEM), "its tables count");
    w.check();
    assert_eq!(w.vm.buffer(small, 2), Ok(map::BUFFERS_VA));
    w.vm.domain_kill(small).unwrap();
    let at = w.vm.buffer(a.into(), 5).unwrap();
    assert_eq!((at, pages(&w, a)), (map::BUFFERS_VA, before + 7));
    w.check();
    let view = w.view(a);
    for n in 0..5 {
        let (page, twin) = (view[&(at + n * PAGE)], view[&(at + map::BUFFER_STRIDE / 2 + n * PAGE)]);
        assert_eq!((page & 0x3ff, twin & 0x3ff, pa(page)), (0xd7, 0x53, pa(twin)));
    }
    assert!(!view.contains_key(&(at + 5 * PAGE)));
    for n in 1..8 {
        assert_eq!(w.vm.buffer(a.into(), 1), Ok(map::BUFFERS_VA + n * map::BUFFER_STRIDE));
    }
    assert_eq!(w.vm.buffer(a.into(), 1), Err(errno::EAGAIN), "all places");
    assert_eq!(w.vm.buffer_free(a.into(), at + PAGE), Err(errno::EFAULT));
    assert_eq!(w.vm.buffer_free(a.into(), HEAP), Err(errno::EFAULT));
    assert_eq!(w.vm.buffer_free(b.into(), at), Err(errno::EINVAL));
    w.vm.buffer_free(a.into(), at).unwrap();
    w.check();
    assert_eq!(pages(&w, a), before + 7 * 3);
    assert_eq!(w.vm.buffer(a.into(), 2), Ok(at));
    w.vm.domain_kill(a.into()).unwrap();
    w.check();
    for n in 0..32 {
        assert_eq!(
            w.vm.machine.read(w.l1[&a] + (map::BUFFERS_VA >> 21) * 8 + n * 8),
            2,
            "no place to move to"
        );
    }
}

#[test]
fn a_long_window_over_a_freed_buffer_shows_sinks() {
    for kill in [false, true] {
        let mut w = World::new();
        let (a, b) = two(&mut w);
        let at = w.vm.buffer(a.into(), 3).unwrap();
        assert!(w.lend(a, b, b'w', at, 2).is_none() && w.lend(a, b, b'w', at, 4).is_none(), "of its size");
        let lent = w.lend(a, b, b'w', at, 3).unwrap();
        let read = w.lend(a, b, b'r', at, 3).unwrap();
        w.check();
        assert_eq!(w.view(b)[&(read.at + PAGE)] & 4, 0, "read-only");
        assert_eq!(w.vm.buffer_free(b.into(), lent.at), Err(errno::EPERM), "not its own");
        if kill {
            w.vm.domain_kill(a.into()).unwrap();
        } else {
            w.vm.buffer_free(a.into(), at).unwrap();
        }
        w.check();
        let view = w.view(b);
        let sink = pa(view[&lent.at]);
        assert!((0..512).all(|n| pa(view[&(lent.at + n * PAGE)]) == sink));
        assert!((0..512).all(|n| pa(view[&(read.at + n * PAGE)]) == sink));
        w.give_back(0);
        w.give_back(0);
        w.check();
    }
}

#[test]
fn what_moves_is_charged_and_given_back_where_it_is() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let at = w.vm.buffer(a.into(), 3).unwrap();
    let lent = w.lend(a, b, b'o', HEAP, 1).unwrap();
    let [before_a, before_b] = [a, b].map(|d| pages(&w, d));
    let page = w.lend(a, b, b't', HEAP + PAGE, 1).unwrap();
    let buffer = w.lend(a, b, b't', at, 3).unwrap();
    w.check();
    assert_eq!((pages(&w, a), pages(&w, b)), (before_a - 6, before_b + 6));
    assert!(w.lend(a, b, b'w', HEAP + PAGE, 1).is_none() && w.lend(a, b, b'w', at, 3).is_none());
    for moved in [page, buffer, lent] {
        w.vm.window_close(b.into(), moved.at).unwrap();
        w.check();
        assert_eq!(w.vm.window_close(b.into(), moved.at), Err(errno::EINVAL), "once");
        assert!(!w.view(b).contains_key(&moved.at));
    }
    assert_eq!(pages(&w, b), before_b);
    assert!(w.view(a).contains_key(&HEAP), "an open window is not its callee's");
    // The slots are back in their queues.
    assert_eq!(w.lend(a, b, b'w', HEAP, 1).unwrap().at, lent.at);
    w.give_back(0);
    // Limits count what has moved in.
    let c = w.vm.domain_create(0, 16, 12, 8).unwrap();
    w.vm.heap(c, HEAP).unwrap();
    let at = w.vm.buffer(a.into(), 7).unwrap();
    w.lend(a, c as u16, b't', at, 7).unwrap();
    assert_eq!(w.vm.sbrk(c, PAGE as i64), Err(errno::ENOMEM));
    assert_eq!(w.vm.buffer(c, 1), Err(errno::ENOMEM));
    assert_eq!(w.vm.stack(c, 1), Err(errno::ENOMEM));
    assert!(w.vm.thread_create(c, 12, IMAGE, 0, 0).is_err());
    w.check();
}

#[test]
fn a_slot_from_which_a_page_moves_on_is_recovered() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let c = program(&mut w);
    let first = w.lend(a, b, b't', HEAP, 1).unwrap();
    let second = w.lend(b, c, b't', first.at, 1).unwrap();
    w.check();
    w.vm.window_close(b.into(), first.at).unwrap();
    assert_eq!(w.vm.window_close(b.into(), first.at), Err(errno::EINVAL), "it is in its queue");
    assert_eq!(w.vm.window_close(b.into(), first.at + 5 * PAGE), Err(errno::EINVAL));
    w.vm.window_close(c.into(), second.at).unwrap();
    w.check();
    let third = w.lend(a, b, b't', HEAP + PAGE, 1).unwrap();
    let place = w.vm.place(b.into(), 1).unwrap();
    w.vm.window_move(b.into(), third.at, place).unwrap();
    assert_eq!(w.vm.window_close(b.into(), third.at), Err(errno::EINVAL), "back already");
    w.check();
}

#[test]
fn a_mapping_that_fails_half_way_leaves_nothing_behind() {
    let mut w = World::new();
    let d = w.vm.domain_create(0, 5 + 2, 12, 8).unwrap();
    let end = 0x20_0000;
    assert_eq!(w.vm.map(d, end - PAGE, 2, 6), Err(errno::ENOMEM), "no room for a second table");
    w.check();
    w.vm.map(d, end - PAGE, 1, 6).unwrap();
    w.check();
}

#[test]
fn a_g_call_moves_what_the_callee_puts_into_its_slot() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let place = w.vm.place(a.into(), 1).unwrap();
    assert_eq!(w.vm.place(a.into(), 1), Ok(place + PAGE), "the first is given out");
    let lent = w.lend(a, b, b'g', place, 1).unwrap();
    assert_eq!(w.vm.window_close(b.into(), lent.at), Err(errno::EINVAL), "the call has the slot");
    let other = map::WINDOWS_VA + 50 * PAGE;
    assert_eq!(w.vm.window_move(b.into(), HEAP, other), Err(errno::EINVAL), "no call waits for it");
    assert_eq!(w.vm.window_move(b.into(), HEAP, place), Err(errno::EINVAL), "no place of its own");
    assert_eq!(w.vm.window_move(b.into(), IMAGE, lent.at), Err(errno::EFAULT), "code");
    assert_eq!(w.vm.window_move(b.into(), HEAP + 9 * PAGE, lent.at), Err(errno::EFAULT), "nothing");
    assert_eq!(w.vm.window_move(b.into(), map::GATE_VA, lent.at), Err(errno::EFAULT));
    let page = pa(w.view(b)[&HEAP]);
    w.vm.window_move(b.into(), HEAP, lent.at).unwrap();
    assert_eq!(w.vm.window_move(b.into(), HEAP + PAGE, lent.at), Err(errno::EEXIST));
    w.check();
    let [before_a, before_b] = [a, b].map(|d| pages(&w, d));
    assert!(w.give_back(0));
    w.check();
    assert_eq!(pa(w.view(a)[&place]), page);
    assert_eq!((pages(&w, a), pages(&w, b)), (before_a + 1, before_b - 1));
    // From the place to another, and back to nobody.
    w.vm.window_move(a.into(), place, place + PAGE).unwrap();
    w.vm.window_close(a.into(), place + PAGE).unwrap();
    w.vm.window_close(a.into(), place).unwrap();
    assert_eq!(w.vm.window_close(a.into(), place), Err(errno::EINVAL));
    assert_eq!(pages(&w, a), before_a);
    w.check();
}

#[test]
fn a_g_call_moves_a_whole_buffer() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let place = w.vm.place(a.into(), 4).unwrap();
    assert_eq!(w.vm.buffer(a.into(), 1), Ok(place + map::BUFFER_STRIDE), "the place is given out");
    let lent = w.lend(a, b, b'g', place, 4).unwrap();
    let own = w.vm.buffer(b.into(), 4).unwrap();
    w.vm.window_move(b.into(), own, lent.at).unwrap();
    assert_eq!(w.vm.window_move(b.into(), HEAP, lent.at), Err(errno::EINVAL));
    w.check();
    let closed = w.vm.window_close(b.into(), lent.at);
    assert_eq!(closed, Ok(0), "its own still");
    w.check();
    assert!(!w.give_back(0), "nothing given");
    w.check();
    let lent = w.lend(a, b, b'g', place, 4).unwrap();
    let own = w.vm.buffer(b.into(), 4).unwrap();
    w.vm.window_move(b.into(), own, lent.at).unwrap();
    assert!(w.give_back(0));
    w.check();
    assert_eq!(w.view(a).range(place..place + map::BUFFER_STRIDE).count(), 8);
    w.vm.buffer_free(a.into(), place).unwrap();
    w.check();
}

#[test]
fn the_dead_keep_slots_for_the_living_until_they_are_forgotten() {
    let mut w = World::new();
    let free = w.vm.stats()[0];
    let (a, b) = two(&mut w);
    let lent = w.lend(a, b, b'w', HEAP, 1).unwrap();
    w.lend(a, b, b't', HEAP + PAGE, 1).unwrap();
    let at = w.vm.buffer(a.into(), 3).unwrap();
    w.lend(a, b, b't', at, 3).unwrap();
    let at = w.vm.buffer(a.into(), 2).unwrap();
    let long = w.lend(a, b, b'w', at, 2).unwrap();
    w.vm.domain_kill(b.into()).unwrap();
    w.check();
    assert!(w.view(a).contains_key(&at), "what it was lent is not given back");
    assert_eq!(w.vm.machine.read(w.l1[&b] + (long.at >> 21) * 8), 2);
    assert_eq!(w.vm.machine.read(word(&w, b, lent.at)), 0, "a dead domain borrows nothing");
    // A call that was on its way.
    w.lend(a, b, b't', HEAP + 2 * PAGE, 1).unwrap();
    w.check();
    w.give_back(0);
    w.give_back(0);
    w.check();
    w.vm.domain_free(b.into()).unwrap();
    w.check();
    w.vm.domain_kill(a.into()).unwrap();
    w.vm.domain_free(a.into()).unwrap();
    w.check();
    assert_eq!(w.vm.stats()[0], free - 1, "but for a table of the portal manager");
}

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
    w.vm.provide(b.into(), a.into(), target, HEAP, 6).unwrap();
    assert_eq!(w.vm.provide(b.into(), a.into(), target, HEAP + PAGE, 6), Err(errno::EEXIST));
    assert_eq!((pages(&w, a), pages(&w, b)), (before_a + 1, before_b - 1));
    assert_eq!(pa(w.view(a)[&target]), page);
    w.check();
    assert_eq!(w.vm.answered(&ask, true, IMAGE, 3), Outcome::Settled);
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
    assert_eq!(w.vm.answered(&ask, true, IMAGE, 3), Outcome::Settled);
    w.check();

    // Read-only is not enough for a write.
    let Outcome::Ask(ask) = w.vm.fault(15, at + 4 * PAGE, IMAGE + 2, a.into(), 9, 0) else { panic!() };
    w.vm.provide(c.into(), a.into(), at + 4 * PAGE, HEAP, 2).unwrap();
    assert_eq!(w.vm.answered(&ask, true, IMAGE + 2, 9), Outcome::Died);
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
    assert_eq!(w.vm.answered(&first, false, IMAGE, 1), Outcome::Died);
    assert_eq!(w.vm.answered(&second, false, IMAGE, 1), Outcome::Settled, "dead already");
    w.vm.domain_free(a.into()).unwrap();
    let (c, d) = two(&mut w);
    w.vm.range_set(c.into(), at, 1, u64::from(d) | 77 << 16).unwrap();
    w.vm.domain_kill(d.into()).unwrap();
    assert_eq!(w.vm.fault(13, at, IMAGE, c.into(), 1, 0), Outcome::Died, "nobody answers");
    w.check();
}

#[test]
fn a_fork_has_copies_at_the_same_addresses() {
    let mut w = World::new();
    let a = program(&mut w);
    let start = w.vm.thread_create(a.into(), 12, IMAGE, 0, 0).unwrap();
    let top = map::stack_top(a, 0);
    let b = w.vm.domain_create(0, 400, 12, 8).unwrap();
    for (va, value) in [(IMAGE, 11), (HEAP + 8, 22), (top - 16, 33)] {
        let page = pa(w.view(a)[&(va & !(PAGE - 1))]);
        w.vm.machine.write(page + va % PAGE, value);
    }
    let fork = |w: &mut World, parent: u64, child: u64, sp: u64| {
        let mut from = 0;
        loop {
            match w.vm.fork(parent, child, sp, from) {
                Ok(0) => return Ok(0),
                Ok(next) => from = next,
                Err(error) => return Err(error),
            }
        }
    };
    assert_eq!(w.vm.fork(a.into(), a.into(), top, 0), Err(errno::EINVAL));
    assert_eq!(w.vm.fork(SERVER, b, top, 0), Err(errno::EPERM));
    fork(&mut w, a.into(), b, top - 64).unwrap();
    w.check();
    let (parent, child) = (w.view(a), w.view(b as u16));
    for (va, entry) in parent.range(map::STARTUP_VA..) {
        let copy = child[va];
        assert_eq!(copy & 0x3ff, entry & 0x3ff);
        assert!((0..512).all(|n| {
            let [one, two] = [*entry, copy].map(|e| w.vm.machine.read(pa(e) + n * 8));
            one == two
        }));
    }
    assert_eq!(w.vm.sbrk(b, 0), w.vm.sbrk(a.into(), 0));
    assert_eq!(w.vm.thread_fork(b, IMAGE, top + 16, 5), Err(errno::EINVAL));
    assert_eq!(w.vm.thread_fork(b, IMAGE, top - 8, 5), Err(errno::EINVAL));
    let thread = w.vm.thread_fork(b, IMAGE + 4, top - 64, 5).unwrap();
    assert_eq!((thread.home, thread.priority), (b as u16, 12));
    assert_eq!(w.vm.thread_fork(b, IMAGE, top - 64, 5), Err(errno::EINVAL), "one");
    w.check();
    w.vm.thread_free(thread.tid.into()).unwrap();
    w.check();
    assert!(w.view(b as u16).contains_key(&(top - PAGE)), "further threads may use it");
    let thread = w.vm.thread_fork(b, IMAGE + 4, top - 64, 5).unwrap();
    // Its stack is its own, whoever shares with whom; and a stack overflow is one.
    assert_eq!(w.vm.share_stacks(b, SERVER), Err(errno::EPERM));
    w.vm.share_stacks(a.into(), b).unwrap();
    w.check();
    w.vm.domain_kill(a.into()).unwrap();
    w.check();
    assert!(w.view(b as u16).contains_key(&(top - PAGE)));
    // A fork of the fork, which may have the number of the first.
    w.vm.thread_free(start.tid.into()).unwrap();
    w.vm.domain_free(a.into()).unwrap();
    let c = w.vm.domain_create(0, 400, 12, 8).unwrap();
    assert_eq!(c, u64::from(a));
    fork(&mut w, b, c, top - 64).unwrap();
    w.check();
    w.vm.thread_fork(c, IMAGE, top - 64, 0).unwrap();
    let stack = w.vm.stack(c, 2).unwrap();
    assert_ne!(stack, top, "the copied stack is in use");
    assert_eq!(w.vm.fault(15, map::stacks_of(c as u16) + 8, IMAGE, b, 1, 0), Outcome::Died);
    assert_eq!(w.vm.fault_next().unwrap().1.cause, pebble_vm::STACK_OVERFLOW);
    w.vm.thread_free(thread.tid.into()).unwrap();
    w.vm.domain_free(b).unwrap();
    w.check();
}

#[test]
fn a_fork_that_cannot_be_leaves_a_domain_that_can_die() {
    let mut w = World::new();
    let a = program(&mut w);
    w.vm.stack(a.into(), 2).unwrap();
    let top = map::stack_top(a, 0);
    let b = w.vm.domain_create(0, 8, 12, 8).unwrap();
    assert_eq!(w.vm.fork(a.into(), b, top, 0), Err(errno::ENOMEM));
    w.check();
    w.vm.domain_kill(b).unwrap();
    w.vm.domain_free(b).unwrap();
    w.check();
    let b = w.vm.domain_create(0, 400, 12, 8).unwrap();
    assert_eq!(w.vm.fork(a.into(), b, map::stack_top(4, 0), 0), Err(errno::EPERM), "somebody else's stack");
    let b = w.vm.domain_create(0, 400, 12, 8).unwrap();
    assert_eq!(w.vm.fork(a.into(), b, HEAP, 0), Err(errno::EFAULT), "no stack");
    w.check();
}

#[test]
fn open_windows_are_closed_by_who_has_them() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let lent = w.lend(a, b, b'w', HEAP, 1).unwrap();
    let open = w.lend(a, b, b'o', HEAP, 1).unwrap();
    assert_eq!(w.view(b)[&open.at] & MARKS, OPEN);
    assert_eq!(w.vm.window_close(b.into(), lent.at), Err(errno::EPERM), "the call ends it");
    assert_eq!(w.vm.window_close(a.into(), HEAP), Err(errno::EFAULT), "no window");
    assert!(w.lend(b, a, b't', open.at, 1).is_none(), "not its own");
    w.vm.window_close(b.into(), open.at + 5).unwrap();
    w.check();
    w.give_back(0);
    w.check();
}

#[test]
fn what_is_foreign_is_neither_copied_nor_given_back() {
    let mut w = World::new();
    let a = program(&mut w);
    w.vm.stack(a.into(), 2).unwrap();
    w.vm.map_foreign(a.into(), map::BOOTINFO_VA, map::LOAD_PA, 1 << 16 | 2).unwrap();
    w.vm.map_foreign(a.into(), map::DEVICE_VA, 0x1000_0000, 1 << 16 | 6).unwrap();
    w.check();
    let b = w.vm.domain_create(0, 400, 12, 8).unwrap();
    assert_eq!(w.vm.fork(a.into(), b, map::stack_top(a, 0), 0), Ok(0));
    let child = w.view(b as u16);
    assert!(child.contains_key(&HEAP) && !child.contains_key(&map::BOOTINFO_VA));
    w.check();
    for asid in [u64::from(a), b] {
        w.vm.domain_kill(asid).unwrap();
        w.check();
        w.vm.domain_free(asid).unwrap();
        w.check();
    }
}
