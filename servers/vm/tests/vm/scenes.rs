//! What each request promises, one by one.

use crate::world::*;
use pebble_abi::fault::Cause;
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, ThreadId, VirtAddr};
use pebble_abi::{errno, thread};
use pebble_arch::riscv64::frame;
use pebble_arch::{Arch, Layout, Riscv64};
use pebble_vm::{Machine, Outcome, RESERVE};

const LAYOUT: Layout = Riscv64::LAYOUT;

const RW: u64 = 3;
const RX: u64 = 5;
const IMAGE: u64 = map::IMAGE_VA;

fn program(w: &mut World) -> u64 {
    let asid = w.vm.domain_create(0, 400, 12, 8).unwrap();
    w.vm.map(Asid(asid), VirtAddr(IMAGE), 2, RX).unwrap();
    w.vm.heap(Asid(asid), VirtAddr(IMAGE + 2 * PAGE)).unwrap();
    asid
}

#[test]
fn a_page_is_writable_or_executable_and_readable_at_least() {
    let mut w = World::new();
    let d = program(&mut w);
    for flags in [7, 2, 4, 6, 0, 8, 9, RW | 16, RX | 1 << 8] {
        assert_eq!(w.vm.map(Asid(d), VirtAddr(IMAGE + 8 * PAGE), 1, flags), Err(errno::EINVAL), "{flags}");
    }
    for (n, flags) in [1, RW, RX].into_iter().enumerate() {
        w.vm.map(Asid(d), VirtAddr(IMAGE + (8 + n as u64) * PAGE), 1, flags).unwrap();
        let entry = w.view(d as u16)[&(IMAGE + (8 + n as u64) * PAGE)];
        assert_eq!(entry & 0x3ff, flags << 1 | 1 | 16 | 64 | if flags == RW { 128 } else { 0 });
    }
    w.check();
}

#[test]
fn only_the_image_range_can_be_mapped() {
    let mut w = World::new();
    let d = program(&mut w);
    for (at, pages) in [
        (0, 1),
        (map::GATE_VA, 1),
        (map::GATE_VA, 3),
        (map::HEAP_END, 1),
        (map::HEAP_END - PAGE, 2),
        (IMAGE + 8, 1),
    ] {
        assert_eq!(w.vm.map(Asid(d), VirtAddr(at), pages, RW), Err(errno::EINVAL));
    }
    assert_eq!(w.vm.map(Asid(d), VirtAddr(IMAGE + PAGE), 3, RW), Err(errno::EEXIST));
    assert_eq!(w.vm.map(Asid(d), VirtAddr(IMAGE), u64::MAX / PAGE + 2, RW), Err(errno::EINVAL));
    assert_eq!(w.vm.map(Asid(SERVER), VirtAddr(IMAGE + 64 * PAGE), 1, RW), Err(errno::EPERM));
    w.vm.map(Asid(d), VirtAddr(map::STARTUP_VA), 1, RW).unwrap();
    w.vm.map(Asid(d), VirtAddr(map::HEAP_END - PAGE), 1, RW).unwrap();
    w.check();
}

/// Of a server that holds what others give it: as long as there is memory, and it goes with the server.
#[test]
fn a_large_heap_goes_on_behind_the_first_two_megabytes() {
    let mut w = World::new();
    let [free, ..] = w.vm.stats();
    let small = map::BOOTINFO_VA - map::IMAGE_VA;
    assert_eq!(w.vm.sbrk(Asid(SERVER), small as i64), Err(errno::ENOMEM), "boot information is there");
    assert_eq!(w.vm.sbrk(Asid(PROCESS), 4 << 20), Ok(map::LARGE_HEAP_VA));
    w.check();
    assert_eq!(w.vm.sbrk(Asid(PROCESS), -(1 << 20)), Ok(map::LARGE_HEAP_VA + (4 << 20)));
    assert_eq!(w.vm.sbrk(Asid(PROCESS), map::HEAP_END as i64), Err(errno::ENOMEM));
    w.check();
    let [less, ..] = w.vm.stats();
    assert!(free - less >= 3 * 256, "{free}, then {less}");
    w.vm.domain_kill(Asid(PROCESS)).unwrap();
    w.vm.domain_free(Asid(PROCESS)).unwrap();
    w.check();
    assert!(w.vm.stats()[0] >= free, "nothing is left of it");
}

#[test]
fn the_heap_moves_byte_by_byte_and_page_by_page() {
    let mut w = World::new();
    let d = program(&mut w);
    let heap = IMAGE + 2 * PAGE;
    let pages = |w: &World| w.vm.domain_info(Asid(d)).unwrap().1[1];
    let before = pages(&w);
    assert_eq!(w.vm.sbrk(Asid(d), 10), Ok(heap));
    assert_eq!(w.vm.sbrk(Asid(d), 0), Ok(heap + 10));
    assert_eq!(w.vm.sbrk(Asid(d), PAGE as i64), Ok(heap + 10));
    assert_eq!(pages(&w), before + 2);
    w.check();
    assert_eq!(w.vm.sbrk(Asid(d), -(PAGE as i64)), Ok(heap + 10 + PAGE));
    w.check();
    assert_eq!(pages(&w), before + 1);
    assert_eq!(w.vm.sbrk(Asid(d), -11), Err(errno::EINVAL));
    assert_eq!(w.vm.sbrk(Asid(d), i64::MAX), Err(errno::ENOMEM));
    assert_eq!(w.vm.sbrk(Asid(d), i64::MIN), Err(errno::ENOMEM));
    assert_eq!(w.vm.sbrk(Asid(d), 400 * PAGE as i64), Err(errno::ENOMEM), "its limit");
    assert_eq!(w.vm.heap(Asid(d), VirtAddr(IMAGE + 64 * PAGE)), Err(errno::EINVAL), "there is a heap");
    assert_eq!(pages(&w), before + 1);
    w.check();
}

#[test]
fn programs_cannot_starve_the_system() {
    let mut w = World::new();
    let mut programs = Vec::new();
    while let Ok(d) = w.vm.domain_create(0, 1 << 20, 10, 256) {
        w.vm.heap(Asid(d), VirtAddr(IMAGE)).unwrap();
        while w.vm.sbrk(Asid(d), 64 * PAGE as i64).is_ok() {}
        while w.vm.sbrk(Asid(d), PAGE as i64).is_ok() {}
        while w.vm.thread_create(Asid(d), 10, VirtAddr(IMAGE), 0, 0).is_ok() {}
        programs.push(d);
    }
    assert!(w.vm.stats()[0] as usize >= RESERVE - 1);
    assert!(w.vm.sbrk(Asid(SERVER), 50 * PAGE as i64).is_ok());
    assert!(w.vm.thread_create(Asid(SERVER), 10, VirtAddr(IMAGE), 0, 0).is_ok());
    w.check();
}

#[test]
fn forking_without_end_ends_with_an_error() {
    let mut w = World::new();
    let d = w.vm.domain_create(0, 4000, 12, 8).unwrap();
    for _ in 0..8 {
        w.vm.thread_create(Asid(d), 5, VirtAddr(IMAGE), 0, 0).unwrap();
    }
    assert_eq!(w.vm.thread_create(Asid(d), 5, VirtAddr(IMAGE), 0, 0), Err(errno::EAGAIN));
    let big = w.vm.domain_create(0, 4000, 12, 256).unwrap();
    let made =
        (0..300).take_while(|_| w.vm.thread_create(Asid(big), 5, VirtAddr(IMAGE), 0, 0).is_ok()).count();
    assert_eq!(made, map::STACKS_PER_DOMAIN);
    w.check();
}

#[test]
fn a_refused_thread_leaves_no_stack() {
    let mut w = World::new();
    // Room for the first pages and a stack, not for the thread's block.
    let d = w.vm.domain_create(0, 5 + pebble_vm::SURE[1], 12, 8).unwrap();
    for _ in 0..2 {
        assert_eq!(w.vm.thread_create(Asid(d), 5, VirtAddr(IMAGE), 0, 0), Err(errno::ENOMEM));
        assert_eq!(w.vm.domain_info(Asid(d)).unwrap().1[1], 5);
        w.check();
    }
    assert_eq!(w.vm.stack(Asid(d), 8), Ok(map::stack_top(d as u16, 0)));
}

#[test]
fn a_thread_starts_from_a_whole_frame() {
    let mut w = World::new();
    for float in [0u64, 1] {
        let d = w.vm.domain_create(float, 100, 12, 8).unwrap();
        let start = w.vm.thread_spawn(Asid(d), VirtAddr(IMAGE + 4), 77, 0).unwrap();
        assert_eq!((start.priority, start.home), (12, d as u16));
        let block = w.block(start.tid.into());
        let read = |offset: u64| w.vm.machine.read(block + offset);
        let top = read(thread::SAVED_TOP) - map::thread_va(start.tid);
        assert_eq!(read(top), [0x222_0000, 0x333_0000][float as usize]);
        let frame = top - (LAYOUT.words as u64 - 1) * 8;
        assert_eq!(frame - thread::FRAMES, 8 + float * 33 * 8);
        let word = |n: usize| read(frame + n as u64 * 8);
        assert_eq!(word(LAYOUT.pc), IMAGE + 4);
        assert_eq!(word(LAYOUT.space), w.vm.domain_info(Asid(d)).unwrap().1[0]);
        let sp = word(frame::word(2));
        assert_eq!(sp, map::stack_top(d as u16, map::STACKS_PER_DOMAIN - 1));
        assert_eq!((word(frame::word(10)), word(frame::word(1))), (77, map::GATE_VA));
        assert_eq!(read(thread::FRAMES), 0x111_0000);
        let set = (0..512).filter(|n| read(n * 8) != 0).count();
        assert_eq!(set, 9, "nothing else is set");
        let view = w.view(d as u16);
        let its = (1..4).map(|n| view.contains_key(&(sp - n * PAGE))).collect::<Vec<_>>();
        assert_eq!(its, [true, true, false], "the rest comes when it is touched");
    }
    w.check();
}

#[test]
fn threads_of_a_program_have_its_priority() {
    let mut w = World::new();
    let d = program(&mut w);
    assert_eq!(w.vm.thread_create(Asid(d), 31, VirtAddr(IMAGE), 0, 0).unwrap().priority, 12);
    assert_eq!(w.vm.thread_create(Asid(d), 3, VirtAddr(IMAGE), 0, 0).unwrap().priority, 12);
    assert_eq!(w.vm.thread_create(Asid(d), 12, VirtAddr(IMAGE), 0, 3), Err(errno::EPERM));
    assert_eq!(w.vm.thread_create(Asid(d), 3, VirtAddr(IMAGE), 0, 12).unwrap().priority, 12);
    assert_eq!(w.vm.thread_create(Asid(d), 3, VirtAddr(IMAGE), 0, 13), Err(errno::EPERM));
    assert_eq!(w.vm.thread_spawn(Asid(d), VirtAddr(IMAGE), 0, 13), Err(errno::EPERM));
    assert_eq!(w.vm.thread_spawn(Asid(SERVER), VirtAddr(IMAGE), 0, 0), Err(errno::EPERM));
    assert_eq!(w.vm.thread_create(Asid(d), 3, VirtAddr(0), 0, 0), Err(errno::EFAULT));
    assert_eq!(w.vm.thread_create(Asid(d), 3, VirtAddr(u64::MAX), 0, 0), Err(errno::EFAULT));
}

#[test]
fn a_dead_domain_leaves_nothing_but_what_returning_threads_need() {
    let mut w = World::new();
    let free = w.vm.stats()[0];
    let d = program(&mut w);
    w.vm.sbrk(Asid(d), 100_000).unwrap();
    let start = w.vm.thread_spawn(Asid(d), VirtAddr(IMAGE), 0, 0).unwrap();
    w.vm.stack(Asid(d), 3).unwrap();
    w.vm.attach(Asid(PROCESS), Asid(d), VirtAddr(IMAGE), 2, 0x3000).unwrap();
    w.check();
    w.vm.domain_kill(Asid(d)).unwrap();
    w.check();
    assert_eq!(w.vm.domain_info(Asid(d)).unwrap().0, 2);
    assert_eq!(w.vm.domain_info(Asid(d)).unwrap().1[1], 5, "root, two tables, portal table, thread");
    assert_eq!(w.vm.domain_kill(Asid(d)), Ok(0));
    let [one, two] = [0, PAGE].map(|at| w.view(PROCESS as u16)[&(map::LOADER_VA + 0x3000 + at)]);
    assert_eq!(one, two, "the loader writes into the void, but does not fault");
    w.vm.detach(Asid(PROCESS), 0x3000, 2).unwrap();
    assert!(!w.view(PROCESS as u16).contains_key(&(map::LOADER_VA + 0x3000)));
    assert_eq!(w.vm.domain_free(Asid(d)), Err(errno::EAGAIN), "it has a thread");
    w.vm.thread_free(start.tid.into()).unwrap();
    w.vm.domain_free(Asid(d)).unwrap();
    w.check();
    assert_eq!(w.vm.domain_free(Asid(d)), Err(errno::ESRCH));
    assert_eq!(w.vm.domain_create(0, 400, 12, 8), Ok(d), "the number is used again");
    w.vm.domain_kill(Asid(d)).unwrap();
    w.vm.domain_free(Asid(d)).unwrap();
    // The portal manager has its tables for the window now, and the loader one.
    assert_eq!(w.vm.stats()[0], free - 3);
}

#[test]
fn essential_domains_are_not_killed_on_demand() {
    let mut w = World::new();
    assert_eq!(w.vm.domain_kill(Asid(VM)), Err(errno::EPERM));
    assert_eq!(w.vm.domain_kill(Asid(0)), Err(errno::ESRCH));
    assert_eq!(w.vm.domain_kill(Asid(1 << 32 | SERVER)), Err(errno::ESRCH));
    w.vm.domain_kill(Asid(SERVER)).unwrap();
    w.check();
    w.vm.thread_free(ThreadId(0)).unwrap();
    w.vm.domain_free(Asid(SERVER)).unwrap();
    w.check();
}

#[test]
fn the_loader_sees_what_it_attached_until_either_loses_it() {
    let mut w = World::new();
    let d = program(&mut w);
    let heap = w.vm.sbrk(Asid(d), 4 * PAGE as i64).unwrap();
    w.touch(d as u16, heap, 4);
    let heap = IMAGE + 2 * PAGE;
    assert_eq!(w.vm.attach(Asid(PM), Asid(d), VirtAddr(IMAGE), 1, 0), Err(errno::EPERM));
    assert_eq!(w.vm.attach(Asid(PROCESS), Asid(SERVER), VirtAddr(IMAGE), 1, 0), Err(errno::EPERM));
    assert_eq!(w.vm.attach(Asid(PROCESS), Asid(d), VirtAddr(heap), 5, 0), Err(errno::EFAULT));
    assert_eq!(
        w.vm.attach(Asid(PROCESS), Asid(d), VirtAddr(IMAGE), 2, 0x100_0000 - PAGE),
        Err(errno::EINVAL)
    );
    w.vm.attach(Asid(PROCESS), Asid(d), VirtAddr(IMAGE), 2, 0).unwrap();
    w.vm.attach(Asid(PROCESS), Asid(d), VirtAddr(heap), 4, 2 * PAGE).unwrap();
    assert_eq!(w.vm.attach(Asid(PROCESS), Asid(d), VirtAddr(heap), 1, PAGE), Err(errno::EEXIST));
    let seen = |w: &World| w.view(PROCESS as u16).range(map::LOADER_VA..map::LOADER_VA + 0x100_0000).count();
    assert_eq!(seen(&w), 6);
    assert_eq!(w.vm.detach(Asid(PROCESS), 0, 1), Err(errno::EINVAL), "half an attachment");
    w.vm.sbrk(Asid(d), -1).unwrap();
    assert_eq!(seen(&w), 6);
    w.vm.sbrk(Asid(d), -(PAGE as i64)).unwrap();
    assert_eq!(seen(&w), 6, "the heap shrank");
    w.check();
    w.vm.detach(Asid(PROCESS), 0, 16).unwrap();
    assert_eq!(seen(&w), 0);
    w.check();
}

#[test]
fn stacks_are_seen_by_whom_they_are_shown_until_they_are_hidden_or_somebody_dies() {
    let mut w = World::new();
    let [a, b, c] = [0; 3].map(|_| program(&mut w));
    let sees = |w: &World, who: u64, whose: u64| {
        w.view(who as u16).contains_key(&(map::stack_top(whose as u16, 0) - PAGE))
    };
    w.vm.share_stacks(Asid(b), Asid(c)).unwrap();
    w.vm.share_stacks(Asid(a), Asid(b)).unwrap();
    assert!(!sees(&w, c, a), "whom b shows its own");
    w.vm.share_stacks(Asid(a), Asid(c)).unwrap();
    w.vm.share_stacks(Asid(a), Asid(c)).unwrap();
    let stack = w.vm.stack(Asid(a), 2).unwrap();
    w.check();
    assert!(sees(&w, a, a) && sees(&w, b, a) && sees(&w, c, a));
    assert!(!sees(&w, a, b) && !sees(&w, a, c));
    w.vm.unshare_stacks(Asid(a), Asid(c)).unwrap();
    w.vm.unshare_stacks(Asid(a), Asid(c)).unwrap();
    assert!(sees(&w, b, a) && !sees(&w, c, a));
    w.check();
    w.vm.share_stacks(Asid(a), Asid(c)).unwrap();
    let guard = stack - map::STACK_SLOT;
    assert_eq!(w.vm.fault(15, guard, VirtAddr(IMAGE), Asid(c), ThreadId(1), 0), Outcome::Died);
    assert_eq!(w.vm.fault_next().unwrap().1.cause, Cause::StackOverflow, "on somebody else's stack");
    w.vm.domain_kill(Asid(a)).unwrap();
    assert!(!sees(&w, b, a));
    assert_eq!(w.vm.unshare_stacks(Asid(a), Asid(b)), Err(errno::ESRCH));
    w.check();
}

#[test]
fn tables_grow_for_the_portal_manager_alone() {
    let mut w = World::new();
    let d = program(&mut w);
    assert_eq!(w.vm.table_page(Asid(PROCESS), Asid(d), 1), Err(errno::EPERM));
    assert_eq!(w.vm.table_page(Asid(PM), Asid(d), 0), Err(errno::EINVAL));
    assert_eq!(w.vm.table_page(Asid(PM), Asid(d), 8), Err(errno::EINVAL));
    w.vm.table_page(Asid(PM), Asid(d), 7).unwrap();
    assert_eq!(w.vm.table_page(Asid(PM), Asid(d), 7), Err(errno::EEXIST));
    let page = w.view(d as u16)[&0x7000] >> 10 << 12;
    assert!((0..512).all(|n| w.vm.machine.read(page + n * 8) == NONE));
    assert_eq!(w.vm.code_page(Asid(PROCESS), 3), Err(errno::EPERM));
    assert_eq!(w.vm.code_page(Asid(PM), 512), Err(errno::EINVAL));
    w.vm.code_page(Asid(PM), 3).unwrap();
    assert_eq!(w.vm.code_page(Asid(PM), 3), Err(errno::EEXIST));
    assert!(w.view(PM as u16).contains_key(&(map::PM_CODE_VA + 3 * PAGE)));
    w.check();
}

#[test]
fn faults_say_what_happened_once() {
    let mut w = World::new();
    let cause = |w: &mut World, fault: (u64, u64, u64), fill: Option<u64>| {
        let d = program(w);
        let stack = w.vm.stack(Asid(d), 2).unwrap();
        if let Some(word) = fill {
            let table = w.view(d as u16)[&0] >> 10 << 12;
            for index in [0, 1, 2, 31, 35, 40] {
                w.vm.machine.write(table + index * 8, word);
            }
        }
        w.check();
        let value = if fault.1 == u64::MAX { stack - map::STACK_SLOT + 8 } else { fault.1 };
        assert_eq!(
            w.vm.fault(fault.0, value, VirtAddr(IMAGE + 6), Asid(d), ThreadId(9), fault.2),
            Outcome::Died
        );
        assert_eq!(
            w.vm.fault(fault.0, value, VirtAddr(IMAGE + 6), Asid(d), ThreadId(9), fault.2),
            Outcome::Settled,
            "it is dead"
        );
        let (asid, fault) = w.vm.fault_next().unwrap();
        assert_eq!((u64::from(asid), fault.address, fault.thread), (d, IMAGE + 6, 9));
        assert_eq!(w.vm.fault_next(), Err(errno::ENOENT));
        w.check();
        (fault.cause, fault.value)
    };
    assert_eq!(cause(&mut w, (13, 16, 0), None), (Cause::Load, 16));
    assert_eq!(cause(&mut w, (2, 0xffff, 0), None), (Cause::Illegal, 0xffff));
    assert_eq!(cause(&mut w, (8, 0, 40), None), (Cause::Call, 40));
    assert_eq!(cause(&mut w, (8, 0, 4096 + 41), Some(1)), (Cause::Call, 4096 + 41));
    assert_eq!(cause(&mut w, (8, 0, 4096 + 40), Some(1)), (Cause::InvocationOverflow, 40));
    for own in [0, 1, 2, 31, 35] {
        assert_eq!(cause(&mut w, (8, 0, own), Some(1)), (Cause::Call, own), "the nucleus's, no portal");
    }
    assert_eq!(cause(&mut w, (15, u64::MAX, 0), None).0, Cause::StackOverflow);
    assert_eq!(cause(&mut w, (12, u64::MAX, 0), None).0, Cause::Fetch);
    assert_eq!(cause(&mut w, (1 << 40, 7, 0), None), (Cause::Other, 1 << 40));
    assert_eq!(
        w.vm.fault(13, 0, VirtAddr(0), Asid(0), ThreadId(0), 0),
        Outcome::Settled,
        "not through an ordinary portal"
    );
}
