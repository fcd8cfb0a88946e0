//! A limit of memory holds for all that an instance has, and what is asked of memory is done or refused.

mod common;

use pebble_sfi_runtime::{CallError, Cause, Imports, Instance, Module, Policy, Portal, Region};
use std::sync::Arc;

const STACK: u64 = 12 << 20;

struct Domain {
    instance: Instance,
    portal: Portal,
}

fn fresh() -> Instance {
    let module = Module::load("sys", common::build("sys", 1)).unwrap_or_else(|e| panic!("{e}"));
    let mut imports = Imports::new();
    imports.system_calls().unwrap();
    Instance::new(&imports.link(&module).unwrap()).unwrap()
}

impl Domain {
    fn new(memory: u64) -> Domain {
        let instance = fresh();
        instance.grant(&Arc::new(Policy::default().memory(memory)), 0);
        let portal = instance.portal("sys", "smiiiiii").unwrap();
        Domain { instance, portal }
    }

    fn ask(&self, number: libc::c_long, words: &[u64]) -> i64 {
        let mut all = [0; 6];
        all[0] = number as u64;
        all[1..=words.len()].copy_from_slice(words);
        self.portal.call(&all).unwrap() as i64
    }

    fn map(&self, bytes: u64, prot: i32) -> u64 {
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        self.ask(libc::SYS_mmap, &[0, bytes, prot as u64, flags, !0]) as u64
    }

    fn reads(&self, at: u64) -> bool {
        self.instance.read(at, &mut [0]).is_ok()
    }

    fn writes(&self, at: u64) -> bool {
        self.instance.write(at, &[1]).is_ok()
    }
}

const RW: i32 = libc::PROT_READ | libc::PROT_WRITE;
const PAGE: u64 = 4096;
const NONE: i64 = -(libc::ENOMEM as i64);

#[test]
fn a_stack_is_memory_of_the_instance() {
    let instance = common::instance();
    instance.grant(&Arc::new(Policy::default().memory(3 * STACK + (1 << 20))), 0);
    let add = instance.portal("add", "smii").unwrap();
    let fresh_stack = instance.portal("add", "npii").unwrap();
    assert_eq!(add.call(&[1, 2]).unwrap(), 3);
    // One more for `n`.
    assert_eq!(fresh_stack.call(&[1, 2]).unwrap(), 3);
    std::thread::scope(|scope| {
        let other = scope.spawn(|| (add.call(&[1, 2]).unwrap(), fresh_stack.call(&[1, 2])));
        let (sum, refused) = other.join().unwrap();
        let text = refused.unwrap_err().to_string();
        assert!(sum == 3 && text.contains("the instance may have 37888 KiB of memory"), "{text}");
    });
    // A thread that has ended has given its stack back, and a reset all.
    assert!(std::thread::scope(|scope| scope.spawn(|| add.call(&[1, 2]).is_ok()).join().unwrap()));
    instance.reset().unwrap();
    assert!(fresh_stack.call(&[1, 2]).is_ok());
}

#[test]
fn heap_and_stacks_have_one_limit() {
    let domain = Domain::new(STACK + (2 << 20));
    assert!(domain.map(1 << 20, RW) as i64 > 0);
    assert_eq!(domain.map(1 << 20, RW) as i64, NONE);
    // Without any rights it is there all the same.
    assert_eq!(domain.map(1 << 20, libc::PROT_NONE) as i64, NONE);
    let brk = domain.ask(libc::SYS_brk, &[0]) as u64;
    assert_eq!(domain.ask(libc::SYS_brk, &[brk + (1 << 20)]) as u64, brk);
}

#[test]
fn an_image_that_is_too_large_does_not_run() {
    let instance = fresh();
    let portal = instance.portal("sys", "smiiiiii").unwrap();
    instance.attach().unwrap();
    instance.grant(&Arc::new(Policy::default().memory(PAGE)), 0);
    match portal.call(&[libc::SYS_getpid as u64, 0, 0, 0, 0, 0]) {
        Err(CallError::Fault(fault)) => assert_eq!(fault.cause, Cause::Limit, "{fault}"),
        other => panic!("{other:?}"),
    }
    let text = instance.reset().unwrap_err().to_string();
    assert!(text.contains("the instance may have 4 KiB of memory") && text.contains("--memory"), "{text}");
    assert_eq!(instance.poisoned(), Some(Cause::Limit));
}

/// `t` gives pages away for good; `g` for one call.
#[test]
fn pages_that_are_given_away_count() {
    let instance = common::instance();
    instance.grant(&Arc::new(Policy::default().memory(STACK + (1 << 20))), 0);
    let region = Region::new(PAGE as usize).unwrap();
    let (give, bring) = (instance.portal("null", "smt").unwrap(), instance.portal("null", "smg").unwrap());
    // More often than there are places for such pages.
    for _ in 0..70_000 {
        bring.call(&[region.address()]).unwrap();
    }
    let given = (0..1000).take_while(|_| give.call(&[region.address()]).is_ok()).count();
    assert!((1..256).contains(&given), "{given}");
    assert!(matches!(bring.call(&[region.address()]), Err(CallError::NotLent)));
}

#[test]
fn rights_are_what_they_are_said_to_be() {
    let domain = Domain::new(1 << 30);
    let protect = |at, bytes, prot: i32| domain.ask(libc::SYS_mprotect, &[at, bytes, prot as u64]);
    let at = domain.map(3 * PAGE, RW);
    assert!(domain.writes(at) && domain.writes(at + PAGE) && domain.writes(at + 2 * PAGE));
    // A guard page.
    assert_eq!(protect(at + PAGE, PAGE, libc::PROT_NONE), 0);
    assert!(domain.writes(at) && !domain.reads(at + PAGE) && domain.writes(at + 2 * PAGE));
    assert_eq!(protect(at, PAGE, libc::PROT_READ), 0);
    assert!(domain.reads(at) && !domain.writes(at));
    assert_eq!(protect(at, 3 * PAGE, RW), 0);
    assert!(domain.writes(at) && domain.writes(at + PAGE) && domain.writes(at + 2 * PAGE));
    // Mapped without rights.
    let none = domain.map(PAGE, libc::PROT_NONE);
    assert!(!domain.reads(none) && protect(none, PAGE, RW) == 0 && domain.writes(none));
    // Nothing is executable, and what is not its heap is not its own.
    let refused = |errno: i32| -i64::from(errno);
    assert_eq!(protect(at, PAGE, libc::PROT_READ | libc::PROT_EXEC), refused(libc::EACCES));
    assert_eq!(domain.map(PAGE, RW | libc::PROT_EXEC) as i64, refused(libc::ENOTSUP));
    let base = domain.instance.base();
    let text = base + domain.instance.module().text_pages().start;
    for place in [base, base + 0x1_0000, text, base + 0x8000_0000, base + 0xff70_0000, at + (1 << 32)] {
        assert_eq!(protect(place, PAGE, libc::PROT_NONE), refused(libc::ENOMEM), "{place:#x}");
    }
    assert_eq!(protect(at + 1, PAGE, RW), refused(libc::EINVAL));
    // Memory given back and taken again is as new.
    assert_eq!(protect(at, PAGE, libc::PROT_NONE), 0);
    assert_eq!(domain.ask(libc::SYS_munmap, &[at, 3 * PAGE]), 0);
    assert_eq!(domain.map(3 * PAGE, RW), at);
    assert!(domain.writes(at));
}

#[test]
fn moves_and_advice_do_what_they_say() {
    let domain = Domain::new(1 << 30);
    let remap = |at, old, new, flags: u64| domain.ask(libc::SYS_mremap, &[at, old, new, flags]);
    let refused = |errno: i32| -i64::from(errno);
    let at = domain.map(4 * PAGE, RW);
    assert_eq!(remap(at, 4 * PAGE, 4 * PAGE, 0) as u64, at);
    // Not the domain's; a flag that is not known.
    assert_eq!(remap(at - 64 * PAGE, 4 * PAGE, 4 * PAGE, 0), refused(libc::EFAULT));
    assert_eq!(remap(at - 64 * PAGE, 4 * PAGE, PAGE, 0), refused(libc::EFAULT));
    assert_eq!(remap(at, 4 * PAGE, 4 * PAGE, libc::MREMAP_FIXED as u64), refused(libc::EINVAL));
    assert_eq!(remap(at, 4 * PAGE, 3 * PAGE, 0) as u64, at);
    assert!(domain.writes(at) && domain.writes(at + 2 * PAGE) && !domain.reads(at + 3 * PAGE));
    assert_eq!(domain.ask(libc::SYS_mprotect, &[at, PAGE, 0]), 0);
    assert_eq!(remap(at, 3 * PAGE, 8 * PAGE, 1), refused(libc::ENOMEM));
    assert_eq!(domain.ask(libc::SYS_mprotect, &[at, PAGE, RW as u64]), 0);
    let to = remap(at, 3 * PAGE, 8 * PAGE, 1) as u64;
    assert!(to as i64 > 0 && domain.writes(to + 7 * PAGE) && !domain.reads(at));

    let advise = |at, advice: i32| domain.ask(libc::SYS_madvise, &[at, PAGE, advice as u64]);
    let mut byte = [0];
    domain.instance.read(to, &mut byte).unwrap();
    assert_eq!(byte, [1]);
    assert_eq!(advise(to, libc::MADV_DONTNEED), 0);
    domain.instance.read(to, &mut byte).unwrap();
    assert_eq!(byte, [0]);
    assert_eq!(advise(to, libc::MADV_HUGEPAGE), 0);
    assert_eq!(advise(to, libc::MADV_HWPOISON), refused(libc::EINVAL));
    let text = domain.instance.base() + domain.instance.module().text_pages().start;
    assert_eq!(advise(text, libc::MADV_DONTNEED), refused(libc::ENOMEM));
}
