//! A family that takes all that it can of what is scarce, and others who want a little of it meanwhile.
//!
//! `hostile hog WHAT N` starts N children that do the same as it: they take until they are refused, tell how
//! much that was and what they were told, try again for as long as they live. `hostile want WHAT`, which the
//! shell starts beside them, ends with 0 if it gets its little.

use alloc::format;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};
use pebble::abi::capability::FLAG_TRANSFER;
use pebble::abi::consent::Letters;
use pebble::abi::{errno, share, status};
use pebble::api::{self, Errno};
use pebble::portal::{MILLISECOND, call, time};
use pebble::process::{Child, Lazy};
use pebble::{call_within, io, println};

/// Something scarce: how to take one more, and how many of it a modest program wants.
pub struct Scarce {
    name: &'static str,
    take: fn(u64) -> Result<(), Errno>,
    little: u64,
}

pub const ALL: [Scarce; 15] = [
    Scarce { name: "interfaces", take: interface, little: 8 },
    Scarce { name: "semaphores", take: semaphore, little: 16 },
    Scarce { name: "names", take: name, little: 8 },
    Scarce { name: "stacks", take: stacks, little: 1 },
    Scarce { name: "limits", take: limit, little: 4 },
    Scarce { name: "programs", take: program, little: 4 },
    Scarce { name: "files", take: file, little: 8 },
    Scarce { name: "pipes", take: pipe, little: 4 },
    Scarce { name: "room", take: room, little: 4 },
    Scarce { name: "bytes", take: bytes, little: 256 },
    Scarce { name: "code", take: code, little: 32 },
    Scarce { name: "capabilities", take: capability, little: 16 },
    Scarce { name: "passed", take: pass, little: 4 },
    Scarce { name: "handlers", take: handler, little: 1 },
    Scarce { name: "pages", take: pages, little: 1 },
];

extern "C" fn nothing() -> i64 {
    0
}

fn interface(n: u64) -> Result<(), Errno> {
    api::portal_register(&format!("hog{}.{n}", api::get_asid()), "sm", nothing as *const () as u64, 0)?;
    Ok(())
}

fn semaphore(_: u64) -> Result<(), Errno> {
    api::sem_create(0).map(|_| ())
}

/// A semaphore of its own for each number, however often it is asked for.
fn numbered(n: u64) -> Result<u64, Errno> {
    static LAST: [AtomicU64; 2] = [AtomicU64::new(u64::MAX), AtomicU64::new(0)];
    if LAST[0].load(SeqCst) != n {
        LAST[1].store(api::sem_create(0)? as u64, SeqCst);
        LAST[0].store(n, SeqCst);
    }
    Ok(LAST[1].load(SeqCst))
}

/// Of one semaphore for each four names, which is as many as it may have.
fn name(n: u64) -> Result<(), Errno> {
    let index = numbered(n / 4)?;
    api::sem_publish(index as usize, &format!("hog{}/{n}", api::get_asid())).map(|_| ())
}

/// Each program gets its stacks with its first interface that needs some: one more is another program's.
fn stacks(n: u64) -> Result<(), Errno> {
    match n {
        0 => {
            let name = format!("hog{}", api::get_asid());
            Ok(api::portal_register(&name, "np", nothing as *const () as u64, 0).map(|_| ())?)
        }
        _ => Child::run("/bin/hostile", &["hostile", "hog", "stacks", "0"]).map(|_| ()),
    }
}

static REFUSED: AtomicU64 = AtomicU64::new(0);

/// A call that lasts as long as its limit, which nobody lives to see.
extern "C" fn limited(index: u64) {
    if call_within(u64::MAX >> 2, index as usize, [0; 5])
        .is_err_and(|broken| status::code(broken.0) == status::LIMITS)
    {
        REFUSED.store(1, SeqCst);
    }
    let _ = api::hrsleep(u64::MAX >> 1);
}

/// Whether a limit has been refused within so many milliseconds: the clock answers one at a time.
fn is_refused(patience: u64) -> bool {
    let refused = |_| {
        let _ = api::hrsleep(time() + MILLISECOND);
        REFUSED.load(SeqCst) != 0
    };
    (0..patience).any(refused)
}

fn limit(n: u64) -> Result<(), Errno> {
    match api::thread_create(limited, numbered(n)?, 0) {
        Ok(_) if !is_refused(20) => Ok(()),
        // More threads than limits have asked.
        Err(error) if n < share::TIME_LIMITS.least as u64 || !is_refused(5000) => Err(error),
        _ => Err(errno::ETIMELIMITS),
    }
}

fn program(_: u64) -> Result<(), Errno> {
    Child::load("/bin/echo").map(|_| ())
}

fn file(_: u64) -> Result<(), Errno> {
    io::open("/bin/hostile").map(|_| ())
}

fn pipe(_: u64) -> Result<(), Errno> {
    static CREATE: AtomicU64 = AtomicU64::new(0);
    if CREATE.load(SeqCst) == 0 {
        CREATE.store(api::portal_open("pipe.create")? as u64, SeqCst);
    }
    api::answer(call(CREATE.load(SeqCst) as usize, [])).map(|_| ())
}

/// A file in memory, which stays.
fn room(n: u64) -> Result<(), Errno> {
    io::create(&format!("/ram/hog{}.{n}", api::get_asid())).map(io::File::close)
}

/// A KiB of a file in memory, which stays.
fn bytes(n: u64) -> Result<(), Errno> {
    static FILE: AtomicU64 = AtomicU64::new(0);
    if n == 0 || FILE.load(SeqCst) == 0 {
        FILE.store(io::create(&format!("/ram/hog{}", api::get_asid()))?.0 as u64, SeqCst);
    }
    io::File(FILE.load(SeqCst) as usize).write(&[1; 1024]).map(|_| ())
}

/// A portal, for its code.
fn code(_: u64) -> Result<(), Errno> {
    api::portal_open("vm.stats").map(|_| ())
}

static CREATE: Lazy = Lazy::new("cap.create");
const KIND: u64 = 300;
const RIGHTS: u64 = 1 | FLAG_TRANSFER << 16;

fn capability(n: u64) -> Result<(), Errno> {
    CREATE.call([KIND, n & 0xffff, RIGHTS, 0, 0]).map(|_| ())
}

extern "C" fn keep(_: u64) -> i64 {
    0
}

/// One that it passes to itself: portal code makes it.
fn pass(n: u64) -> Result<(), Errno> {
    static OWN: AtomicU64 = AtomicU64::new(0);
    static ROOT: AtomicU64 = AtomicU64::new(0);
    if n == 0 || ROOT.load(SeqCst) == 0 {
        ROOT.store(CREATE.call([KIND, 0, RIGHTS, 0, 0])?, SeqCst);
    }
    if OWN.load(SeqCst) == 0 {
        let name = format!("hog{}.k", api::get_asid());
        api::portal_register(&name, "npk", keep as *const () as u64, 0)?;
        OWN.store(api::portal_open_with(&name, Letters::of("k"))?.index as u64, SeqCst);
    }
    match call(OWN.load(SeqCst) as usize, [ROOT.load(SeqCst)]) {
        Ok(_) => Ok(()),
        Err(_) => Err(errno::ECAPABILITIES),
    }
}

/// A thread whose fault is never answered.
fn handler(n: u64) -> Result<(), Errno> {
    if n == 0 {
        crate::pages::get_stuck()?;
    }
    api::thread_create(crate::pages::fall, n, 0).map(|_| ())
}

/// Pages from handlers that do answer.
fn pages(_: u64) -> Result<(), Errno> {
    if crate::judge::pages_come() == 0 { Ok(()) } else { Err(errno::EIO) }
}

fn find(name: &str) -> Option<&'static Scarce> {
    ALL.iter().find(|scarce| scarce.name == name)
}

pub fn hog(what: &str, children: u64) -> i64 {
    let Some(scarce) = find(what) else { return 2 };
    // To be able to say so when there is nothing left.
    let _ = io::standard(1);
    let count = format!("{what}");
    let family: Vec<_> = (0..children)
        .filter_map(|_| Child::run("/bin/hostile", &["hostile", "hog", &count, "0"]).ok())
        .collect();
    let mut taken = 0;
    let error = loop {
        match (scarce.take)(taken) {
            Ok(()) => taken += 1,
            Err(error) => break error,
        }
    };
    println!("hog of {what}, with {} children: took {taken}, then {error}", family.len());
    loop {
        let _ = api::hrsleep(time() + 20 * MILLISECOND);
        while (scarce.take)(taken).is_ok() {
            taken += 1;
        }
    }
}

/// What hogs have left in `/ram` when they end is nobody's, and takes room until somebody removes it.
pub fn sweep() -> i64 {
    let Ok(directory) = io::open("/ram") else { return 1 };
    let (mut text, mut part) = (Vec::new(), [0; 32]);
    while let Ok(count @ 1..) = directory.read(&mut part) {
        text.extend_from_slice(&part[..count]);
    }
    directory.close();
    let names = core::str::from_utf8(&text).unwrap_or_default().lines();
    let mut left = names.filter(|name| name.starts_with("hog"));
    i64::from(left.any(|name| io::remove(&format!("/ram/{name}")).is_err()))
}

pub fn want(what: &str) -> i64 {
    let Some(scarce) = find(what) else { return 2 };
    match (0..scarce.little).find_map(|n| Some((n, (scarce.take)(n).err()?))) {
        None => 0,
        Some((n, error)) => {
            println!("{what}: had {n} of {}, then {error}", scarce.little);
            error.number()
        }
    }
}
