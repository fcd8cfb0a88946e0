//! The scheduler's steps with stack queues, run: whatever is asked, and of whatever domain, each stack stays
//! where its domain alone finds it, and no other word changes.

mod common;

use common::Rng;
use common::cases::PROCESSORS;
use common::mips64::{Exit, Machine};
use pebble_abi::map;
use pebble_portal::hardware::{Code, Connection, Shape, Short, Stacks, compile};
use pebble_portal::isa::riscv64::decode::{Alu, Cond, Insn, Width, decode};
use pebble_portal::{Processor, Spec};
use std::collections::BTreeMap;

type Memory = BTreeMap<u64, u64>;

const STEPS: [Stacks; 3] = [Stacks::Keep, Stacks::Offer, Stacks::Release];

/// Runs the step with this word as the domain: what it returns, and every register that a portal may use
/// besides.
fn run(processor: Processor, memory: &mut Memory, what: Stacks, domain: u64) -> (u64, u64, Vec<u64>) {
    let spec = Spec::parse("sm").expect("a specification");
    let shape = Shape::Short(Short::Stacks(what));
    let code = compile(&spec, shape, &Connection::default(), processor).expect("it compiles");
    if processor == Processor::Riscv64 {
        let x = run_riscv64(memory, &code, domain);
        return (x[10], x[11], [3, 6, 7, 28, 29, 30, 31].map(|n| x[n]).to_vec());
    }
    let mut m = Machine::new();
    m.x[5] = domain;
    core::mem::swap(memory, &mut m.memory);
    assert_eq!(m.run(&code, 0, 0), Exit::User);
    core::mem::swap(memory, &mut m.memory);
    (m.x[2], m.x[3], [1, 13, 14, 15, 24, 25, 26, 27].map(|n| m.x[n]).to_vec())
}

fn run_riscv64(memory: &mut Memory, code: &Code, domain: u64) -> [u64; 32] {
    let mut x = [0u64; 32];
    for (n, reg) in x.iter_mut().enumerate().skip(1) {
        *reg = 0x5eed_0000 + n as u64;
    }
    x[11] = domain;
    let mut pc = 0;
    loop {
        let mut next = pc + 1;
        match decode(code.words[pc]).expect("an instruction") {
            Insn::Lui { rd, imm } => x[usize::from(rd)] = imm as u64,
            Insn::AluImm { op, rd, rs1, imm } => {
                let a = x[usize::from(rs1)];
                x[usize::from(rd)] = match op {
                    Alu::Add => a.wrapping_add(imm as u64),
                    Alu::And => a & imm as u64,
                    Alu::Sll => a << imm,
                    other => panic!("{other:?}"),
                };
            }
            Insn::Alu { op: Alu::Add, rd, rs1, rs2 } => {
                x[usize::from(rd)] = x[usize::from(rs1)].wrapping_add(x[usize::from(rs2)]);
            }
            Insn::Load { width: Width::D, rd, rs1, imm } => {
                let at = x[usize::from(rs1)].wrapping_add(imm as u64);
                x[usize::from(rd)] = *memory.get(&at).unwrap_or_else(|| panic!("reads {at:#x}"));
            }
            Insn::Store { width: Width::D, rs2, rs1, imm } => {
                let at = x[usize::from(rs1)].wrapping_add(imm as u64);
                assert!(memory.contains_key(&at), "writes {at:#x}");
                memory.insert(at, x[usize::from(rs2)]);
            }
            Insn::Branch { cond, rs1, rs2, imm } => {
                let (a, b) = (x[usize::from(rs1)], x[usize::from(rs2)]);
                let taken = match cond {
                    Cond::Geu => a >= b,
                    Cond::Ne => a != b,
                    other => panic!("{other:?}"),
                };
                assert!(imm > 0, "forward");
                next = if taken { pc + imm as usize / 4 } else { next };
            }
            Insn::Csr { .. } => {}
            Insn::Sret => return x,
            other => panic!("{other:?}"),
        }
        x[0] = 0;
        pc = next;
    }
}

/// What a list holds, and its end.
fn list(memory: &Memory, head: u64) -> (Vec<u64>, u64) {
    let (mut stacks, mut at) = (vec![], memory[&head]);
    while at > map::STACKS_END {
        assert!(!stacks.contains(&at), "it goes round");
        stacks.push(at);
        at = memory[&at];
    }
    (stacks, at)
}

/// All of a domain's stacks in its two lists, in order.
fn both(memory: &Memory, domain: u16) -> Vec<u64> {
    let (mut stacks, end) = list(memory, map::stack_queue_va(domain));
    assert!(end == map::STACKS_END || end == map::STACKS_WANTED);
    let (kept, end) = list(memory, map::stacks_kept_va(domain));
    assert_eq!(end, map::STACKS_END);
    stacks.extend(kept);
    stacks.sort_unstable();
    stacks
}

/// Five stacks of domain 7, two of 130; domain 0 has one of the ends.
fn memory() -> Memory {
    let mut memory = Memory::from([(map::STACKS_END, 0)]);
    for domain in 0..map::MAX_DOMAINS as u16 {
        let end = if domain == 0 { 0 } else { map::STACKS_END };
        memory.insert(map::stack_queue_va(domain), end);
        memory.insert(map::stacks_kept_va(domain), end);
    }
    for (n, domain) in [7, 7, 7, 7, 7, 130, 130].into_iter().enumerate() {
        let stack = map::stack_desc_va(n);
        let head = memory.insert(map::stack_queue_va(domain), stack).expect("a head");
        memory.insert(stack, head);
    }
    memory
}

#[test]
fn stacks_stay_with_their_domain_whatever_is_asked() {
    PROCESSORS.into_iter().for_each(stay);
}

fn stay(processor: Processor) {
    let mut memory = memory();
    let before = [7, 130].map(|domain| both(&memory, domain));
    let mut rng = Rng(0x57ac);
    for _ in 0..20_000 {
        let domain = [7, 130, 0, 3, 255, rng.next()][rng.below(6)];
        let (result, status, used) = run(processor, &mut memory, STEPS[rng.below(3)], domain);
        assert!(result <= 1 && status == 0);
        assert!(used.iter().all(|x| *x == 0), "{used:x?}");
        assert_eq!([7, 130].map(|domain| both(&memory, domain)), before);
        assert_eq!((memory[&map::STACKS_END], memory[&map::STACKS_WANTED]), (0, 0));
    }
}

/// As the scheduler uses them: what comes back is kept, one is offered to who begins to run, the rest goes
/// back.
#[test]
fn each_step_does_what_it_says() {
    PROCESSORS.into_iter().for_each(does);
}

fn does(processor: Processor) {
    let run = |memory: &mut Memory, what, domain| run(processor, memory, what, domain).0;
    let mut memory = memory();
    let (queue, kept) = (map::stack_queue_va(130), map::stacks_kept_va(130));
    let [one, two] = [5, 6].map(map::stack_desc_va);
    let state = |memory: &Memory| (list(memory, queue), list(memory, kept).0);
    assert_eq!(state(&memory), ((vec![two, one], map::STACKS_END), vec![]));
    assert_eq!(run(&mut memory, Stacks::Release, 130), 0);
    assert_eq!(run(&mut memory, Stacks::Keep, 130), 1);
    assert_eq!(state(&memory), ((vec![one], map::STACKS_END), vec![two]));
    assert_eq!(run(&mut memory, Stacks::Keep, 130), 1);
    // Nothing is left: callers wait.
    assert_eq!(state(&memory), ((vec![], map::STACKS_WANTED), vec![one, two]));
    assert_eq!(run(&mut memory, Stacks::Keep, 130), 0);
    assert_eq!(run(&mut memory, Stacks::Offer, 130), 1);
    assert_eq!(state(&memory), ((vec![one], map::STACKS_END), vec![two]));
    assert_eq!(run(&mut memory, Stacks::Offer, 130), 1);
    assert_eq!(state(&memory), ((vec![two, one], map::STACKS_END), vec![]));
    assert_eq!(run(&mut memory, Stacks::Offer, 130), 0);
    for _ in 0..2 {
        assert_eq!(run(&mut memory, Stacks::Keep, 130), 1);
    }
    assert_eq!(run(&mut memory, Stacks::Release, 130), 1);
    assert_eq!(state(&memory), ((vec![one, two], map::STACKS_END), vec![]));
}
