//! What hostile components do.

use pebble::abi::{map, status, sys};
use pebble::api;
use pebble::attack::{self, Bad};
use pebble::call_within;
use pebble::portal::call;
use pebble::sync::Lock;

/// How it must end.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The domain is killed for the fault.
    Fault,
    /// It goes on for ever: somebody has to kill it.
    Runs,
    /// It is refused, and ends by itself with this status.
    Status(i64),
}

pub struct Kind {
    pub name: &'static str,
    pub what: &'static str,
    pub act: fn(),
    pub end: End,
}

macro_rules! kinds {
    ($($name:literal, $end:expr, $what:literal, $act:expr;)*) => {
        pub const ALL: &[Kind] = &[$(Kind { name: $name, what: $what, act: $act, end: $end }),*];
    };
}

kinds! {
    "null", End::Fault, "reads address 0, where the portal table is", || attack::load(0);
    "write-table", End::Fault, "writes its portal table", || attack::store(8 * 40, 0);
    "nucleus", End::Fault, "reads the nucleus", || attack::load(map::NUCLEUS_VA);
    "thread-block", End::Fault, "writes its thread block", || attack::store(map::thread_va(0), 0);
    "semaphores", End::Fault, "writes a semaphore word", || attack::store(map::semaphore_va(0), 1);
    "text", End::Fault, "writes its own code", || attack::store(map::IMAGE_VA, 0);
    "data", End::Fault, "executes its stack", || attack::execute_stack();
    "unmapped", End::Fault, "reads memory that it does not have", || attack::load(0x0700_0000);
    "device", End::Fault, "writes the console's registers", || attack::store(map::DEVICE_VA, 0);
    "other-stack", End::Fault, "reads another domain's stack", || attack::load(map::stack_top(1, 0) - 8);
    "misaligned", End::Fault, "jumps to an address outside all \
     memory", || attack::jump(0xffff_ffff_0000_0000);
    "zero", End::Fault, "executes zeroes", || attack::execute(Bad::Zero);
    "ones", End::Fault, "executes what is no instruction", || attack::execute(Bad::Ones);
    "breakpoint", End::Fault, "stops for a debugger that is not there", || attack::execute(Bad::Breakpoint);
    "machine-return", End::Fault, "returns from the firmware", || attack::execute(Bad::MachineReturn);
    "wait-instruction", End::Fault, "waits for an interrupt", || attack::execute(Bad::WaitForInterrupt);
    "fence", End::Fault, "has translations forgotten", || attack::execute(Bad::Fence);
    "machine-register", End::Fault, "reads a register of the firmware", || attack::execute(Bad::ReadMachine);
    "counter", End::Fault, "sets a counter", || attack::execute(Bad::WriteCounter);
    "float", End::Fault, "computes with registers that it has not", || attack::execute(Bad::Float);
    "vector", End::Fault, "computes with registers that nobody has", || attack::execute(Bad::Vector);
    "atomic", End::Fault, "changes a word of the nucleus in one \
     step", || attack::add_atomically(map::KDATA_VA);
    "atomic-misaligned", End::Fault, "changes in one step what is no \
     word", || attack::add_atomically(&raw const MISALIGNED as u64 + 1);
    "across", End::Fault, "reads a word of which it has \
     half", || attack::load(map::STARTUP_VA + map::PAGE - 4);
    "exception-entry", End::Fault, "invokes the entry for exceptions", || invoke(sys::EXCEPTION);
    "interrupt-entry", End::Fault, "invokes the entry for interrupts", || invoke(sys::INTERRUPT);
    "privileged", End::Fault, "writes a privileged register", attack::privileged;
    "sret", End::Fault, "executes a privileged return", attack::sret;
    "portal-code", End::Fault, "jumps into portal code", || attack::jump(map::CODE_VA);
    "gate", End::Fault, "writes the gate page", || attack::store(map::GATE_VA, 0);
    "bad-index", End::Fault, "invokes an index that it does not hold", || invoke(999);
    "wild-index", End::Fault, "invokes an index beyond the table", || invoke(usize::MAX - 5);
    "panic", End::Fault, "panics", || panic!("told to");
    "sp-zero", End::Fault, "faults with a stack pointer of zero", || attack::fault_on_stack(0);
    "sp-end", End::Fault, "faults with a stack pointer at the end of all \
     addresses", || attack::fault_on_stack(u64::MAX - 7);
    "sp-nucleus", End::Fault, "faults with a stack pointer into thread \
     blocks", || attack::fault_on_stack(map::thread_va(0));
    "sp-other", End::Fault, "faults with a stack pointer into another domain's \
     stack", || attack::fault_on_stack(map::stack_top(1, 0) - 512);
    "sp-device", End::Fault, "faults with a stack pointer into a \
     device", || attack::fault_on_stack(map::DEVICE_VA);
    "sp-odd", End::Fault, "faults with a stack pointer between two words, at its image's \
     end", || attack::fault_on_stack(map::IMAGE_VA + 0xfff);
    "stack", End::Fault, "overflows its stack", || attack::overflow_stack();
    "invocations", End::Fault, "overflows its invocation stack", || invocations();
    "loop", End::Runs, "loops for ever", || loop { core::hint::spin_loop() };
    "yield-loop", End::Runs, "yields for ever", || loop { api::yield_now() };
    "call-loop", End::Runs, "calls the system for ever", || loop { api::get_asid(); };
    "sleep", End::Runs, "sleeps for ever", || loop { let _ = api::hrsleep(u64::MAX >> 1); };
    "wait", End::Runs, "waits on a semaphore that nobody posts", wait;
    "registers", End::Runs, "loops with nonsense in every register", attack::nonsense;
    "fork", End::Status(7), "makes threads without end", fork;
    "portals", End::Status(7), "opens portals without end", portals;
    "memory", End::Status(7), "takes memory without end", memory;
    "semaphore-storm", End::Status(7), "makes semaphores without end", semaphores;
    "semaphore-names", End::Status(7), "gives a semaphore names without end", names;
    "policy", End::Status(7), "opens what only servers may", policy;
    "specifications", End::Status(7), "registers and opens the longest specifications", specifications;
    "interfaces", End::Status(7), "registers interfaces without end", interfaces;
    "thread-exit", End::Status(0), "ends the thread that it runs in, whoever's it is", thread_exit;
    "thread-end", End::Fault, "invokes the entry by which threads end", || invoke(sys::THREAD_END);
    "late-gate", End::Fault, "jumps to where the gate ends calls whose time is \
     over", || attack::jump(map::GATE_UNWIND);
    "late-index", End::Fault, "invokes the entry that ends calls whose time is over", || invoke(sys::UNWIND);
    "late-after", End::Fault, "jumps there when a call of its own, into itself, has ended so", late_after;
    "moved-index", End::Fault, "says that it is being replaced", || invoke(sys::LEAVE_MOVED);
    "wait-index", End::Fault, "says that it will wake its caller", || invoke(sys::LEAVE_WAIT);
    "stack-index", End::Runs, "waits for a stack of nobody", || loop { invoke(sys::NO_STACK) };
    "exit", End::Status(7), "exits, with calls in progress", || api::exit(7);
    "thread-fault", End::Fault, "faults in a second thread", || { let _ = api::thread_create(second, 0, 0); loop { api::yield_now() } };
}

pub fn find(name: &str) -> Option<&'static Kind> {
    ALL.iter().find(|k| k.name == name)
}

pub fn misbehave(kind: &Kind) -> i64 {
    (kind.act)();
    // It should not have come so far.
    99
}

/// An atomic access crosses no word's end.
static MISALIGNED: [u64; 2] = [0; 2];

fn invoke(index: usize) {
    let _ = call(index, [0; 5]);
}

/// As a server it is refused; its caller shall hear of it.
pub fn thread_exit() {
    let _ = call(sys::SYS_THREAD_EXIT, []);
    attack::store(16, 1);
}

extern "C" fn second(_: u64) {
    attack::store(16, 1);
}

/// A portal into the own domain.
fn inward(what: &str, spec: &str, entry: extern "C" fn() -> i64) -> Option<usize> {
    let name = own_name(what);
    api::portal_register(&name, spec, entry as usize as u64, 0).ok()?;
    api::portal_open(&name).ok()
}

/// One that is called from within itself.
fn invocations() {
    static PORTAL: Lock<usize> = Lock::new(0);
    extern "C" fn again() -> i64 {
        let index = *PORTAL.lock();
        call(index, [0; 5]).unwrap_or(0)
    }
    if let Some(index) = inward("again", "sm", again) {
        *PORTAL.lock() = index;
        again();
    }
}

/// What the portal manager has let end is over; nothing of it may be left for the call that this domain is
/// in.
fn late_after() {
    extern "C" fn spin() -> i64 {
        loop {
            core::hint::spin_loop();
        }
    }
    let index = inward("spin", "np", spin).unwrap_or(0);
    match call_within(pebble::portal::MILLISECOND / 10, index, [0; 5]) {
        Err(broken) if status::code(broken.0) == status::TIMEOUT => attack::jump(map::GATE_UNWIND),
        _ => api::exit(1),
    }
}

fn own_name(what: &str) -> alloc::string::String {
    alloc::format!("hostile{}.{what}", api::get_asid())
}

fn wait() {
    if let Ok(semaphore) = api::sem_create(0) {
        let _ = api::sem_wait(semaphore);
    }
}

extern "C" fn sleeper(_: u64) {
    let _ = api::hrsleep(u64::MAX >> 1);
}

fn fork() {
    while api::thread_create(sleeper, 0, 0).is_ok() {}
    api::exit(7);
}

fn portals() {
    while api::portal_open("clock.nanoseconds").is_ok() {}
    api::exit(7);
}

fn memory() {
    while api::sbrk(1 << 16).is_ok() {}
    api::exit(7);
}

fn semaphores() {
    while api::sem_create(1).is_ok() {}
    api::exit(7);
}

fn names() {
    let semaphore = api::sem_create(1).unwrap_or(0);
    let name = |n: u32| own_name(&alloc::format!("{n}"));
    while (0..).try_for_each(|n| api::sem_publish(semaphore, &name(n)).map(|_| ())).is_ok() {}
    api::exit(7);
}

/// Names that would give it others' memory, threads, portals or files.
fn policy() {
    for name in [
        "vm.domain_kill",
        "vm.map",
        "vm.attach",
        "vm.code_page",
        "pm.retire",
        "pm.open_for",
        "pm.count",
        "scheduler.thread_start",
        "scheduler.priority",
        "scheduler.domain_abort",
        "scheduler.p",
        "name.register",
        "name.domain",
        "irq.ack",
        "file.read",
        "console.read",
        "console.gone",
        "console.log",
        "process.log",
        "vm.dump",
        "pm.frame",
        "pipe.write",
        "pipe.gone",
    ] {
        if api::portal_open(name).is_ok() {
            api::exit(1);
        }
    }
    api::exit(7);
}

/// Compiling and verifying them must fit the portal manager's stack.
fn specifications() {
    for (n, spec) in ["nfg2g512", "nfw2r512", "sfo16t16", "nft9t512", "nfgo512h", "spcdah=b", "nfiwriii"]
        .iter()
        .enumerate()
    {
        let name = own_name(&alloc::format!("s{n}"));
        for results in [0, 6] {
            let _ = api::portal_register(&alloc::format!("{name}.{results}"), spec, map::IMAGE_VA, results);
            if let Ok(index) = api::portal_open(&alloc::format!("{name}.{results}")) {
                let _ = api::portal_close(index, 1);
            }
        }
    }
    api::exit(7);
}

fn interfaces() {
    for n in 0.. {
        if api::portal_register(&own_name(&alloc::format!("{n}")), "np", map::IMAGE_VA, 0).is_err() {
            break;
        }
    }
    api::exit(7);
}

/// Offers an entry that tells which registers it was entered with.
pub fn mirror(name: &str) -> i64 {
    if api::portal_register(name, "np", attack::look as extern "C" fn() -> i64 as usize as u64, 0).is_err() {
        return 98;
    }
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}

/// Offers one interface, and misbehaves when it is called.
pub fn serve(kind: &'static Kind, name: &str) -> i64 {
    static KIND: Lock<Option<&Kind>> = Lock::new(None);
    extern "C" fn victim() -> i64 {
        let kind = *KIND.lock();
        if let Some(kind) = kind {
            (kind.act)();
        }
        0
    }
    *KIND.lock() = Some(kind);
    if api::portal_register(name, "npi", victim as extern "C" fn() -> i64 as usize as u64, 0).is_err() {
        return 98;
    }
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}
