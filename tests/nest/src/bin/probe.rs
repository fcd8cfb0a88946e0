//! `probe`: calls every portal that a program has, well and badly, and prints all that it can learn but
//! times: what it prints must not depend on whether it is controlled, or how deep. Domains and threads are
//! told relative to its own, since they are numbered in order.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::{link, map, sys};
use pebble::api::Errno;
use pebble::portal::{MILLISECOND, call, call_wide, time};
use pebble::process::Child;
use pebble::{api, call_within, io, println};

pebble::program!(main);

static SERVED: AtomicU64 = AtomicU64::new(0);

extern "C" fn serve(_caller: u64, a: u64, b: u64) -> i64 {
    SERVED.fetch_add(a * b, Relaxed);
    (a + b) as i64
}

extern "C" fn thread(semaphore: u64) {
    let _ = api::sem_post(semaphore as usize);
}

/// The table, as far as it can be felt: an index that is not held cannot be closed. Runs of held ones, and
/// none is lost, since the last of each attempt never is.
fn table(when: &str) {
    let held = |index: usize| call(sys::SYS_SEM_PUBLISH, [index as u64, 0, 0, 0]);
    let mut runs = alloc::vec::Vec::new();
    for index in sys::FIRST_FREE..map::TABLE_ENTRIES {
        let answer = held(index);
        if runs.last().is_none_or(|(_, last)| *last != answer) {
            runs.push((index, answer));
        }
    }
    println!("{when}: publishing by index answers {runs:?}");
}

fn portals() {
    let opened =
        ["clock.nanoseconds", "vm.stats", "name.list", "vm.map", "nothing", ""].map(api::portal_open);
    println!("opened {opened:?}");
    let wide: alloc::vec::Vec<_> = opened
        .iter()
        .flatten()
        .map(|index| call_wide(*index, [0; 5]).map(|(value, _)| value > 0).map_err(|b| b.0))
        .collect();
    println!("answers {wide:?}");
    table("opened");
    println!("closed {:?}", opened.map(|index| index.map(|index| api::portal_close(index, 1))));
    let again = api::portal_open("vm.stats");
    println!("opened again {again:?}, closed {:?}", again.map(|index| api::portal_close(index, 1)));
    println!("closes what it has not: {:?} {:?}", api::portal_close(4000, 1), api::portal_close(3, 1));
    println!("closes too much: {:?}", call(sys::SYS_PORTAL_CLOSE, [40, u64::MAX]));
    // Holes: every index that is free is used, the lowest first.
    let many: alloc::vec::Vec<_> = (0..60).map(|_| api::portal_open("vm.stats")).collect();
    println!("sixty: {many:?}");
    many.into_iter().flatten().for_each(|index| assert!(api::portal_close(index, 1).is_ok()));
}

fn semaphores() {
    let semaphore = api::sem_create(1);
    println!("semaphore {semaphore:?}");
    let Ok(semaphore) = semaphore else { return };
    println!(
        "P {:?} V {:?} P {:?}",
        api::sem_wait(semaphore),
        api::sem_post(semaphore),
        api::sem_wait(semaphore)
    );
    let name = alloc::format!("probe.semaphore{}", api::get_asid());
    println!(
        "published {:?} {:?}",
        api::sem_publish(semaphore, &name),
        api::sem_publish(semaphore + 1, &name)
    );
    println!("opened {:?} {:?}", api::sem_open(&name), api::sem_open("nothing"));
    for _ in 0..3 {
        let made = api::thread_create(thread, semaphore as u64, 0).is_ok();
        println!("thread {made}, P {:?}", api::sem_wait(semaphore));
    }
    println!("bad thread {:?}", call(sys::SYS_THREAD_CREATE, [u64::MAX, 0, 0]));
    println!("closed {:?}", api::portal_close(semaphore, 2));
}

fn own() {
    let name = alloc::format!("probe{}.serve", api::get_asid());
    let entry = serve as extern "C" fn(u64, u64, u64) -> i64 as usize as u64;
    let registered = api::portal_register(&name, "npaii", entry, 0);
    println!(
        "registered {:?}, own {:?}",
        registered.is_ok(),
        api::own_interface(&name).ok() == registered.ok().map(u64::from)
    );
    println!("again {:?}", api::portal_register(&name, "npaii", entry, 0).err().map(Errno::from));
    println!("not own {:?}", api::own_interface("vm.sbrk"));
    println!(
        "bad {:?} {:?}",
        api::portal_register("x", "nz", entry, 0).map_err(Errno::from),
        api::portal_register("y", "np", 0, 0).map_err(Errno::from)
    );
    let Ok(index) = api::portal_open(&name) else { return println!("not to be opened") };
    println!("at {index}: {:?}, {}", call(index, [3, 4]), SERVED.load(Relaxed));
    println!("creates for nobody {:?}", api::portal_create(u64::MAX, 1, 0).map_err(Errno::from));
    println!("removes {:?}", api::portal_remove(index, 1));
    println!("closed {:?}", api::portal_close(index, 1));
}

fn files() {
    for path in ["/bin/hello", "/nowhere", "/bin", "/dev/console/nothing", "/pipe/0/r"] {
        let file = io::open(path);
        let mut bytes = [0; 8];
        let read = file.map(|file| file.read(&mut bytes));
        println!("{path}: {file:?} {read:?} {bytes:?}");
        println!("{:?}", file.map(|file| (file.seek(2, 0), file.seek(-9, 0), file.write(b"x"))));
        file.into_iter().for_each(io::File::close);
    }
    let file = io::create("/ram/probe");
    println!("made {file:?} {:?}", file.map(|file| file.write(b"what a probe has written")));
    file.into_iter().for_each(io::File::close);
    let remove = link::pack::<5>("/ram/probe").zip(api::portal_open("file.remove").ok());
    println!("removed {:?}", remove.map(|(words, index)| (call(index, words), api::portal_close(index, 1))));
}

fn processes() {
    println!("no program {:?}", Child::load("/share/none").map(|_| ()));
    println!("kills {:?} {:?}", Child(1).kill(), Child(60).kill());
    println!("waits {:?}", Child(60).wait());
    let Ok(list) = api::portal_open("process.list") else { return };
    let own = api::get_asid();
    // Who it is, who else there is; the names of those that run for it, and of nobody else.
    let (mut from, mut parent) = (0, 0);
    while let Ok((domain @ 0.., [a, b, state, _])) = call_wide(list, [from, 0, 0, 0, 0]) {
        let mut bytes = [0; 16];
        let len = link::unpack(&[a, b], &mut bytes);
        let name = alloc::string::String::from_utf8_lossy(&bytes[..len]).into_owned();
        if domain as u16 == own {
            parent = state >> 16;
            println!("itself: {name:?} {}", state & 0xffff);
        } else {
            println!("{domain}: {name:?} {}", state & 0xffff);
        }
        from = domain as u64 + 1;
    }
    println!("parent {parent}");
    let _ = api::portal_close(list, 1);
    let child = Child::run("/bin/echo", &["echo", "a child"]);
    println!("child {:?}", child.map(|child| child.wait()));
}

/// What a stranger sees of this domain, and every bit of what passes between the two.
fn strangers() {
    let name = |what: &str| api::portal_open(&alloc::format!("teller.{what}"));
    let (Ok(caller), Ok(thread), Ok(words), Ok(die)) =
        (name("caller"), name("thread"), name("words"), name("die"))
    else {
        return println!("no teller");
    };
    let own = u64::from(api::get_asid());
    let seen = u64::from(api::get_thread_id()) << 32 | own << 16 | 0xabcd;
    println!(
        "a stranger sees it: {} {}",
        call(caller, []) == Ok(own as i64),
        call(thread, [0xabcd]) == Ok(seen as i64)
    );
    let wide = [u64::MAX, 1 << 63 | 5, 0x0123_4567_89ab_cdef, 0x8000_0000, 0xffff_ffff_0000_0000];
    println!("words {:x?}", call_wide(words, wide));
    // The dead answer DEAD until they are buried: when that is depends on how soon the console takes what is
    // told of the death.
    let dead = call(die, []);
    let mut later = (0..1000).map(|_| (api::hrsleep(time() + MILLISECOND), call(caller, [])).1);
    println!("it dies {dead:?} {:?}", later.find(|answer| *answer != dead));
    println!("closed {:?}", [caller, thread, words, die].map(|index| api::portal_close(index, 1)));
}

/// Every name that there is, but for the programs' own.
fn names() {
    let Ok(list) = api::portal_open("name.list") else { return println!("no list of names") };
    let (mut at, mut sum, mut count) = (0, 0u64, 0);
    while let Ok((0.., [a, b, c, next])) = call_wide(list, [at, 0, 0, 0, 0]) {
        (sum, count) = ([a, b, c, next & 0xffff].iter().fold(sum, |s, w| s.rotate_left(5) ^ w), count + 1);
        at = next >> 16;
    }
    println!("names {count} {sum:x}");
    let _ = api::portal_close(list, 1);
}

/// What the clock tells of limits within each other.
fn limits() {
    let [bound, unbound] = ["clock.bound", "clock.unbound"].map(|name| api::portal_open(name).unwrap_or(0));
    let first = call(bound, [10_000 * MILLISECOND]);
    println!("limits: {first:?} {:?} {:?}", call(unbound, [0]), call(unbound, [0]));
    let (Ok(none), Ok(some)) = (api::sem_create(0), api::sem_create(9)) else { return };
    let far = time() + (1 << 44);
    // What ends, and whose fault that was.
    let ended = [
        call_within(MILLISECOND, none, [0; 5]),
        call_within(0, none, [0; 5]),
        call_within(MILLISECOND, sys::SYS_HRSLEEP, [far, 0, 0, 0, 0]),
        call_within(u64::MAX, some, [0; 5]),
        call_within(0, some, [0; 5]),
        call_within(MILLISECOND, sys::SYS_SBRK, [0; 5]).map(|end| i64::from(end > 0)),
    ];
    println!("limited: {ended:x?}");
    println!("closed {:?}", [bound, unbound].map(|index| api::portal_close(index, 1)));
    println!("closed {:?}", [none, some].map(|index| api::portal_close(index, 2)));
}

/// As many portals as it gets.
fn full() {
    let (mut last, mut count) = (0, 0);
    let refused = loop {
        match api::portal_open("vm.stats") {
            Ok(index) => (last, count) = (index, count + 1),
            Err(error) => break error,
        }
    };
    println!("{count} portals, the last at {last}, then {refused}");
    println!("semaphore {:?}, file {:?}", api::sem_create(0), io::open("/bin"));
    println!("closed {:?}, semaphore {:?}", api::portal_close(last, 1), api::sem_create(0));
    println!("one more {:?} {:?}", api::portal_open("vm.stats"), api::portal_open("vm.stats"));
}

fn main() -> i64 {
    if io::args().nth(1).is_some_and(|what| what == "full") {
        full();
        return 7;
    }
    // The standard output's portals are opened by this.
    println!("probe {:?}", io::args().collect::<alloc::vec::Vec<_>>());
    table("born");
    println!("domain {}, thread {}", api::get_asid() > 0, api::get_thread_id() > 0);
    println!("time goes on: {}", api::hrtime() <= time());
    api::yield_now();
    println!("sleeps: {:?} {:?}", api::hrsleep(0), api::hrsleep(time() + MILLISECOND / 100));
    println!("heap: {:?} {:?} {:?}", api::sbrk(0), api::sbrk(8192), api::sbrk(-4096));
    println!("too much: {:?} {:?}", api::sbrk(i64::MAX), api::sbrk(i64::MIN));
    strangers();
    names();
    portals();
    semaphores();
    own();
    files();
    processes();
    limits();
    table("last");
    println!("control: {:?}", call(sys::SYS_CONTROL, [99, 0, 0, 0]).map_err(|b| b.0));
    println!("children: {:?}", call(sys::SYS_PROCESS, [7, 0, 0, 0]).map_err(|b| b.0));
    7
}
