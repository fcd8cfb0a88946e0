//! What is said of mips64's page tables, held against a refill handler and a translation buffer that are
//! written after the manual (volume III, "TLB Entries", "EntryLo0, EntryLo1") and `docs/src/mips.md`, and
//! share nothing with the crate; and frames, causes and program files.

use pebble_abi::fault::Cause;
use pebble_abi::map::{CODE_BYTES, CODE_VA, GATE_VA, KDATA_VA, NUCLEUS_VA, PAGE, TABLE_VA, thread_va};
use pebble_abi::thread;
use pebble_arch::mips64::paging;
use pebble_arch::{Arch, Leaf, Mips64, Reach, SPAN, Start, Whose, slot};
use proptest::prelude::*;
use std::collections::HashMap;

/// Physical memory, by word.
#[derive(Default)]
struct Memory {
    words: HashMap<u64, u64>,
    pages: u64,
}

/// The hardware's: the first 512 MiB at their fixed addresses, cached or not.
fn ckseg(va: u64) -> u64 {
    assert!((0xffff_ffff_8000_0000..0xffff_ffff_c000_0000).contains(&va), "{va:#x} is translated");
    va & 0x1fff_ffff
}

impl Memory {
    fn page(&mut self) -> u64 {
        self.pages += 1;
        0x10_0000 + self.pages * PAGE
    }

    fn table(&mut self, at: u64) -> u64 {
        let word = self.words.get(&at).copied().unwrap_or(0);
        if Mips64::is_table(word) {
            return Mips64::address(word);
        }
        let fresh = self.page();
        self.words.insert(at, Mips64::table(fresh));
        fresh
    }

    fn map(&mut self, root: u64, va: u64, pa: u64, leaf: Leaf) {
        let l1 = self.table(slot(root, 2, va));
        let l0 = self.table(slot(l1, 1, va));
        self.words.insert(slot(l0, 0, va), Mips64::leaf(pa, leaf));
    }

    /// The word at a direct address.
    fn load(&self, va: u64) -> u64 {
        self.words.get(&ckseg(va)).copied().unwrap_or(0)
    }

    /// The pair for an address below 1 GiB, as the refill handler makes it of what DESAVE leads to.
    fn refill(&self, desave: u64, va: u64) -> [u64; 2] {
        let l1 = self.load(desave);
        assert_eq!(l1 & 3, 1, "the root always has it");
        let entry = self.load(l1 - 1 + (va >> 21 & 0x1ff) * 8);
        if entry & 1 == 0 {
            return [0; 2];
        }
        if entry & 2 != 0 {
            let even = entry + (va & 0x1f_e000);
            return [even >> 6, even + 0x1000 >> 6];
        }
        let pair = entry - 1 & !0xff0 | (va >> 13 & 0xff) << 4;
        [self.load(pair), self.load(pair + 8)].map(|leaf| if leaf & 1 == 1 { leaf >> 6 } else { 0 })
    }

    /// The manual's "TLB lookup" for 4 KiB pages, user mode, 32-bit addresses: the physical address, or
    /// nothing where it raises an exception; and whether the page is cached. Fetches are loads to it.
    fn translate(&self, space: u64, va: u64, store: bool) -> Option<(u64, bool)> {
        if va >> 31 != 0 {
            return None;
        }
        let lo = self.refill(space & !0xff, va)[(va >> 12 & 1) as usize];
        let (pfn, c, d, v, g) = (lo >> 6, lo >> 3 & 7, lo >> 2 & 1, lo >> 1 & 1, lo & 1);
        assert_eq!(g, 0, "for all spaces");
        assert!(v == 0 || c == 2 || c == 3, "cache attribute {c}");
        (v == 1 && (d == 1 || !store)).then_some((pfn << 12 | va & 0xfff, c == 3))
    }
}

fn leaves() -> impl Iterator<Item = Leaf> {
    let rights = [(false, false), (true, false), (false, true)];
    let marks = [Whose::Own, Whose::Borrowed, Whose::Open, Whose::Foreign];
    [Reach::User, Reach::Space, Reach::Nucleus].into_iter().flat_map(move |reach| {
        rights.into_iter().flat_map(move |(write, execute)| {
            marks.into_iter().map(move |whose| Leaf { reach, write, execute, whose })
        })
    })
}

#[test]
fn a_leaf_reads_as_it_was_written() {
    for leaf in leaves() {
        let entry = Mips64::leaf(0x765_4000, leaf);
        // The nucleus's are those that the hardware has at fixed addresses.
        let reach = if leaf.reach == Reach::Nucleus { Reach::Space } else { leaf.reach };
        let leaf = Leaf { reach, write: leaf.write && reach == Reach::User, ..leaf };
        assert_eq!((Mips64::read(entry), Mips64::address(entry)), (Some(leaf), 0x765_4000));
        assert!(Mips64::is_valid(entry) && !Mips64::is_table(entry));
        assert_eq!(Mips64::whose(entry), leaf.whose);
        assert_eq!(Mips64::is_own(entry), leaf.whose == Whose::Own);
        let lendable = leaf.reach == Reach::User && !leaf.execute && leaf.whose == Whose::Own;
        for window in [entry, entry | paging::UNTOUCHED] {
            assert_eq!(Mips64::is_lendable(window), lendable, "{leaf:?}");
            assert_eq!(Mips64::read(window), Some(leaf));
        }
        let moved = Mips64::moved(entry, 0x234_6000);
        assert_eq!((Mips64::read(moved), Mips64::address(moved)), (Some(leaf), 0x234_6000));
        let marked = Mips64::marked(entry, Whose::Foreign);
        assert_eq!(Mips64::read(marked), Some(Leaf { whose: Whose::Foreign, ..leaf }));
    }
}

#[test]
fn what_is_no_leaf_reads_as_none() {
    for none in [
        0,
        Mips64::WAITS,
        Mips64::SHUT,
        Mips64::PROMISED,
        Mips64::table(0x20_1000),
        Mips64::direct(0x20_1000),
    ] {
        assert_eq!(Mips64::read(none), None, "{none:#x}");
    }
    let table = Mips64::marked(Mips64::table(0x20_1000), Whose::Open);
    assert!(Mips64::is_table(table) && Mips64::address(table) == 0x20_1000);
    assert!(!Mips64::is_valid(Mips64::WAITS) && !Mips64::is_valid(Mips64::SHUT));
    assert!(!Mips64::is_valid(Mips64::PROMISED));
    assert!(Mips64::WAITS != Mips64::SHUT && ![0, Mips64::WAITS, Mips64::SHUT].contains(&Mips64::PROMISED));
}

proptest! {
    #[test]
    fn the_processor_sees_what_was_mapped(
        maps in prop::collection::vec((prop_oneof![0_u64..1 << 18, 1536..2048_u64], 0..24_usize), 1..40),
        asid in 1_u16..256, probe in 0_u64..1 << 30, span in 0_u64..16,
    ) {
        let (mut memory, mut model) = (Memory::default(), HashMap::new());
        let root = memory.page();
        let l1 = memory.table(root);
        // As much as a lowest table maps, at once, and where no page is mapped.
        let span_va = 0x1000_0000 + span * SPAN;
        memory.words.insert(slot(l1, 1, span_va), Mips64::leaf(span * SPAN, Leaf::FOREIGN_RW));
        for (n, leaf) in maps {
            let va = n * PAGE;
            let (leaf, pa) = (leaves().nth(leaf).unwrap(), memory.page());
            if va / SPAN != span_va / SPAN {
                memory.map(root, va, pa, leaf);
                model.insert(va, (pa, leaf));
            }
        }
        // A table of a buffer's: its mark does not mislead.
        for n in [3, 77, 200].map(|n| l1 + n * 8) {
            if let Some(table) = memory.words.get_mut(&n).filter(|word| Mips64::is_table(**word)) {
                *table = Mips64::marked(*table, Whose::Foreign);
            }
        }
        let space = Mips64::space(asid, root);
        prop_assert_eq!((Mips64::asid(space), paging::root_va(space)), (asid, ckseg0(root)));
        let neighbours = model.keys().map(|va| va ^ PAGE);
        let probes = model.keys().copied().chain(neighbours).chain([probe & !(PAGE - 1)]).collect::<Vec<_>>();
        for va in probes.into_iter().filter(|va| va / SPAN != span_va / SPAN) {
            let found = model.get(&va).filter(|(_, leaf)| leaf.reach == Reach::User);
            let there = |may: bool| found.filter(|_| may).map(|(pa, _)| (pa + 0x123, true));
            let write = found.is_some_and(|(_, leaf)| leaf.write);
            prop_assert_eq!(memory.translate(space, va + 0x123, false), there(true));
            prop_assert_eq!(memory.translate(space, va + 0x123, true), there(write));
        }
        for at in [0, PAGE, SPAN - PAGE] {
            let there = Some((span * SPAN + at + 8, true));
            prop_assert_eq!(memory.translate(space, span_va + at + 8, true), there);
        }
    }
}

fn ckseg0(pa: u64) -> u64 {
    0xffff_ffff_8000_0000 + pa
}

/// The upper half is where the hardware has it, behind all memory that is managed; portal code once more
/// where it is not cached.
#[test]
fn the_upper_half_is_fixed() {
    for va in [NUCLEUS_VA, KDATA_VA, thread_va(255), CODE_VA, CODE_VA + CODE_BYTES - 8] {
        assert_eq!(Mips64::fixed(va), Some(ckseg(va)));
        assert!(ckseg(va) >= 0x800_0000);
    }
    assert_eq!(Mips64::fixed(CODE_VA | Mips64::LATE), Some(ckseg(CODE_VA)));
    assert!((CODE_VA | Mips64::LATE) >= 0xffff_ffff_a000_0000);
}

/// Devices are not cached.
#[test]
fn what_is_no_memory_is_not_cached() {
    let mut memory = Memory::default();
    let root = memory.page();
    memory.map(root, 0x1e_0000, 0x1800_0000, Leaf::FOREIGN_RW);
    let space = Mips64::space(9, root);
    assert_eq!(memory.translate(space, 0x1e_03f8, true), Some((0x1800_03f8, false)));
}

/// The trap handler's way: DESAVE, page of the table, entry.
#[test]
fn the_root_names_the_portal_table() {
    let mut memory = Memory::default();
    let root = memory.page();
    let first = Mips64::PORTALS.expect("words of the root");
    for page in 0..8 {
        let table = memory.page();
        memory.words.insert(table + 8 * 511, page);
        memory.words.insert(root + first + page * 8, Mips64::direct(table));
        assert_eq!(Mips64::physical(Mips64::direct(table) + 8), table + 8);
        memory.map(root, TABLE_VA + page * PAGE, table, Leaf::TABLE_R);
    }
    let desave = Mips64::space(3, root) & !0xff;
    for page in 0..8 {
        assert_eq!(memory.load(memory.load((desave | page << 3) + 64) | 511 << 3), page);
    }
    memory.map(root, 0x8000, 0x20_0000, Leaf::FOREIGN_RX);
    let null = |at| memory.translate(Mips64::space(3, root), at, false);
    assert_eq!([TABLE_VA, TABLE_VA + 8, 0x7ff8].map(null), [None; 3], "a null pointer faults");
}

#[test]
fn a_thread_starts_from_its_first_frame() {
    let start = Start {
        tid: 7,
        home: 3,
        root: 0x30_0000,
        float: false,
        entry: 0x1_0000,
        argument: 77,
        stack: 0x2000_0000,
        thread_end: 0x1111,
        trap_return: 0x2222,
    };
    let words: HashMap<u64, u64> = start.words::<Mips64>().into();
    let top = words[&thread::SAVED_TOP] - thread_va(7);
    let layout = Mips64::LAYOUT;
    let register = |word| words[&layout.offset(top, word)];
    assert_eq!((words[&top], words[&thread::FRAMES]), (0x2222, 0x1111));
    assert_eq!(top, thread::FRAMES + 35 * 8);
    // $29, $4, $31.
    let told = [layout.pc, 26, 3, 28].map(register);
    assert_eq!(told, [0x1_0000, 0x2000_0000, 77, GATE_VA]);
    assert_eq!(register(layout.space), ckseg0(0x30_0003));
}

#[test]
fn registers_are_each_once_and_the_first_three_are_known() {
    let layout = Mips64::LAYOUT;
    let words: Vec<usize> = layout.registers.iter().map(|r| r.word).collect();
    assert_eq!(words[..3], [layout.pc, layout.link, layout.stack]);
    let mut sorted = words.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..32).collect::<Vec<_>>());
    let numbers = layout.registers[1..].iter().map(|r| r.dwarf).collect::<Vec<_>>();
    let ours = (1..26).chain(28..32).chain([64, 65]);
    assert_eq!(layout.registers[0].dwarf, None);
    assert!(ours.clone().all(|n| numbers.contains(&Some(n))) && numbers.len() == ours.count());
    let named = |word: usize| layout.registers.iter().find(|r| r.word == word).map(|r| r.name);
    let places = [layout.index, layout.argument, layout.value, layout.status, layout.thread];
    assert_eq!(places.map(named), ["t0", "a0", "v0", "v1", "gp"].map(Some));
}

#[test]
fn causes_are_the_manuals() {
    const DELAYED: u64 = 1 << 31;
    let cause = |kind: u64, value, pc| Mips64::cause(kind << 2 | 0x7f00, value, pc);
    // Refill or invalid, on load or fetch, on store, store to what is read-only.
    assert_eq!(cause(2, 0x1234, 0x1_0000), (Cause::Load, 0x1234));
    assert_eq!(cause(2, 0x1234, 0x1234), (Cause::Fetch, 0x1234));
    assert_eq!(Mips64::cause(2 << 2 | DELAYED, 0x2000, 0x1ffc), (Cause::Fetch, 0x2000));
    assert_eq!(Mips64::cause(2 << 2 | DELAYED, 0x1ffc, 0x1ffc), (Cause::Load, 0x1ffc));
    assert_eq!([1, 3].map(|kind| cause(kind, 0x1234, 0x1234)), [(Cause::Store, 0x1234); 2]);
    // Address errors: misaligned, or not for user mode.
    assert_eq!(cause(4, 0x1001, 0x2000), (Cause::LoadMisaligned, 0x1001));
    assert_eq!(cause(4, 0x1002, 0x1002), (Cause::FetchMisaligned, 0x1002));
    assert_eq!(cause(5, 0x1001, 0x2000), (Cause::StoreMisaligned, 0x1001));
    assert_eq!(cause(4, NUCLEUS_VA, 0x2000), (Cause::Load, NUCLEUS_VA));
    assert_eq!(cause(4, NUCLEUS_VA, NUCLEUS_VA), (Cause::Fetch, NUCLEUS_VA));
    assert_eq!(cause(5, NUCLEUS_VA, 0x2000), (Cause::Store, NUCLEUS_VA));
    // What comes without an address tells none, and no other domain's.
    let kinds = [8, 9, 10, 11].map(|kind| cause(kind, 0x5ec2e7, 0x2000));
    let [illegal, privileged] = [(Cause::Illegal, 0x2000); 2];
    assert_eq!(kinds, [(Cause::Call, 0), (Cause::Breakpoint, 0), illegal, privileged]);
    assert_eq!(Mips64::cause(10 << 2 | DELAYED, 0x5ec2e7, 0x2000), (Cause::Illegal, 0x2004));
    assert_eq!(cause(6, 0x5ec2e7, 0x2000), (Cause::FetchNowhere, 0x2000));
    assert_eq!(cause(7, 0x5ec2e7, 0x2000), (Cause::LoadNowhere, 0));
    assert_eq!([12, 13, 23, 24].map(|kind| cause(kind, 0, 0)), [12, 13, 23, 24].map(|n| (Cause::Other, n)));
    // The second coprocessor is what nobody wants but to give up; the first is floating point.
    assert_eq!(Mips64::ABORT >> 26, 0o62);
    assert_eq!(Mips64::cause(11 << 2 | 2 << 28, 0, 0), (Cause::Aborted, 0));
    assert_eq!(Mips64::cause(11 << 2 | 1 << 28, 0, 4), (Cause::Illegal, 4));
    assert!(Mips64::is_timer(0x8000) && Mips64::is_timer(0x8400) && !Mips64::is_timer(0x400));
}

#[test]
fn only_programs_for_the_convention_are_accepted() {
    assert_eq!([0x8000_0001, 0x8000_0007, 0x2000_0000, 0].map(Mips64::uses_float), [Ok(false); 4]);
    // n32, o32, microMIPS, MIPS16, releases 6.
    for flags in [0x8000_0021, 0x8000_1001, 0x8200_0001, 0x8400_0001, 0x9000_0000, 0xa000_0000] {
        assert!(Mips64::uses_float(flags).is_err(), "{flags:#x}");
    }
}

/// Words as LLVM's assembler makes them.
#[test]
fn a_call_is_known_by_the_instruction_before_its_delay_slot() {
    let follows = |words: &[u32]| {
        Mips64::follows_call(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>())
    };
    // jal 0x10000; bal 8; jalr $25; jalr.hb $25; bltzal $4, 8
    for call in [0x0c00_4000, 0x0411_0002, 0x0320_f809, 0x0320_fc09, 0x0490_0002] {
        assert!(follows(&[call, 0]) && follows(&[0, call, 0]), "{call:#x}");
        assert!(!follows(&[0, call]) && !follows(&[call, 0, 0]) && !follows(&[call]), "{call:#x}");
    }
    // j 0x10000; jr $31; jalr $24, $25; bltz $4, 8
    for jump in [0x0800_4000, 0x03e0_0008, 0x0320_c009, 0x0480_0002] {
        assert!(!follows(&[jump, 0]), "{jump:#x}");
    }
    assert_eq!(Mips64::gate(5), [0x240c_0005, 0x0000_000c]);
    assert!(Mips64::is_aligned(0x1_0004) && !Mips64::is_aligned(0x1_0002));
}
