//! Pages of the archive that other domains see.

use crate::portals::OPEN;
use crate::windows::*;
use crate::world::*;
use pebble_abi::errno;
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, VirtAddr};

const AT: u64 = map::ARCHIVE_VA;

fn show(w: &mut World, asid: u16, first: u64, count: u64) -> pebble_vm::Answer {
    let answer = w.vm.show(Asid(SERVER), asid.into(), VirtAddr(AT + first * PAGE), count);
    w.check();
    answer
}

fn seen(w: &World, asid: u16) -> Vec<(u64, u64)> {
    w.view(asid).range(AT..map::PHYS_VA).map(|(va, entry)| ((va - AT) / PAGE, *entry)).collect()
}

#[test]
fn they_are_where_the_server_sees_them_and_belong_to_nobody() {
    let mut w = World::new();
    let d = program(&mut w);
    let before = pages(&w, d);
    assert_eq!(show(&mut w, d, 1, 2), Ok(0));
    let there = seen(&w, SERVER as u16);
    let here = seen(&w, d);
    assert_eq!(here, there[1..].iter().map(|(n, entry)| (*n, entry & !MARKS | OPEN)).collect::<Vec<_>>());
    assert_eq!(pages(&w, d), before + 1, "a table");
    assert_eq!(show(&mut w, d, 0, 3), Ok(0), "some of them again");
    assert_eq!((seen(&w, d).len(), pages(&w, d)), (3, before + 1));
    assert_eq!(show(&mut w, SERVER as u16, 0, 3), Ok(0));
    assert_eq!(seen(&w, SERVER as u16), there, "its own stay as they are");

    assert_eq!(w.vm.hide(d.into(), VirtAddr(AT + PAGE), 1), Ok(0));
    w.check();
    assert_eq!(seen(&w, d).iter().map(|(n, _)| *n).collect::<Vec<_>>(), [0, 2]);
    assert_eq!(w.vm.hide(Asid(SERVER), VirtAddr(AT), 3), Ok(0));
    assert_eq!(seen(&w, SERVER as u16), there);
    assert_eq!(w.vm.hide(d.into(), VirtAddr(AT), 100_000), Err(errno::EINVAL));
    assert_eq!(w.vm.hide(d.into(), VirtAddr(map::IMAGE_VA), 1), Err(errno::EINVAL));
    w.vm.domain_kill(d.into()).unwrap();
    w.check();
}

#[test]
fn nothing_else_is_shown_and_nobody_else_shows() {
    let mut w = World::new();
    let (d, other) = two(&mut w);
    assert_eq!(show(&mut w, d, 0, 3), Ok(0));
    let before = pages(&w, other);
    // What is shown to it, it may lend, and no more.
    assert_eq!(w.vm.show(d.into(), other.into(), VirtAddr(AT), 1), Err(errno::EFAULT));
    for (at, count, error) in [
        (AT, 4, errno::EFAULT),
        (AT + 3 * PAGE, 1, errno::EFAULT),
        (AT, 513, errno::EFAULT),
        (AT, 0, errno::EINVAL),
        (AT + 8, 1, errno::EINVAL),
        (AT, u64::MAX / PAGE, errno::EINVAL),
        (map::PHYS_VA - PAGE, 2, errno::EINVAL),
        (map::BOOTINFO_VA, 1, errno::EINVAL),
        (map::IMAGE_VA, 1, errno::EINVAL),
        (map::PHYS_VA, 1, errno::EINVAL),
    ] {
        assert_eq!(w.vm.show(Asid(SERVER), other.into(), VirtAddr(at), count), Err(error), "{at:#x}");
        w.check();
    }
    assert_eq!((seen(&w, other).len(), pages(&w, other)), (0, before), "half of it neither");
    assert_eq!(w.vm.show(Asid(SERVER), Asid(99), VirtAddr(AT), 1), Err(errno::ESRCH));
    w.vm.domain_kill(other.into()).unwrap();
    assert_eq!(show(&mut w, other, 0, 1), Err(errno::ESRCH));
    // Who has no room for the table.
    let poor = w.vm.domain_create(0, 5, 12, 8).unwrap() as u16;
    while w.vm.map(poor.into(), VirtAddr(map::IMAGE_VA + 64 * PAGE * pages(&w, poor)), 1, 1).is_ok() {}
    assert_eq!(show(&mut w, poor, 0, 1), Err(errno::ENOMEM));
}

#[test]
fn they_are_lent_for_reading_and_never_given_away() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    show(&mut w, a, 0, 2).unwrap();
    for letter in [b'w', b't'] {
        assert!(w.lend(a, b, letter, AT, 1).is_none(), "{letter}");
        w.check();
    }
    let lent = w.lend(a, b, b'r', AT + PAGE, 1).unwrap();
    assert_eq!(pa(w.view(b)[&lent.at]), pa(w.view(a)[&(AT + PAGE)]));
    assert_eq!(w.view(b)[&lent.at] & 4, 0, "nobody writes it");
    // The loan ends with the call, whatever its giver sees meanwhile.
    w.vm.hide(a.into(), VirtAddr(AT), 2).unwrap();
    w.check();
    assert!(w.give_back(w.calls.len() - 1));
    w.check();
    assert_eq!(w.vm.window_claim(a.into(), VirtAddr(AT)), Err(errno::EFAULT));
    assert_eq!(w.vm.sbrk(a.into(), AT as i64), Err(errno::ENOMEM), "no heap grows over it");
}

#[test]
fn a_copy_sees_what_its_parent_sees() {
    let mut w = World::new();
    let a = program(&mut w);
    let start = w.vm.thread_create(a.into(), 12, VirtAddr(map::IMAGE_VA), 0, 0).unwrap();
    show(&mut w, a, 0, 2).unwrap();
    w.vm.hide(a.into(), VirtAddr(AT), 1).unwrap();
    let b = w.vm.domain_create(0, 400, 12, 8).unwrap();
    let (mut from, mut pieces) = (VirtAddr(0), 0);
    loop {
        let next = w.vm.fork(a.into(), Asid(b), VirtAddr(map::stack_top(a, 0) - 64), from).unwrap();
        w.check();
        (from, pieces) = (VirtAddr(next), pieces + 1);
        if next == 0 {
            break;
        }
    }
    assert_eq!(pieces, 2, "one more for the table");
    assert_eq!(seen(&w, b as u16), seen(&w, a));
    assert_eq!(seen(&w, a).len(), 1);
    w.vm.thread_free(start.tid.into()).unwrap();
}
