//! Forks, one promise at a time.

use crate::windows::*;
use crate::world::*;
use pebble_abi::errno;
use pebble_abi::fault::Cause;
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, PhysAddr, ThreadId, VirtAddr};
use pebble_vm::{Machine, Outcome};

const IMAGE: u64 = map::IMAGE_VA;

/// All pieces of a copy.
pub fn fork(w: &mut World, parent: u64, child: u64, sp: u64) -> pebble_vm::Answer {
    let mut from = 0;
    loop {
        match w.vm.fork(Asid(parent), Asid(child), VirtAddr(sp), VirtAddr(from)) {
            Ok(next) if next != 0 => from = next,
            done => return done,
        }
        w.check();
    }
}

#[test]
fn a_fork_has_copies_at_the_same_addresses() {
    let mut w = World::new();
    let a = program(&mut w);
    let start = w.vm.thread_create(a.into(), 12, VirtAddr(IMAGE), 0, 0).unwrap();
    let top = map::stack_top(a, 0);
    let b = w.vm.domain_create(0, 400, 12, 8).unwrap();
    for (va, value) in [(IMAGE, 11), (HEAP + 8, 22), (top - 16, 33)] {
        let page = pa(w.view(a)[&(va & !(PAGE - 1))]);
        w.vm.machine.write(page + va % PAGE, value);
    }
    assert_eq!(w.vm.fork(a.into(), a.into(), VirtAddr(top), VirtAddr(0)), Err(errno::EINVAL));
    assert_eq!(w.vm.fork(Asid(SERVER), Asid(b), VirtAddr(top), VirtAddr(0)), Err(errno::EPERM));
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
    assert_eq!(w.vm.sbrk(Asid(b), 0), w.vm.sbrk(a.into(), 0));
    assert_eq!(w.vm.thread_fork(Asid(b), VirtAddr(IMAGE), VirtAddr(top + 16), 5), Err(errno::EINVAL));
    assert_eq!(w.vm.thread_fork(Asid(b), VirtAddr(IMAGE), VirtAddr(top - 8), 5), Err(errno::EINVAL));
    let thread = w.vm.thread_fork(Asid(b), VirtAddr(IMAGE + 4), VirtAddr(top - 64), 5).unwrap();
    assert_eq!((thread.home, thread.priority), (b as u16, 12));
    assert_eq!(w.vm.thread_fork(Asid(b), VirtAddr(IMAGE), VirtAddr(top - 64), 5), Err(errno::EINVAL), "one");
    w.check();
    w.vm.thread_free(thread.tid.into()).unwrap();
    w.check();
    assert!(w.view(b as u16).contains_key(&(top - PAGE)), "further threads may use it");
    let thread = w.vm.thread_fork(Asid(b), VirtAddr(IMAGE + 4), VirtAddr(top - 64), 5).unwrap();
    // Its stack is its own, whoever shares with whom; and a stack overflow is one.
    assert_eq!(w.vm.share_stacks(Asid(b), Asid(SERVER)), Err(errno::EPERM));
    w.vm.share_stacks(a.into(), Asid(b)).unwrap();
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
    w.vm.thread_fork(Asid(c), VirtAddr(IMAGE), VirtAddr(top - 64), 0).unwrap();
    let stack = w.vm.stack(Asid(c), 2).unwrap();
    assert_ne!(stack, top, "the copied stack is in use");
    assert_eq!(
        w.vm.fault(15, map::stacks_of(c as u16) + 8, VirtAddr(IMAGE), Asid(b), ThreadId(1), 0),
        Outcome::Died
    );
    assert_eq!(w.vm.fault_next().unwrap().1.cause, Cause::StackOverflow);
    w.vm.thread_free(thread.tid.into()).unwrap();
    w.vm.domain_free(Asid(b)).unwrap();
    w.check();
}

#[test]
fn a_fork_that_cannot_be_leaves_a_domain_that_can_die() {
    let mut w = World::new();
    let a = program(&mut w);
    w.vm.stack(a.into(), 2).unwrap();
    let top = map::stack_top(a, 0);
    let b = w.vm.domain_create(0, 8, 12, 8).unwrap();
    assert_eq!(w.vm.fork(a.into(), Asid(b), VirtAddr(top), VirtAddr(0)), Err(errno::ENOMEM));
    w.check();
    w.vm.domain_kill(Asid(b)).unwrap();
    w.vm.domain_free(Asid(b)).unwrap();
    w.check();
    let b = w.vm.domain_create(0, 400, 12, 8).unwrap();
    assert_eq!(
        w.vm.fork(a.into(), Asid(b), VirtAddr(map::stack_top(4, 0)), VirtAddr(0)),
        Err(errno::EPERM),
        "somebody else's stack"
    );
    let b = w.vm.domain_create(0, 400, 12, 8).unwrap();
    assert_eq!(w.vm.fork(a.into(), Asid(b), VirtAddr(HEAP), VirtAddr(0)), Err(errno::EFAULT), "no stack");
    w.check();
}

#[test]
fn a_domain_that_sees_its_parents_stacks_is_no_copy() {
    let mut w = World::new();
    let a = program(&mut w);
    w.vm.stack(a.into(), 2).unwrap();
    let b = w.vm.domain_create(0, 400, 12, 8).unwrap();
    w.vm.share_stacks(a.into(), Asid(b)).unwrap();
    assert_eq!(fork(&mut w, a.into(), b, map::stack_top(a, 0)), Err(errno::EEXIST));
    w.check();
    w.vm.domain_kill(Asid(b)).unwrap();
    w.check();
    assert!(w.view(a).contains_key(&(map::stack_top(a, 0) - PAGE)));
}

#[test]
fn what_is_foreign_is_neither_copied_nor_given_back() {
    let mut w = World::new();
    let a = program(&mut w);
    w.vm.stack(a.into(), 2).unwrap();
    w.vm.map_foreign(a.into(), VirtAddr(map::BOOTINFO_VA), PhysAddr(map::LOAD_PA), 1 << 16 | 1).unwrap();
    w.vm.map_foreign(a.into(), VirtAddr(map::DEVICE_VA), PhysAddr(0x1000_0000), 1 << 16 | 3).unwrap();
    w.check();
    let b = w.vm.domain_create(0, 400, 12, 8).unwrap();
    assert_eq!(w.vm.fork(a.into(), Asid(b), VirtAddr(map::stack_top(a, 0)), VirtAddr(0)), Ok(0));
    let child = w.view(b as u16);
    assert!(child.contains_key(&HEAP) && !child.contains_key(&map::BOOTINFO_VA));
    w.check();
    for asid in [u64::from(a), b] {
        w.vm.domain_kill(Asid(asid)).unwrap();
        w.check();
        w.vm.domain_free(Asid(asid)).unwrap();
        w.check();
    }
}
