//! `differ SECTION`: what calls that are no programmer's wish answer, printed word by word: bad indices,
//! closed portals, words of every size, limits, and what a program that is a server, or a controller itself,
//! sees. The same must be printed under any tools. Without a section: their names.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use pebble::abi::{control as op, map, sys};
use pebble::api::{Errno, PortalError};
use pebble::control::{self, Answer};
use pebble::portal::{MILLISECOND, call, call_wide, time};
use pebble::process::{self, Child};
use pebble::within::Watch;
use pebble::{api, call_within, io, println};

pebble::program!(main);
pebble::handler!(entry = pass);

const SECTIONS: [(&str, fn()); 10] = [
    ("words", words),
    ("closed", closed),
    ("semaphores", semaphores),
    ("server", server),
    ("notices", notices),
    ("controller", controller),
    ("threads", threads),
    ("memory", memory),
    ("children", children),
    ("files", files),
];

const BAD: [[u64; 5]; 6] = [
    [0; 5],
    [1, 1, 1, 1, 1],
    [u64::MAX; 5],
    [1 << 63, 1 << 32, 1 << 16, 1 << 12, 1 << 8],
    [0x6262_6262_6262_6262; 5],
    [40, 4096, u64::MAX - 4095, 40, 1],
];

/// Portals of birth that answer in finite time whatever they are told, and change nothing that others would
/// see.
fn words() {
    let quiet = [
        sys::SYS_YIELD,
        sys::SYS_THREAD_CREATE,
        sys::SYS_PORTAL_OPEN,
        sys::SYS_PORTAL_REGISTER,
        sys::SYS_PORTAL_CREATE,
        sys::SYS_PORTAL_REMOVE,
        sys::SYS_PORTAL_CLOSE,
        sys::SYS_FILE_OPEN,
        sys::SYS_CONSOLE_OPEN,
        sys::SYS_PIPE_OPEN,
        sys::SYS_SEM_OPEN,
        sys::SYS_SEM_PUBLISH,
        sys::SYS_INTERFACE,
    ];
    for index in quiet {
        // Threads, entries and semaphores that work belong to other sections.
        let bad = BAD.iter().filter(|p| index != sys::SYS_THREAD_CREATE || p[0] >= map::USER_END);
        let answers: Vec<_> = bad.map(|p| call_wide(index, *p).map(|(value, _)| value)).collect();
        println!("{index}: {answers:x?}");
    }
    for operation in 0..12 {
        // A place to go on at would be gone to.
        let bad = BAD.iter().filter(|p| operation != op::NOTIFY || p[0] == 0);
        let asked = bad.map(|p| call(sys::SYS_CONTROL, [operation | 1 << 16, p[0], p[1], p[2]]));
        println!("control {operation}: {:x?}", asked.collect::<Vec<_>>());
    }
    for child in [1, 60, 254, 255, 0xffff] {
        println!("child {child}: {:?}", call(sys::SYS_PROCESS, [child, 0x1_0000, 0, 0]));
        println!("starts {child}: {:?}", call(sys::SYS_PROCESS, [child, 0, 0x1_0000, 0]));
    }
    println!("names {:x?}", [0, 3, 13, 40, 41, 44, 4095, 4096].map(|index| control::name(index)));
}

/// Portals that are gone.
fn closed() {
    let Ok(index) = api::portal_open("clock.nanoseconds") else { return };
    println!("{:?} {:?}", api::portal_close(index, 1), call(index, []));
    println!("{:?} {:?}", control::name(index), call_within(MILLISECOND, index, [0; 5]));
    let file = io::open("/bin/hello");
    println!("{file:?}");
    let Ok(file) = file else { return };
    println!("{:?}", (0..4).map(|n| call(file.0 + n, [9, 9, 9])).collect::<Vec<_>>());
    println!("{:?} {:?}", api::portal_close(file.0 + 1, 1), api::portal_open("vm.stats"));
    println!("{:?}", (0..4).map(|n| api::portal_close(file.0 + n, 1)).collect::<Vec<_>>());
    println!("{:?}", api::portal_close(sys::FIRST_FREE, 4));
}

fn semaphores() {
    let made = [0, 1, i32::MAX as u64, i32::MAX as u64 + 1, u64::MAX].map(api::sem_create);
    println!("{made:?}");
    let Ok(sem) = made[1] else { return };
    println!("{:?} {:?}", control::name(sem), control::name(sem + 1));
    println!("{:?} {:?}", api::sem_wait(sem), call_within(0, sem, [0; 5]));
    let own = u64::from(api::get_asid());
    let relative =
        |answer: Result<i64, pebble::portal::Broken>| answer.map_err(|b| (b.0 & 0xffff, b.0 >> 16 == own));
    println!("without P: {:?} {:?}", api::portal_close(sem, 1), relative(call(sem + 1, [])));
    println!("again: {:?} {:?}", api::sem_create(3), relative(call(sem + 1, [])));
    println!("without V: {:?}", made[2].map(|sem| (api::portal_close(sem + 1, 1), relative(call(sem, [])))));
    println!(
        "patient {:?}",
        api::sem_create_patient(2).map(|sem| (call_within(MILLISECOND, sem, [0; 5]), sem))
    );
    println!("watch {:?}", Watch::new().is_ok());
    println!("unwound {:?}", call(sys::SYS_CONTROL, [op::UNWOUND]));
    let many: Vec<_> = (0..100).map(|_| api::sem_create(0)).collect();
    println!("a hundred {:?} .. {:?}", many.first(), many.last());
}

static INTERFACE: AtomicU64 = AtomicU64::new(0);
static GIVEN: AtomicUsize = AtomicUsize::new(0);

/// A server gives its caller portals, and takes them.
extern "C" fn give(caller: u64, take: u64) -> i64 {
    let own = u64::from(api::get_asid());
    let made = if take == 0 {
        api::portal_create(INTERFACE.load(Relaxed), 1, 77).map_err(Errno::from)
    } else {
        api::portal_remove(GIVEN.load(Relaxed), 1).map(|_| 0)
    };
    match made {
        Ok(index) => (index << 1) as i64 | i64::from(caller == own),
        Err(error) => -error,
    }
}

extern "C" fn given(constant: u64, word: u64) -> i64 {
    (constant + word) as i64
}

fn server() {
    let name = |what: &str| alloc::format!("d{}.{what}", api::get_asid());
    let offer = |what: &str, spec: &str, entry: u64| api::portal_register(&name(what), spec, entry, 0);
    let entry = given as extern "C" fn(u64, u64) -> i64 as usize as u64;
    let number = offer("given", "npci", entry);
    println!("offers {}", number.is_ok());
    INTERFACE.store(number.unwrap_or(0).into(), Relaxed);
    println!(
        "offers {}",
        offer("give", "npai", give as extern "C" fn(u64, u64) -> i64 as usize as u64).is_ok()
    );
    for (spec, entry) in [
        ("np", map::USER_END),
        ("npiiiiiii", entry),
        ("npw", entry),
        ("nm", entry),
        ("sp", entry),
        ("npz", entry),
    ] {
        match offer(spec, spec, entry) {
            Err(PortalError::Specification(whose, error)) => {
                println!("{spec}: {error:?}, its own: {}", whose == api::get_asid());
            }
            other => println!("{spec}: {:?}", other.map(|_| ())),
        }
    }
    println!(
        "taken names {:?} {:?}",
        api::portal_register("vm.new", "np", entry, 0),
        offer("give", "np", entry).err()
    );
    let Ok(give) = api::portal_open(&name("give")) else { return println!("cannot be opened") };
    let gets = call(give, [0]);
    println!("at {give}: gives {gets:?}");
    let index = gets.unwrap_or(0) as usize >> 1;
    GIVEN.store(index, Relaxed);
    println!("given {:?}, has a name: {}", call(index, [5]), control::name(index).is_ok());
    println!("takes {:?}, then {:?}", call(give, [1]), api::portal_close(index, 1));
    println!("guards {:?}", number.map(|n| api::portal_guard(n, api::Guard::List)));
    println!("{:?}", number.map(|_| api::portal_open(&name("given"))));
    println!("{:?}", number.map(|n| api::portal_guard(n, api::Guard::Admit(api::get_asid()))));
    println!("{:?}", number.map(|_| api::portal_open(&name("given"))));
}

static TOLD: AtomicUsize = AtomicUsize::new(0);

fn told(index: usize, spec: &str) {
    TOLD.fetch_add(1, Relaxed);
    println!("told of {index}: {spec:?}");
}

fn notices() {
    println!("before {}", TOLD.load(Relaxed));
    println!("{:?}", control::notify(Some(told)));
    println!("{:?}", ["vm.stats", "file.create", "vm.buffer", "vm.map"].map(api::portal_open));
    println!("{:?} {:?}", api::sem_create(0), io::open("/bin"));
    println!("{:?}", api::portal_close(sys::FIRST_FREE + 4, 2));
    println!("{:?} {:?}", control::prepare(), control::behalf());
    println!("{:?}", control::notify(None));
    println!("{:?} {}", api::portal_open("vm.stats"), TOLD.load(Relaxed));
}

static CALLS: AtomicU64 = AtomicU64::new(0);

fn pass(index: usize, p: [u64; 5]) -> Answer {
    CALLS.fetch_add(1, Relaxed);
    control::pass(index, p)
}

fn controller() {
    println!("{:?} {}", control::prepare(), control::behalf());
    println!("{:?}", ["vm.stats", "clock.wall"].map(api::portal_open));
    println!("{:?}", process::prepare());
    let child = control::fork(entry);
    if child == Ok(0) {
        println!("child: {:?} {:?}", api::portal_open("vm.stats"), api::sem_create(1));
        println!("child: {:?} {:?}", control::name(sys::FIRST_FREE), control::prepare());
        println!("child: {:?} {:?}", api::portal_close(sys::FIRST_FREE, 1), api::portal_open("clock.wall"));
        println!("child: {:?}", call(control::behalf(), []).map(|asid| asid == api::get_asid().into()));
        api::exit(5);
    }
    let Ok(child) = child else { return println!("{child:?}") };
    let ended = Child(child).wait();
    println!("{ended:?} after {} calls", CALLS.swap(0, Relaxed));
    let spawned = Child::load("/bin/echo");
    let Ok(spawned) = spawned else { return };
    println!(
        "{:?}",
        [0, 41, 1065, 4095, 4096].map(|index| control::create_child(spawned.0, index, "nm=i", 0, entry))
    );
    println!("{:?} {:?}", control::control(spawned.0, entry), control::control(spawned.0, entry));
    println!(
        "{:?}",
        [0, 41, 1065, 4095, 4096].map(|index| control::create_child(spawned.0, index, "nm=i", 0, entry))
    );
    println!("{:?} {:?}", spawned.argument("echo"), spawned.argument("below controllers"));
    println!("{:?} {:?} after {} calls", spawned.start(), spawned.wait(), CALLS.load(Relaxed));
    println!("{:?}", control::create_child(1, 40, "nm=", 0, entry));
}

extern "C" fn idle(_: u64) {
    let _ = api::hrsleep(u64::MAX >> 1);
}

fn threads() {
    println!("{:?}", [1, 5, 12, 13, 31, 32, 255].map(|n| api::thread_create(idle, 0, n).map(|_| ())));
    // Below many controllers there are fewer threads than otherwise.
    println!("{:?}", [(); 10].map(|()| api::thread_create(idle, 0, 0).map(|_| ())));
}

fn memory() {
    let heap = api::sbrk(0);
    println!("{heap:?} {:?} {:?}", api::sbrk(1 << 14), api::sbrk(-(1 << 14)));
    println!("{:?}", [-(1 << 30), 1 << 30, i64::MIN, i64::MAX].map(api::sbrk));
    let names = [
        "vm.buffer",
        "vm.buffer_free",
        "vm.window_close",
        "vm.window_claim",
        "vm.receive_window",
        "vm.touch",
        "vm.window_move",
        "vm.provide",
    ];
    for name in names {
        let Ok(index) = api::portal_open(name) else { return println!("no {name}") };
        println!("{name} {index}: {:x?}", BAD.map(|p| call(index, p)));
    }
    let mut pages = 0;
    let refused = loop {
        match api::sbrk(4096) {
            Ok(_) => pages += 1,
            Err(error) => break error,
        }
    };
    println!("{pages} pages, then {refused}");
}

fn children() {
    for path in ["/bin/nosuch", "/bin", "/etc/supervisor", "", "/bin/hello/x"] {
        println!("{path}: {:?}", Child::load(path).map(|_| ()));
    }
    let child = Child::load("/bin/hello");
    let Ok(child) = child else { return };
    println!("{:?} {:?}", child.kill(), child.wait());
    println!("{:?} {:?}", child.wait(), child.start());
    let long: String = (0..4000).map(|_| 'x').collect();
    let child = Child::load("/bin/echo");
    println!(
        "{:?}",
        child.map(|child| (child.argument(&long), child.stdio(3, "/x"), child.kill(), child.wait()))
    );
    for (program, arguments) in [
        ("/bin/cat", &["cat", "/nosuch"][..]),
        ("/bin/differ", &["differ", "exit"]),
        ("/bin/differ", &["differ", "fault"]),
    ] {
        println!("{program}: {:?}", Child::run(program, arguments).map(|child| child.wait()));
    }
    println!("{:?} {:?}", Child(api::get_asid()).wait(), Child(1).wait());
    let Ok(share) = api::portal_open("process.share") else { return };
    println!("{:?}", [0, 1, 100, 101].map(|percent| call(share, [1, percent])));
    let (Ok(list), Ok(stats)) = (api::portal_open("process.list"), api::portal_open("vm.stats")) else {
        return;
    };
    let (mut domains, mut from) = (0u64, 0);
    while let Ok((domain @ 0.., _)) = call_wide(list, [from, 0, 0, 0, 0]) {
        (domains, from) = (domains + 1, domain as u64 + 1);
    }
    let stats = call_wide(stats, [0; 5]).map(|(_, more)| (more[2], more[3]));
    println!("{domains} domains, domains and threads {stats:?}");
}

fn files() {
    let mut open = Vec::new();
    let refused = loop {
        match io::open("/bin/hello") {
            Ok(file) => open.push(file),
            Err(error) => break error,
        }
    };
    println!("{} files, then {refused}", open.len());
    open.into_iter().for_each(io::File::close);
    println!("{:?}", io::open("/bin/hello"));
}

fn main() -> i64 {
    let section = io::args().nth(1).unwrap_or_default();
    match section.as_str() {
        "exit" => return 1 << 40 | 300,
        "fault" => pebble::attack::load(0),
        _ => {}
    }
    // Standard output is open from here on.
    println!("{section} at {}", time() > 0);
    match SECTIONS.iter().find(|(name, _)| *name == section) {
        Some((_, run)) => run(),
        None => SECTIONS.iter().for_each(|(name, _)| println!("{name}")),
    }
    3
}
