//! A stack for the queue of a domain that has callers: whatever these and the scheduler do meanwhile, each
//! stack is in the queue or taken.

mod common;

use common::*;
use pebble_abi::map;
use pebble_abi::words::Asid;
use pebble_portal::Spec;
use std::collections::BTreeMap;

type Data = BTreeMap<u64, u64>;

const PARENT: u16 = CLIENTS[0];
const CHILD: u16 = 20;
const QUEUE: u64 = map::stack_queue_va(PARENT) - map::KDATA_VA;
/// Where the test keeps the stack that a caller has taken.
const TAKEN: u64 = u64::MAX;

/// As portal code does it: the word behind the head is below the plain end for both ends, and for the last
/// stack if somebody waits.
fn take(data: &mut Data) {
    let head = data[&QUEUE];
    let next = data.get(&(head - map::KDATA_VA)).copied().unwrap_or(0);
    if head >= map::stack_desc_va(0) && next >= map::STACKS_END {
        data.insert(QUEUE, next);
        data.insert(TAKEN, head);
    }
}

fn give(data: &mut Data) {
    if let Some(stack) = data.remove(&TAKEN) {
        let head = data.insert(QUEUE, stack).expect("a head");
        data.insert(stack - map::KDATA_VA, head);
    }
}

/// The scheduler: somebody waits.
fn mark(data: &mut Data) {
    let mut word = QUEUE;
    while data[&word] >= map::stack_desc_va(0) {
        word = data[&word] - map::KDATA_VA;
    }
    data.insert(word, map::STACKS_WANTED);
}

/// The stacks in the queue, and its end.
fn queued(data: &Data) -> (Vec<u64>, u64) {
    let (mut stacks, mut at) = (vec![], data[&QUEUE]);
    while at >= map::stack_desc_va(0) {
        assert!(!stacks.contains(&at), "the queue goes round");
        stacks.push(at);
        at = data[&(at - map::KDATA_VA)];
    }
    (stacks, at)
}

#[test]
fn a_stack_is_added_while_others_come_and_go() {
    let nothing: fn(&mut Data) = |_| {};
    let acts: [&[fn(&mut Data)]; 5] = [&[take], &[mark], &[take, give], &[take, mark], &[take, mark, give]];
    for (count, acts, before) in
        (0..3).flat_map(|n| acts.iter().flat_map(move |a| (0..4).map(move |b| (n, a, b))))
    {
        let (mut m, mut machine) = system();
        m.control(&mut machine, PARENT.into(), (CHILD.into(), true), 0x1_2000, Some(view(CHILD)))
            .expect("a child");
        machine.data.insert(QUEUE, map::STACKS_END);
        let had: Vec<u64> = (0..count).map(|n| map::stack_desc_va(500 + n)).collect();
        for stack in &had {
            let head = machine.data.insert(QUEUE, *stack).expect("a head");
            machine.data.insert(stack - map::KDATA_VA, head);
        }
        machine.meanwhile = acts.iter().rev().copied().chain((0..before).map(|_| nothing)).collect();
        m.thread(&mut machine, CHILD).expect("one stack more");
        let late = std::mem::take(&mut machine.meanwhile);
        late.iter().rev().for_each(|act| act(&mut machine.data));

        let (mut stacks, end) = queued(&machine.data);
        stacks.extend(machine.data.get(&TAKEN));
        stacks.sort();
        stacks.dedup();
        let context = format!("{count} stacks, {} acts before store {before}", acts.len());
        assert_eq!(stacks.len(), count + 1, "{context}: {stacks:#x?}");
        assert!(had.iter().all(|stack| stacks.contains(stack)), "{context}");
        let marked = acts.iter().any(|act| std::ptr::fn_addr_eq(*act, mark as fn(&mut Data)));
        assert_eq!(end == map::STACKS_WANTED, marked, "{context}");
        assert!(marked || end == map::STACKS_END, "{context}");
    }
}

/// As many calls may wait in a successor as in its predecessor: with fewer stacks those that wait for an
/// event would keep out who brings it.
#[test]
fn a_successor_has_as_many_stacks() {
    for stacks in [1, 7, 16] {
        let (mut manager, mut machine) = system();
        manager.domains[usize::from(SERVER)].stacks = stacks;
        manager.adopt(&mut machine, SERVER.into(), view(7)).expect("a successor");
        for (name, spec) in
            [("server.read", "npci>4"), ("server.write", "npciiiii"), ("server.trusted", "smii")]
        {
            let spec = Spec::parse(spec).expect("a good specification");
            manager.offer(Asid(7), name, spec, 0x2_0000).expect("the same");
        }
        manager.prepare_successor(&mut machine, Asid(7)).expect("prepared");
        assert_eq!(manager.domains[7].stacks, stacks);
        assert_eq!(machine.stacks, u64::from(stacks));
    }
}
