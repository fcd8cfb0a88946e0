//! The standard files are the process's, and others are at them too: whoever waits for them in a domain is
//! back at the deadline all the same. One test, since a process has one standard input.

mod common;

use pebble_sfi_runtime::{CallError, Cause, Imports, Instance, Linked, Module, Policy, Portal};
use std::os::fd::RawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

const TIME: Duration = Duration::from_millis(6);
/// Whoever is not back by then is lost.
const LOST: Duration = Duration::from_secs(10);

struct Domain {
    /// A page of its memory.
    at: u64,
    portal: Portal,
    _instance: Instance,
}

impl Domain {
    fn new(linked: &Arc<Linked>) -> Domain {
        let instance = Instance::new(linked).unwrap();
        instance.grant(&Arc::new(Policy::program()), 0);
        let portal = instance.portal("sys", "smiiiiii").unwrap();
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let at = portal.call(&[libc::SYS_mmap as u64, 0, 1 << 20, 3, flags, !0]).unwrap();
        Domain { at, portal, _instance: instance }
    }

    fn ask(&self, number: libc::c_long, file: u64, bytes: u64) -> Result<u64, CallError> {
        self.portal.call_within(TIME, &[number as u64, file, self.at, bytes, 0, 0])
    }

    /// What nobody waits for.
    fn ask_at_leisure(&self, number: libc::c_long, file: u64) -> u64 {
        self.portal.call(&[number as u64, file, 0, 0, 0, 0]).unwrap()
    }
}

/// Puts a pipe in the place of a standard file; its other end.
fn pipe_for(standard: RawFd) -> RawFd {
    let mut ends = [0; 2];
    let ours = usize::from(standard != 0);
    // SAFETY: two descriptors of ours, of which one takes the place of one that nobody else uses here.
    unsafe {
        assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
        assert_eq!(libc::dup2(ends[ours], standard), standard);
        libc::close(ends[ours]);
    }
    ends[1 - ours]
}

/// Domains that ask at the same time, or as near as can be had: what each is told, in the order in which they
/// are done.
fn together(
    domains: &[Arc<Domain>],
    number: libc::c_long,
    file: u64,
    bytes: u64,
) -> Vec<Result<u64, CallError>> {
    let (done, answers) = channel();
    let missing = Arc::new(AtomicUsize::new(domains.len()));
    for domain in domains {
        let (domain, done, missing) = (domain.clone(), done.clone(), missing.clone());
        std::thread::spawn(move || {
            // The first call of a thread makes its stacks.
            domain.ask_at_leisure(libc::SYS_getpid, 0);
            missing.fetch_sub(1, Ordering::SeqCst);
            while missing.load(Ordering::SeqCst) > 0 {
                std::thread::yield_now();
            }
            done.send(domain.ask(number, file, bytes))
        });
    }
    let answer = |_| answers.recv_timeout(LOST).expect("it is not back");
    domains.iter().map(answer).collect()
}

/// What nobody has read of the standard input.
fn drain() {
    let mut one = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
    // SAFETY: a structure and a byte of ours.
    while unsafe { libc::poll(&mut one, 1, 0) } == 1 {
        // SAFETY: as above.
        unsafe { libc::read(0, [0u8].as_mut_ptr().cast(), 1) };
    }
}

fn is_late(answer: &Result<u64, CallError>) -> bool {
    match answer {
        // The jump to the import was the last that it did.
        Ok(value) => *value as i64 == -i64::from(libc::EINTR),
        Err(CallError::Fault(fault)) => fault.cause == Cause::Deadline,
        Err(_) => false,
    }
}

#[test]
fn whoever_waits_for_standard_files_ends_with_the_deadline() {
    let module = Module::load("sys", common::build("sys", 1)).unwrap_or_else(|e| panic!("{e}"));
    let mut imports = Imports::new();
    imports.system_calls().unwrap();
    let linked = imports.link(&module).unwrap();
    let some = |count| (0..count).map(|_| Arc::new(Domain::new(&linked))).collect::<Vec<_>>();

    // A byte for two, there already or only when they wait, and sometimes through a copy of the file: one
    // gets it, or on a busy machine none in time.
    let input = pipe_for(0);
    let mut read = 0;
    for round in 0..80 {
        let domains = some(2);
        // SAFETY: a byte of ours.
        let put = move || unsafe { libc::write(input, b"x".as_ptr().cast(), 1) };
        if round % 2 == 0 {
            put();
        } else {
            std::thread::spawn(move || {
                std::thread::sleep(TIME / 3);
                put()
            });
        }
        let copies = domains.iter().map(|domain| domain.ask_at_leisure(libc::SYS_dup, 0)).max();
        let file = copies.filter(|_| round % 4 == 3).unwrap_or(0);
        let answers = together(&domains, libc::SYS_read, file, 1);
        let got = answers.iter().filter(|answer| matches!(answer, Ok(1))).count();
        let late = answers.iter().filter(|answer| is_late(answer)).count();
        assert!(got + late == 2, "round {round}: {answers:?}");
        read += got;
        drain();
    }
    assert!(read > 10, "{read}");

    // More than a pipe takes that nobody reads. What is in it then is told, or the deadline.
    // SAFETY: another number for the same file, which is put back.
    let saved = unsafe { libc::dup(2) };
    let _unread = pipe_for(2);
    let answers = together(&some(2), libc::SYS_write, 2, 1 << 20);
    // SAFETY: as above.
    unsafe { libc::dup2(saved, 2) };
    let written = |answer: &Result<u64, _>| matches!(answer, Ok(n) if (1..1 << 20).contains(n));
    assert!(answers.iter().all(|answer| is_late(answer) || written(answer)), "{answers:?}");
}
