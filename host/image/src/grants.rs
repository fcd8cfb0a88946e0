//! What components have mapped by their manifest that is not their own: devices, and pages of the image that
//! several share.
//!
//! All of it is marked foreign, so it is never lent. What a replacement of the component needs as well is
//! recorded in the boot information.

use crate::board;
use crate::build::{Domain, Shared};
use crate::manifest::Grant;
use crate::memory::Memory;
use pebble_abi::capability;
use pebble_abi::map::{self, PAGE};
use pebble_arch::{Arch, Leaf, SPAN};
use pebble_boot as boot;

pub fn grant<A: Arch>(
    memory: &mut Memory<A>,
    shared: &Shared,
    domains: &[Domain],
    ram: &board::Memory,
    archive: u64,
    archive_len: u64,
) {
    for d in domains {
        for g in &d.manifest.grants {
            match g {
                Grant::Physical => {
                    let fixed = A::fixed(map::NUCLEUS_VA).map(|pa| pa..pa + map::UPPER_BYTES);
                    let all = (ram.at..ram.at + ram.bytes).chain(fixed.into_iter().flatten());
                    for pa in all.step_by(SPAN as usize) {
                        memory.map_span(d.root, map::PHYS_VA + pa - ram.at, pa, Leaf::FOREIGN_RW);
                    }
                }
                Grant::Code => {
                    for at in (0..map::CODE_BYTES).step_by(PAGE as usize) {
                        if let Some(pa) = shared.there(memory, map::CODE_VA + at) {
                            memory.map(d.root, map::PM_CODE_VA + at, pa, Leaf::FOREIGN_RW);
                        }
                    }
                    memory.table_for(d.root, map::PM_CODE_VA);
                }
                Grant::SharedData => {
                    for at in (0..map::KDATA_BYTES).step_by(PAGE as usize) {
                        memory.map(d.root, map::SHARED_DATA_VA + at, shared.data + at, Leaf::FOREIGN_RW);
                    }
                }
                Grant::Scheduling => {
                    for (from, bytes, write) in map::SCHEDULING {
                        let flags = if write { Leaf::FOREIGN_RW } else { Leaf::FOREIGN_R };
                        for at in (from..from + bytes).step_by(PAGE as usize) {
                            memory.map(d.root, map::SHARED_DATA_VA + at, shared.data + at, flags);
                        }
                    }
                }
                Grant::Tables => {
                    for other in domains {
                        let at = map::PM_TABLES_VA + u64::from(other.asid) * map::TABLE_BYTES;
                        memory.map(d.root, at, other.table, Leaf::FOREIGN_RW);
                    }
                }
                Grant::Threads => {
                    for tid in 0..map::MAX_THREADS as u16 {
                        if let Some(pa) = shared.there(memory, map::thread_va(tid)) {
                            let at = map::PM_THREADS_VA + u64::from(tid) * PAGE;
                            memory.map(d.root, at, pa, Leaf::FOREIGN_RW);
                        }
                    }
                    memory.table_for(d.root, map::PM_THREADS_VA);
                }
                Grant::Archive => {
                    for at in (0..archive_len).step_by(PAGE as usize) {
                        memory.map(d.root, map::ARCHIVE_VA + at, archive + at, Leaf::FOREIGN_R);
                    }
                }
                Grant::Capabilities => grant_capabilities(memory, shared, d),
                Grant::Template(letter) => {
                    let page = shared.page(memory, map::template_va(*letter), Leaf::NUCLEUS_RW);
                    memory.map(d.root, map::template_data_va(*letter), page, Leaf::FOREIGN_RW);
                }
                Grant::BootInfo => {}
            }
        }
    }
}

/// The capability table, all nodes free, for portal code and one server.
fn grant_capabilities<A: Arch>(memory: &mut Memory<A>, shared: &Shared, d: &Domain) {
    let pages = || (0..capability::TABLE_BYTES).step_by(PAGE as usize);
    let table = pages().map(|at| shared.page(memory, map::CAPABILITIES_VA + at, Leaf::NUCLEUS_RW));
    let table = table.min().unwrap_or_default();
    for at in pages() {
        memory.map(d.root, map::CAPABILITY_TABLE_VA + at, table + at, Leaf::FOREIGN_RW);
    }
    for node in 0..capability::NODES as u64 {
        let next = (node + 1) % capability::NODES as u64 * capability::NODE_BYTES;
        memory.write_word(table + node * capability::NODE_BYTES + capability::NEXT as u64 * 8, next);
    }
}

/// Devices and shared pages of components that can be replaced. The VM manager and the portal manager, whose
/// grants grow while the system runs, cannot.
pub fn recorded<A: Arch>(
    memory: &Memory<A>,
    shared: &Shared,
    domains: &[Domain],
    archive: u64,
    archive_len: u64,
) -> Vec<boot::Grant> {
    let mut out = Vec::new();
    for d in domains {
        let mut put = |va, pa, bytes: u64, write| {
            let pages = bytes.div_ceil(PAGE) as u32;
            out.push(boot::Grant { asid: d.asid, va, pa, pages, write });
        };
        let mut device = map::DEVICE_VA;
        for wanted in &d.manifest.registers {
            put(device, wanted.at, wanted.bytes, true);
            device += wanted.bytes.next_multiple_of(PAGE);
        }
        for grant in &d.manifest.grants {
            match grant {
                Grant::SharedData => put(map::SHARED_DATA_VA, shared.data, map::KDATA_BYTES, true),
                Grant::Scheduling => map::SCHEDULING.iter().for_each(|(at, bytes, write)| {
                    put(map::SHARED_DATA_VA + at, shared.data + at, *bytes, *write);
                }),
                Grant::Archive => put(map::ARCHIVE_VA, archive, archive_len, false),
                Grant::Capabilities => {
                    let table = shared.there(memory, map::CAPABILITIES_VA).unwrap_or_default();
                    put(map::CAPABILITY_TABLE_VA, table, capability::TABLE_BYTES, true);
                }
                Grant::Template(letter) => {
                    let page = shared.there(memory, map::template_va(*letter)).unwrap_or_default();
                    put(map::template_data_va(*letter), page, PAGE, true);
                }
                _ => {}
            }
        }
    }
    out
}
