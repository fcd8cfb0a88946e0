//! Tries the VM manager on the machine, in the place of the process server.
//!
//! Makes domains, writes a few instructions into each, lets them fault in every way, and reads what the fault
//! records say; many times over, after which as many pages must be free as before. Prints one line each, then
//! `vm-test: passed` or what failed.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU64, Ordering};
use pebble::abi::fault::Cause;
use pebble::abi::map::{self, IMAGE_VA, PAGE};
use pebble::abi::{errno, status};
use pebble::api;
use pebble::buffer::{self, Buffer, Window};
use pebble::link::Import;
use pebble::mmio::Mmio;
use pebble::portal::{Broken, MILLISECOND, time};
use pebble::power::Power;
use pebble::region::LOADER;
use pebble_arch::{Arch, Native, Processor};

pebble::import! {
    CREATE = "vm.domain_create";
    MAP = "vm.map";
    HEAP = "vm.heap";
    ATTACH = "vm.attach";
    DETACH = "vm.detach";
    SPAWN = "vm.thread_spawn";
    INFO = "vm.domain_info";
    KILL = "vm.domain_kill";
    FREE = "vm.domain_free";
    THREAD_FREE = "vm.thread_free";
    FAULT_NEXT = "vm.fault_next";
    STATS = "vm.stats";
    TABLE = "pm.domain_attach";
    RETIRE = "pm.retire";
    RECLAIM = "pm.reclaim";
    REAP = "scheduler.reap";
    REAPER = "semaphore.reaper";
    FAULT = "semaphore.fault";
    VICTIM = "victim.touch";
    DIVER = "diver.deep";
    FORK = "vm.fork";
    THREAD_FORK = "vm.thread_fork";
    BUFFER = "vm.buffer";
    BUFFER_FREE = "vm.buffer_free";
    WINDOW_CLOSE = "vm.window_close";
    WINDOW_MOVE = "vm.window_move";
    RECEIVE_WINDOW = "vm.receive_window";
}
pebble::component!(main);

const UART: Mmio = Mmio::new(0, &map::DEVICE_UART.registers[0]);
const POWER: Power = Power::new(1);

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|b| UART.write8(0, b));
        Ok(())
    }
}

macro_rules! say {
    ($($t:tt)*) => { { let _ = writeln!(Console, $($t)*); } };
}

fn fail(what: &str, got: &dyn fmt::Debug) -> ! {
    say!("vm-test: failed: {what}: {got:?}");
    loop {
        POWER.off(1);
    }
}

fn call(import: &Import, p: [u64; 5]) -> i64 {
    import.call(p).unwrap_or_else(|broken| fail("a call", &broken))
}

fn must(what: &str, import: &Import, p: [u64; 5]) -> u64 {
    match call(import, p) {
        error @ ..0 => fail(what, &error),
        value => value as u64,
    }
}

fn expect<T: PartialEq + fmt::Debug>(what: &str, got: T, want: T) {
    if got != want {
        fail(what, &(got, want));
    }
}

/// Programs, each in the words of the processor, and the cause and value that their records must show.
const PROGRAMS: [(&str, &[u32], Option<Cause>, u64); 8] = [
    // A load from 16, a control register, a jump to the value, a call, a loop of pushes, a store to the
    // image, a loop, and a return: to the gate, which ends the thread.
    ("null pointer", WORDS[0], Some(Cause::Load), 16),
    ("privileged instruction", WORDS[1], Some(Cause::Illegal), WORDS[1][0] as u64),
    ("jump into portal code", WORDS[2], Some(Cause::Fetch), 0xffff_ffff_8020_0000),
    ("index not held", WORDS[3], Some(Cause::Call), 999),
    ("stack overflow", WORDS[4], Some(Cause::StackOverflow), 0),
    ("write to code", WORDS[5], Some(Cause::Store), IMAGE_VA),
    ("endless loop", WORDS[6], None, 0),
    ("return", WORDS[7], None, 0),
];

const WORDS: [&[u32]; 8] = match Native::PROCESSOR {
    Processor::Mips64 => [
        // lw $5, 16($0)
        &[0x8c05_0010],
        // mfc0 $5, $12
        &[0x4005_6000],
        // lui $5, 0x8020; jr $5
        &[0x3c05_8020, 0x00a0_0008, 0],
        // ori $12, $0, 999; syscall
        &[0x340c_03e7, 0x0000_000c],
        // 1: daddiu $29, $29, -1024; sd $0, 0($29); b 1b
        &[0x67bd_fc00, 0xffa0_0000, 0x1000_fffd, 0],
        // lui $5, 1; sd $0, 0($5)
        &[0x3c05_0001, 0xfca0_0000],
        // 1: b 1b
        &[0x1000_ffff, 0],
        // jr $31
        &[0x03e0_0008, 0],
    ],
    _ => [
        // lw x5, 16(x0)
        &[0x0100_2283],
        // csrr x5, sstatus
        &[0x1000_22f3],
        // lui x5, 0x80200; jr x5
        &[0x8020_02b7, 0x0002_8067],
        // li x5, 999; ecall
        &[0x3e70_0293, 0x0000_0073],
        // 1: addi sp, sp, -1024; sd x0, 0(sp); j 1b
        &[0xc001_0113, 0x0001_3023, 0xff9f_f06f],
        // lui x5, 0x10; sd x0, 0(x5)
        &[0x0001_02b7, 0x0002_b023],
        // 1: addi x5, x5, 1; j 1b
        &[0x0012_8293, 0xffdf_f06f],
        // ret
        &[0x0000_8067],
    ],
};

fn make(code: &[u32]) -> u64 {
    let domain = must("create", &CREATE, [0, 400, 5, 4, 0]);
    must("map", &MAP, [domain, IMAGE_VA, 1, map::READ | map::EXECUTE, 0]);
    must("heap", &HEAP, [domain, IMAGE_VA + PAGE, 0, 0, 0]);
    must("attach", &ATTACH, [domain, IMAGE_VA, 1, 0x5000, 0]);
    for (at, word) in (0x5000..).step_by(4).zip(code) {
        LOADER.write32(at, *word);
    }
    must("detach", &DETACH, [0x5000, 1, 0, 0, 0]);
    must("table", &TABLE, [domain, 0, 0, 0, 0]);
    domain
}

fn bury(domain: u64, thread: u64) {
    must("kill", &KILL, [domain, 0, 0, 0, 0]);
    must("kill again", &KILL, [domain, 0, 0, 0, 0]);
    let _ = api::sem_wait(REAPER.index());
    expect("reaped", must("reap", &REAP, [0; 5]), thread);
    must("retire", &RETIRE, [domain, 0, 0, 0, 0]);
    expect("free before its thread", call(&FREE, [domain, 0, 0, 0, 0]), -errno::EAGAIN);
    must("free thread", &THREAD_FREE, [thread, 0, 0, 0, 0]);
    must("reclaim", &RECLAIM, [domain, 0, 0, 0, 0]);
    must("free", &FREE, [domain, 0, 0, 0, 0]);
}

fn round(loud: bool) {
    for (name, code, cause, value) in &PROGRAMS {
        let domain = make(code);
        let thread = must("spawn", &SPAWN, [domain, IMAGE_VA, 0, 0, 0]);
        let Some(cause) = cause else {
            let _ = api::hrsleep(time() + MILLISECOND / 5);
            bury(domain, thread);
            continue;
        };
        let _ = api::sem_wait(FAULT.index());
        let Ok((who, [why, what, place, in_thread])) = FAULT_NEXT.call_wide([0; 5]) else {
            fail(name, &"no record")
        };
        if loud {
            say!("{name}: domain {who} thread {in_thread} cause {why} value {what:#x} at {place:#x}");
        }
        expect(name, (who, why, in_thread), (domain as i64, *cause as u64, thread));
        if *value != 0 {
            expect(name, what, *value);
        }
        expect(name, INFO.call([domain, 0, 0, 0, 0]), Ok(2));
        bury(domain, thread);
    }
}

extern "C" fn wait_for_fault(_: u64) {
    let _ = api::sem_wait(FAULT.index());
    let record = FAULT_NEXT.call_wide([0; 5]);
    say!("diver's record: {record:x?}");
    expect("its cause", record.map(|(_, more)| more[0]), Ok(Cause::InvocationOverflow as u64));
}

static SUM: AtomicU64 = AtomicU64::new(0);

extern "C" fn add(n: u64) {
    SUM.fetch_add(n, Ordering::Relaxed);
}

fn own_threads() {
    for n in 1..=10 {
        expect("thread", api::thread_create(add, n, 0).is_ok(), true);
    }
    for _ in 0..10 {
        let _ = api::sem_wait(REAPER.index());
        must("free thread", &THREAD_FREE, [must("reap", &REAP, [0; 5]), 0, 0, 0, 0]);
    }
    expect("sum", SUM.swap(0, Ordering::Relaxed), 55);
    expect("priority", api::thread_create(add, 0, 11), Err(errno::EPERM));
    let mut made = 0;
    while api::thread_create(add, 0, 0).is_ok() {
        made += 1;
    }
    for _ in 0..made {
        let _ = api::sem_wait(REAPER.index());
        must("free thread", &THREAD_FREE, [must("reap", &REAP, [0; 5]), 0, 0, 0, 0]);
    }
    say!("forks without end: {made}");
}

fn heap() {
    let start = api::sbrk(0);
    expect("grow", api::sbrk(100_000), start);
    expect("shrink", api::sbrk(-100_000), start.map(|s| s + 100_000));
    let mut made = 0;
    while api::sbrk(1 << 20).is_ok() {
        made += 1;
    }
    expect("shrink", api::sbrk(-(made << 20)), start.map(|s| s + (made << 20) as u64));
    say!("sbrk without end: {made} MiB");
}

/// Buffers, their twins and places, with nobody to lend them to.
fn buffers() {
    for (service, import) in [
        (&buffer::BUFFER, &BUFFER),
        (&buffer::BUFFER_FREE, &BUFFER_FREE),
        (&buffer::WINDOW_CLOSE, &WINDOW_CLOSE),
        (&buffer::WINDOW_MOVE, &WINDOW_MOVE),
        (&buffer::RECEIVE_WINDOW, &RECEIVE_WINDOW),
    ] {
        service.bind(import.index());
    }
    for pages in [1, 3, 512] {
        let Ok(own) = Buffer::new(pages) else { fail("buffer", &pages) };
        let last = pages * PAGE as usize;
        expect("its end", own.window().set_word(last - 7, 1), Err(errno::EFAULT));
        expect("last word", own.window().write(last - 11, b"hello world"), Ok(()));
        let twin = Window::pages(own.address() + map::BUFFER_STRIDE / 2, pages);
        let mut seen = [0; 11];
        expect("twin", twin.and_then(|twin| twin.read(last - 11, &mut seen)), Ok(()));
        expect("what it shows", &seen, b"hello world");
        let Ok(place) = buffer::receive_window(pages.max(2)) else { fail("place", &pages) };
        let from = own.address();
        expect("move", own.give(place.address()), Ok(()));
        expect("from", call(&BUFFER_FREE, [from, 0, 0, 0, 0]), -errno::EINVAL);
    }
    // A page of the heap, to a place of its own.
    let page = api::sbrk(2 * PAGE as i64).map_or(0, |at| at.next_multiple_of(PAGE));
    let Ok(place) = buffer::receive_window(1) else { fail("place", &1) };
    must("move", &WINDOW_MOVE, [page, place.address(), 0, 0, 0]);
    expect("its word", place.window().set_word(8, 7), Ok(()));
    expect("read back", place.window().word(8), Ok(7));
    drop(place);
    expect("shrink", api::sbrk(-2 * PAGE as i64).is_ok(), true);
}

/// The child runs the parent's code, upon a copy of its stack at the same address.
fn fork() {
    // A loop; behind it the argument goes over the stack, and is loaded from.
    const CODE: &[u32] = match Native::PROCESSOR {
        // 1: b 1b; nop; sd $4, -8($29); ld $5, -8($29); ld $5, 0($5)
        Processor::Mips64 => &[0x1000_ffff, 0, 0xffa4_fff8, 0xdfa5_fff8, 0xdca5_0000],
        // 1: addi x5, x5, 1; j 1b; sd a0, -8(sp); ld x5, -8(sp); ld x5, 0(x5)
        _ => &[0x0012_8293, 0xffdf_f06f, 0xfea1_3c23, 0xff81_3283, 0x0002_b283],
    };
    let parent = make(CODE);
    let thread = must("spawn", &SPAWN, [parent, IMAGE_VA, 0, 0, 0]);
    let child = must("create", &CREATE, [0, 200, 5, 4, 0]);
    must("table", &TABLE, [child, 0, 0, 0, 0]);
    let sp = map::stack_top(parent as u16, map::FIRST_STACK) - 64;
    must("fork", &FORK, [parent, child, sp, 0, 0]);
    let second = must("its thread", &THREAD_FORK, [child, IMAGE_VA + 8, sp, 0x1008, 0]);
    let _ = api::sem_wait(FAULT.index());
    let record = FAULT_NEXT.call_wide([0; 5]);
    expect("the child", record, Ok((child as i64, [Cause::Load as u64, 0x1008, IMAGE_VA + 16, second])));
    bury(child, second);
    bury(parent, thread);
}

fn main() -> i64 {
    let stats = || STATS.call_wide([0; 5]).map_or([0; 4], |(_, words)| words);
    say!("stats {:?}", stats());
    expect(
        "mapping into the scheduler",
        call(&MAP, [1, IMAGE_VA + 0x10_0000, 1, map::READ | map::WRITE, 0]),
        -errno::EPERM,
    );
    expect("killing it", call(&KILL, [1, 0, 0, 0, 0]), -errno::EPERM);
    own_threads();
    heap();
    round(true);
    buffers();
    fork();
    let births = |rounds: usize| {
        for n in 0..rounds {
            round(false);
            if n % 5 == 0 {
                buffers();
                fork();
            }
        }
    };
    // Until the servers' heaps are as large as all this wants them.
    births(25);
    let before = stats();
    say!("stats {before:?}");
    births(125);
    say!("stats {:?} after 1000 more", stats());
    expect("pages", stats(), before);
    let died = VICTIM.call([0, 0, 0, 0, 0]);
    let victim = died.map_or_else(|Broken(s)| s, |_| 0);
    expect("the victim", status::code(victim), status::DEAD);
    let _ = api::sem_wait(FAULT.index());
    let record = FAULT_NEXT.call_wide([0; 5]);
    say!("victim: {record:x?}, status names domain {}", status::domain(victim));
    expect(
        "its record",
        record.map(|(who, more)| (who as u16, more[0])),
        Ok((status::domain(victim), Cause::Load as u64)),
    );
    // Somebody waits for the record, so that posting it enters the scheduler.
    expect("waiter", api::thread_create(wait_for_fault, 0, 0).is_ok(), true);
    let _ = api::hrsleep(time() + MILLISECOND / 10);
    let died = DIVER.call([0; 5]).map_or_else(|Broken(s)| s, |n| n as u64);
    say!("diver: {died:#x}");
    expect("the diver", status::code(died), status::DEAD);
    let _ = api::sem_wait(REAPER.index());
    say!("vm-test: passed");
    loop {
        POWER.off(0);
    }
}
