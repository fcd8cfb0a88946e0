//! Pages that come when they are touched: two handlers in domains of their own, and what they do wrong.
//!
//! `hostile pages [ROUNDS]` starts the handlers (`hostile pager HOW NAME OTHER`) and, for each kind, a
//! program (`hostile touch KIND NAME NAME`) that gives them ranges of its memory, and judges what it finds
//! there. [`stuck`] keeps whoever asks it.

use crate::judge::Judge;
use alloc::format;
use alloc::string::String;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use pebble::abi::errno;
use pebble::abi::fault::Cause;
use pebble::abi::map::PAGE;
use pebble::api::Errno;
use pebble::portal::{MILLISECOND, time};
use pebble::process::Child;
use pebble::sync::Lock;
use pebble::{api, attack, fault};

/// In the range of the heap, far above its end.
const FIRST: u64 = 0x0500_0000;
const SECOND: u64 = 0x0600_0000;
const PAGES: u64 = 40;
const FAULT: i64 = Cause::Load.status() as i64;

/// What the program ends with, and what it does with its two handlers.
type Kind = (&'static str, i64, fn([usize; 2]) -> Option<bool>);

const KINDS: &[Kind] = &[
    ("both", 0, both),
    ("threads", 0, threads),
    ("outside", FAULT, |to| wild(to, FIRST + PAGES * PAGE)),
    ("ended", FAULT, ended),
    ("read-only", FAULT, |to| {
        let _ = ranges(to)?;
        attack::store(SECOND, 1);
        Some(false)
    }),
    ("refused", FAULT, |to| wild(to, FIRST + REFUSED * PAGE)),
    ("nothing", FAULT, |to| wild(to, FIRST + NOTHING * PAGE)),
    ("elsewhere", FAULT, |to| wild(to, FIRST + ELSEWHERE * PAGE)),
    ("dies", FAULT, |to| wild(to, FIRST + DIES * PAGE)),
    ("below", 0, |to| {
        ranges(to)?;
        let at = FIRST + BELOW * PAGE;
        Some(attack::read(at) == word(at))
    }),
    ("endless", FAULT, |to| wild(to, FIRST + ENDLESS * PAGE)),
    ("arguments", 0, arguments),
];

/// Pages of the first range for which the handler does something else; what is in the others follows from
/// their address.
const REFUSED: u64 = 32;
const NOTHING: u64 = 33;
const ELSEWHERE: u64 = 34;
const DIES: u64 = 35;
/// It needs a page of its own first, for which it asks the other handler: that has it, or needs one itself.
const BELOW: u64 = 36;
const ENDLESS: u64 = 37;

pub fn all(judge: &mut Judge, rounds: u32) {
    let round = |judge: &mut Judge| KINDS.iter().for_each(|kind| one(judge, kind));
    judge.steadily(rounds, round);
}

/// Whether pages come from handlers.
pub fn come(judge: &mut Judge) {
    one(judge, &KINDS[0]);
}

fn one(judge: &mut Judge, (kind, status, _): &Kind) {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let names: [String; 2] =
        [(); 2].map(|()| format!("p{}.{}", api::get_asid(), SERIAL.fetch_add(1, Relaxed)));
    let handlers = [("write", &names[0], &names[1]), ("read", &names[1], &names[0])]
        .map(|(how, name, other)| Child::run("/bin/hostile", &["hostile", "pager", how, name, other]));
    let ready = names.each_ref().map(|name| judge.await_portal(name));
    let ended =
        Child::run("/bin/hostile", &["hostile", "touch", kind, &names[0], &names[1]]).and_then(|c| c.wait());
    judge.check(kind, ended == Ok(*status), || format!("ended with {ended:?}"));
    for index in ready.into_iter().flatten() {
        let _ = api::portal_close(index, 1);
    }
    for child in handlers.into_iter().flatten() {
        let _ = child.kill();
        let _ = child.wait();
    }
}

// --- the program -------------------------------------------------------------------------------

pub fn touch(kind: &str, names: [&str; 2]) -> i64 {
    let [Ok(a), Ok(b)] = names.map(api::portal_open) else { return 98 };
    match KINDS.iter().find(|(name, ..)| *name == kind).and_then(|(.., act)| act([a, b])) {
        Some(true) => 0,
        Some(false) => 1,
        None => 97,
    }
}

fn ranges(to: [usize; 2]) -> Option<()> {
    fault::handle(FIRST, PAGES, to[0]).ok()?;
    fault::handle(SECOND, PAGES, to[1]).ok()
}

fn wild(to: [usize; 2], address: u64) -> Option<bool> {
    ranges(to)?;
    attack::load(address);
    Some(false)
}

/// What a handler puts at an address.
fn word(address: u64) -> u64 {
    address.wrapping_mul(0x9e37_79b9) ^ 0x55
}

fn both(to: [usize; 2]) -> Option<bool> {
    ranges(to)?;
    let filled = |at: u64| attack::read(at) == word(at) && attack::read(at + PAGE - 8) == 0;
    let all = (0..32).all(|n| filled(FIRST + n * PAGE) && filled(SECOND + (31 - n) * PAGE));
    for n in 0..32 {
        attack::store(FIRST + n * PAGE + 8, n);
    }
    Some(all && (0..32).all(|n| attack::read(FIRST + n * PAGE + 8) == n))
}

/// More threads fault at once than handlers are asked, some on the same page.
fn threads(to: [usize; 2]) -> Option<bool> {
    static GOOD: AtomicU64 = AtomicU64::new(0);
    extern "C" fn run(n: u64) {
        let good = (0..8).all(|page| {
            let at = if n % 2 == 0 { FIRST } else { SECOND } + page * PAGE;
            attack::read(at) == word(at)
        });
        GOOD.fetch_add(u64::from(good), Relaxed);
    }
    ranges(to)?;
    for n in 0..8 {
        api::thread_create(run, n, 0).ok()?;
    }
    for _ in 0..1000 {
        if GOOD.load(Relaxed) == 8 {
            break;
        }
        let _ = api::hrsleep(time() + MILLISECOND);
    }
    Some(GOOD.load(Relaxed) == 8)
}

fn ended(to: [usize; 2]) -> Option<bool> {
    ranges(to)?;
    attack::load(SECOND);
    fault::unhandle(FIRST).ok()?;
    // The other one stays, and what has come stays too.
    attack::load(SECOND + PAGE);
    attack::load(FIRST);
    Some(false)
}

/// What is no handler, and no range of one's own.
fn arguments(to: [usize; 2]) -> Option<bool> {
    let name = format!("own{}", api::get_asid());
    api::portal_register(&name, "npiii", page as Handler as usize as u64, 0).ok()?;
    let own = api::portal_open(&name).ok()?;
    let refused = [
        (FIRST, 1, own),
        (FIRST, 1, pebble::abi::sys::SYS_YIELD),
        (FIRST, 1, pebble::abi::sys::SYS_SBRK),
        (FIRST, 1, 999),
        (FIRST, 1, usize::MAX),
        (FIRST + 8, 1, to[0]),
        (FIRST, u64::MAX, to[0]),
        (pebble::abi::map::WINDOWS_VA, 1, to[0]),
        (pebble::abi::map::THREADS_VA, 1, to[0]),
        (0, 1, to[0]),
    ];
    let all = refused.iter().all(|(address, pages, index)| fault::handle(*address, *pages, *index).is_err());
    fault::handle(FIRST, 2, to[0]).ok()?;
    let overlaps = fault::handle(FIRST + PAGE, 2, to[1]).is_err();
    let unknown = fault::unhandle(FIRST + PAGE).is_err();
    // Nobody is asked for a page there.
    let provided = fault::provide(api::get_asid(), FIRST, &[], true).is_err();
    Some(all && overlaps && unknown && provided)
}

// --- a handler ---------------------------------------------------------------------------------

static WRITE: AtomicU64 = AtomicU64::new(0);
static OTHER: Lock<String> = Lock::new(String::new());

type Handler = extern "C" fn(u64, u64, u64) -> i64;

extern "C" fn page(asid: u64, address: u64, cause: u64) -> i64 {
    let (base, write) = (address / PAGE * PAGE, WRITE.load(Relaxed) != 0);
    let asid = asid as u16;
    let first = word(base).to_le_bytes();
    match (address.wrapping_sub(FIRST)) % (SECOND - FIRST) / PAGE {
        BELOW => need(FIRST),
        ENDLESS => need(FIRST + ENDLESS * PAGE),
        REFUSED => return -1,
        NOTHING => return 0,
        ELSEWHERE => return fault::provide(asid, address - 8 * PAGE, &first, true).map_or(-1, |()| 0),
        DIES => attack::load(0),
        _ => {}
    }
    if cause == fault::STORE && !write {
        return -1;
    }
    fault::provide(asid, address, &first, write).map_or(-1, |()| 0)
}

/// A page of the handler's own, from the other one.
fn need(at: u64) {
    if let Ok(index) = api::portal_open(OTHER.lock().as_str()) {
        let _ = fault::handle(FIRST, PAGES, index);
    }
    attack::load(at);
}

extern "C" fn stuck(_: u64, _: u64, _: u64) -> i64 {
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}

pub fn serve(how: &str, name: &str, other: &str) -> i64 {
    WRITE.store(u64::from(how == "write"), Relaxed);
    *OTHER.lock() = other.into();
    let entry: Handler = if how == "stuck" { stuck } else { page };
    if api::portal_register(name, "npiii", entry as usize as u64, 0).is_err() {
        return 98;
    }
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}

/// Gives this domain a range whose handler does not return.
pub fn get_stuck() -> Result<(), Errno> {
    let name = format!("pit{}", api::get_asid());
    Child::run("/bin/hostile", &["hostile", "pager", "stuck", &name])?;
    let index = (0..1000).find_map(|_| {
        let _ = api::hrsleep(time() + MILLISECOND);
        api::portal_open(&name).ok()
    });
    fault::handle(FIRST, PAGES, index.ok_or(errno::ENOENT)?)
}

/// Touches one of its pages.
pub extern "C" fn fall(n: u64) {
    attack::load(FIRST + n % PAGES * PAGE);
}
