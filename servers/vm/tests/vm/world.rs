//! A machine that is an array, a small image in it, and a walk of its page tables that shares nothing with
//! the library.

use crate::portals::{Lent, OPEN};
use pebble_abi::map::{self, PAGE};
use pebble_abi::words::{Asid, VirtAddr};
use pebble_arch::Riscv64;
use pebble_arch::riscv64::paging;
use pebble_boot::{About, BootInfo, CommonCode, Domain, Interface, Portal, Rule, Semaphore, Thread};
use pebble_vm::{Ask, Batch, FIRST_PAGES, Machine, SURE, Vm};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};

pub const NONE: u64 = 0xdead_0008;
pub const RAM_END: u64 = map::RAM_PA + (8 << 20);
pub const VM: u64 = 1;
pub const PM: u64 = 2;
pub const PROCESS: u64 = 3;
pub const SERVER: u64 = 4;

const V: u64 = 1;
const R: u64 = 2;
const W: u64 = 4;
const PROMISED: u64 = 6;
const X: u64 = 8;
const U: u64 = 16;
const STARTUP: u64 = 0x9000;
const USER_END: u64 = 0x4000_0000;
const A: u64 = 64;
const MARKS: u64 = 3 << 8;
const WINDOWS: u64 = 0x1b00_0000;
const BUFFERS: u64 = 0x1c00_0000;
const ARCHIVE: std::ops::Range<u64> = 0x900_0000..0x1000_0000;

pub struct Fake {
    ram: Vec<Cell<u64>>,
    /// What the processor may remember of each domain: everything it could see when last looked at, minus
    /// what was flushed.
    tlb: BTreeMap<u16, BTreeMap<u64, u64>>,
    /// How often another thread has run.
    pub switches: Cell<u64>,
    /// Where the faulting thread's invocation stack ends.
    pub top: u64,
    /// What portal code does, in another thread, when this word is next read: stores of words.
    pub ambush: RefCell<Option<(u64, Vec<(u64, u64)>)>>,
}

impl Machine for Fake {
    type Arch = Riscv64;

    fn read(&self, pa: u64) -> u64 {
        assert!(pa.is_multiple_of(8), "misaligned {pa:#x}");
        let word = self.word(pa);
        let ambush = self.ambush.borrow_mut().take_if(|(at, _)| *at == pa);
        for (at, new) in ambush.into_iter().flat_map(|(_, stores)| stores) {
            self.ram[((at - map::RAM_PA) / 8) as usize].set(new);
            self.switches.set(self.switches.get() + 1);
        }
        word
    }
    fn write(&mut self, pa: u64, word: u64) {
        assert!(pa.is_multiple_of(8) && pa >= map::LOAD_PA, "write to {pa:#x}");
        self.ram[((pa - map::RAM_PA) / 8) as usize].set(word);
    }
    fn zero_page(&mut self, pa: u64) {
        assert!(pa.is_multiple_of(PAGE) && pa >= map::LOAD_PA);
        let at = ((pa - map::RAM_PA) / 8) as usize;
        self.ram[at..at + 512].iter().for_each(|word| word.set(0));
    }
    fn flush(&mut self, asid: u16) {
        self.tlb.remove(&asid);
    }
    fn copy_page(&mut self, from: u64, to: u64) {
        for at in (0..PAGE).step_by(8) {
            self.write(to + at, self.read(from + at));
        }
    }
    fn exchange(&mut self, pa: u64, old: u64, new: u64) -> bool {
        let same = self.word(pa) == old;
        if same {
            self.write(pa, new);
        }
        same
    }
    fn top(&self) -> u64 {
        self.top
    }
    fn switches(&self) -> u64 {
        self.switches.get()
    }
}

impl Fake {
    fn word(&self, pa: u64) -> u64 {
        self.ram[((pa - map::RAM_PA) / 8) as usize].get()
    }

    fn entry(&self, table: u64, n: u64) -> u64 {
        self.word(table + n * 8)
    }

    /// Pages that come when they are touched, which only image and heap have.
    fn promised(&self, l1: u64) -> u64 {
        let tables = (0..512).map(|i| (i << 21, self.entry(l1, i))).filter(|(_, entry)| entry & V != 0);
        let all = tables.flat_map(|(at, entry)| {
            (0..512)
                .map(move |j| (at | j << 12, self.entry(entry >> 10 << 12, j)))
                .filter(|(_, e)| *e == PROMISED)
        });
        all.inspect(|(va, _)| assert!((STARTUP..map::HEAP_END).contains(va), "{va:#x} is promised")).count()
            as u64
    }

    /// Every user-half leaf (address, entry) and every table (address, entry) under a level-1 table.
    pub fn walk(&self, l1: u64) -> (BTreeMap<u64, u64>, Vec<(u64, u64)>) {
        let (mut leaves, mut tables) = (BTreeMap::new(), Vec::new());
        for i in 0..512 {
            let entry = self.entry(l1, i);
            if entry & V == 0 {
                continue;
            }
            assert_eq!(entry & (R | W | X), 0, "large page");
            let l0 = entry >> 10 << 12;
            tables.push((i << 21, entry));
            for j in 0..512 {
                let entry = self.entry(l0, j);
                if entry & V != 0 {
                    assert_ne!(entry & (W | X), W | X, "writable and executable");
                    leaves.insert(i << 21 | j << 12, entry);
                }
            }
        }
        (leaves, tables)
    }
}

/// The system under test, and what the test knows of it.
pub struct World {
    pub vm: Vm<Fake>,
    kernel_l0: [u64; 2],
    dead_l1: u64,
    empty: u64,
    /// Pages of the image that belong to no domain and no thread.
    fixed: BTreeSet<u64>,
    /// Level-1 tables, which cannot be found once a domain is dead.
    pub l1: BTreeMap<u16, u64>,
    /// Window control pages, known to portals even of dead domains.
    pub control: BTreeMap<u16, u64>,
    /// Calls with windows that have not returned, and the thread that makes the next.
    pub calls: Vec<Lent>,
    pub thread: u64,
    /// Handlers that have not answered.
    pub asks: Vec<Ask>,
    /// What the idle thread has in hand; of that, what it has yet to zero.
    batch: Batch,
    to_zero: Vec<u64>,
    /// Domains of the image.
    boot: BTreeSet<u16>,
    /// What the server that has the archive sees there.
    archive: BTreeMap<u64, u64>,
    /// Threads, at the last look.
    bits: [u64; 4],
    /// Pages that domains pay for, and do not have yet, at the last look.
    promised: u64,
}

pub fn image(fake: &mut impl Machine) -> BootInfo {
    let mut next = map::LOAD_PA;
    let mut page = || {
        next += PAGE;
        next - PAGE
    };
    let mut info = BootInfo {
        kernel_l0: [page(), page()],
        empty_table: page(),
        gate: page(),
        dead_l1: page(),
        code: CommonCode {
            none: NONE,
            thread_end: 0x111_0000,
            trap_return: [0x222_0000, 0x333_0000],
            ..CommonCode::default()
        },
        process: PROCESS as u16,
        ram_end: RAM_END,
        code_used: 77,
        stack_descs: 3,
        ..BootInfo::default()
    };
    info.kernel_pte = paging::entry(page(), V);
    let archive = page();
    let names = ["vm", "portal-manager", "process", "server"];
    for (name, asid) in names.into_iter().zip(1u16..) {
        let (root, l1, low, stacks, table) = (page(), page(), page(), page(), page());
        let (gate, empty) = (info.gate, info.empty_table);
        let mut put = |at: u64, entry: u64| fake.write(at, entry);
        put(root, paging::entry(l1, V));
        put(root + 510 * 8, info.kernel_pte);
        put(l1, paging::entry(low, V));
        put(l1 + (map::stacks_of(asid) >> 21 & 511) * 8, paging::entry(stacks, V));
        for n in 0..8 {
            put(low + n * 8, paging::entry(if n == 0 { table } else { empty }, V | R));
        }
        put(low + 8 * 8, paging::entry(gate, V | R | X | U | MARKS));
        for n in 16..20 {
            put(low + n * 8, paging::entry(page(), V | R | U));
        }
        // Boot information and a device, in the first 2 MiB.
        put(low + (map::BOOTINFO_VA >> 12) * 8, paging::entry(info.dead_l1, V | R | U | MARKS));
        put(low + (map::DEVICE_VA >> 12) * 8, paging::entry(info.dead_l1, V | R | W | U | MARKS));
        for slot in [0, 1] {
            put(stacks + (slot * 16 + 15) * 8, paging::entry(page(), V | R | W | U));
        }
        if u64::from(asid) == SERVER {
            // It has the archive.
            put(l1 + (map::ARCHIVE_VA >> 21) * 8, paging::entry(archive, V));
            for (n, pa) in (0..).zip([gate, empty, info.dead_l1]) {
                put(archive + n * 8, paging::entry(pa, V | R | U | MARKS | A));
            }
        }
        info.domains.push(Domain {
            asid,
            name: name.into(),
            root,
            table,
            float: asid == 4,
            priority: 20,
            pages: 11 + u32::from(u64::from(asid) == SERVER),
            stack_slots: 2,
            heap: if asid == PROCESS as u16 { map::LARGE_HEAP_VA } else { map::IMAGE_VA + 4 * PAGE },
            essential: asid <= 2,
            ..Domain::default()
        });
    }
    let block = page();
    fake.write(info.kernel_l0[0] + 256 * 8, paging::entry(block, V | R | W));
    fake.write(block + pebble_abi::thread::HOME, SERVER);
    info.threads.push(Thread { tid: 0, asid: SERVER as u16, priority: 20, block });
    info.interfaces.push(Interface { name: "a.b".into(), asid: 300, entry: 1 << 40, spec: "npi".into() });
    info.portals.push(Portal {
        asid: 4,
        index: 40,
        interface: u16::MAX,
        code: 1 << 50,
        len: 70_000,
        constant: 5,
    });
    info.semaphores.push(Semaphore { id: 65, name: "fault".into(), initial: -9, owner: 300, wait: 1 });
    let about = About::Interface("vm.*".into());
    info.rules.push(Rule { client: "*".into(), about, ..Rule::default() });
    info.devices.push(pebble_boot::Device { name: "rtc".into(), at: 0x10_1000, bytes: 4096, irq: 11 });
    info.image_end = next;
    info
}

impl World {
    pub fn new() -> Self {
        let mut fake = Fake {
            ram: vec![Cell::new(0); ((RAM_END - map::RAM_PA) / 8) as usize],
            tlb: BTreeMap::new(),
            switches: Cell::new(0),
            top: 0,
            ambush: RefCell::new(None),
        };
        let info = image(&mut fake);
        let mut vm = Vm::new(fake);
        vm.boot(&info.encode().unwrap()).unwrap();
        let (kernel_l0, dead_l1, empty) = (info.kernel_l0, info.dead_l1, info.empty_table);
        let mut world = World {
            vm,
            kernel_l0,
            dead_l1,
            empty,
            fixed: BTreeSet::new(),
            l1: BTreeMap::new(),
            control: BTreeMap::new(),
            calls: Vec::new(),
            thread: 0,
            asks: Vec::new(),
            batch: Batch::default(),
            to_zero: Vec::new(),
            bits: [0; 4],
            promised: 0,
            boot: (1..5).collect(),
            archive: BTreeMap::new(),
        };
        let server = world.view(SERVER as u16);
        world.archive = server.range(ARCHIVE).map(|(va, entry)| (*va, *entry)).collect();
        let owned = world.owned();
        world.fixed = (map::LOAD_PA..info.image_end + 2 * PAGE)
            .step_by(PAGE as usize)
            .filter(|pa| !owned.contains_key(pa))
            .collect();
        assert_eq!(world.fixed.len(), 8, "six of the image, the sink, and the table of sinks");
        world.check();
        world
    }

    /// The idle thread goes on, page by page, with or without the lock.
    pub fn idle(&mut self, steps: u64) {
        for _ in 0..steps {
            match self.to_zero.pop() {
                Some(pa) => self.vm.machine.zero_page(pa),
                None if self.vm.launder(&mut self.batch) => {
                    self.to_zero.extend(self.batch.iter().filter(|pa| **pa != 0));
                }
                None => return,
            }
        }
    }

    /// Somebody touches these pages of a domain.
    pub fn touch(&mut self, asid: u16, at: u64, pages: u64) {
        (0..pages).for_each(|n| _ = self.vm.touch(asid.into(), VirtAddr(at + n * PAGE)));
    }

    pub fn state(&self, asid: u16) -> u64 {
        self.vm.domain_info(asid.into()).unwrap().0
    }

    fn is_thread(&self, tid: u64) -> bool {
        self.bits[tid as usize / 64] >> (tid % 64) & 1 == 1
    }

    pub fn block(&self, tid: u64) -> u64 {
        let entry = self.vm.machine.read(self.kernel_l0[0] + (256 + tid) * 8);
        assert_ne!(entry & V, 0);
        entry >> 10 << 12
    }

    /// Leaves that a living domain sees.
    pub fn view(&self, asid: u16) -> BTreeMap<u64, u64> {
        let root = self.vm.domain_info(asid.into()).unwrap().1[0] << 12 & ((1 << 56) - 1);
        self.vm.machine.walk(self.vm.machine.read(root) >> 10 << 12).0
    }

    /// Every page that has an owner, with it. No page has two.
    fn owned(&mut self) -> BTreeMap<u64, u16> {
        let mut owned = BTreeMap::new();
        (self.bits, self.promised) = (self.vm.thread_bits(), 0);
        for asid in 1..256u16 {
            let (state, [space, pages, threads, _]) = self.vm.domain_info(asid.into()).unwrap();
            if state == 0 {
                self.l1.remove(&asid);
                self.control.remove(&asid);
                self.boot.remove(&asid);
                continue;
            }
            assert_eq!(space >> 44 & 0xffff, u64::from(asid));
            let mut mine = BTreeSet::new();
            let mut own = |pa: u64| {
                assert!(mine.insert(pa), "{asid} owns {pa:#x} twice");
                assert_eq!(owned.insert(pa, asid), None, "two owners of {pa:#x}");
            };
            let root = (space & ((1 << 44) - 1)) << 12;
            let top = self.vm.machine.read(root) >> 10 << 12;
            let l1 = if state == 1 { top } else { self.l1[&asid] };
            assert_eq!(top == self.dead_l1, state == 2);
            self.l1.insert(asid, l1);
            own(root);
            own(l1);
            let (leaves, tables) = self.vm.machine.walk(l1);
            let mut copies = BTreeSet::new();
            let stacks = map::stacks_of(asid);
            let mut lent = BTreeSet::new();
            for (va, entry) in tables {
                if (BUFFERS..0x2000_0000).contains(&va) && entry & MARKS != 0 {
                    lent.insert(va);
                } else if va < 0x2000_0000 || va == stacks || self.copied(va, entry) {
                    copies.insert(va);
                    own(entry >> 10 << 12);
                }
            }
            let control = self.vm.machine.read(root + 8);
            if control != 0 {
                own(control);
            }
            for (va, entry) in leaves {
                let pa = entry >> 10 << 12;
                let windows = (WINDOWS..BUFFERS).contains(&va) && entry & MARKS == 0;
                let buffer = (BUFFERS..0x2000_0000).contains(&va)
                    && va & 0x20_0000 == 0
                    && !lent.contains(&(va >> 21 << 21));
                let table = va < 0x8000;
                let small = self.boot.contains(&asid) && u64::from(asid) != PROCESS;
                let end = if small { 0x1c_0000 } else { 0x800_0000 };
                assert_eq!(table, entry & U == 0, "supervisor page at {va:#x}");
                if table && pa != self.empty
                    || windows
                    || buffer
                    || (STARTUP..end).contains(&va) && entry & MARKS == 0
                    || va >= 0x2000_0000 && copies.contains(&(va >> 21 << 21))
                {
                    own(pa);
                }
            }
            let blocks: Vec<u64> = (0..256).filter(|t| self.is_thread(*t)).map(|t| self.block(t)).collect();
            let blocks: Vec<u64> =
                blocks.into_iter().filter(|b| self.vm.machine.read(b + 0x70) == u64::from(asid)).collect();
            assert_eq!(blocks.len() as u64, threads);
            blocks.into_iter().for_each(&mut own);
            if u64::from(asid) == PM {
                for n in 0..512 {
                    let entry = self.vm.machine.read(self.kernel_l0[1] + n * 8);
                    if entry & V != 0 {
                        own(entry >> 10 << 12);
                    }
                }
            }
            if asid > 4 {
                // What its stacks are sure of and have not touched.
                let promised = pages.checked_sub(mine.len() as u64);
                let promised = promised.unwrap_or_else(|| panic!("{asid} owns {}, pays {pages}", mine.len()));
                // And of its heap.
                let later = self.vm.machine.promised(l1);
                assert!(later == 0 || state == 1, "the dead are promised nothing");
                let most = if state == 1 { (SURE[0] + 31 * SURE[1]) - 32 * FIRST_PAGES } else { 0 };
                assert!((later..=later + most).contains(&promised), "{asid} is promised {promised}");
                self.promised += promised;
            }
        }
        owned
    }

    /// Whether a table at the address of another domain's stacks is not that domain's.
    fn copied(&self, va: u64, entry: u64) -> bool {
        let other = ((va - 0x2000_0000) >> 21) as u16;
        let root =
            self.vm.domain_info(other.into()).map_or(0, |(_, [space, ..])| (space & ((1 << 44) - 1)) << 12);
        if root == 0 || self.state(other) != 1 {
            return true;
        }
        let l1 = self.vm.machine.word(root) >> 10 << 12;
        self.vm.machine.word(l1 + (va >> 21 & 511) * 8) != entry
    }

    /// Some page that a domain sees.
    pub fn page_of(&mut self, asid: u64, n: u64) -> Option<u64> {
        let asid = u16::try_from(asid).ok().filter(|a| (1..256).contains(a) && self.state(*a) == 1)?;
        let view: Vec<u64> = self.view(asid).into_keys().filter(|va| *va >= 0x9000).collect();
        view.get(n as usize % view.len().max(1)).copied()
    }

    /// No slot shows any of so many pages.
    pub fn alone(&self, (asid, VirtAddr(at)): (Asid, VirtAddr), pages: u64) {
        let view = self.view(asid.get() as u16);
        for (other, l1) in &self.l1 {
            for (va, entry) in self.vm.machine.walk(*l1).0.range(WINDOWS..0x2000_0000) {
                let shown = (0..pages).find(|n| view[&(at + n * PAGE)] >> 10 == entry >> 10);
                assert_eq!(shown, None, "{other} sees page {shown:?} at {va:#x}");
            }
        }
    }

    /// Takes note of domains and where their tables are.
    pub fn look(&mut self) {
        self.owned();
    }

    /// Portal code has changed what a domain sees there, and flushed it.
    pub fn forget(&mut self, asid: u16, va: u64, long: bool) {
        let bytes = if long { map::BUFFER_STRIDE } else { PAGE };
        if let Some(seen) = self.vm.machine.tlb.get_mut(&asid) {
            seen.retain(|at, _| !(va / bytes * bytes..va / bytes * bytes + bytes).contains(at));
        }
    }

    /// Everything that must be true between two requests.
    pub fn check(&mut self) {
        let owned = self.owned();
        let [free, all, ..] = self.vm.stats();
        assert!(self.fixed.iter().all(|pa| !owned.contains_key(pa)));
        let known = owned.len() as u64 + self.fixed.len() as u64 + self.promised;
        assert_eq!(known + free, all, "pages lost or found");
        self.windows(&owned);
        self.check_queues();
        self.check_loans();
        for (asid, l1) in &self.l1 {
            let (leaves, tables) = self.vm.machine.walk(*l1);
            let window = |va: &u64| (WINDOWS..0x2000_0000).contains(va);
            for (va, entry) in leaves.into_iter().chain(tables).filter(|(va, _)| window(va)) {
                let pa = entry >> 10 << 12;
                assert!(
                    owned.contains_key(&pa) || self.fixed.contains(&pa),
                    "{asid} keeps a free page in a slot at {va:#x}"
                );
            }
        }
        for asid in 1..256u16 {
            let seen = if self.state(asid) == 1 { self.view(asid) } else { BTreeMap::new() };
            if let Some(stale) = self.vm.machine.tlb.get(&asid) {
                for (va, entry) in stale {
                    assert_eq!(seen.get(va), Some(entry), "{asid} may still see {va:#x}");
                }
            }
            let server = u64::from(asid) == SERVER && self.boot.contains(&asid);
            for (va, entry) in seen.range(ARCHIVE).filter(|_| !server) {
                assert_eq!(*entry, self.archive[va] & !MARKS | OPEN, "{asid} sees something else at {va:#x}");
            }
            let text = |e: &u64| self.archive.values().any(|own| own >> 10 == e >> 10) && e & W == 0;
            let open = seen.range(STARTUP..map::HEAP_END).filter(|(_, entry)| **entry & MARKS == OPEN);
            open.for_each(|(va, entry)| assert!(text(entry), "{asid} shares {va:#x}"));
            for (va, entry) in &seen {
                assert!(*va < USER_END);
                let pa = entry >> 10 << 12;
                // Blocks of threads that nobody has stay mapped.
                let idle = u64::from(asid) == PM
                    && (0x1860_0000..0x1870_0000).contains(va)
                    && !self.is_thread((va - 0x1860_0000) >> 12);
                assert!(
                    idle || pa < map::RAM_PA || owned.contains_key(&pa) || self.fixed.contains(&pa),
                    "{asid} sees a free page at {va:#x}"
                );
            }
            if !seen.is_empty() {
                self.vm.machine.tlb.insert(asid, seen);
            }
        }
    }

    /// Trusted servers see what they shall, and it belongs to those they think.
    fn windows(&self, owned: &BTreeMap<u64, u16>) {
        let window = self.view(PM as u16);
        for (va, entry) in &window {
            let (va, pa) = (*va, entry >> 10 << 12);
            if (0x1900_0000..0x1980_0000).contains(&va) {
                assert_eq!(owned[&pa], ((va - 0x1900_0000) >> 15) as u16, "table window");
            } else if (0x1860_0000..0x1870_0000).contains(&va) && self.is_thread((va - 0x1860_0000) >> 12) {
                assert_eq!(pa, self.block((va - 0x1860_0000) >> 12));
            }
        }
        if self.state(PROCESS as u16) == 1 {
            for (va, entry) in self.view(PROCESS as u16) {
                if (0x1a00_0000..0x1b00_0000).contains(&va) {
                    let pa = entry >> 10 << 12;
                    assert!(self.fixed.contains(&pa) || owned[&pa] > 3, "loader window at {va:#x}");
                }
            }
        }
        for asid in (5..256u16).filter(|a| self.state(*a) == 1) {
            let view = self.view(asid);
            for page in 0..8 {
                let own = view[&(page << 12)] >> 10 << 12;
                let seen = window.get(&(0x1900_0000 + u64::from(asid) * 0x8000 + (page << 12)));
                assert_eq!(seen.map(|e| e >> 10 << 12), (own != self.empty).then_some(own));
            }
        }
    }
}
