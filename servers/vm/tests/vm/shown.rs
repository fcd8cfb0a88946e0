//! Pages of the archive that other domains see.

use crate::forks::fork;
use crate::portals::OPEN;
use crate::windows::*;
use crate::world::*;
use pebble_abi::errno;
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, ThreadId, VirtAddr};
use pebble_vm::Outcome;

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
    fork(&mut w, a.into(), b, map::stack_top(a, 0) - 64).unwrap();
    w.check();
    assert_eq!(seen(&w, b as u16), seen(&w, a));
    assert_eq!(seen(&w, a).len(), 1);
    w.vm.thread_free(start.tid.into()).unwrap();
}

/// The second page of the archive and the third, in the image of a program.
fn with_text(w: &mut World) -> u16 {
    let d = program(w);
    w.vm.show(Asid(SERVER), Asid(PROCESS), VirtAddr(AT), 3).unwrap();
    assert_eq!(w.vm.map_shown(Asid(PROCESS), d.into(), TEXT, VirtAddr(AT + PAGE), 2 << 16 | 5), Ok(0));
    w.check();
    d
}

const TEXT: VirtAddr = VirtAddr(map::IMAGE_VA + 64 * PAGE);

#[test]
fn a_program_s_text_is_the_archive_s() {
    let mut w = World::new();
    let d = with_text(&mut w);
    let before = pages(&w, d);
    let archive = w.view(SERVER as u16);
    let text = |w: &World, d: u16| [0, 1].map(|n| w.view(d)[&(TEXT.get() + n * PAGE)]);
    let wanted = [1, 2].map(|n| pa(archive[&(AT + n * PAGE)]));
    assert_eq!(text(&w, d).map(pa), wanted);
    assert!(text(&w, d).iter().all(|entry| entry & 0xf == 0b1011 && entry & MARKS == OPEN), "read, execute");
    // It can be read, run, and lent for reading.
    let touch = |w: &mut World, code| w.vm.fault(code, TEXT.get(), VirtAddr(0), d.into(), ThreadId(1), 0);
    assert_eq!((touch(&mut w, 12), touch(&mut w, 13)), (Outcome::Settled, Outcome::Settled));
    let other = program(&mut w);
    let lent = w.lend(d, other, b'r', TEXT.get(), 1).unwrap();
    let entry = w.view(other)[&lent.at];
    assert_eq!((pa(entry), entry & 0xc), (wanted[0], 0), "neither written to nor executed");
    w.check();
    // A copy has the same, and pays for none of it; the first may be gone.
    w.vm.thread_create(d.into(), 12, VirtAddr(map::IMAGE_VA), 0, 0).unwrap();
    let copy = w.vm.domain_create(0, 400, 12, 8).unwrap();
    fork(&mut w, d.into(), copy, map::stack_top(d, 0) - 64).unwrap();
    w.check();
    w.vm.domain_kill(d.into()).unwrap();
    w.check();
    assert!(w.give_back(w.calls.len() - 1));
    assert_eq!(text(&w, copy as u16).map(pa), wanted);
    let again = w.vm.domain_create(0, 400, 12, 8).unwrap();
    fork(&mut w, copy, again, map::stack_top(d, 0) - 64).unwrap();
    w.vm.domain_kill(Asid(copy)).unwrap();
    w.check();
    assert_eq!(text(&w, again as u16).map(pa), wanted);
    assert!(pages(&w, again as u16) <= before + 12, "tables and stack");
    // Nobody writes to it.
    let store = w.vm.fault(15, TEXT.get(), VirtAddr(0), Asid(again), ThreadId(1), 0);
    assert_eq!(store, Outcome::Died);
    w.check();
}

#[test]
fn text_is_never_written_to_moved_or_given_away() {
    let mut w = World::new();
    let d = with_text(&mut w);
    let other = program(&mut w);
    for letter in [b'w', b'o', b't'] {
        assert!(w.lend(d, other, letter, TEXT.get(), 1).is_none(), "{letter}");
        w.check();
    }
    let at = VirtAddr(w.vm.receive_window(d.into(), 1).unwrap());
    assert_eq!(w.vm.window_move(d.into(), TEXT, at), Err(errno::EFAULT));
    assert_eq!(w.vm.window_claim(d.into(), TEXT), Err(errno::EFAULT));
    // Not even its loader writes to it.
    assert_eq!(w.vm.attach(Asid(PROCESS), d.into(), TEXT, 1, 0), Err(errno::EFAULT));
    assert_eq!(w.vm.map(d.into(), TEXT, 1, 3), Err(errno::EEXIST));
    assert_eq!(w.vm.hide(d.into(), TEXT, 1), Err(errno::EINVAL));
    // Nor does a heap that has grown up to it take it, or give it back.
    let end = w.vm.sbrk(d.into(), 0).unwrap();
    assert_eq!(w.vm.sbrk(d.into(), (TEXT.get() + PAGE - end) as i64), Err(errno::ENOMEM));
    assert!(w.vm.sbrk(d.into(), (TEXT.get() - end) as i64).is_ok());
    assert!(w.vm.sbrk(d.into(), -((TEXT.get() - end) as i64)).is_ok());
    w.check();
    // Who answers for the range around it provides nothing there, and nothing of it.
    w.vm.range_set(d.into(), VirtAddr(TEXT.get() - PAGE), 2, u64::from(other) | 60 << 16 | 31 << 32).unwrap();
    let fault = w.vm.fault(13, TEXT.get() - PAGE, VirtAddr(0), d.into(), ThreadId(1), 0);
    let Outcome::Ask(ask) = fault else { panic!("{fault:?}") };
    assert_eq!(w.vm.provide(other.into(), d.into(), TEXT, VirtAddr(HEAP), 3), Err(errno::EEXIST));
    w.vm.map_shown(Asid(PROCESS), other.into(), TEXT, VirtAddr(AT), 1 << 16 | 1).unwrap();
    let before = VirtAddr(TEXT.get() - PAGE);
    assert_eq!(w.vm.provide(other.into(), d.into(), before, TEXT, 3), Err(errno::EFAULT));
    w.check();
    assert_eq!(w.vm.answered(&ask, VirtAddr(0), ThreadId(1)), Outcome::Died);
    w.check();
    assert!(w.view(other).contains_key(&TEXT.get()), "the other one's stays");
}

#[test]
fn only_the_archive_s_pages_become_text() {
    let mut w = World::new();
    let d = with_text(&mut w);
    let other = program(&mut w);
    let before = w.view(other);
    let mut map = |caller: u64, asid: u64, at: u64, from: u64, pages: u64| {
        let answer = w.vm.map_shown(Asid(caller), Asid(asid), VirtAddr(at), VirtAddr(from), pages);
        w.check();
        answer
    };
    let (own, text) = (u64::from(other), TEXT.get());
    for (caller, asid, at, from, pages, error) in [
        (PROCESS, own, text, AT, 1 << 16 | 3, errno::EINVAL),
        (PROCESS, own, text, AT, 1 << 16 | 7, errno::EINVAL),
        (PROCESS, own, text, AT, 1 << 16 | 4, errno::EINVAL),
        (PROCESS, own, text, AT, 1, errno::EINVAL),
        (PROCESS, own, text, AT, u64::MAX << 16 | 1, errno::EINVAL),
        (PROCESS, own, text + 8, AT, 1 << 16 | 1, errno::EINVAL),
        (PROCESS, own, map::WINDOWS_VA, AT, 1 << 16 | 1, errno::EINVAL),
        (PROCESS, own, 0, AT, 1 << 16 | 1, errno::EINVAL),
        (PROCESS, own, text, AT + 8, 1 << 16 | 1, errno::EINVAL),
        (PROCESS, own, text, map::IMAGE_VA, 1 << 16 | 1, errno::EINVAL),
        (PROCESS, own, text, AT + 3 * PAGE, 1 << 16 | 1, errno::EFAULT),
        (PROCESS, own, text, AT, 4 << 16 | 1, errno::EFAULT),
        (PROCESS, own, HEAP, AT, 1 << 16 | 1, errno::EEXIST),
        (PROCESS, own, HEAP - PAGE, AT, 3 << 16 | 1, errno::EEXIST),
        (PROCESS, SERVER, text, AT, 1 << 16 | 1, errno::EPERM),
        (PROCESS, 99, text, AT, 1 << 16 | 1, errno::ESRCH),
        (u64::from(d), own, text, AT, 1 << 16 | 1, errno::EFAULT),
    ] {
        assert_eq!(map(caller, asid, at, from, pages), Err(error), "{asid} {at:#x} {from:#x} {pages:#x}");
    }
    assert_eq!(w.view(other), before);
}
