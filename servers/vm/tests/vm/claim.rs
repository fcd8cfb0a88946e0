//! A page or buffer that somebody claims is seen by nobody else, and is there for its owner as before.

use crate::portals::{BORROWED, OPEN};
use crate::windows::{HEAP, MARKS, pa, program, two, word};
use crate::world::*;
use pebble_abi::errno;
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, VirtAddr};
use pebble_vm::Machine;

#[test]
fn a_torn_page_is_its_new_owners_alone() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let c = program(&mut w);
    let lent = w.lend(a, c, b'w', HEAP, 1).unwrap();
    let on = w.lend(c, b, b'r', lent.at, 1).unwrap();
    let open = w.lend(a, c, b'o', HEAP, 1).unwrap();
    let other = w.lend(a, c, b'w', HEAP + PAGE, 1).unwrap();
    let torn = w.lend(a, b, b't', HEAP, 1).unwrap();
    w.check();
    let page = w.view(b)[&torn.at];
    assert_eq!(pa(w.view(c)[&lent.at]), pa(page), "who was lent it before still sees it");

    assert_eq!(w.vm.window_claim(b.into(), VirtAddr(torn.at + 8)), Ok(0));
    w.check();
    assert_eq!(w.view(b)[&torn.at], page, "it is as it was");
    let sinks = [(c, lent.at, BORROWED), (b, on.at, BORROWED), (c, open.at, OPEN)];
    for (asid, at, mark) in sinks {
        let seen = w.view(asid)[&at];
        assert!(pa(seen) != pa(page) && seen & MARKS == mark, "{asid} at {at:#x}: {seen:#x}");
    }
    assert_eq!(pa(w.view(c)[&other.at]), pa(w.view(a)[&(HEAP + PAGE)]), "others' pages stay lent");
    // The calls end as ever, and it can be lent and moved again.
    while !w.calls.is_empty() {
        w.give_back(w.calls.len() - 1);
        w.check();
    }
    let again = w.lend(b, c, b'w', torn.at, 1).unwrap();
    assert_eq!(pa(w.view(c)[&again.at]), pa(page));
    assert!(w.lend(b, a, b't', torn.at, 1).is_some());
    w.check();
}

#[test]
fn a_torn_buffer_is_its_new_owners_alone() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let c = program(&mut w);
    let at = w.vm.buffer(a.into(), 3).unwrap();
    let (long, reads) = (w.lend(a, c, b'w', at, 3).unwrap(), w.lend(a, c, b'r', at, 3).unwrap());
    let one = w.lend(a, c, b'w', at + PAGE, 1).unwrap();
    let torn = w.lend(a, b, b't', at, 3).unwrap();
    let before = w.view(b);
    let pages = [0, 1, 2].map(|n| pa(before[&(torn.at + n * PAGE)]));
    assert_eq!(pa(w.view(c)[&long.at]), pages[0]);

    assert_eq!(w.vm.window_claim(b.into(), VirtAddr(torn.at)), Ok(0));
    w.check();
    assert_eq!(w.view(b), before);
    let seen = w.view(c);
    for at in [long.at, long.at + 2 * PAGE, reads.at, one.at] {
        assert!(!pages.contains(&pa(seen[&at])), "{at:#x}");
    }
    while !w.calls.is_empty() {
        w.give_back(0);
        w.check();
    }
    assert!(w.lend(b, c, b't', torn.at, 3).is_some());
    w.check();
}

/// Three domains, and the entry of the first one's page that the third was lent. During the next search the
/// third, whose slots come later, lends it on to the second, and returns.
pub fn passes_on(w: &mut World) -> ([u16; 3], u64) {
    let (a, b) = two(w);
    let c = program(w);
    w.lend(a, b, b'w', HEAP + PAGE, 1).unwrap();
    w.give_back(0);
    let lent = w.lend(a, c, b'w', HEAP, 1).unwrap();
    let (from, to) = (word(w, c, lent.at), word(w, b, map::WINDOWS_VA));
    let entry = w.vm.machine.read(from);
    *w.vm.machine.ambush.borrow_mut() =
        Some((word(w, b, map::WINDOWS_VA + 109 * PAGE), vec![(to, entry), (from, 0)]));
    ([a, b, c], entry)
}

#[test]
fn a_window_that_is_passed_on_during_the_search_is_found() {
    let mut w = World::new();
    let ([a, b, _], entry) = passes_on(&mut w);
    assert_eq!(w.vm.window_claim(a.into(), VirtAddr(HEAP)), Ok(0));
    assert!(w.vm.machine.ambush.borrow().is_none(), "it took place");
    assert_ne!(pa(w.view(b)[&map::WINDOWS_VA]), pa(entry));
    assert_eq!(pa(w.view(a)[&HEAP]), pa(entry));
}

#[test]
fn only_what_is_ones_own_is_claimed() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let lent = w.lend(a, b, b'w', HEAP, 1).unwrap();
    let open = w.lend(a, b, b'o', HEAP, 1).unwrap();
    let place = w.vm.receive_window(a.into(), 1).unwrap();
    let asked = w.lend(a, b, b'g', place, 1).unwrap();
    for at in
        [lent.at, open.at, map::GATE_VA, map::stack_top(b, 0) - PAGE, 0, u64::MAX, map::BUFFERS_VA + PAGE]
    {
        assert_eq!(w.vm.window_claim(b.into(), VirtAddr(at)), Err(errno::EFAULT), "{at:#x}");
    }
    assert_eq!(w.vm.window_claim(b.into(), VirtAddr(map::BUFFERS_VA)), Err(errno::EFAULT), "an empty place");
    assert_eq!(w.vm.window_claim(b.into(), VirtAddr(asked.at)), Err(errno::EPERM), "a call has it");
    assert_eq!(w.vm.window_claim(Asid(99), VirtAddr(HEAP)), Err(errno::ESRCH));
    w.check();
}
