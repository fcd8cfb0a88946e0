//! Does an image keep the walls? Walks all its page tables, independently of the code that made them.
//!
//! * no page is writable and executable through one mapping;
//! * user mode reaches no page of the nucleus, of portal code, of portal tables, page tables or thread blocks, but through the
//!   grants of the manifest;
//! * a page that user mode can write belongs to one domain, stacks shared through `s` portals and grants apart;
//! * exactly what is not a domain's own is marked as foreign, so that no window lends it.

use crate::manifest::Grant;
use crate::report::Report;
use pebble_abi::capability;
use pebble_abi::map::{self, PAGE, PTE_FOREIGN, PTE_MARKS, PTE_R, PTE_U, PTE_V, PTE_W, PTE_X};
use std::collections::{BTreeMap, BTreeSet};

/// One mapping of a 4 KiB page.
struct Leaf {
    va: u64,
    pa: u64,
    flags: u64,
}

struct Walk<'a> {
    image: &'a [u8],
    /// Pages that are page tables.
    tables: BTreeSet<u64>,
}

impl Walk<'_> {
    fn word(&self, pa: u64) -> u64 {
        let at = (map::PAGE + pa.wrapping_sub(map::LOAD_PA)) as usize;
        self.image.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
    }

    fn table(&mut self, pa: u64, level: u32, base: u64, out: &mut Vec<Leaf>) {
        self.tables.insert(pa);
        for slot in 0..512u64 {
            let entry = self.word(pa + slot * 8);
            if entry & PTE_V == 0 {
                continue;
            }
            let mut va = base | slot << (12 + 9 * level);
            if level == 2 && slot >= 256 {
                va |= !0 << 39;
            }
            let at = map::pte_pa(entry);
            if entry & (PTE_R | PTE_W | PTE_X) == 0 {
                self.table(at, level - 1, va, out);
            } else {
                let pages = 1u64 << (9 * level);
                out.extend((0..pages).map(|n| Leaf {
                    va: va + n * PAGE,
                    pa: at + n * PAGE,
                    flags: entry & (0xff | PTE_MARKS),
                }));
            }
        }
    }
}

/// What is wrong with the image; empty if nothing is.
pub fn audit(image: &[u8], report: &Report) -> Vec<String> {
    let mut walk = Walk { image, tables: BTreeSet::new() };
    let mut wrong = Vec::new();
    let mut leaves = Vec::new();
    for d in &report.domains {
        let mut out = Vec::new();
        walk.table(d.root, 2, 0, &mut out);
        leaves.push(out);
    }
    let privileged: BTreeSet<u64> = leaves
        .iter()
        .flatten()
        .filter(|l| l.flags & PTE_U == 0 && !direct(l.va))
        .map(|l| l.pa)
        .chain(walk.tables.iter().copied())
        .collect();
    let mut writers = BTreeMap::<u64, u16>::new();
    for (d, leaves) in report.domains.iter().zip(&leaves) {
        for leaf in leaves {
            let mut say = |what: &str| {
                wrong.push(format!("domain {} ({}), address {:#x}: {what}", d.asid, d.name, leaf.va))
            };
            if leaf.flags & PTE_W != 0 && leaf.flags & PTE_X != 0 {
                say("writable and executable");
            }
            let user = leaf.flags & PTE_U != 0;
            if user && leaf.va >= map::USER_END {
                say("user page in the nucleus's half");
            }
            let (granted, device) = (granted(leaf.va, &d.grants), leaf.pa < map::RAM_PA);
            let foreign = user && (granted || device || leaf.va == map::GATE_VA);
            if leaf.flags & PTE_MARKS != if foreign { PTE_FOREIGN } else { 0 } {
                say("its mark does not tell whose it is");
            }
            let aims =
                leaf.flags & PTE_W != 0 && holds_stacks(leaf.va) && d.grants.contains(&Grant::Scheduling);
            if user && granted && aims {
                say("who decides which thread runs could aim its stack");
            }
            if !user || granted {
                continue;
            }
            if privileged.contains(&leaf.pa) {
                say("user mode reaches a page that is the nucleus's or a table");
            }
            let stack = (map::STACKS_VA..map::USER_END).contains(&leaf.va);
            if leaf.flags & PTE_W != 0
                && !stack
                && writers.insert(leaf.pa, d.asid).is_some_and(|o| o != d.asid)
            {
                say("a page that another domain can write too");
            }
        }
    }
    wrong
}

/// Portal code's view of all physical memory.
fn direct(va: u64) -> bool {
    (map::DIRECT_VA..map::DIRECT_VA + map::RAM_BYTES).contains(&va)
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
        Grant::Physical => within(map::PHYS_VA, map::RAM_BYTES),
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
