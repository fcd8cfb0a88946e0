//! A processor that has the nucleus's half at fixed addresses, finds portal tables through the root, and does
//! not tell what an illegal instruction was: RISC-V's page tables, and these three on top.

use crate::world::{NONE, PM, SERVER, image};
use pebble_abi::errno;
use pebble_abi::fault::Cause;
use pebble_abi::map::{self, PAGE};
use pebble_abi::thread::SAVED_TOP;
use pebble_abi::words::{Asid, ThreadId, VirtAddr};
use pebble_arch::{Arch, Layout, Leaf, Processor, Riscv64, Whose};
use pebble_vm::{Fault, Machine, Outcome, Vm};
use std::collections::HashMap;

/// Offset in the root, and where the half is.
const WORDS: u64 = 64;
const HALF: u64 = map::RAM_PA + 0x400_0000;

#[derive(Clone, Copy)]
struct Fixed;

impl Arch for Fixed {
    const PROCESSOR: Processor = Riscv64::PROCESSOR;
    const ELF_MACHINE: u16 = Riscv64::ELF_MACHINE;
    const ELF_FLAGS: u32 = Riscv64::ELF_FLAGS;
    const ELF_FLAGS_REFUSED: (u32, &str) = Riscv64::ELF_FLAGS_REFUSED;
    const ELF_FORMAT: &str = Riscv64::ELF_FORMAT;
    const DISASSEMBLY: &str = Riscv64::DISASSEMBLY;
    const RUST_TARGET: &str = Riscv64::RUST_TARGET;
    const RUST_FLAGS: &str = Riscv64::RUST_FLAGS;
    const LAYOUT: Layout = Riscv64::LAYOUT;
    const ABORT: u32 = Riscv64::ABORT;
    const ILLEGAL_AT: bool = true;
    const WAITS: u64 = Riscv64::WAITS;
    const SHUT: u64 = Riscv64::SHUT;
    const PROMISED: u64 = Riscv64::PROMISED;
    const LATE: u64 = Riscv64::LATE;
    const PORTALS: Option<u64> = Some(WORDS);

    fn fixed(va: u64) -> Option<u64> {
        Some(HALF + (va - map::NUCLEUS_VA))
    }

    fn table(pa: u64) -> u64 {
        Riscv64::table(pa)
    }
    fn leaf(pa: u64, leaf: Leaf) -> u64 {
        Riscv64::leaf(pa, leaf)
    }
    fn is_valid(entry: u64) -> bool {
        Riscv64::is_valid(entry)
    }
    fn is_table(entry: u64) -> bool {
        Riscv64::is_table(entry)
    }
    fn whose(entry: u64) -> Whose {
        Riscv64::whose(entry)
    }
    fn is_lendable(entry: u64) -> bool {
        Riscv64::is_lendable(entry)
    }
    fn marked(entry: u64, whose: Whose) -> u64 {
        Riscv64::marked(entry, whose)
    }
    fn read(entry: u64) -> Option<Leaf> {
        Riscv64::read(entry)
    }
    fn address(entry: u64) -> u64 {
        Riscv64::address(entry)
    }
    fn moved(entry: u64, pa: u64) -> u64 {
        Riscv64::moved(entry, pa)
    }
    fn direct(pa: u64) -> u64 {
        Riscv64::direct(pa)
    }
    fn physical(direct: u64) -> u64 {
        Riscv64::physical(direct)
    }
    fn space(asid: u16, root: u64) -> u64 {
        Riscv64::space(asid, root)
    }
    fn asid(space: u64) -> u16 {
        Riscv64::asid(space)
    }
    fn gate(index: usize) -> [u32; 2] {
        Riscv64::gate(index)
    }
    fn cause(code: u64, value: u64, pc: u64) -> (Cause, u64) {
        Riscv64::cause(code, value, pc)
    }
    fn is_timer(code: u64) -> bool {
        Riscv64::is_timer(code)
    }
    fn uses_float(elf_flags: u32) -> Result<bool, &'static str> {
        Riscv64::uses_float(elf_flags)
    }
    fn follows_call(before: &[u8]) -> bool {
        Riscv64::follows_call(before)
    }
    fn is_aligned(address: u64) -> bool {
        Riscv64::is_aligned(address)
    }
}

/// Memory, and how often each domain was flushed.
#[derive(Default)]
struct Words(HashMap<u64, u64>, HashMap<u16, u32>);

impl Machine for Words {
    type Arch = Fixed;

    fn read(&self, pa: u64) -> u64 {
        self.0.get(&pa).copied().unwrap_or(0)
    }
    fn write(&mut self, pa: u64, word: u64) {
        self.0.insert(pa, word);
    }
    fn zero_page(&mut self, pa: u64) {
        (pa..pa + PAGE).step_by(8).for_each(|at| self.write(at, 0));
    }
    fn copy_page(&mut self, from: u64, to: u64) {
        (0..PAGE).step_by(8).for_each(|at| self.write(to + at, self.read(from + at)));
    }
    fn flush(&mut self, asid: u16) {
        *self.1.entry(asid).or_default() += 1;
    }
    fn exchange(&mut self, pa: u64, old: u64, new: u64) -> bool {
        let same = self.read(pa) == old;
        if same {
            self.write(pa, new);
        }
        same
    }
    fn switches(&self) -> u64 {
        0
    }
    fn top(&self) -> u64 {
        0
    }
}

struct System {
    vm: Vm<Words>,
    empty: u64,
    dead_l1: u64,
    dead_table: u64,
}

fn system() -> System {
    let mut memory = Words::default();
    let mut info = image(&mut memory);
    // The tables of the dead, as the image has them.
    let [dead_l0, dead_table] = [info.image_end, info.image_end + PAGE];
    info.image_end += 2 * PAGE;
    memory.write(info.dead_l1, Fixed::table(dead_l0));
    memory.write(dead_l0, Fixed::leaf(dead_table, Leaf::TABLE_R));
    (info.kernel_l0, info.kernel_pte) = ([0; 2], 0);
    let mut vm = Vm::new(memory);
    vm.boot(&info.encode().unwrap()).unwrap();
    System { vm, empty: info.empty_table, dead_l1: info.dead_l1, dead_table }
}

impl System {
    fn domain(&mut self) -> u16 {
        self.vm.domain_create(0, 100, 10, 4).unwrap() as u16
    }

    fn root(&self, asid: u16) -> u64 {
        let space = self.vm.domain_info(asid.into()).unwrap().1[0];
        Fixed::physical(pebble_arch::riscv64::paging::root_va(space))
    }

    /// The pages of its portal table, as the trap handler finds them.
    fn portals(&self, asid: u16) -> Vec<u64> {
        let words = self.root(asid) + WORDS;
        (0..8).map(|page| Fixed::physical(self.vm.machine.read(words + page * 8))).collect()
    }

    fn charge(&self, asid: u16) -> u64 {
        self.vm.domain_info(asid.into()).unwrap().1[1]
    }

    fn free(&self) -> u64 {
        self.vm.stats()[0]
    }
}

#[test]
fn the_root_names_the_portal_table_until_death() {
    let mut s = system();
    // The portal manager has its table for these windows from then on.
    let first = s.domain();
    s.vm.domain_kill(first.into()).unwrap();
    s.vm.domain_free(first.into()).unwrap();
    let free = s.free();
    let d = s.domain();
    let portals = s.portals(d);
    assert!(portals[0] != s.empty && portals[1..].iter().all(|page| *page == s.empty));
    assert_eq!(s.vm.machine.read(portals[0] + 8 * 511), NONE);
    s.vm.table_page(Asid(PM), d.into(), 5).unwrap();
    let page = s.portals(d)[5];
    assert!(page != s.empty && s.vm.machine.read(page) == NONE);
    assert_eq!(s.vm.table_page(Asid(PM), d.into(), 5), Err(errno::EEXIST));
    let flushes = s.vm.machine.1[&d];
    s.vm.domain_kill(d.into()).unwrap();
    assert_eq!(s.vm.machine.read(s.root(d)), Fixed::table(s.dead_l1));
    assert_eq!(s.portals(d)[0], s.dead_table);
    assert!(s.vm.machine.1[&d] > flushes, "what it did not have when it lived, it may have now");
    // An entry of the dead is found there.
    s.vm.dead_entry(Asid(PM), 3, map::CODE_VA + 8).unwrap();
    assert_eq!(s.vm.machine.read(s.dead_table + 24), map::CODE_VA + 8);
    s.vm.domain_free(d.into()).unwrap();
    assert_eq!(s.free(), free, "its own table is given back, and not that of the dead");
    let again = s.domain();
    assert_ne!(s.portals(again)[0], s.dead_table);
}

#[test]
fn blocks_of_threads_are_where_they_are() {
    let mut s = system();
    let d = s.domain();
    let (free, charge) = (s.free(), s.charge(d));
    let block = |tid: u16| Fixed::fixed(map::thread_va(tid)).unwrap();
    (1..4).for_each(|tid| s.vm.machine.write(block(tid) + 0xff8, 0x5ec2e7));
    let start = s.vm.thread_spawn(d.into(), VirtAddr(map::IMAGE_VA), 77, 0).unwrap();
    assert_eq!(s.vm.machine.read(block(start.tid) + 0xff8), 0, "what was there is gone");
    assert_ne!(s.vm.machine.read(block(start.tid) + SAVED_TOP), 0);
    let stack = pebble_vm::SURE[0];
    assert_eq!(s.charge(d), charge + stack + 1, "a block counts");
    assert_eq!(s.free(), free - stack, "and is no page of those that are free");
    s.vm.thread_free(ThreadId(start.tid.into())).unwrap();
    assert_eq!((s.charge(d), s.free()), (charge, free));
}

#[test]
fn the_arena_is_there() {
    let mut s = system();
    let free = s.free();
    for page in [0, 3, 3, 511] {
        assert_eq!(s.vm.code_page(Asid(PM), page), Ok(0));
    }
    assert_eq!(s.vm.code_page(Asid(PM), 512), Err(errno::EINVAL));
    assert_eq!(s.vm.code_page(Asid(SERVER), 3), Err(errno::EPERM));
    assert_eq!(s.free(), free);
}

#[test]
fn an_illegal_instruction_is_looked_at() {
    let mut s = system();
    let d = s.domain();
    s.vm.map(d.into(), VirtAddr(map::IMAGE_VA), 1, map::READ | map::EXECUTE).unwrap();
    let l1 = Fixed::address(s.vm.machine.read(s.root(d)));
    let l0 = Fixed::address(s.vm.machine.read(l1));
    let page = Fixed::address(s.vm.machine.read(l0 + map::IMAGE_VA / PAGE * 8));
    s.vm.machine.write(page + 0x10, 0x1111_1111_2222_2222);
    let at = map::IMAGE_VA + 0x14;
    // Cause 2 is RISC-V's.
    let outcome = s.vm.fault(2, at, VirtAddr(at), d.into(), ThreadId(0), 0);
    assert_eq!(outcome, Outcome::Died);
    let fault = Fault { cause: Cause::Illegal, thread: 0, value: 0x1111_1111, address: at };
    assert_eq!(s.vm.fault_next(), Ok((d, fault)));
}
