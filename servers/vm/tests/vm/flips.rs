//! Pages of two domains that change places: each is its new owner's alone, and nothing else may.

use crate::claim::passes_on;
use crate::portals::{BORROWED, OPEN};
use crate::windows::*;
use crate::world::*;
use pebble_abi::errno;
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, VirtAddr};
use pebble_vm::{Answer, Machine};

const READ_WRITE: u64 = 3;

fn flip(w: &mut World, one: (u16, u64), other: (u16, u64), pages: u64) -> Answer {
    let [one, other] = [one, other].map(|(asid, at)| (Asid::from(asid), VirtAddr(at)));
    let answer = w.vm.flip(one, other, pages);
    w.check();
    answer
}

fn heap(w: &World, asid: u16) -> Vec<u64> {
    w.view(asid).range(HEAP..HEAP + 4 * PAGE).map(|(_, entry)| *entry).collect()
}

#[test]
fn they_change_places_and_nobody_pays() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let (ours, theirs) = (heap(&w, a), heap(&w, b));
    let charges = [a, b].map(|asid| pages(&w, asid));
    assert_eq!(flip(&mut w, (a, HEAP), (b, HEAP + PAGE), 2), Ok(2));
    assert_eq!(heap(&w, a), [theirs[1], theirs[2], ours[2], ours[3]]);
    assert_eq!(heap(&w, b), [theirs[0], ours[0], ours[1], theirs[3]]);
    assert_eq!([a, b].map(|asid| pages(&w, asid)), charges);
    // Back again, within one domain too; and it dies with whatever it has.
    assert_eq!(flip(&mut w, (b, HEAP + PAGE), (a, HEAP), 2), Ok(2));
    assert_eq!(flip(&mut w, (a, HEAP), (a, HEAP + 2 * PAGE), 2), Ok(2));
    assert_eq!(heap(&w, a), [ours[2], ours[3], ours[0], ours[1]]);
    for asid in [a, b] {
        w.vm.domain_kill(asid.into()).unwrap();
        w.check();
    }
}

/// A page that nobody has touched comes, and is paid for as it was.
#[test]
fn a_page_that_is_promised_flips() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    w.vm.sbrk(b.into(), 100 * PAGE as i64).unwrap();
    w.check();
    let (charges, fresh) = ([a, b].map(|asid| pages(&w, asid)), HEAP + 4 * PAGE);
    assert!(!w.view(b).contains_key(&fresh), "it is still to come");
    let ours = heap(&w, a)[0];
    assert_eq!(flip(&mut w, (a, HEAP), (b, fresh), 1), Ok(1));
    assert_eq!(w.view(b)[&fresh], ours);
    assert_eq!([a, b].map(|asid| pages(&w, asid)), charges);
}

#[test]
fn who_was_lent_them_sees_them_no_more() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let accomplice = program(&mut w);
    let lent = w.lend(a, accomplice, b'w', HEAP, 1).unwrap();
    let on = w.lend(accomplice, b, b'r', lent.at, 1).unwrap();
    let open = w.lend(a, accomplice, b'o', HEAP, 1).unwrap();
    let theirs = w.lend(b, accomplice, b'r', HEAP, 1).unwrap();
    let other = w.lend(a, accomplice, b'w', HEAP + PAGE, 1).unwrap();
    let before = [heap(&w, a)[0], heap(&w, b)[0]];
    assert_eq!(flip(&mut w, (a, HEAP), (b, HEAP), 1), Ok(1));
    assert_eq!([heap(&w, b)[0], heap(&w, a)[0]], before);
    let places = [
        (accomplice, lent.at, BORROWED),
        (b, on.at, BORROWED),
        (accomplice, open.at, OPEN),
        (accomplice, theirs.at, BORROWED),
    ];
    for (asid, at, mark) in places {
        let seen = w.view(asid)[&at];
        assert!(before.iter().all(|entry| pa(*entry) != pa(seen)), "{asid} sees it at {at:#x}");
        assert_eq!(seen & MARKS, mark);
    }
    assert_eq!(pa(w.view(accomplice)[&other.at]), pa(heap(&w, a)[1]), "others' pages stay lent");
    while !w.calls.is_empty() {
        w.give_back(w.calls.len() - 1);
        w.check();
    }
    // They can be lent, moved and flipped as before.
    assert!(w.lend(a, b, b't', HEAP, 1).is_some());
    w.check();
    assert_eq!(flip(&mut w, (a, HEAP), (b, HEAP), 1), Err(errno::EFAULT), "it is torn away");
    assert_eq!(flip(&mut w, (a, HEAP + PAGE), (b, HEAP), 1), Ok(1));
}

#[test]
fn a_window_that_is_passed_on_during_the_search_is_found() {
    let mut w = World::new();
    let ([a, b, c], entry) = passes_on(&mut w);
    let flipped = w.vm.flip((a.into(), VirtAddr(HEAP)), (c.into(), VirtAddr(HEAP)), 1);
    assert_eq!(flipped, Ok(1));
    assert!(w.vm.machine.ambush.borrow().is_none(), "it took place");
    assert_ne!(pa(w.view(b)[&map::WINDOWS_VA]), pa(entry));
    assert_eq!(pa(w.view(c)[&HEAP]), pa(entry));
}

/// Portal code moves a page away between the look at it and the mark on it.
#[test]
fn a_page_that_moves_away_meanwhile_does_not_flip() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    let (ours, theirs) = (heap(&w, a), heap(&w, b));
    for (asid, n) in [(a, 1), (b, 0)] {
        let at = word(&w, asid, HEAP + n * PAGE);
        let entry = w.vm.machine.read(at);
        *w.vm.machine.ambush.borrow_mut() = Some((at, vec![(at, 0)]));
        let flipped = w.vm.flip((a.into(), VirtAddr(HEAP)), (b.into(), VirtAddr(HEAP)), 3);
        assert_eq!(flipped, if n == 1 { Ok(1) } else { Err(errno::EFAULT) });
        assert!(w.vm.machine.ambush.borrow().is_none(), "it took place");
        w.vm.machine.write(at, entry);
        w.check();
    }
    assert_eq!((heap(&w, a)[0], heap(&w, b)[0]), (theirs[0], ours[0]));
    assert_eq!((&heap(&w, a)[1..], &heap(&w, b)[1..]), (&ours[1..], &theirs[1..]), "nor do its neighbours");
}

#[test]
fn only_pages_of_ones_own_flip() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    w.vm.thread_create(a.into(), 12, VirtAddr(map::IMAGE_VA), 0, 0).unwrap();
    let lent = w.lend(b, a, b'w', HEAP, 1).unwrap();
    let open = w.lend(b, a, b'o', HEAP, 1).unwrap();
    let torn = w.lend(b, a, b't', HEAP + 3 * PAGE, 1).unwrap();
    let buffer = w.vm.buffer(a.into(), 2).unwrap();
    w.vm.show(Asid(SERVER), a.into(), VirtAddr(map::ARCHIVE_VA), 1).unwrap();
    let before = (w.view(a), w.view(b));
    for at in [
        map::IMAGE_VA,
        HEAP + 4 * PAGE,
        HEAP + 8,
        lent.at,
        open.at,
        torn.at,
        buffer,
        map::stack_top(a, 0) - PAGE,
        map::ARCHIVE_VA,
        map::GATE_VA,
        map::STARTUP_VA,
        0,
        map::USER_END,
        u64::MAX - 0xfff,
    ] {
        assert_eq!(flip(&mut w, (a, at), (b, HEAP), 1), Err(errno::EFAULT), "{at:#x}");
        assert_eq!(flip(&mut w, (b, HEAP), (a, at), 1), Err(errno::EFAULT), "{at:#x}");
    }
    let nobody = [(99, errno::ESRCH), (SERVER as u16, errno::EPERM), (VM as u16, errno::EPERM)];
    for (asid, error) in nobody {
        assert_eq!(flip(&mut w, (a, HEAP), (asid, HEAP), 1), Err(error));
        assert_eq!(flip(&mut w, (asid, HEAP), (b, HEAP), 1), Err(error));
    }
    assert_eq!(flip(&mut w, (a, HEAP), (b, HEAP), 0), Err(errno::EFAULT));
    assert_eq!(flip(&mut w, (a, HEAP), (a, HEAP), 1), Err(errno::EFAULT), "with itself");
    assert_eq!((w.view(a), w.view(b)), before);
    w.vm.domain_kill(b.into()).unwrap();
    assert_eq!(flip(&mut w, (a, HEAP), (b, HEAP), 1), Err(errno::ESRCH));
}

#[test]
fn as_many_flip_as_both_have() {
    let mut w = World::new();
    let (a, b) = two(&mut w);
    assert_eq!(flip(&mut w, (a, HEAP), (b, HEAP + PAGE), u64::MAX), Ok(3), "b's heap ends");
    w.vm.sbrk(a.into(), 100 * PAGE as i64).unwrap();
    w.vm.sbrk(b.into(), 100 * PAGE as i64).unwrap();
    assert_eq!(flip(&mut w, (a, HEAP), (b, HEAP), 100), Ok(64));
    // As far as one table maps.
    let far = 0x20_0000 - 2 * PAGE;
    for asid in [a, b] {
        w.vm.map(asid.into(), VirtAddr(far), 4, READ_WRITE).unwrap();
    }
    assert_eq!(flip(&mut w, (a, far), (b, HEAP), 4), Ok(2));
    assert_eq!(flip(&mut w, (a, HEAP), (b, far + 2 * PAGE), 4), Ok(2));
}
