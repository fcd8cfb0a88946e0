//! Images of a small system for every board: what firmware loads, where it enters, and that the auditor,
//! which finds them good, finds what was broken in them.

use pebble_abi::map::{self, PAGE};
use pebble_abi::{link, thread};
use pebble_arch::{Arch, Leaf, Mips64, Processor, Riscv64, slot};
use pebble_image::audit::audit;
use pebble_image::output::loaded;
use pebble_image::{Artifacts, Board, Image, Manifest, build};

const BOARDS: [&str; 2] =
    [include_str!("../../../boards/virt.toml"), include_str!("../../../boards/malta.toml")];
/// Of the nucleus: its first instruction is not where its code begins.
const START: u64 = map::NUCLEUS_VA + 0x1200;
const RECORD: u64 = map::NUCLEUS_VA + 0x1300;
const CODE: [u8; 8] = *b"machine.";

const SYSTEM: &str = r#"
name = "small"
[[component]]
name = "scheduler"
package = "p"
exclusive = true
[[component]]
name = "dispatcher"
package = "p"
exclusive = true
devices = ["interrupts"]
[[component]]
name = "vm"
package = "p"
thread = true
priority = 3
stacks = 2
grants = ["physical", "boot-info"]
[[component]]
name = "portal-manager"
package = "p"
stacks = 1
grants = ["code", "shared-data", "tables", "threads", "boot-info"]
"#;

fn text(name: &str, bytes: usize) -> Vec<u8> {
    let mut text = name.as_bytes().to_vec();
    text.resize(bytes, 0);
    text
}

/// The smallest file of a program: one segment, records of exports, symbols.
struct File<'a> {
    machine: u16,
    va: u64,
    entry: u64,
    exports: &'a [(&'a str, &'a str)],
    symbols: &'a [(&'a str, u64)],
}

impl File<'_> {
    fn bytes(&self) -> Vec<u8> {
        let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let mut names = b"\0.names\0.pebble.exports\0.symbols\0".to_vec();
        let mut symbols = vec![0; 24];
        for (name, value) in self.symbols {
            // Global, of no type, absolute.
            symbols.extend([&(names.len() as u32).to_le_bytes()[..], &[0x10, 0, 0xf1, 0xff]].concat());
            symbols.extend(words(&[*value, 0]));
            names.extend(text(name, name.len() + 1));
        }
        let mut exports = Vec::new();
        for (order, (name, spec)) in self.exports.iter().enumerate() {
            exports.extend([text(name, link::NAMELEN), text(spec, link::SPECLEN)].concat());
            exports.extend(words(&[self.entry + 16 * order as u64, order as u64]));
        }
        let code = [vec![0; (self.entry - self.va) as usize], CODE.to_vec()].concat();
        let sections = [(1, 3, &names), (8, 1, &exports), (24, 2, &symbols)];
        let mut at = 120;
        let mut table = vec![0; 64];
        for (name, kind, bytes) in sections {
            let of_symbols = if kind == 2 { [1 << 32 | 1, 8, 24] } else { [0, 1, 0] };
            table.extend([name as u32, kind].into_iter().flat_map(u32::to_le_bytes));
            table.extend(words(&[0, 0, at, bytes.len() as u64]));
            table.extend(words(&of_symbols));
            at += bytes.len() as u64;
        }
        let (code_at, table_at) = (at.next_multiple_of(PAGE), at);
        let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0".to_vec();
        out.extend(self.machine.to_le_bytes());
        out.extend(1_u32.to_le_bytes());
        out.extend(words(&[self.entry, 64, table_at]));
        out.extend([0, 0, 64, 56, 1, 64, 4, 1].into_iter().flat_map(u16::to_le_bytes));
        out.extend([1, 5].into_iter().flat_map(u32::to_le_bytes));
        out.extend(words(&[code_at, self.va, self.va, code.len() as u64, code.len() as u64, PAGE]));
        sections.iter().for_each(|(_, _, bytes)| out.extend(*bytes));
        out.extend(table);
        out.resize(code_at as usize, 0);
        out.extend(code);
        out
    }
}

fn system<A: Arch>(board: &Board) -> Image {
    let component = |exports| {
        let file = File {
            machine: A::ELF_MACHINE,
            va: map::IMAGE_VA,
            entry: map::IMAGE_VA + 8,
            exports,
            symbols: &[],
        };
        file.bytes()
    };
    let nucleus = File {
        machine: A::ELF_MACHINE,
        va: map::NUCLEUS_VA,
        entry: START,
        exports: &[],
        symbols: &[("PANIC_ENTRY", map::NUCLEUS_VA + 0x1280), ("BOOT_RECORD", RECORD)],
    };
    let mut bytes = nucleus.bytes();
    bytes.resize(bytes.len() + 0x400, 0);
    let scheduler: &[_] = &[
        ("scheduler.thread_exit", "nmb"),
        ("scheduler.stack_wait", "nmii"),
        ("scheduler.p", "nmcd"),
        ("scheduler.v", "nmcd"),
    ];
    let components = [
        ("scheduler", component(scheduler)),
        ("dispatcher", component(&[("irq.entry", "nmi")])),
        ("vm", component(&[("vm.fault", "npcccccc")])),
        ("portal-manager", component(&[("pm.open", "npiii")])),
    ];
    let components = components.map(|(name, file)| (name.to_string(), file)).into();
    let artifacts = Artifacts { nucleus: bytes, components, archive: vec![7; 5000] };
    let manifest = Manifest::parse(SYSTEM, board).expect("a manifest");
    build(&manifest, &artifacts, board).unwrap_or_else(|error| panic!("{}: {error}", board.name))
}

/// What is loaded, by physical addresses, and where the file is entered.
struct Loaded {
    pieces: Vec<(u64, Vec<u8>)>,
    entry: u64,
}

impl Loaded {
    fn of<A: Arch>(image: &Image) -> Loaded {
        let pieces = loaded(&image.elf).into_iter().map(|(at, bytes)| (A::physical(at), bytes.to_vec()));
        let entry = u64::from_le_bytes(image.elf[24..32].try_into().unwrap());
        Loaded { pieces: pieces.collect(), entry: A::physical(entry) }
    }

    fn at(&self, pa: u64) -> &[u8] {
        let found = self.pieces.iter().find(|(at, bytes)| (*at..at + bytes.len() as u64).contains(&pa));
        let (at, bytes) = found.unwrap_or_else(|| panic!("{pa:#x} is not loaded"));
        &bytes[(pa - at) as usize..]
    }

    fn word(&self, pa: u64) -> u64 {
        u64::from_le_bytes(self.at(pa)[..8].try_into().unwrap())
    }

    /// The physical address behind one of the address space's, as hardware finds it.
    fn translate<A: Arch>(&self, root: u64, va: u64) -> Option<u64> {
        if let Some(pa) = A::fixed(va).filter(|_| va >= map::KERNEL_VA) {
            return Some(pa);
        }
        let mut table = root;
        for level in [2, 1, 0] {
            let entry = self.word(slot(table, level, va));
            if let Some(leaf) = A::read(entry) {
                let bytes = PAGE << (9 * level);
                assert!(leaf.reach == pebble_arch::Reach::User || va >= map::KERNEL_VA || va < map::GATE_VA);
                return Some(A::address(entry) + va % bytes);
            }
            table = Some(A::address(entry)).filter(|_| A::is_table(entry))?;
        }
        None
    }
}

fn every_board(check: impl Fn(&Board, &Image, &dyn Fn(&[u8]) -> Vec<String>)) {
    for text in BOARDS {
        let board = Board::parse(text).expect("a good board");
        let image = match board.processor {
            Processor::Riscv64 => system::<Riscv64>(&board),
            Processor::Mips64 => system::<Mips64>(&board),
            Processor::X86_64 => continue,
        };
        check(&board, &image, &|elf| audit(elf, &image.report, &board));
    }
}

fn good<A: Arch>(board: &Board, image: &Image) {
    let memory = Loaded::of::<A>(image);
    let ram = board.memory.load..board.memory.at + board.memory.bytes;
    for (n, (at, bytes)) in memory.pieces.iter().enumerate() {
        let end = at + bytes.len() as u64;
        if n == 0 {
            assert!(*at == ram.start && end <= ram.end);
        } else {
            let fixed = A::fixed(map::NUCLEUS_VA).expect("only then there is more than one");
            assert!((fixed..fixed + map::UPPER_BYTES).contains(at) && end <= fixed + map::UPPER_BYTES);
        }
    }
    let domain = |name: &str| image.report.domains.iter().find(|d| d.name == name).expect(name);
    let (vm, manager) = (domain("vm"), domain("portal-manager"));
    let there = |root, va| memory.translate::<A>(root, va).unwrap_or_else(|| panic!("nothing at {va:#x}"));
    // The nucleus is entered at its first instruction, which finds where the first thread is.
    assert_eq!(&memory.at(memory.entry)[..8], &CODE);
    let record = there(vm.root, RECORD);
    assert_eq!(memory.word(record), A::space(vm.asid, vm.root));
    let top = memory.word(record + 8);
    assert_eq!(top, memory.word(there(vm.root, map::thread_va(0)) + thread::SAVED_TOP));
    let start = there(vm.root, memory.word(there(vm.root, top)));
    assert_ne!(memory.word(start), 0, "code that starts the thread");
    // Every portal is in the table that the trap handler finds, and its code is there.
    for portal in image.report.portals.iter().filter(|p| p.domain == "vm") {
        let at = u64::from(portal.index) * 8;
        let page = match A::PORTALS {
            Some(words) => A::physical(memory.word(vm.root + words + at / PAGE * 8)),
            None => there(vm.root, map::TABLE_VA + at / PAGE * PAGE),
        };
        assert_eq!(memory.word(page + at % PAGE), portal.address);
        assert_eq!(memory.at(there(vm.root, portal.address))[..4], portal.words[0].to_le_bytes());
    }
    // Those who may, see all of it where they look.
    for pa in [board.memory.load, ram.end - 8, there(vm.root, map::thread_va(0))] {
        assert_eq!(there(vm.root, map::PHYS_VA + pa - board.memory.at), pa);
    }
    assert_eq!(there(manager.root, map::PM_CODE_VA), there(vm.root, map::CODE_VA));
    assert_eq!(there(manager.root, map::PM_THREADS_VA), there(vm.root, map::thread_va(0)));
    assert_eq!(there(manager.root, map::SHARED_DATA_VA), there(vm.root, map::KDATA_VA));
    assert_eq!(memory.translate::<A>(manager.root, map::PHYS_VA), None);
}

#[test]
fn the_nucleus_finds_what_it_needs() {
    every_board(|board, image, audit| {
        assert_eq!(audit(&image.elf), Vec::<String>::new(), "{}", board.name);
        match board.processor {
            Processor::Mips64 => good::<Mips64>(board, image),
            _ => good::<Riscv64>(board, image),
        }
    });
}

/// The image with another word at a physical address.
fn broken<A: Arch>(image: &Image, pa: u64, word: u64) -> Vec<u8> {
    let mut elf = image.elf.clone();
    let offset = loaded(&image.elf).into_iter().find_map(|(at, bytes)| {
        let offset = pa.checked_sub(A::physical(at)).filter(|offset| *offset < bytes.len() as u64)?;
        Some((bytes.as_ptr() as usize - image.elf.as_ptr() as usize) + offset as usize)
    });
    let offset = offset.unwrap_or_else(|| panic!("{pa:#x} is not loaded"));
    elf[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
    elf
}

fn found<A: Arch>(image: &Image, audit: &dyn Fn(&[u8]) -> Vec<String>) {
    let memory = Loaded::of::<A>(image);
    let root = image.report.domains[3].root;
    let low = A::address(memory.word(A::address(memory.word(root))));
    let own = memory.translate::<A>(root, map::IMAGE_VA).expect("its code");
    let vm = memory.translate::<A>(image.report.domains[2].root, map::IMAGE_VA).expect("the other's code");
    let code = memory.translate::<A>(root, map::CODE_VA).expect("portal code");
    let both = Leaf { write: true, ..Leaf::USER_RX };
    let mut breaks = vec![
        (slot(low, 0, map::IMAGE_VA), A::leaf(own, both), "writable and executable"),
        (slot(low, 0, map::IMAGE_VA), A::leaf(low, Leaf::USER_R), "the nucleus's or a table"),
        (slot(low, 0, map::IMAGE_VA), A::leaf(code, Leaf::USER_R), "the nucleus's or a table"),
        (slot(low, 0, map::IMAGE_VA), A::leaf(vm, Leaf::FOREIGN_R), "does not tell whose"),
        (slot(low, 0, map::GATE_VA), A::leaf(own, Leaf::USER_RX), "does not tell whose"),
        (slot(low, 0, map::TABLE_VA + PAGE), 0, "another portal table"),
    ];
    if let Some(words) = A::PORTALS {
        breaks.push((root + words + 8, A::direct(own), "another portal table"));
    }
    for (at, word, sentence) in breaks {
        let wrong = audit(&broken::<A>(image, at, word)).join("; ");
        assert!(wrong.contains("(portal-manager)") && wrong.contains(sentence), "{sentence}: {wrong}");
    }
}

#[test]
fn the_auditor_finds_what_is_broken() {
    every_board(|board, image, audit| match board.processor {
        Processor::Mips64 => found::<Mips64>(image, audit),
        _ => found::<Riscv64>(image, audit),
    });
}
