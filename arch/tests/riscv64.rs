//! What is said of rv64's page tables, held against a walker that is written after the manual and shares
//! nothing with the crate; and frames, causes and program files.

use pebble_abi::fault::Cause;
use pebble_abi::map::{GATE_VA, PAGE, thread_va};
use pebble_abi::thread;
use pebble_arch::{Arch, Leaf, Reach, Riscv64, Start, Whose, slot};
use proptest::prelude::*;
use std::collections::HashMap;

/// Physical memory, by word.
#[derive(Default)]
struct Memory {
    words: HashMap<u64, u64>,
    pages: u64,
}

impl Memory {
    fn page(&mut self) -> u64 {
        self.pages += 1;
        0x8020_0000 + self.pages * PAGE
    }

    fn table(&mut self, at: u64) -> u64 {
        let word = self.words.get(&at).copied().unwrap_or(0);
        if Riscv64::is_table(word) {
            return Riscv64::address(word);
        }
        let fresh = self.page();
        self.words.insert(at, Riscv64::table(fresh));
        fresh
    }

    fn map(&mut self, root: u64, va: u64, pa: u64, leaf: Leaf) {
        let l1 = self.table(slot(root, 2, va));
        let l0 = self.table(slot(l1, 1, va));
        self.words.insert(slot(l0, 0, va), Riscv64::leaf(pa, leaf));
    }

    /// The manual's "Virtual Address Translation Process" for Sv39: the physical address, or what kind of
    /// page fault.
    fn translate(&self, satp: u64, va: u64, access: Access, user: bool) -> Option<u64> {
        assert_eq!(satp >> 60, 8, "Sv39");
        if (va as i64) << 25 >> 25 != va as i64 {
            return None;
        }
        let mut a = (satp & ((1 << 44) - 1)) * 4096;
        for i in (0..3).rev() {
            let pte = self.words.get(&(a + (va >> (12 + 9 * i) & 0x1ff) * 8)).copied().unwrap_or(0);
            let bit = |n: u32| pte >> n & 1 == 1;
            let (v, r, w, x, u) = (bit(0), bit(1), bit(2), bit(3), bit(4));
            let ppn = pte >> 10 & ((1 << 44) - 1);
            if !v || !r && w || pte >> 54 != 0 {
                return None;
            }
            if !r && !x {
                a = ppn * 4096;
                continue;
            }
            let right = match access {
                Access::Fetch => x,
                Access::Load => r,
                Access::Store => w,
            };
            let (accessed, dirty) = (bit(6), bit(7));
            let aligned = ppn & ((1 << (9 * i)) - 1) == 0;
            let may =
                right && u == user && aligned && accessed && (dirty || !matches!(access, Access::Store));
            let offset = va & ((1 << (12 + 9 * i)) - 1);
            return may.then_some(ppn * 4096 + offset);
        }
        None
    }
}

#[derive(Clone, Copy)]
enum Access {
    Fetch,
    Load,
    Store,
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
        let entry = Riscv64::leaf(0x8765_4000, leaf);
        assert_eq!((Riscv64::read(entry), Riscv64::address(entry)), (Some(leaf), 0x8765_4000));
        assert!(Riscv64::is_valid(entry) && !Riscv64::is_table(entry));
        assert_eq!(Riscv64::whose(entry), leaf.whose);
        assert_eq!(Riscv64::is_own(entry), leaf.whose == Whose::Own);
        let lendable = leaf.reach == Reach::User && !leaf.execute && leaf.whose == Whose::Own;
        assert_eq!(Riscv64::is_lendable(entry), lendable, "{leaf:?}");
        let moved = Riscv64::moved(entry, 0x1_2345_6000);
        assert_eq!((Riscv64::read(moved), Riscv64::address(moved)), (Some(leaf), 0x1_2345_6000));
        let marked = Riscv64::marked(entry, Whose::Foreign);
        assert_eq!(Riscv64::read(marked), Some(Leaf { whose: Whose::Foreign, ..leaf }));
    }
}

#[test]
fn what_is_no_leaf_reads_as_none() {
    for none in [0, Riscv64::WAITS, Riscv64::SHUT, Riscv64::PROMISED, Riscv64::table(0x8020_1000)] {
        assert_eq!(Riscv64::read(none), None, "{none:#x}");
    }
    let table = Riscv64::marked(Riscv64::table(0x8020_1000), Whose::Open);
    assert!(Riscv64::is_table(table) && Riscv64::address(table) == 0x8020_1000);
    assert!(!Riscv64::is_valid(Riscv64::WAITS) && !Riscv64::is_valid(Riscv64::SHUT));
    assert!(!Riscv64::is_valid(Riscv64::PROMISED));
    assert!(
        Riscv64::WAITS != Riscv64::SHUT && ![0, Riscv64::WAITS, Riscv64::SHUT].contains(&Riscv64::PROMISED)
    );
}

proptest! {
    #[test]
    fn the_processor_sees_what_was_mapped(
        maps in prop::collection::vec((0_u64..1 << 18, 0..36_usize, any::<bool>()), 1..40),
        asid in 1_u16..256, probe in 0_u64..1 << 30,
    ) {
        let (mut memory, mut model) = (Memory::default(), HashMap::new());
        let root = memory.page();
        for (n, leaf, upper) in maps {
            let va = n * PAGE | if upper { 0xffff_ffff_8000_0000 } else { 0 };
            let (leaf, pa) = (leaves().nth(leaf).unwrap(), memory.page());
            memory.map(root, va, pa, leaf);
            model.insert(va, (pa, leaf));
        }
        let satp = Riscv64::space(asid, root);
        prop_assert_eq!(Riscv64::asid(satp), asid);
        let probes = model.keys().copied().chain([probe & !(PAGE - 1)]).collect::<Vec<_>>();
        for va in probes {
            for user in [false, true] {
                let sees = |access| memory.translate(satp, va + 0x123, access, user);
                let found = model.get(&va).filter(|(_, leaf)| user == (leaf.reach == Reach::User));
                let there = |may: bool| found.filter(|_| may).map(|(pa, _)| pa + 0x123);
                let leaf = found.map_or(Leaf::USER_R, |(_, leaf)| *leaf);
                prop_assert_eq!(sees(Access::Load), there(true));
                prop_assert_eq!(sees(Access::Store), there(leaf.write));
                prop_assert_eq!(sees(Access::Fetch), there(leaf.execute));
            }
        }
    }
}

#[test]
fn a_thread_starts_from_its_first_frame() {
    for float in [false, true] {
        let start = Start {
            tid: 7,
            home: 3,
            root: 0x8030_0000,
            float,
            entry: 0x1_0000,
            argument: 77,
            stack: 0x2000_0000,
            thread_end: 0x1111,
            trap_return: 0x2222,
        };
        let words: HashMap<u64, u64> = start.words::<Riscv64>().into();
        let top = words[&thread::SAVED_TOP] - thread_va(7);
        let layout = Riscv64::LAYOUT;
        let register = |word| words[&layout.offset(top, word)];
        assert_eq!(words[&top], 0x2222);
        assert_eq!(words[&thread::FRAMES], 0x1111);
        assert_eq!(top, thread::FRAMES + layout.all_words(float) as u64 * 8);
        let told = [layout.pc, layout.stack, layout.value, layout.link].map(register);
        assert_eq!(told, [0x1_0000, 0x2000_0000, 77, GATE_VA]);
        assert_eq!(register(layout.space), Riscv64::space(3, 0x8030_0000));
    }
}

#[test]
fn registers_are_each_once_and_the_first_three_are_known() {
    let layout = Riscv64::LAYOUT;
    let words: Vec<usize> = layout.registers.iter().map(|r| r.word).collect();
    assert_eq!(words[..3], [layout.pc, layout.link, layout.stack]);
    let mut sorted = words.clone();
    sorted.sort_unstable();
    sorted.dedup();
    assert!(sorted.len() == words.len() && sorted.iter().all(|word| *word < layout.words));
    assert!(
        layout.registers.iter().skip(1).all(|r| r.dwarf.is_some()) && layout.registers[0].dwarf.is_none()
    );
}

#[test]
fn causes_are_the_manuals() {
    let cause = |code| Riscv64::cause(code, 7, 0);
    let with = |causes: [Cause; 4]| causes.map(|cause| (cause, 7));
    assert_eq!([8, 12, 13, 15].map(cause), with([Cause::Call, Cause::Fetch, Cause::Load, Cause::Store]));
    assert_eq!(Riscv64::cause(2, Riscv64::ABORT.into(), 0).0, Cause::Aborted);
    assert_eq!([2, 3].map(cause), [(Cause::Illegal, 7), (Cause::Breakpoint, 7)]);
    let others = [9, 11, 14, 1 << 40, u64::MAX];
    assert_eq!(others.map(cause), others.map(|code| (Cause::Other, code)));
    assert!(Riscv64::is_timer(1 << 63 | 5) && !Riscv64::is_timer(1 << 63 | 9));
}

#[test]
fn program_files_say_whether_they_use_floating_point() {
    assert_eq!([0, 2, 4].map(Riscv64::uses_float), [Ok(false), Ok(true), Ok(true)]);
    assert!(Riscv64::uses_float(6).is_err());
}
