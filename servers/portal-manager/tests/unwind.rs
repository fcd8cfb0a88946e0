//! Which places of a thread's invocation stack are changed when its call's time is over.

mod common;

use common::*;
use pebble_abi::control::PASSED_ON;
use pebble_abi::errno::{self, Errno};
use pebble_abi::{map, status, thread};
use pebble_arch::riscv64::{fault, frame};
use pebble_arch::{Arch, Layout, Riscv64};
use pebble_portal_manager::Interface;
use pebble_portal_manager::Machine;
use std::num::NonZeroU16;

/// The program that calls, and a server that is a program; `SERVER` is of the image.
const CALLER: u16 = 3;
const CALLEE: u16 = 4;
const LAYOUT: Layout = Riscv64::LAYOUT;
const LEVEL: u64 = thread::FRAMES;
const BACK: u64 = 0x1_2344;
const UNTOUCHED: u64 = 0x1_0004;

/// A stack that grows frame by frame.
struct Stack {
    manager: Manager,
    machine: Fake,
    top: u64,
    /// Where frames' return codes are made.
    code: u64,
}

impl Stack {
    fn new() -> Self {
        let (mut manager, machine) = system();
        for program in [CALLER, CALLEE] {
            manager.domains[program as usize].image = false;
        }
        Stack { manager, machine, top: LEVEL, code: 0x800 }
    }

    /// A frame of so many words; offset of its lowest.
    fn push(&mut self, words: u64, caller: u16, callee: u16) -> u64 {
        self.call(words, caller, callee, 0)
    }

    /// Of a call by that portal.
    fn call(&mut self, words: u64, caller: u16, callee: u16, index: u64) -> u64 {
        self.code += 16;
        let description = words | u64::from(caller) << 16 | u64::from(callee) << 32 | index << 48;
        self.machine.code[self.code as usize / 8 - 1] = description;
        let base = self.top + 8;
        self.top += words * 8;
        self.machine.threads.insert((THREAD, self.top), map::CODE_VA + self.code);
        self.machine.threads.insert((THREAD, thread::SAVED_TOP), map::thread_va(THREAD) + self.top);
        self.machine.threads.insert((THREAD, base), UNTOUCHED);
        base
    }

    fn word(&self, word: usize) -> u64 {
        self.top + 8 - (LAYOUT.words - word) as u64 * 8
    }

    /// The thread is interrupted in a domain; offset of the program counter.
    fn trap(&mut self, domain: u16, callee: u16, float: bool) -> u64 {
        let words = LAYOUT.words + if float { LAYOUT.float_words } else { 0 };
        self.push(words as u64, 0, callee);
        let (space, pc) = (self.word(LAYOUT.space), self.word(LAYOUT.pc));
        self.machine.threads.insert((THREAD, space), Riscv64::space(domain, 0x8100_0000));
        self.machine.threads.insert((THREAD, pc), UNTOUCHED);
        pc
    }

    fn end(&mut self) -> Result<(u16, bool), Errno> {
        let ended = self.manager.unwind(&mut self.machine, CURRENT, THREAD, LEVEL, CALLER, true);
        ended.map(|e| (e.callee, e.cut))
    }

    fn read(&self, at: u64) -> u64 {
        self.machine.thread_word(THREAD, at)
    }
}

#[test]
fn what_programs_do_above_the_call_ends_and_servers_finish() {
    let mut s = Stack::new();
    let call = s.push(17, CALLER, CALLEE);
    let inner = s.push(17, CALLEE, SERVER);
    let wait = s.push(3, SERVER, SCHEDULER);
    assert_eq!(s.end(), Ok((CALLEE, false)), "the server waits: for it the wait counts");
    assert_eq!([call, inner, wait].map(|at| s.read(at)), [UNTOUCHED, map::GATE_UNWIND, UNTOUCHED]);
}

/// Between the caller and everything else, and between the callee and everything else.
const CONTROLLERS: [u16; 2] = [5, 20];

fn controlled() -> Stack {
    let mut s = Stack::new();
    for (domain, controller) in [CALLER, CALLEE].into_iter().zip(CONTROLLERS) {
        s.manager.domains[domain as usize].controller = NonZeroU16::new(controller);
        s.manager.domains[controller as usize].image = false;
    }
    s
}

#[test]
fn the_call_that_a_controller_passes_on_ends_and_the_controller_goes_on() {
    let [own, other] = CONTROLLERS;
    let mut s = controlled();
    let legs = [s.call(3, CALLER, own, 44), s.call(3, own, SCHEDULER, 44)];
    assert_eq!(s.end(), Ok((SCHEDULER, true)), "as if the caller waited itself");
    assert_eq!(legs.map(|at| s.read(at)), [UNTOUCHED; 2]);
    let mut s = controlled();
    let legs = [
        s.call(3, CALLER, own, 44),
        s.call(17, own, CALLEE, 44),
        s.call(3, CALLEE, other, 50),
        s.call(3, other, SCHEDULER, 50),
    ];
    assert_eq!(s.end(), Ok((CALLEE, true)));
    assert_eq!(legs.map(|at| s.read(at)), [UNTOUCHED, UNTOUCHED, map::GATE_UNWIND, UNTOUCHED]);
}

#[test]
fn nothing_ends_while_the_callers_controller_is_at_something_of_its_own() {
    let [own, other] = CONTROLLERS;
    let mut s = controlled();
    let legs = [s.call(3, CALLER, own, 44), s.call(3, own, SCHEDULER, 45)];
    assert_eq!(s.end(), Err(errno::ENOENT));
    assert_eq!(legs.map(|at| s.read(at)), [UNTOUCHED; 2]);
    let mut s = controlled();
    s.call(3, CALLER, own, 44);
    let pc = s.trap(own, SERVER, false);
    assert_eq!((s.end(), s.read(pc)), (Err(errno::ENOENT), UNTOUCHED));
    // The callee's is as much a stranger as the callee.
    let mut s = controlled();
    let legs =
        [s.call(17, CALLER, CALLEE, 44), s.call(3, CALLEE, other, 50), s.call(3, other, SCHEDULER, 51)];
    assert_eq!(s.end(), Ok((CALLEE, true)));
    assert_eq!(legs.map(|at| s.read(at)), [UNTOUCHED, map::GATE_UNWIND, map::GATE_UNWIND]);
}

#[test]
fn a_limit_is_whose_call_the_controller_passes_on() {
    let own = CONTROLLERS[0];
    for (index, domain) in [(44, CALLER), (45, own)] {
        let mut s = controlled();
        let caller = s.call(3, CALLER, own, 44);
        let passed = s.call(17, own, SERVER, index);
        s.call(17, SERVER, MANAGER, 60);
        let current =
            pebble_portal_manager::frames::Current { tid: THREAD, top: map::thread_va(THREAD) + s.top };
        let at = if domain == CALLER { caller } else { passed };
        let site = s.manager.call_site(&s.machine, current);
        let passed = if domain == CALLER { PASSED_ON } else { 0 };
        assert_eq!(site, Ok((at - 8) | u64::from(domain) << 16 | passed));
    }
}

#[test]
fn a_wait_of_a_program_may_be_cut_whatever_it_is_for() {
    let mut s = Stack::new();
    s.push(17, CALLER, CALLEE);
    let wait = s.push(3, CALLEE, SCHEDULER);
    assert_eq!(s.end(), Ok((CALLEE, true)));
    assert_eq!(s.read(wait), map::GATE_UNWIND);
    let mut s = Stack::new();
    let wait = s.push(3, CALLER, SCHEDULER);
    assert_eq!(s.end(), Ok((SCHEDULER, true)), "its own wait is the call");
    assert_eq!(s.read(wait), UNTOUCHED);
}

#[test]
fn an_interrupted_program_goes_on_at_the_gate_and_a_server_where_it_was() {
    for float in [false, true] {
        let mut s = Stack::new();
        s.push(17, CALLER, CALLEE);
        let pc = s.trap(CALLEE, SERVER, float);
        assert_eq!(s.end(), Ok((CALLEE, false)));
        assert_eq!(s.read(pc), map::GATE_UNWIND);
        let mut s = Stack::new();
        s.push(17, CALLER, CALLEE);
        s.push(17, CALLEE, SERVER);
        let pc = s.trap(SERVER, SCHEDULER, float);
        assert_eq!(s.end(), Ok((CALLEE, false)));
        assert_eq!(s.read(pc), UNTOUCHED);
    }
}

/// A controller that passes a call on to its own one, which is at something of its own and leaves it
/// registers half-way, ends too.
#[test]
fn no_controller_goes_on_with_registers_that_are_not_its_own() {
    let [_, other] = CONTROLLERS;
    const OUTER: u16 = 21;
    for (words, goes_on) in [(3, false), (17, true)] {
        let mut s = controlled();
        s.manager.domains[other as usize].controller = NonZeroU16::new(OUTER);
        s.manager.domains[OUTER as usize].image = false;
        s.call(17, CALLER, CALLEE, 44);
        let inner = s.call(3, CALLEE, other, 50);
        let passed = s.call(words, other, OUTER, 50);
        let pc = s.trap(OUTER, SCHEDULER, false);
        assert_eq!(s.end().map(|(callee, _)| callee), Ok(CALLEE));
        let gate = |at| s.read(at) == map::GATE_UNWIND;
        assert_eq!([inner, passed, pc].map(gate), [true, !goes_on, true]);
    }
}

/// A program that holds something, in whichever way it was left: who is patient changes nothing; a server
/// goes on anyway.
#[test]
fn a_section_is_not_unwound_half_way() {
    // tp counts in its lowest bits, and is an address for some.
    for (tp, held) in [(0u64, false), (0x1_2340, false), (1, true), (0x1_2342, true)] {
        for (n, way) in ["trap", "call", "wait"].into_iter().enumerate() {
            for (domain, program) in [(CALLEE, true), (SERVER, false)] {
                let mut s = Stack::new();
                s.push(17, CALLER, domain);
                let (place, at) = match way {
                    "trap" => (s.trap(domain, SCHEDULER, false), s.word(frame::word(4))),
                    "call" => {
                        let base = s.push(17, domain, SERVER);
                        s.push(3, SERVER, SCHEDULER);
                        (base, base + 14 * 8)
                    }
                    _ => (s.push(3, domain, SCHEDULER), thread::SAVED_REGS + 12 * 8),
                };
                s.machine.threads.insert((THREAD, at), tp);
                let ended = s.end().map(|(callee, _)| callee);
                let spared = held && program;
                assert_eq!(ended, if spared { Err(errno::EAGAIN) } else { Ok(domain) }, "{way} {tp:#x}");
                let aimed = program && !spared;
                assert_eq!(s.read(place) == map::GATE_UNWIND, aimed, "{n}");
                let m = s.manager.unwind(&mut s.machine, CURRENT, THREAD, LEVEL, CALLER, false);
                assert!(m.is_ok());
                assert_eq!(s.read(place) == map::GATE_UNWIND, program);
            }
        }
    }
}

/// Not in a call from there: nothing is changed.
#[test]
fn no_other_call_ends() {
    let mut s = Stack::new();
    assert_eq!(s.end(), Err(errno::ENOENT), "the thread is back");
    let pc = s.trap(CALLER, SERVER, false);
    assert_eq!((s.end(), s.read(pc)), (Err(errno::ENOENT), UNTOUCHED), "it computes");
    let mut s = Stack::new();
    s.push(17, CALLEE, SERVER);
    let above = s.push(17, CALLEE, SERVER);
    assert_eq!((s.end(), s.read(above)), (Err(errno::ENOENT), UNTOUCHED), "another domain is there");
    let mut s = Stack::new();
    s.push(3, CALLER, CALLEE);
    let above = s.push(17, CALLEE, SERVER);
    assert_eq!(
        s.manager.unwind(&mut s.machine, CURRENT, THREAD, LEVEL + 8, CALLER, true),
        Err(errno::ENOENT)
    );
    assert_eq!(s.read(above), UNTOUCHED, "no frame begins there");
    assert_eq!(
        s.manager.unwind(&mut s.machine, CURRENT, CURRENT.tid, LEVEL, CALLER, true),
        Err(errno::EINVAL)
    );
}

/// What a thread that waits for a stack finds when it runs again.
struct Wait {
    pc: u64,
    registers: [u64; 4],
}

impl Wait {
    fn answered(callee: u16) -> [u64; 3] {
        [BACK, u64::MAX, status::TIMEOUT | u64::from(callee) << 16]
    }

    /// The program counter, and the two results.
    fn read(&self, s: &Stack) -> [u64; 3] {
        [self.pc, self.registers[2], self.registers[3]].map(|at| s.read(at))
    }
}

impl Stack {
    /// A portal of `caller`'s to an interface of `callee`'s.
    fn portal(&mut self, caller: u16, callee: u16) -> u16 {
        let spec = pebble_portal::Spec::parse("npi").expect("a specification");
        let target =
            self.manager.register(&mut self.machine, callee.into(), "x", spec, 0x1_0000).expect("offered");
        self.manager.open(&mut self.machine, caller.into(), target).expect("a portal")
    }

    /// The domain is about to call by that portal, and waits for a stack.
    fn wait(&mut self, domain: u16, index: u16) -> Wait {
        self.wait_after(fault::CALL, domain, index)
    }

    /// It waits for a stack after a trap of this cause, with this index in `t0`.
    fn wait_after(&mut self, cause: u64, domain: u16, index: u16) -> Wait {
        let spec = pebble_portal::Spec::parse("nm").expect("a specification");
        let stack_wait = Interface::new("scheduler.stack_wait", SCHEDULER, 0x1_0000, spec).vouched();
        self.manager.interfaces.push(stack_wait);
        let pc = self.trap(domain, SCHEDULER, false);
        let registers = [1, 5, 10, 11].map(|x| self.word(frame::word(x)));
        for (at, word) in registers.into_iter().zip([BACK, index.into(), 1, 2]) {
            self.machine.threads.insert((THREAD, at), word);
        }
        let why = self.word(LAYOUT.desc);
        self.machine.threads.insert((THREAD, why), cause);
        Wait { pc, registers }
    }
}

/// It waits for a stack of its callee: it is answered, unless the callee is of the image.
#[test]
fn a_call_that_has_not_begun_ends_in_its_caller() {
    for (callee, ends) in [(CALLEE, true), (SERVER, false)] {
        let mut s = Stack::new();
        let index = s.portal(CALLER, callee);
        let wait = s.wait(CALLER, index);
        if ends {
            assert_eq!(s.end(), Ok((callee, true)));
            assert_eq!(wait.read(&s), Wait::answered(callee));
            assert_eq!(s.read(wait.registers[1]), index.into());
        } else {
            assert_eq!(s.end(), Err(errno::ENOENT));
            assert_eq!(wait.read(&s), [UNTOUCHED, 1, 2]);
        }
    }
}

/// A load that faults waits for a stack of the fault's handler: what `t0` holds then is the program's own,
/// and no call that could be answered.
#[test]
fn a_page_fault_that_waits_is_no_call() {
    const LOAD_FAULT: u64 = 13;
    let mut s = Stack::new();
    let index = s.portal(CALLER, CALLEE);
    let wait = s.wait_after(LOAD_FAULT, CALLER, index);
    assert_eq!(s.end(), Err(errno::ENOENT), "the call has not been made, or is over");
    assert_eq!(wait.read(&s), [UNTOUCHED, 1, 2]);
    // In the callee it is unwound as if it computed.
    let mut s = Stack::new();
    let index = s.portal(CALLEE, CALLEE);
    s.push(17, CALLER, CALLEE);
    let wait = s.wait_after(LOAD_FAULT, CALLEE, index);
    assert_eq!(s.end().map(|(callee, _)| callee), Ok(CALLEE));
    assert_eq!(wait.read(&s), [map::GATE_UNWIND, 1, 2]);
}

/// A callee that calls itself has all of its stacks in this thread. Who is not unwound gets an answer; who is
/// needs none.
#[test]
fn a_call_for_which_the_thread_itself_holds_the_stacks_ends() {
    let controller = CONTROLLERS[0];
    for (waiting, passes, answered) in
        [(controller, true, true), (SERVER, false, true), (controller, false, false)]
    {
        let mut s = Stack::new();
        let index = s.portal(waiting, CALLEE);
        s.manager.domains[CALLEE as usize].controller = NonZeroU16::new(controller);
        s.manager.domains[controller as usize].image = false;
        s.call(17, CALLER, CALLEE, 44);
        let by = if passes { index } else { index + 1 };
        let inner = s.call(17, CALLEE, waiting, by.into());
        let wait = s.wait(waiting, index);
        assert_eq!(s.end(), Ok((CALLEE, waiting != SERVER)));
        assert_eq!(s.read(inner), map::GATE_UNWIND);
        let other = [map::GATE_UNWIND, 1, 2];
        assert_eq!(wait.read(&s), if answered { Wait::answered(CALLEE) } else { other });
    }
}

/// Anybody may jump to the gate's second stub: it ends what is marked.
#[test]
fn legs_that_end_are_marked_and_no_others() {
    let mut s = Stack::new();
    let mut tops = Vec::new();
    for (caller, callee) in
        [(SERVER, CALLER), (CALLER, CALLEE), (CALLEE, SERVER), (SERVER, CALLEE), (CALLEE, SCHEDULER)]
    {
        s.push(3, caller, callee);
        tops.push(s.top);
    }
    let level = tops[0];
    let plain: Vec<u64> = tops.iter().map(|top| s.read(*top)).collect();
    // And looked at once more, the stack is the same.
    for _ in 0..2 {
        let ended = s.manager.unwind(&mut s.machine, CURRENT, THREAD, level, CALLER, true);
        assert_eq!(ended.map(|e| e.callee), Ok(CALLEE));
        let changed = tops.iter().zip(&plain).map(|(top, ret)| s.read(*top) - ret);
        let late = Riscv64::LATE;
        assert_eq!(changed.collect::<Vec<_>>(), [0, late, 0, late, 0], "the program is in two calls");
    }
}

#[test]
fn a_domain_that_watches_is_told_once_for_each_leg() {
    let mut s = Stack::new();
    let spec = pebble_portal::Spec::parse("npii").expect("a specification");
    let own = Interface::new("pm.unwind", MANAGER, 0x1_0000, spec).vouched();
    s.manager.interfaces.push(own);
    let before = s.manager.stats();
    s.manager.own_semaphore(Some(CALLEE.into()), map::SEM_FIRST);
    s.manager.watch(&mut s.machine, CALLEE.into(), Some(map::SEM_FIRST)).expect("watches");
    s.push(17, CALLER, CALLEE);
    s.push(17, CALLEE, CALLER);
    s.push(17, CALLER, CALLEE);
    s.push(17, CALLEE, SERVER);
    for legs in [2, 0] {
        let ended = s.manager.unwind(&mut s.machine, CURRENT, THREAD, LEVEL, CALLER, true).expect("ends");
        assert_eq!((ended.callee, ended.told.len()), (CALLEE, legs), "and not again for the same ones");
    }
    for told in [Ok(THREAD), Ok(THREAD), Err(errno::ENOENT)] {
        assert_eq!(s.manager.unwound(CALLEE.into()), told);
    }
    s.manager.watch(&mut s.machine, CALLEE.into(), None).expect("no longer");
    assert_eq!(s.manager.stats()[0], before[0]);
}
