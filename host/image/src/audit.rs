//! Does an image keep the walls? Walks all its page tables, independently of the code that made them.
//!
//! * no page is writable and executable through one mapping;
//! * user mode reaches no page of the nucleus, of portal code, of portal tables, page tables or thread
//!   blocks, but through the grants of the manifest;
//! * a page that user mode can write belongs to one domain, stacks shared through `s` portals and grants
//!   apart;
//! * exactly what is not a domain's own is marked as foreign, so that no window lends it.

use crate::board::{Board, Device};
use crate::manifest::Grant;
use crate::output::loaded;
use crate::report::Report;
use pebble_abi::capability;
use pebble_abi::map::{self, PAGE};
use pebble_arch::{Arch, Leaf, Mips64, Processor, Reach, Riscv64, Whose};
use std::collections::{BTreeMap, BTreeSet};

/// One mapping of a 4 KiB page.
struct Mapping {
    va: u64,
    pa: u64,
    leaf: Leaf,
}

struct Walk<'a> {
    /// What is loaded, by physical addresses.
    pieces: BTreeMap<u64, &'a [u8]>,
    /// Pages that are page tables.
    tables: BTreeSet<u64>,
}

impl Walk<'_> {
    fn word(&self, pa: u64) -> u64 {
        let piece = self.pieces.range(..=pa).next_back();
        let bytes = piece.and_then(|(at, bytes)| bytes.get((pa - at) as usize..));
        bytes.and_then(|bytes| bytes.first_chunk()).map_or(0, |word| u64::from_le_bytes(*word))
    }

    fn table<A: Arch>(&mut self, pa: u64, level: u32, base: u64, out: &mut Vec<Mapping>) {
        self.tables.insert(pa);
        for n in 0..512u64 {
            let entry = self.word(pa + n * 8);
            if !A::is_valid(entry) {
                continue;
            }
            let mut va = base | n << (12 + 9 * level);
            if level == 2 && n >= 256 {
                va |= !0 << 39;
            }
            let at = A::address(entry);
            match A::read(entry) {
                None => self.table::<A>(at, level - 1, va, out),
                Some(leaf) => {
                    let pages = 1u64 << (9 * level);
                    out.extend((0..pages).map(|n| Mapping { va: va + n * PAGE, pa: at + n * PAGE, leaf }));
                }
            }
        }
    }
}

/// What is wrong with the image; empty if nothing is.
pub fn audit(image: &[u8], report: &Report, board: &Board) -> Vec<String> {
    match board.processor {
        Processor::Riscv64 => audit_for::<Riscv64>(image, report, board),
        Processor::Mips64 => audit_for::<Mips64>(image, report, board),
        Processor::X86_64 => vec![format!("there are no systems for {}", board.processor)],
    }
}

fn audit_for<A: Arch>(image: &[u8], report: &Report, board: &Board) -> Vec<String> {
    let ram = board.memory.at..board.memory.at + board.memory.bytes;
    let fixed = A::fixed(map::NUCLEUS_VA).map_or(0..0, |pa| pa..pa + map::UPPER_BYTES);
    let pieces = loaded(image).into_iter().map(|(at, bytes)| (A::physical(at), bytes)).collect();
    let mut walk = Walk { pieces, tables: BTreeSet::new() };
    let mut wrong = Vec::new();
    let mut leaves = Vec::new();
    for d in &report.domains {
        let mut out = Vec::new();
        walk.table::<A>(d.root, 2, 0, &mut out);
        let portals = out.iter().filter(|l| l.va < map::TABLE_VA + map::TABLE_BYTES);
        let named = |l: &Mapping| {
            A::PORTALS.is_none_or(|at| walk.word(d.root + at + l.va / PAGE * 8) == A::direct(l.pa))
        };
        if !portals.clone().all(named) || portals.count() as u64 != map::TABLE_BYTES / PAGE {
            wrong.push(format!("domain {} ({}): another portal table in its root", d.asid, d.name));
        }
        leaves.push(out);
    }
    let privileged: BTreeSet<u64> = leaves
        .iter()
        .flatten()
        .filter(|l| l.leaf.reach != Reach::User && !direct(l.va, board.memory.bytes))
        .map(|l| l.pa)
        .chain(fixed.clone().step_by(PAGE as usize))
        .chain(walk.tables.iter().copied())
        .collect();
    // The board has devices that share a page: whoever drives one has it.
    let there = |device: &&Device, pa| device.registers.iter().any(|r| r.pages().holds(pa));
    let several = |pa| board.device.values().filter(|device| there(device, pa)).count() > 1;
    let mut writers = BTreeMap::<u64, u16>::new();
    for (d, leaves) in report.domains.iter().zip(&leaves) {
        for &Mapping { va, pa, leaf } in leaves {
            let mut say =
                |what: &str| wrong.push(format!("domain {} ({}), address {:#x}: {what}", d.asid, d.name, va));
            if leaf.write && leaf.execute {
                say("writable and executable");
            }
            let user = leaf.reach == Reach::User;
            if user && va >= map::USER_END {
                say("user page in the nucleus's half");
            }
            let granted = granted(va, &d.grants);
            let device = !ram.contains(&pa) && !fixed.contains(&pa);
            let foreign = user && (granted || device || va == map::GATE_VA);
            if leaf.whose != if foreign { Whose::Foreign } else { Whose::Own } {
                say("its mark does not tell whose it is");
            }
            let aims = leaf.write && holds_stacks(va) && d.grants.contains(&Grant::Scheduling);
            if user && granted && aims {
                say("who decides which thread runs could aim its stack");
            }
            if !user || granted {
                continue;
            }
            if privileged.contains(&pa) {
                say("user mode reaches a page that is the nucleus's or a table");
            }
            let stack = (map::STACKS_VA..map::USER_END).contains(&va);
            if leaf.write && !stack && !several(pa) && writers.insert(pa, d.asid).is_some_and(|o| o != d.asid)
            {
                say("a page that another domain can write too");
            }
        }
    }
    wrong
}

/// Portal code's view of all physical memory.
fn direct(va: u64, memory: u64) -> bool {
    (map::DIRECT_VA..map::DIRECT_VA + memory).contains(&va)
}

/// Whether the page there holds stack descriptors, or what leads to them.
fn holds_stacks(va: u64) -> bool {
    let queues = map::STACKS_KEPT_OFF..map::SCHEDULER_OFF;
    queues.contains(&va.wrapping_sub(map::SHARED_DATA_VA))
}

/// Whether this address is where a grant maps what is not the domain's own.
fn granted(va: u64, grants: &[Grant]) -> bool {
    let within = |start: u64, len: u64| (start..start + len).contains(&va);
    grants.iter().any(|g| match g {
        Grant::Physical => within(map::PHYS_VA, map::RAM_MAX + map::UPPER_BYTES),
        Grant::Code => within(map::PM_CODE_VA, map::CODE_BYTES),
        Grant::SharedData => within(map::SHARED_DATA_VA, map::KDATA_BYTES),
        Grant::Scheduling => {
            map::SCHEDULING.iter().any(|(at, bytes, _)| within(map::SHARED_DATA_VA + at, *bytes))
        }
        Grant::Tables => within(map::PM_TABLES_VA, map::MAX_DOMAINS as u64 * map::TABLE_BYTES),
        Grant::Threads => within(map::PM_THREADS_VA, map::MAX_THREADS as u64 * PAGE),
        Grant::BootInfo => within(map::BOOTINFO_VA, map::BOOTINFO_MAX),
        Grant::Capabilities => within(map::CAPABILITY_TABLE_VA, capability::TABLE_BYTES),
        Grant::Template(letter) => within(map::template_data_va(*letter), PAGE),
        Grant::Archive => within(map::ARCHIVE_VA, map::PHYS_VA - map::ARCHIVE_VA),
    })
}
