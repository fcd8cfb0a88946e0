//! Windows and buffers, one promise at a time. The other side is the portal code of [`crate::portals`].

use crate::portals::{BORROWED, OPEN};
use crate::world::*;
use pebble_abi::errno;
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, VirtAddr};
use pebble_vm::Machine;

const IMAGE: u64 = map::IMAGE_VA;
pub const HEAP: u64 = IMAGE + 2 * PAGE;
pub const MARKS: u64 = 3 << 8;

pub fn program(w: &mut World) -> u16 {
    let asid = w.vm.domain_create(0, 400, 12, 8).unwrap();
    w.vm.map(Asid(asid), VirtAddr(IMAGE), 2, 5).unwrap();
    w.vm.heap(Asid(asid), VirtAddr(HEAP)).unwrap();
    w.vm.sbrk(Asid(asid), 4 * PAGE as i64).unwrap();
    w.touch(asid as u16, HEAP, 4);
    w.check();
    asid as u16
}

pub fn two(w: &mut World) -> (u16, u16) {
    (program(w), program(w))
}

pub fn pages(w: &World, asid: u16) -> u64 {
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
    assert_eq!(w.vm.space(Asid(PROCESS), b.into()), Err(errno::EPERM));
    assert_eq!(w.vm.windows(Asid(PM), Asid(99)), Err(errno::ESRCH));
    let before = pages(&w, a);
    let control = w.vm.windows(Asid(PM), a.into()).unwrap();
    assert_eq!(w.vm.windows(Asid(PM), a.into()), Ok(control));
    assert_eq!(pages(&w, a), before + 2, "control page and slot table");
    assert_eq!(w.vm.space(Asid(PM), a.into()), Ok(map::direct(w.l1[&a])));
    assert!(control > 1 << 63);
    w.control.insert(a, control & 0xffff_ffff);
    w.check();
    let read = |at: u64| w.vm.machine.read(at & 0xffff_ffff);
    let mut desc = read(control + map::WINDOW_PAGES + map::WINDOW_APART);
    for n in 0..110 {
        if n == 40 {
            assert_eq!(desc, 0);
            desc = read(control + map::WINDOW_PAGES);
        }
        assert_eq!(desc, control + map::WINDOW_PAGE_DESC + n * map::WINDOW_DESC_BYTES);
        assert_eq!(read(desc + 8), map::WINDOWS_VA + n * PAGE);
        assert_eq!(read(desc + 16), map::direct(word(&w, a, map::WINDOWS_VA + n * PAGE)));
        desc = read(desc);
    }
    assert_eq!(desc, 0);
    let mut desc = read(control + map::WINDOW_BUFFERS + map::WINDOW_APART);
    for n in 8..16 {
        if n == 12 {
            assert_eq!(desc, 0);
            desc = read(control + map::WINDOW_BUFFERS);
        }
        let va = map::BUFFERS_VA + n * map::BUFFER_STRIDE;
        assert_eq!(desc, control + map::WINDOW_BUFFER_DESC + (n - 8) * map::WINDOW_DESC_BYTES);
        assert_eq!((read(desc + 8), read(desc + 16)), (va, map::direct(w.l1[&a] + (va >> 21) * 8)));
        desc = read(desc);
    }
    assert_eq!(desc, 0);
}

#[test]
fn what_is_not_a_domains_own_is_marked() {
    let mut w = World::new();
    let d = program(&mut w);
    w.vm.thread_create(d.into(), 12, VirtAddr(IMAGE), 0, 0).unwrap();
    w.vm.attach(Asid(PROCESS), d.into(), VirtAddr(IMAGE), 1, 0).unwrap();
    w.vm.code_page(Asid(PM), 5).unwrap();
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
        let start = w.vm.thread_create(a.into(), 12, VirtAddr(IMAGE), 0, 0).unwrap();
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
    // b comes before c; c has the page and, while b's slots have been looked at already, lends it to b and
    // returns.
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
    assert_eq!(w.vm.buffer(Asid(small), 3), Err(errno::ENOMEM), "its tables count");
    w.check();
    assert_eq!(w.vm.buffer(Asid(small), 2), Ok(map::BUFFERS_VA));
    w.vm.domain_kill(Asid(small)).unwrap();
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
    assert_eq!(w.vm.buffer_free(a.into(), VirtAddr(at + PAGE)), Err(errno::EFAULT));
    assert_eq!(w.vm.buffer_free(a.into(), VirtAddr(HEAP)), Err(errno::EFAULT));
    assert_eq!(w.vm.buffer_free(b.into(), VirtAddr(at)), Err(errno::EINVAL));
    w.vm.buffer_free(a.into(), VirtAddr(at)).unwrap();
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
        assert_eq!(w.vm.buffer_free(b.into(), VirtAddr(lent.at)), Err(errno::EPERM), "not its own");
        if kill {
            w.vm.domain_kill(a.into()).unwrap();
        } else {
            w.vm.buffer_free(a.into(), VirtAddr(at)).unwrap();
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
        w.vm.window_close(b.into(), VirtAddr(moved.at)).unwrap();
        w.check();
        assert_eq!(w.vm.window_close(b.into(), VirtAddr(moved.at)), Err(errno::EINVAL), "once");
        assert!(!w.view(b).contains_key(&moved.at));
    }
    assert_eq!(pages(&w, b), before_b);
    assert!(w.view(a).contains_key(&HEAP), "an open window is not its callee's");
    // The slots are back in their queues.
    let again = w.lend(a, b, b'o', HEAP, 1).unwrap();
    assert_eq!(again.at, lent.at);
    w.vm.window_close(b.into(), VirtAddr(again.at)).unwrap();
    // Limits count what has moved in.
    let c = w.vm.domain_create(0, 16, 12, 8).unwrap();
    w.vm.heap(Asid(c), VirtAddr(HEAP)).unwrap();
    let at = w.vm.buffer(a.into(), 7).unwrap();
    w.lend(a, c as u16, b't', at, 7).unwrap();
    assert_eq!(w.vm.sbrk(Asid(c), PAGE as i64), Err(errno::ENOMEM));
    assert_eq!(w.vm.buffer(Asid(c), 1), Err(errno::ENOMEM));
    assert_eq!(w.vm.stack(Asid(c), 1), Err(errno::ENOMEM));
    assert!(w.vm.thread_create(Asid(c), 12, VirtAddr(IMAGE), 0, 0).is_err());
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
    w.vm.window_close(b.into(), VirtAddr(first.at)).unwrap();
    assert_eq!(w.vm.window_close(b.into(), VirtAddr(first.at)), Err(errno::EINVAL), "it is in its queue");
    assert_eq!(w.vm.window_close(b.into(), VirtAddr(first.at + 5 * PAGE)), Err(errno::EINVAL));
    w.vm.window_close(c.into(), VirtAddr(second.at)).unwrap();
    w.check();
    let third = w.lend(a, b, b't', HEAP + PAGE, 1).unwrap();
    let place = w.vm.receive_window(b.into(), 1).unwrap();
    w.vm.window_move(b.into(), VirtAddr(third.at), VirtAddr(place)).unwrap();
    assert_eq!(w.vm.window_close(b.into(), VirtAddr(third.at)), Err(errno::EINVAL), "back already");
    w.check();
}

#[test]
fn a_mapping_that_fails_half_way_leaves_nothing_behind() {
    let mut w = World::new();
    let d = w.vm.domain_create(0, 5 + 2, 12, 8).unwrap();
    let end = 0x20_0000;
    assert_eq!(
        w.vm.map(Asid(d), VirtAddr(end - PAGE), 2, 3),
        Err(errno::ENOMEM),
        "no room for a second table"
    );
    w.check();
    w.vm.map(Asid(d), VirtAddr(end - PAGE), 1, 3).unwrap();
    w.check();
}

/// What a stub has opened to a controller is opened on, and ends when the stub's call does, not before.
#[test]
fn what_is_open_is_opened_on_and_a_stubs_ends_with_its_call() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let c = program(&mut w);
    let page = pa(w.view(a)[&HEAP]);
    let stub = w.lend(a, b, b'O', HEAP, 1).unwrap();
    let open = w.lend(b, c, b'o', stub.at, 1).expect("opened on");
    assert_eq!(pa(w.view(c)[&open.at]), page);
    assert_eq!(w.lend(b, c, b't', stub.at, 1).map(|l| l.at), None, "it is not its own");
    assert_eq!(w.vm.window_close(b.into(), VirtAddr(stub.at)), Err(errno::EPERM), "the call has the slot");
    assert_eq!(
        w.vm.window_move(b.into(), VirtAddr(HEAP), VirtAddr(stub.at)),
        Err(errno::EEXIST),
        "nothing is waited for"
    );
    w.check();
    assert!(w.give_back(0));
    assert!(!w.view(b).contains_key(&stub.at), "gone with the call");
    assert_eq!(pa(w.view(c)[&open.at]), page, "open still");
    w.vm.window_close(c.into(), VirtAddr(open.at)).unwrap();
    w.check();
    // What is lent for a call alone is never opened.
    let lent = w.lend(a, b, b'w', HEAP, 1).unwrap();
    assert_eq!(w.lend(b, c, b'o', lent.at, 1).map(|l| l.at), None);
    // Its owner's death takes it from all.
    assert!(w.give_back(0));
    let stub = w.lend(a, b, b'O', HEAP, 1).unwrap();
    let open = w.lend(b, c, b'o', stub.at, 1).unwrap();
    w.vm.domain_kill(a.into()).unwrap();
    w.check();
    assert_ne!(pa(w.view(c)[&open.at]), page, "shows the sink");
}

#[test]
fn a_g_call_moves_what_the_callee_puts_into_its_slot() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let place = w.vm.receive_window(a.into(), 1).unwrap();
    assert_eq!(w.vm.receive_window(a.into(), 1), Ok(place + PAGE), "the first is given out");
    let lent = w.lend(a, b, b'g', place, 1).unwrap();
    assert_eq!(w.vm.window_close(b.into(), VirtAddr(lent.at)), Err(errno::EINVAL), "the call has the slot");
    let other = map::WINDOWS_VA + 50 * PAGE;
    assert_eq!(
        w.vm.window_move(b.into(), VirtAddr(HEAP), VirtAddr(other)),
        Err(errno::EINVAL),
        "no call waits for it"
    );
    assert_eq!(
        w.vm.window_move(b.into(), VirtAddr(HEAP), VirtAddr(place)),
        Err(errno::EINVAL),
        "no place of its own"
    );
    assert_eq!(w.vm.window_move(b.into(), VirtAddr(IMAGE), VirtAddr(lent.at)), Err(errno::EFAULT), "code");
    assert_eq!(
        w.vm.window_move(b.into(), VirtAddr(HEAP + 9 * PAGE), VirtAddr(lent.at)),
        Err(errno::EFAULT),
        "nothing"
    );
    assert_eq!(w.vm.window_move(b.into(), VirtAddr(map::GATE_VA), VirtAddr(lent.at)), Err(errno::EFAULT));
    let page = pa(w.view(b)[&HEAP]);
    w.vm.window_move(b.into(), VirtAddr(HEAP), VirtAddr(lent.at)).unwrap();
    assert_eq!(w.vm.window_move(b.into(), VirtAddr(HEAP + PAGE), VirtAddr(lent.at)), Err(errno::EEXIST));
    w.check();
    let [before_a, before_b] = [a, b].map(|d| pages(&w, d));
    assert!(w.give_back(0));
    w.check();
    assert_eq!(pa(w.view(a)[&place]), page);
    assert_eq!((pages(&w, a), pages(&w, b)), (before_a + 1, before_b - 1));
    // From the place to another, and back to nobody.
    w.vm.window_move(a.into(), VirtAddr(place), VirtAddr(place + PAGE)).unwrap();
    w.vm.window_close(a.into(), VirtAddr(place + PAGE)).unwrap();
    w.vm.window_close(a.into(), VirtAddr(place)).unwrap();
    assert_eq!(w.vm.window_close(a.into(), VirtAddr(place)), Err(errno::EINVAL));
    assert_eq!(pages(&w, a), before_a);
    w.check();
}

/// What a `g` call waits for in a slot may come by another, through as many hands as there are.
#[test]
fn a_slot_that_waits_is_a_goal() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let c = program(&mut w);
    let place = w.vm.receive_window(a.into(), 1).unwrap();
    let outer = w.lend(a, b, b'g', place, 1).unwrap();
    assert_eq!(w.lend(b, c, b'g', outer.at + PAGE, 1).map(|l| l.at), None, "nobody waits there");
    let inner = w.lend(b, c, b'g', outer.at, 1).expect("waits");
    let page = pa(w.view(c)[&HEAP]);
    w.vm.window_move(c.into(), VirtAddr(HEAP), VirtAddr(inner.at)).unwrap();
    w.check();
    let before = [a, b, c].map(|d| pages(&w, d));
    assert!(w.give_back(1));
    w.check();
    assert_eq!(pa(w.view(b)[&outer.at]), page);
    assert_eq!(w.lend(b, c, b'g', outer.at, 1).map(|l| l.at), None, "filled");
    assert!(w.give_back(0));
    w.check();
    assert_eq!(pa(w.view(a)[&place]), page);
    assert_eq!([a, b, c].map(|d| pages(&w, d)), [before[0] + 1, before[1], before[2] - 1]);
    // The slot is nobody's goal once its call has returned: what comes late stays where it is.
    w.vm.window_close(a.into(), VirtAddr(place)).unwrap();
    w.lend(a, b, b'g', place, 1).unwrap();
    let late = w.lend(b, c, b'g', outer.at, 1).unwrap();
    assert!(!w.give_back(0), "nothing was given");
    w.vm.window_move(c.into(), VirtAddr(HEAP + PAGE), VirtAddr(late.at)).unwrap();
    assert!(!w.give_back(0));
    assert!(w.view(c).contains_key(&late.at) && !w.view(b).contains_key(&outer.at));
    w.check();
}

#[test]
fn a_g_call_moves_a_whole_buffer() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let place = w.vm.receive_window(a.into(), 4).unwrap();
    assert_eq!(w.vm.buffer(a.into(), 1), Ok(place + map::BUFFER_STRIDE), "the place is given out");
    let lent = w.lend(a, b, b'g', place, 4).unwrap();
    let own = w.vm.buffer(b.into(), 4).unwrap();
    w.vm.window_move(b.into(), VirtAddr(own), VirtAddr(lent.at)).unwrap();
    assert_eq!(w.vm.window_move(b.into(), VirtAddr(HEAP), VirtAddr(lent.at)), Err(errno::EINVAL));
    w.check();
    let closed = w.vm.window_close(b.into(), VirtAddr(lent.at));
    assert_eq!(closed, Ok(0), "its own still");
    w.check();
    assert!(!w.give_back(0), "nothing given");
    w.check();
    let lent = w.lend(a, b, b'g', place, 4).unwrap();
    let own = w.vm.buffer(b.into(), 4).unwrap();
    w.vm.window_move(b.into(), VirtAddr(own), VirtAddr(lent.at)).unwrap();
    assert!(w.give_back(0));
    w.check();
    assert_eq!(w.view(a).range(place..place + map::BUFFER_STRIDE).count(), 8);
    w.vm.buffer_free(a.into(), VirtAddr(place)).unwrap();
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
fn open_windows_are_closed_by_who_has_them() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let lent = w.lend(a, b, b'w', HEAP, 1).unwrap();
    let open = w.lend(a, b, b'o', HEAP, 1).unwrap();
    assert_eq!(w.view(b)[&open.at] & MARKS, OPEN);
    assert_eq!(w.vm.window_close(b.into(), VirtAddr(lent.at)), Err(errno::EPERM), "the call ends it");
    assert_eq!(w.vm.window_close(a.into(), VirtAddr(HEAP)), Err(errno::EFAULT), "no window");
    assert!(w.lend(b, a, b't', open.at, 1).is_none(), "not its own");
    w.vm.window_close(b.into(), VirtAddr(open.at + 5)).unwrap();
    w.check();
    w.give_back(0);
    w.check();
}

/// Of a page, of a buffer, and of a page in a buffer.
#[test]
fn what_is_borrowed_is_lent_on_by_its_thread_alone() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let c = program(&mut w);
    let at = w.vm.buffer(a.into(), 3).unwrap();
    let lent = w.lend(a, b, b'w', HEAP, 1).unwrap();
    let long = w.lend(a, b, b'w', at, 3).unwrap();
    w.thread = 1;
    assert!(w.lend(b, c, b'w', lent.at, 1).is_none() && w.lend(b, c, b'r', lent.at, 1).is_none());
    assert!(w.lend(b, c, b'w', long.at, 3).is_none() && w.lend(b, c, b'r', long.at + PAGE, 1).is_none());
    let other = w.lend(a, b, b'w', HEAP, 1).unwrap();
    let on = w.lend(b, c, b'w', other.at, 1).unwrap();
    assert_eq!(pa(w.view(c)[&on.at]), pa(w.view(a)[&HEAP]));
    w.thread = 0;
    w.check();
    for (from, pages) in [(lent.at, 1), (long.at, 3), (long.at + PAGE, 1)] {
        assert!(w.lend(b, c, b'r', from, pages).is_some(), "{from:#x}");
        w.check();
    }
    while !w.calls.is_empty() {
        w.give_back(w.calls.len() - 1);
        w.check();
    }
    // Where a slot has been borrowed by one and is borrowed by the other, the other counts.
    w.thread = 1;
    let lent = w.lend(a, b, b'w', HEAP, 1).unwrap();
    w.thread = 0;
    assert!(w.lend(b, c, b'w', lent.at, 1).is_none());
}
