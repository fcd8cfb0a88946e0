//! What is kept of the dead, and of whom nothing is.

use crate::windows::{HEAP, MARKS, program};
use crate::world::*;
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, ThreadId, VirtAddr};
use pebble_abi::{errno, thread};
use pebble_arch::riscv64::frame;
use pebble_arch::{Arch, Layout, Riscv64};
use pebble_vm::{Machine, Outcome};

const LAYOUT: Layout = Riscv64::LAYOUT;

/// A program with a thread that dies with this stack pointer; words of its own stack are filled before.
fn dies(w: &mut World, asid: u16, sp: u64) {
    let start = w.vm.thread_create(asid.into(), 5, VirtAddr(map::IMAGE_VA), 0, 0).unwrap();
    let (block, tid) = (w.block(start.tid.into()), start.tid);
    w.vm.machine.top = w.vm.machine.read(block + thread::SAVED_TOP);
    let frame = w.vm.machine.top - map::thread_va(tid) - (LAYOUT.words - 1) as u64 * 8;
    w.vm.machine.write(block + frame + frame::word(2) as u64 * 8, sp);
    assert_eq!(
        w.vm.fault(13, 0x0700_0000, VirtAddr(map::IMAGE_VA), asid.into(), tid.into(), 0),
        Outcome::Died
    );
}

/// Physical address of a page that the domain sees.
fn seen(w: &World, asid: u16, va: u64) -> u64 {
    w.view(asid)[&va] >> 10 << 12
}

#[test]
fn the_block_and_the_top_of_the_stack_are_kept_until_the_next_is_told() {
    let mut w = World::new();
    let asid = program(&mut w);
    w.vm.thread_create(asid.into(), 5, VirtAddr(map::IMAGE_VA), 0, 0).unwrap();
    let top = map::stack_top(asid, 0);
    for n in [1, 2] {
        let page = seen(&w, asid, top - n * PAGE);
        (0..PAGE).step_by(8).for_each(|at| w.vm.machine.write(page + at, n << 32 | at));
    }
    dies(&mut w, asid, top - PAGE - 256);
    let offset = w.vm.machine.top & (PAGE - 1);
    assert_eq!(w.vm.fault_next().map(|(domain, _)| domain), Ok(asid));
    let (told, words) = w.vm.dump(asid.into(), offset - 16).unwrap();
    assert_eq!(
        (told, words[(offset as usize - 16) % 32 / 8]),
        (offset, w.vm.domain_info(asid.into()).unwrap().1[0])
    );
    assert_eq!(w.vm.dump(asid.into(), PAGE + 64), Ok((offset, [64, 72, 80, 88].map(|at| 2 << 32 | at))));
    assert_eq!(w.vm.dump(asid.into(), 2 * PAGE + 8), Ok((offset, [0, 8, 16, 24].map(|at| 1 << 32 | at))));
    assert_eq!(w.vm.dump(asid.into(), 3 * PAGE), Err(errno::EFAULT));
    assert_eq!(w.vm.dump(asid.into(), u64::MAX), Err(errno::EFAULT));
    assert_eq!(w.vm.dump(Asid(0), 0), Err(errno::ENOENT));
    assert_eq!(w.vm.fault_next(), Err(errno::ENOENT));
    assert_eq!(w.vm.dump(asid.into(), 0), Err(errno::ENOENT));
    w.check();
}

#[test]
fn a_stack_pointer_leads_to_no_page_of_others() {
    let lent = HEAP + PAGE;
    let others = map::stack_top(SERVER as u16, 0) - 64;
    let sps =
        [lent + 8, others, map::BOOTINFO_VA, map::GATE_VA, map::WINDOWS_VA, map::thread_va(0), 0, u64::MAX];
    for (sp, mark) in sps.into_iter().flat_map(|sp| [1, 2, 3].map(|mark| (sp, mark))) {
        let mut w = World::new();
        let asid = program(&mut w);
        w.vm.share_stacks(Asid(SERVER), asid.into()).unwrap();
        // As a page that the domain has for a call, or shares, or was granted.
        let l0 = w.vm.machine.read(w.l1[&asid]) >> 10 << 12;
        let leaf = l0 + (lent >> 12 & 511) * 8;
        let entry = w.vm.machine.read(leaf);
        w.vm.machine.write(leaf, entry & !MARKS | mark << 8);
        dies(&mut w, asid, sp);
        assert!(w.vm.dump(asid.into(), 0).is_ok());
        assert_eq!(w.vm.dump(asid.into(), PAGE), Err(errno::EFAULT), "{sp:#x}");
    }
}

#[test]
fn deaths_at_once_cost_a_bounded_number_of_pages() {
    let mut w = World::new();
    // The first round leaves tables behind that others have for good.
    let free: Vec<u64> = (0..2).map(|_| six_die(&mut w)).collect();
    assert_eq!(free[0], free[1]);
}

/// Free pages afterwards.
fn six_die(w: &mut World) -> u64 {
    let programs: Vec<u16> = (0..6).map(|_| program(w)).collect();
    for asid in &programs {
        dies(w, *asid, map::stack_top(*asid, 0) - 16);
    }
    let kept = programs.iter().filter(|asid| w.vm.dump(Asid(u64::from(**asid)), PAGE).is_ok()).count();
    assert_eq!(kept, 4);
    while w.vm.fault_next().is_ok() {}
    assert!(programs.iter().all(|asid| w.vm.dump(Asid(u64::from(*asid)), 0) == Err(errno::ENOENT)));
    w.check();
    for tid in 1..256 {
        let _ = w.vm.thread_free(ThreadId(tid));
    }
    programs.iter().for_each(|asid| assert_eq!(w.vm.domain_free((*asid).into()), Ok(0)));
    w.check();
    w.vm.stats()[0]
}
