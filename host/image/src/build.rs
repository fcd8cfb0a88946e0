//! Lays out the memory of a whole system.
//!
//! Order: nucleus, its page tables and data; the domains with their images, stacks and tables; portal code
//! (common code first, then each domain's own table and imports); threads; the boot information, last, since
//! it tells all the rest.

use crate::BuildError;
use crate::board::{self, Board};
use crate::elf::{self, Component};
use crate::grants;
use crate::manifest::{self, Grant, Manifest};
use crate::memory::Memory;
use crate::portals::Portals;
use crate::report::{DomainReport, Report};
use pebble_abi::map::{self, PAGE};
use pebble_abi::{sys, thread};
use pebble_arch::{Arch, Leaf, Mips64, Processor, Riscv64, SPAN, Start, slot};
use pebble_boot::{self as boot, BootInfo};
use std::collections::BTreeMap;

/// Compiled pieces that an image is made of: ELF bytes by component name, and the nucleus.
pub struct Artifacts {
    pub nucleus: Vec<u8>,
    pub components: BTreeMap<String, Vec<u8>>,
    /// The file archive.
    pub archive: Vec<u8>,
}

/// A domain under construction.
pub struct Domain {
    pub manifest: manifest::Component,
    pub elf: Component,
    pub asid: u16,
    pub root: u64,
    pub table: u64,
    pub fixed_stack: u64,
    pub stack_slots: u8,
    pub pages: u32,
}

impl Domain {
    pub fn portal_view<A: Arch>(&self) -> pebble_portal::hardware::Domain {
        pebble_portal::hardware::Domain {
            asid: self.asid,
            space: A::space(self.asid, self.root),
            float: self.elf.float,
            exclusive: self.manifest.exclusive,
            fixed_stack: self.fixed_stack,
            trusted: self.manifest.server && !self.elf.float,
            ..Default::default()
        }
    }
}

/// Physical pages of the nucleus's half, shared by all domains.
pub struct Shared {
    /// What every root says of that half, and the two lowest tables; 0 where the hardware fixes it.
    pub kernel_pte: u64,
    pub l0: [u64; 2],
    pub data: u64,
    pub gate: u64,
    pub empty_table: u64,
    pub dead_l1: u64,
    pub dead_table: u64,
    pub panic_entry: u64,
    pub boot_record: u64,
    /// Physical address of the first instruction.
    pub entry: u64,
    pub nucleus_bytes: u64,
}

impl Shared {
    /// The page at an address of the nucleus's half, made if absent.
    pub fn page<A: Arch>(&self, memory: &mut Memory<A>, va: u64, leaf: Leaf) -> u64 {
        if let Some(pa) = self.there(memory, va) {
            if A::fixed(va).is_some() {
                memory.page_at(pa);
            }
            return pa;
        }
        let pa = memory.page();
        memory.write_word(self.slot(va), A::leaf(pa, leaf));
        pa
    }

    /// The page there, if it is there now. What is fixed always is.
    pub fn there<A: Arch>(&self, memory: &Memory<A>, va: u64) -> Option<u64> {
        let entry = || Some(memory.read_word(self.slot(va))).filter(|entry| A::is_valid(*entry));
        A::fixed(va).or_else(|| entry().map(A::address))
    }

    fn slot(&self, va: u64) -> u64 {
        slot(self.l0[usize::from(va >= map::CODE_VA)], 0, va)
    }
}

/// A bootable image.
pub struct Image {
    /// ELF file for `-kernel`.
    pub elf: Vec<u8>,
    pub report: Report,
}

/// For a processor that has hardware domains.
pub fn build(manifest: &Manifest, artifacts: &Artifacts, board: &Board) -> Result<Image, BuildError> {
    match board.processor {
        Processor::Riscv64 => build_for::<Riscv64>(manifest, artifacts, &board.memory),
        Processor::Mips64 => build_for::<Mips64>(manifest, artifacts, &board.memory),
        Processor::X86_64 => Err(BuildError::Processor(board.processor)),
    }
}

fn build_for<A: Arch>(
    manifest: &Manifest,
    artifacts: &Artifacts,
    ram: &board::Memory,
) -> Result<Image, BuildError> {
    let mut memory = Memory::<A>::new(ram.load);
    let shared = lay_nucleus(&mut memory, &artifacts.nucleus, ram)?;
    let mut domains = Vec::new();
    let mut descriptors = 0;
    for asid in 1..map::MAX_DOMAINS as u64 {
        memory.write_word(shared.data + map::STACK_QUEUES_OFF + asid * 8, map::STACKS_END);
        memory.write_word(shared.data + map::STACKS_KEPT_OFF + asid * 8, map::STACKS_END);
    }
    for (n, component) in manifest.component.iter().enumerate() {
        let elf = artifacts.components.get(&component.name).ok_or_else(|| BuildError::Component {
            name: component.name.clone(),
            what: "was not built".into(),
        })?;
        let fail =
            |e: elf::ElfError| BuildError::Component { name: component.name.clone(), what: e.to_string() };
        let mut elf = Component::parse::<A>(elf).map_err(fail)?;
        elf.check_user().map_err(fail)?;
        elf.float |= component.float && A::LAYOUT.float_words != 0;
        domains.push(lay_domain(&mut memory, &shared, n as u16 + 1, component, elf, &mut descriptors));
    }
    grant_stacks(&mut memory, &domains);
    let mut portals = Portals::new(&shared, &domains, manifest)?;
    portals.common(&mut memory)?;
    for d in &domains {
        portals.system_table(&mut memory, d)?;
        portals.imports(&mut memory, d)?;
    }
    portals.fill_empty(&mut memory);
    let threads = lay_threads(&mut memory, &shared, &domains, &portals);
    let archive = memory.pages(artifacts.archive.len().div_ceil(PAGE as usize));
    memory.write(archive, &artifacts.archive);
    for s in &portals.semaphores {
        memory.write_word(shared.data + map::SEMAPHORES_OFF + s.id as u64 * 8, s.initial as u64);
    }
    grants::grant(&mut memory, &shared, &domains, ram, archive, artifacts.archive.len() as u64);
    let info = BootInfo {
        domains: domains.iter().map(boot_domain).collect(),
        interfaces: portals.interfaces.clone(),
        portals: portals.placed.clone(),
        threads: threads.clone(),
        semaphores: portals.semaphores.clone(),
        rules: manifest.rule.iter().map(|rule| rule.get_ref().0.clone()).collect(),
        code: portals.code,
        image_end: u64::MAX >> 1,
        ram_end: ram.at + ram.bytes,
        code_used: portals.used,
        kernel_l0: shared.l0,
        stack_descs: descriptors,
        process: domains.iter().find(|d| d.manifest.name == "process").map_or(0, |d| d.asid),
        empty_table: shared.empty_table,
        gate: shared.gate,
        dead_l1: shared.dead_l1,
        kernel_pte: shared.kernel_pte,
        devices: manifest.device.iter().map(|device| boot_device(device.get_ref())).collect(),
        grants: grants::recorded(&memory, &shared, &domains, archive, artifacts.archive.len() as u64),
    };
    lay_boot_info(&mut memory, &domains, info)?;
    if let Some(first) = threads.first() {
        let home = &domains[first.asid as usize - 1];
        memory.write_word(shared.boot_record, A::space(home.asid, home.root));
        let top = memory.read_word(first.block + thread::SAVED_TOP);
        memory.write_word(shared.boot_record + 8, top);
    }
    let report = report(manifest, &memory, &shared, &domains, &portals, &threads, artifacts);
    Ok(Image { elf: crate::output::write(&memory, shared.entry, &report), report })
}

fn lay_nucleus<A: Arch>(
    memory: &mut Memory<A>,
    elf: &[u8],
    ram: &board::Memory,
) -> Result<Shared, BuildError> {
    let fail = |what: String| BuildError::Component { name: "nucleus".into(), what };
    let nucleus = Component::parse::<A>(elf).map_err(|e| fail(e.to_string()))?;
    let symbol =
        |name: &str| crate::elf::symbol(elf, name).ok_or_else(|| fail(format!("has no symbol {name}")));
    let (panic_entry, record) = (symbol("PANIC_ENTRY")?, symbol("BOOT_RECORD")?);
    let size = nucleus.segments.iter().map(|s| s.va + s.size - map::NUCLEUS_VA).max().unwrap_or(0);
    if size > map::NUCLEUS_MAX {
        return Err(fail(format!("is {size} bytes long, more than {}", map::NUCLEUS_MAX)));
    }
    let text = memory.end();
    let (text, kernel_pte, l0) = match A::fixed(map::NUCLEUS_VA) {
        Some(text) => {
            (text..text + size).step_by(PAGE as usize).for_each(|pa| memory.page_at(pa));
            (text, 0, [0; 2])
        }
        None => {
            memory.pages(size.div_ceil(PAGE) as usize);
            let (l1, l0) = lay_upper_tables(memory, ram);
            for at in (0..size).step_by(PAGE as usize) {
                let leaf = A::leaf(text + at, Leaf::NUCLEUS_RX);
                memory.write_word(slot(l0[0], 0, map::NUCLEUS_VA + at), leaf);
            }
            (text, A::table(l1), l0)
        }
    };
    for s in &nucleus.segments {
        memory.write(text + (s.va - map::NUCLEUS_VA), &s.bytes);
    }
    let mut shared = Shared {
        kernel_pte,
        l0,
        data: 0,
        gate: 0,
        empty_table: 0,
        dead_l1: 0,
        dead_table: 0,
        panic_entry,
        boot_record: text + (record - map::NUCLEUS_VA),
        entry: text + (nucleus.entry - map::NUCLEUS_VA),
        nucleus_bytes: size,
    };
    let data = (0..map::KDATA_BYTES).step_by(PAGE as usize);
    let data = data.map(|at| shared.page(memory, map::KDATA_VA + at, Leaf::NUCLEUS_RW));
    shared.data = data.min().unwrap_or_default();
    let gate = memory.page();
    let stub = |index: usize| A::gate(index).map(u32::to_le_bytes).concat();
    memory.write(gate, &stub(sys::RETURN));
    memory.write(gate + (map::GATE_UNWIND - map::GATE_VA), &stub(sys::UNWIND));
    let (empty_table, dead_l1, dead_l0, dead_table) =
        (memory.page(), memory.page(), memory.page(), memory.page());
    memory.write_word(dead_l1, A::table(dead_l0));
    memory.write_word(dead_l0, A::leaf(dead_table, Leaf::TABLE_R));
    Ok(Shared { gate, empty_table, dead_l1, dead_table, ..shared })
}

/// Tables of the nucleus's half, where tables say what is there: of level 1, and the two lowest.
fn lay_upper_tables<A: Arch>(memory: &mut Memory<A>, ram: &board::Memory) -> (u64, [u64; 2]) {
    let (l1, low, code) = (memory.page(), memory.page(), memory.page());
    for at in (0..ram.bytes).step_by(SPAN as usize) {
        memory.write_word(slot(l1, 1, map::DIRECT_VA + at), A::leaf(ram.at + at, Leaf::NUCLEUS_RW));
    }
    memory.write_word(slot(l1, 1, map::NUCLEUS_VA), A::table(low));
    for va in [map::CODE_VA, map::CODE_VA | A::LATE] {
        memory.write_word(slot(l1, 1, va), A::table(code));
    }
    (l1, [low, code])
}

fn lay_domain<A: Arch>(
    memory: &mut Memory<A>,
    shared: &Shared,
    asid: u16,
    c: &manifest::Component,
    elf: Component,
    descriptors: &mut u32,
) -> Domain {
    let start = memory.end();
    let root = memory.page();
    memory.write_word(slot(root, 2, map::KERNEL_VA), shared.kernel_pte);
    let table = memory.page();
    for page in 0..map::TABLE_BYTES / PAGE {
        let pa = if page == 0 { table } else { shared.empty_table };
        memory.map(root, map::TABLE_VA + page * PAGE, pa, Leaf::TABLE_R);
        if let Some(words) = A::PORTALS {
            memory.write_word(root + words + page * 8, A::direct(pa));
        }
    }
    memory.map(root, map::GATE_VA, shared.gate, Leaf::FOREIGN_RX);
    for s in &elf.segments {
        let leaf = Leaf::user(s.write, s.execute);
        for at in (0..s.size).step_by(PAGE as usize) {
            let page = memory.page();
            let from = (at as usize).min(s.bytes.len());
            let to = (from + PAGE as usize).min(s.bytes.len());
            memory.write(page, &s.bytes[from..to]);
            memory.map(root, s.va + at, page, leaf);
        }
    }
    let mut slots = 0;
    let mut stack = |memory: &mut Memory<A>| {
        let top = map::stack_top(asid, slots);
        for page in 1..=c.stack_pages as u64 {
            let pa = memory.page();
            memory.map(root, top - page * PAGE, pa, Leaf::USER_RW);
        }
        slots += 1;
        top
    };
    // The own thread's stack is slot 0.
    if c.thread {
        stack(memory);
    }
    let fixed_stack = if c.exclusive { stack(memory) } else { 0 };
    for _ in 0..c.stacks {
        let top = stack(memory);
        let desc = shared.data + map::STACK_DESC_OFF + u64::from(*descriptors) * 16;
        let queue = shared.data + map::STACK_QUEUES_OFF + u64::from(asid) * 8;
        let next = memory.read_word(queue);
        memory.write_word(desc, next);
        memory.write_word(desc + 8, top);
        memory.write_word(queue, map::stack_desc_va(*descriptors as usize));
        *descriptors += 1;
    }
    let mut device = map::DEVICE_VA;
    for d in &c.registers {
        for at in (0..d.bytes).step_by(PAGE as usize) {
            memory.map(root, device, d.at + at, Leaf::FOREIGN_RW);
            device += PAGE;
        }
    }
    let pages = ((memory.end() - start) / PAGE) as u32;
    Domain { manifest: c.clone(), elf, asid, root, table, fixed_stack, stack_slots: slots as u8, pages }
}

/// `s` portals: the callee maps the stack range of whoever calls it.
fn grant_stacks<A: Arch>(memory: &mut Memory<A>, domains: &[Domain]) {
    let export = |name: &str| {
        domains.iter().find_map(|d| {
            let named = d.elf.exports.iter().find(|e| crate::portals::interface_name(d, e) == name);
            named.map(|e| (d, e.spec.starts_with('s')))
        })
    };
    // Stacks travel on through chains of `s` portals, so repeat until nothing changes.
    let mut known: Vec<Vec<u16>> = domains.iter().map(|d| vec![d.asid]).collect();
    for _ in domains {
        for d in domains {
            for import in &d.elf.imports {
                let name = d.manifest.bind.get(&import.name).unwrap_or(&import.name);
                let Some((callee, true)) = export(name) else { continue };
                for owner in known[d.asid as usize - 1].clone() {
                    let list = &mut known[callee.asid as usize - 1];
                    if !list.contains(&owner) {
                        list.push(owner);
                        let va = map::stacks_of(owner);
                        let owner_l1 = memory.table(domains[owner as usize - 1].root, 2, va);
                        let l0 = memory.table(owner_l1, 1, va);
                        let l1 = memory.table(callee.root, 2, va);
                        memory.write_word(slot(l1, 1, va), A::table(l0));
                    }
                }
            }
        }
    }
}

/// A block for each component with a thread; the most urgent first: it runs first.
fn lay_threads<A: Arch>(
    memory: &mut Memory<A>,
    shared: &Shared,
    domains: &[Domain],
    portals: &Portals,
) -> Vec<boot::Thread> {
    let mut with: Vec<&Domain> = domains.iter().filter(|d| d.manifest.thread).collect();
    with.sort_by_key(|d| std::cmp::Reverse(d.manifest.priority));
    let mut threads = Vec::new();
    for (tid, d) in with.into_iter().enumerate() {
        let tid = tid as u16;
        let block = shared.page(memory, map::thread_va(tid), Leaf::NUCLEUS_RW);
        let start = Start {
            tid,
            home: d.asid,
            root: d.root,
            float: d.elf.float,
            entry: d.elf.entry,
            argument: 0,
            stack: map::stack_top(d.asid, 0),
            thread_end: portals.code.thread_end,
            trap_return: portals.code.trap_return[usize::from(d.elf.float)],
        };
        for (at, word) in start.words::<A>() {
            memory.write_word(block + at, word);
        }
        threads.push(boot::Thread { tid, asid: d.asid, priority: d.manifest.priority, block });
    }
    threads
}

fn lay_boot_info<A: Arch>(
    memory: &mut Memory<A>,
    domains: &[Domain],
    mut info: BootInfo,
) -> Result<(), BuildError> {
    let encode = |info: &BootInfo| info.encode().map_err(|_| BuildError::BootInfo);
    let readers = || domains.iter().filter(|d| d.manifest.grants.contains(&Grant::BootInfo));
    let reader = |asid, pa, pages| boot::Grant { asid, va: map::BOOTINFO_VA, pa, pages, write: false };
    let others = info.grants.len();
    // What is not known yet is largest in this first encoding, so the final one is no longer.
    info.grants.extend(readers().map(|d| reader(d.asid, u64::MAX >> 1, u32::MAX)));
    let pages = encode(&info)?.len().div_ceil(PAGE as usize);
    let at = memory.pages(pages);
    for d in readers() {
        for page in 0..pages as u64 {
            memory.map(d.root, map::BOOTINFO_VA + page * PAGE, at + page * PAGE, Leaf::FOREIGN_R);
        }
    }
    info.grants.truncate(others);
    info.grants.extend(readers().map(|d| reader(d.asid, at, pages as u32)));
    info.image_end = memory.end();
    memory.write(at, &encode(&info)?);
    Ok(())
}

fn boot_device(d: &manifest::NamedDevice) -> boot::Device {
    boot::Device { name: d.name.clone(), at: d.at, bytes: d.len, irq: d.irq }
}

fn boot_domain(d: &Domain) -> boot::Domain {
    boot::Domain {
        asid: d.asid,
        name: d.manifest.name.clone(),
        root: d.root,
        table: d.table,
        float: d.elf.float,
        exclusive: d.manifest.exclusive,
        fixed_stack: d.fixed_stack,
        priority: d.manifest.priority,
        pages: d.pages,
        stack_slots: d.stack_slots,
        heap: if d.manifest.large_heap { map::LARGE_HEAP_VA } else { d.elf.end() },
        essential: d.manifest.essential,
        server: d.manifest.server,
    }
}

fn report<A: Arch>(
    manifest: &Manifest,
    memory: &Memory<A>,
    shared: &Shared,
    domains: &[Domain],
    portals: &Portals,
    threads: &[boot::Thread],
    artifacts: &Artifacts,
) -> Report {
    let domain = |d: &Domain| DomainReport {
        asid: d.asid,
        name: d.manifest.name.clone(),
        root: d.root,
        grants: d.manifest.grants.clone(),
        core: d.manifest.core,
        pages: d.pages,
        text: d.elf.segments.iter().filter(|s| s.execute).map(|s| s.size).sum(),
        rodata: d.elf.segments.iter().filter(|s| !s.execute && !s.write).map(|s| s.size).sum(),
        data: d.elf.segments.iter().filter(|s| s.write).map(|s| s.size).sum(),
        threads: threads.iter().filter(|t| t.asid == d.asid).count() as u32,
        stacks: d.manifest.stacks as u32,
        float: d.elf.float,
        exclusive: d.manifest.exclusive,
        symbols: d.elf.symbols.clone(),
    };
    let tables = if shared.kernel_pte == 0 { 0 } else { 3 };
    Report {
        system: manifest.name.clone(),
        nucleus_bytes: shared.nucleus_bytes,
        shared_pages: (shared.nucleus_bytes.div_ceil(PAGE) + tables + map::KDATA_BYTES.div_ceil(PAGE) + 5)
            as u32,
        code_bytes: portals.used,
        domains: domains.iter().map(domain).collect(),
        threads: threads.len() as u32,
        archive_bytes: artifacts.archive.len() as u64,
        image_bytes: memory.bytes(),
        portals: portals.reports.clone(),
    }
}

const _: () = assert!(sys::FIRST_FREE < map::TABLE_ENTRIES_PER_PAGE);
