//! Memory that is lent as it must not be, or to somebody who does with it what he must not.
//!
//! `hostile windows [ROUNDS]` starts, for each kind, a server (`hostile borrow NAME`) and a caller (`hostile
//! lend KIND NAME`), and counts what is lost afterwards. The caller judges what it sees, and ends with 0 if
//! all is as it must be.

use crate::judge::Judge;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use pebble::abi::consent::Letters;
use pebble::abi::{errno, map, status};
use pebble::api::{self, Errno};
use pebble::buffer::{self, Buffer, Window};
use pebble::portal::{Broken, MILLISECOND, call, time};
use pebble::process::Child;
use pebble::{attack, println};

const PAGE: u64 = map::PAGE;
const SECRET: u64 = 0x5ec2e7;
/// Windows that a domain can have, of a page and of a buffer.
const SLOTS: usize = 40;
const LONG_SLOTS: usize = 4;

/// What a kind needs: its name, what the caller ends with, and what it does with the server's name.
struct Kind {
    name: &'static str,
    ends: i64,
    act: fn(&str) -> Result<bool, Errno>,
}

const HOSTILE: &[Kind] = &[
    Kind {
        name: "unmapped",
        ends: 0,
        act: |to| refused(to, "w", &[0x0700_0000, map::WINDOWS_VA, 0x3fff_f000]),
    },
    Kind { name: "wrapped", ends: 0, act: wrapped },
    Kind { name: "foreign", ends: 0, act: foreign },
    Kind { name: "read-only", ends: 0, act: read_only },
    Kind { name: "size", ends: 0, act: wrong_size },
    Kind { name: "write", ends: 0, act: |to| killed(to, "write") },
    Kind { name: "late", ends: 0, act: late },
    Kind { name: "dies", ends: 7, act: |to| meanwhile(to, exits) },
    Kind { name: "shrinks", ends: 0, act: |to| meanwhile(to, shrinks) },
    Kind { name: "tears", ends: 0, act: |to| meanwhile(to, tears) },
    Kind { name: "spies", ends: 0, act: spies },
    Kind { name: "accomplice", ends: 0, act: accomplice },
];

const LENT: &[Kind] = &[
    Kind { name: "lent", ends: 0, act: lent },
    Kind { name: "untouched", ends: 0, act: untouched },
    Kind { name: "lent on", ends: 0, act: lent_on },
    Kind { name: "long", ends: 0, act: long },
    Kind { name: "given", ends: 0, act: given },
    Kind { name: "moved", ends: 0, act: moved },
    Kind { name: "large", ends: 0, act: large },
    Kind { name: "stingy", ends: 0, act: stingy },
    Kind { name: "open", ends: 0, act: open },
    Kind { name: "often", ends: 0, act: often },
    Kind { name: "full", ends: 0, act: full },
];

/// `which`: `hostile` or `lent`.
pub fn all(judge: &mut Judge, which: &str, rounds: u32) {
    let kinds = if which == "lent" { LENT } else { HOSTILE };
    let round = |judge: &mut Judge| kinds.iter().for_each(|kind| one(judge, kind));
    judge.steadily(rounds, round);
}

fn one(judge: &mut Judge, kind: &Kind) {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    let name = format!("b{}.{}", api::get_asid(), SERIAL.fetch_add(1, Relaxed));
    let Ok(server) = Child::run("/bin/hostile", &["hostile", "borrow", &name]) else {
        return judge.check(kind.name, false, || "the server did not start".into());
    };
    let ready = judge.await_portal(&format!("{name}.ready"));
    let ended = Child::run("/bin/hostile", &["hostile", "lend", kind.name, &name]).and_then(|c| c.wait());
    judge.check(kind.name, ended == Ok(kind.ends), || format!("ended with {ended:?}"));
    let _ = ready.map(|index| api::portal_close(index, 1));
    let _ = server.kill();
    let _ = server.wait();
}

// --- the server ------------------------------------------------------------------------------

static KEPT: AtomicU64 = AtomicU64::new(0);

extern "C" fn read(address: u64) -> i64 {
    Window::page(address).and_then(|w| w.word(0)).map_or(-1, |word| word as i64)
}

extern "C" fn write(address: u64) -> i64 {
    Window::page(address).and_then(|w| w.set_word(0, 42)).map_or(-1, |()| 0)
}

/// The last word of a window of 16 pages.
extern "C" fn write16(address: u64) -> i64 {
    let window = Window::pages(address, 16);
    window.and_then(|w| w.set_word(16 * PAGE as usize - 8, 43)).map_or(-1, |()| 0)
}

extern "C" fn keep(address: u64) -> i64 {
    KEPT.store(address, Relaxed);
    0
}

extern "C" fn look_kept() -> i64 {
    read(KEPT.load(Relaxed))
}

extern "C" fn touch_kept() -> i64 {
    write(KEPT.load(Relaxed))
}

/// Of what the callee lends on: where, and through which portal; what came of it.
static ON: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];
static CAME: AtomicU64 = AtomicU64::new(0);

/// Lends on what it is lent, in the same call: what the next domain answers.
extern "C" fn pass_on(address: u64) -> i64 {
    call(ON[1].load(Relaxed) as usize, [address]).unwrap_or(-1)
}

/// Leaves that to another thread, whose call lasts longer than this one.
extern "C" fn pass_aside(address: u64) -> i64 {
    CAME.store(0, Relaxed);
    ON[0].store(address, Relaxed);
    let _ = api::thread_create(lend_aside, 0, 0);
    pause();
    pause();
    0
}

/// One page of a buffer.
extern "C" fn pass_aside_page(address: u64) -> i64 {
    pass_aside(address + 3 * PAGE)
}

extern "C" fn lend_aside(_: u64) {
    let status = match call(ON[1].load(Relaxed) as usize, [ON[0].load(Relaxed)]) {
        Ok(seen) => seen as u64,
        Err(Broken(status)) => status,
    };
    CAME.store(status, Relaxed);
}

/// Status of the call that the other thread has made, or what the accomplice has seen.
extern "C" fn came() -> i64 {
    CAME.load(Relaxed) as i64
}

/// The portal by which this server lends on: the number of another, and of one of its interfaces.
extern "C" fn accomplice_is(asid: u64, serial: u64, which: u64) -> i64 {
    let what = ["w", "spy", "spy16", "spy"][which as usize % 4];
    match api::portal_open_with(&format!("b{asid}.{serial}.{what}"), Letters::of("wr"))
        .map(|opened| opened.index)
    {
        Ok(index) => {
            ON[1].store(index as u64, Relaxed);
            0
        }
        Err(_) => -errno::EACCES,
    }
}

extern "C" fn close_kept() -> i64 {
    Window::page(KEPT.load(Relaxed)).and_then(Window::close).map_or(-1, |()| 0)
}

/// Long enough for the caller's second thread.
extern "C" fn slow(address: u64) -> i64 {
    let _ = api::hrsleep(time() + 5 * MILLISECOND);
    i64::from(read(address) == -1 && write(address) == -1)
}

/// Takes what moves here for its own, and writes there what nobody else is to see.
extern "C" fn claim(address: u64) -> i64 {
    keep(address);
    let claimed = Window::page(address).and_then(|w| w.claim().and_then(|()| w.set_word(0, SECRET)));
    claimed.map_or(-1, |()| 0)
}

/// Looks at a window late, and writes to it.
extern "C" fn spy(address: u64) -> i64 {
    let _ = api::hrsleep(time() + 5 * MILLISECOND);
    let seen = read(address);
    write(address);
    seen
}

extern "C" fn give(to: u64) -> i64 {
    let words = [KEPT.load(Relaxed), to];
    match api::portal_open("vm.window_move").map(|index| (index, call(index, words))) {
        Ok((index, answer)) => {
            let _ = api::portal_close(index, 1);
            answer.unwrap_or(-1)
        }
        Err(error) => -error,
    }
}

extern "C" fn give_nothing(_: u64) -> i64 {
    0
}

extern "C" fn ready() -> i64 {
    0
}

pub fn borrow(name: &str) -> i64 {
    type Entry = extern "C" fn(u64) -> i64;
    let entries: [(&str, &str, Entry); 24] = [
        ("on", "npw", pass_on),
        ("on.r", "npr", pass_on),
        ("aside", "npw", pass_aside),
        ("aside16", "npw16", pass_aside),
        ("asideg", "npw16", pass_aside_page),
        ("spy16", "npw16", spy),
        ("w", "npw", read),
        ("set", "npw", write),
        ("r", "npr", read),
        ("write", "npr", write),
        ("w16", "npw16", write16),
        ("keep", "npw", keep),
        ("slow", "npw", slow),
        ("t", "npt", keep),
        ("claim", "npt", claim),
        ("spy", "npw", spy),
        ("g", "npg", give),
        ("t16", "npt16", keep),
        ("g16", "npg16", give),
        ("g0", "npg", give_nothing),
        ("g0.16", "npg16", give_nothing),
        ("o", "npo", keep),
        ("o16", "npo16", keep),
        ("rw", "smw", write),
    ];
    let offer =
        |what: &str, spec, entry: u64| api::portal_register(&format!("{name}.{what}"), spec, entry, 0);
    for (what, spec, entry) in entries {
        if offer(what, spec, entry as usize as u64).is_err() {
            return 98;
        }
    }
    type Accomplice = extern "C" fn(u64, u64, u64) -> i64;
    if offer("accomplice", "npiii", accomplice_is as Accomplice as usize as u64).is_err() {
        return 98;
    }
    let plain: [(&str, extern "C" fn() -> i64); 5] =
        [("late", touch_kept), ("look", look_kept), ("close", close_kept), ("came", came), ("ready", ready)];
    for (what, entry) in plain {
        if offer(what, "np", entry as usize as u64).is_err() {
            return 98;
        }
    }
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}

// --- the caller ------------------------------------------------------------------------------

pub fn lend(kind: &str, name: &str) -> i64 {
    let Some(kind) = HOSTILE.iter().chain(LENT).find(|k| k.name == kind) else { return 2 };
    match (kind.act)(name) {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => error.number(),
    }
}

fn portal(to: &str, what: &str) -> Result<usize, Errno> {
    Ok(api::portal_open_with(&format!("{to}.{what}"), Letters::of("smwrotg"))?.index)
}

pub fn ask(to: &str, what: &str, address: u64) -> Result<Result<i64, Broken>, Errno> {
    portal(to, what).map(|index| call(index, [address]))
}

/// A page of this domain's own, that nothing else lies in.
fn page() -> u64 {
    let bytes = vec![7u8; 2 * PAGE as usize].leak();
    (bytes.as_ptr() as u64).next_multiple_of(PAGE)
}

/// Before the callee runs, with the caller named.
fn is_refusal(answer: Result<i64, Broken>) -> bool {
    let wanted = status::WINDOW | u64::from(api::get_asid()) << 16;
    answer == Err(Broken(wanted))
}

fn refused(to: &str, what: &str, addresses: &[u64]) -> Result<bool, Errno> {
    let index = portal(to, what)?;
    Ok(addresses.iter().all(|at| is_refusal(call(index, [*at]))))
}

fn wrapped(to: &str) -> Result<bool, Errno> {
    let wild = [u64::MAX, u64::MAX - PAGE + 1, 1 << 63, 1 << 40, map::USER_END, map::USER_END - 1];
    Ok(refused(to, "w", &wild)?
        && refused(to, "r", &wild)?
        && refused(to, "w16", &wild)?
        && refused(to, "t", &wild)?)
}

/// The portal table, the gate, the nucleus, another domain's stack and code.
fn foreign(to: &str) -> Result<bool, Errno> {
    let others =
        [0, 8, map::GATE_VA, map::NUCLEUS_VA, map::DIRECT_VA, map::stack_top(1, 0) - 8, map::DEVICE_VA];
    Ok(refused(to, "w", &others)? && refused(to, "t", &others)?)
}

fn read_only(to: &str) -> Result<bool, Errno> {
    let text = map::IMAGE_VA;
    Ok(refused(to, "w", &[text])? && refused(to, "t", &[text])? && ask(to, "r", text)?.is_ok())
}

fn wrong_size(to: &str) -> Result<bool, Errno> {
    let (small, large) = (Buffer::new(15)?, Buffer::new(17)?);
    let inside = Buffer::new(16)?;
    let addresses = [small.address(), large.address(), inside.address() + PAGE, page()];
    Ok(refused(to, "w16", &addresses)? && ask(to, "w16", inside.address())? == Ok(0))
}

/// The server dies of it, and the call says so.
fn killed(to: &str, what: &str) -> Result<bool, Errno> {
    let answer = ask(to, what, page())?;
    Ok(matches!(answer, Err(broken) if status::code(broken.0) == status::DEAD))
}

fn late(to: &str) -> Result<bool, Errno> {
    let mine = page();
    if ask(to, "keep", mine)? != Ok(0) {
        return Ok(false);
    }
    let before = first_byte(to, mine)?;
    let dead = matches!(ask(to, "late", 0)?, Err(broken) if status::code(broken.0) == status::DEAD);
    Ok(dead && before == 0x0707_0707_0707_0707)
}

/// Pages of stack and heap that are still to come; and where none come, that is an answer and no fault.
#[inline(never)]
fn untouched(to: &str) -> Result<bool, Errno> {
    let room = core::mem::MaybeUninit::<[u64; 6 * PAGE as usize / 8]>::uninit();
    // More than the heap has had so far.
    let fresh = Vec::<u8>::with_capacity(64 * PAGE as usize);
    for first in [room.as_ptr() as u64, fresh.as_ptr() as u64 + 32 * PAGE].map(|at| at.next_multiple_of(PAGE))
    {
        let reads = ask(to, "r", first)?.is_ok();
        let writes = ask(to, "set", first + PAGE)? == Ok(0) && ask(to, "w", first + PAGE)? == Ok(42);
        if !reads || !writes {
            return Ok(false);
        }
    }
    let stacks = map::stacks_of(api::get_asid() as u16);
    let wild = [stacks, stacks + 8, map::STACKS_VA, map::USER_END - 8, map::USER_END, u64::MAX];
    Ok(refused(to, "w", &wild)? && refused(to, "r", &wild)?)
}

fn first_byte(to: &str, address: u64) -> Result<i64, Errno> {
    ask(to, "w", address)?.map_err(|_| errno::EIO)
}

static TORN: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// The server holds the window while a second thread takes the page away.
fn meanwhile(to: &str, act: extern "C" fn(u64)) -> Result<bool, Errno> {
    let answer = torn(to, "t", "slow", act)?;
    // The server saw no fault, and serves on.
    Ok(answer == Ok(0) && ask(to, "w", page())? == Ok(0x0707_0707_0707_0707))
}

/// Who was lent a page sees nothing of what its new owner writes there, and changes nothing.
fn spies(to: &str) -> Result<bool, Errno> {
    let seen = torn(to, "claim", "spy", tears)?;
    Ok(seen.is_ok_and(|word| word != SECRET as i64) && ask(to, "look", 0)? == Ok(SECRET as i64))
}

/// A page is lent to `holds`, and meanwhile `act` takes it away, perhaps to `takes`: what `holds` answers.
fn torn(to: &str, takes: &str, holds: &str, act: extern "C" fn(u64)) -> Result<Result<i64, Broken>, Errno> {
    let end = api::sbrk(0)?;
    let mine = end.next_multiple_of(PAGE);
    api::sbrk((mine + PAGE - end) as i64)?;
    TORN[0].store(portal(to, takes)?, Relaxed);
    TORN[1].store(mine as usize, Relaxed);
    let index = portal(to, holds)?;
    api::thread_create(act, mine, 0)?;
    Ok(call(index, [mine]))
}

/// Another server, and the first told to lend on to that: the `which`-th way.
pub struct Accomplice {
    child: Child,
    pub name: String,
}

impl Accomplice {
    pub fn new() -> Result<Self, Errno> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let name = format!("b{}.{}", api::get_asid(), SERIAL.fetch_add(1, Relaxed));
        let child = Child::run("/bin/hostile", &["hostile", "borrow", &name])?;
        let ready = || api::portal_open(&format!("{name}.ready")).inspect_err(|_| pause());
        (0..1000).find_map(|_| ready().ok()).ok_or(Errno::new(98))?;
        Ok(Accomplice { child, name })
    }

    fn of(&self, to: &str, which: u64) -> Result<bool, Errno> {
        let serial = self.name.rsplit('.').next().and_then(|n| n.parse().ok()).ok_or(Errno::new(97))?;
        let words = [api::get_asid().into(), serial, which];
        Ok(call(portal(to, "accomplice")?, words) == Ok(0))
    }
}

impl Drop for Accomplice {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The thread that was lent something lends it on, to read or to write as it may itself, through as many as
/// there are.
fn lent_on(to: &str) -> Result<bool, Errno> {
    let other = Accomplice::new()?;
    let mine = page();
    let good = other.of(to, 0)? && ask(to, "on", mine)? == Ok(0x0707_0707_0707_0707);
    // What it may only read it cannot lend to somebody who writes.
    Ok(good && ask(to, "on.r", mine)? == Ok(-1) && ask(to, "on", mine)?.is_ok())
}

/// A borrower's second thread lends on, to an accomplice that keeps the call until ours has ended: a page, a
/// buffer, a page of a buffer. It sees nothing of what is written afterwards, and changes nothing.
fn accomplice(to: &str) -> Result<bool, Errno> {
    let other = Accomplice::new()?;
    let own = Buffer::new(16)?;
    let mine = page();
    let mut good = true;
    for (which, what, address) in
        [(1, "aside", mine), (2, "aside16", own.address()), (3, "asideg", own.address())]
    {
        good &= other.of(to, which)? && ask(to, what, address)? == Ok(0);
        let at = if which == 3 { address + 3 * PAGE } else { address };
        attack::store(at, SECRET);
        // It has looked and written by now, if it could.
        (0..8).for_each(|_| pause());
        let (came, word) = (ask(to, "came", 0)?.map_err(|_| errno::EIO)? as u64, attack::read(at));
        if status::code(came) != status::WINDOW || word != SECRET {
            println!("{what}: the accomplice's call came to {came:#x}; the word is {word:#x}");
            good = false;
        }
    }
    Ok(good)
}

fn pause() {
    let _ = api::hrsleep(time() + MILLISECOND);
}

extern "C" fn exits(_: u64) {
    pause();
    api::exit(7);
}

extern "C" fn shrinks(_: u64) {
    pause();
    let _ = api::sbrk(-(PAGE as i64));
}

extern "C" fn tears(address: u64) {
    pause();
    let _ = call(TORN[0].load(Relaxed), [address]);
}

/// What is lent is seen and changed, by several calls and states.
fn lent(to: &str) -> Result<bool, Errno> {
    let mine = page();
    let mut good = ask(to, "r", mine)? == Ok(0x0707_0707_0707_0707);
    for what in ["set", "rw"] {
        good &= ask(to, what, mine + 8)? == Ok(0) && ask(to, "w", mine + 8)? == Ok(42);
    }
    Ok(good && ask(to, "r", mine)? == Ok(0x0707_0707_0707_0707))
}

fn long(to: &str) -> Result<bool, Errno> {
    let own = Buffer::new(16)?;
    let answer = ask(to, "w16", own.address())?;
    Ok(answer == Ok(0) && own.window().word(16 * PAGE as usize - 8) == Ok(43))
}

/// A page goes, is gone, and is there as it was.
fn given(to: &str) -> Result<bool, Errno> {
    let mine = page();
    let gone = ask(to, "t", mine)? == Ok(0) && refused(to, "w", &[mine])?;
    Ok(gone && ask(to, "look", 0)? == Ok(0x0707_0707_0707_0707))
}

/// A page goes, is gone, and comes back as it was.
fn moved(to: &str) -> Result<bool, Errno> {
    let mine = page();
    let place = buffer::receive_window(1)?;
    let gone = ask(to, "t", mine)? == Ok(0) && refused(to, "w", &[mine])?;
    let back = ask(to, "g", place.address())? == Ok(0);
    let claimed = place.window().claim().is_ok();
    Ok(gone && back && claimed && place.window().word(8) == Ok(0x0707_0707_0707_0707))
}

/// The same with a buffer.
fn large(to: &str) -> Result<bool, Errno> {
    let own = Buffer::new(16)?;
    let (at, last) = (own.address(), 16 * PAGE as usize - 8);
    own.window().set_word(last, 77)?;
    let gone = ask(to, "t16", at)? == Ok(0) && refused(to, "w16", &[at])?;
    own.gone();
    let place = buffer::receive_window(16)?;
    let back = ask(to, "g16", place.address())? == Ok(0);
    Ok(gone && back && place.window().word(last) == Ok(77) && place.window().set_word(0, 78).is_ok())
}

/// Who gives nothing is named; the place is empty, and there for the next.
fn stingy(to: &str) -> Result<bool, Errno> {
    let place = buffer::receive_window(1)?;
    let named = |answer: Result<i64, Broken>| {
        answer.is_err_and(|Broken(s)| {
            status::code(s) == status::WINDOW && ![0, api::get_asid()].contains(&status::domain(s))
        })
    };
    let named = (0..3)
        .try_fold(true, |all, _| Ok::<_, Errno>(all && named(ask(to, "g0", place.address())?)))?
        && named(ask(to, "g0.16", buffer::receive_window(16)?.address())?);
    let elsewhere = refused(to, "g0", &[map::WINDOWS_VA, map::WINDOWS_VA + PAGE, map::BUFFERS_VA, page()])?
        && refused(to, "g0.16", &[map::BUFFERS_VA + 8 * map::BUFFER_STRIDE, map::WINDOWS_VA])?;
    let gone = ask(to, "t", page())? == Ok(0);
    let back = ask(to, "g", place.address())? == Ok(0);
    Ok(named && elsewhere && gone && back && place.window().word(8) == Ok(0x0707_0707_0707_0707))
}

/// What is open is shared after the call, both ways, until the server closes it; a page, and a buffer.
fn open(to: &str) -> Result<bool, Errno> {
    let bytes = vec![7u8; 2 * PAGE as usize].leak();
    let at = (bytes.as_ptr() as u64).next_multiple_of(PAGE) - bytes.as_ptr() as u64;
    let word = &mut bytes[at as usize..][..8];
    let mut good = ask(to, "o", word.as_ptr() as u64)? == Ok(0);
    word.copy_from_slice(&99u64.to_le_bytes());
    good &= ask(to, "look", 0)? == Ok(99) && ask(to, "late", 0)? == Ok(0);
    good &= *word == 42u64.to_le_bytes() && ask(to, "close", 0)? == Ok(0);
    let own = Buffer::new(16)?;
    good &= ask(to, "o16", own.address())? == Ok(0) && own.window().set_word(0, 98).is_ok();
    good &= ask(to, "look", 0)? == Ok(98) && ask(to, "late", 0)? == Ok(0) && own.window().word(0) == Ok(42);
    Ok(good
        && ask(to, "close", 0)? == Ok(0)
        && refused(to, "o16", &[own.address() + PAGE, word.as_ptr() as u64])?)
}

/// Nobody on the way keeps a slot: there are 70 of them and 40, and 4 and 4 for buffers.
fn often(to: &str) -> Result<bool, Errno> {
    let (mine, own) = (page(), Buffer::new(16)?);
    let [page, long, close] = ["o", "o16", "close"].map(|what| portal(to, what));
    let (page, long, close) = (page?, long?, close?);
    let opened = |index, at| call(index, [at]) == Ok(0) && call(close, []) == Ok(0);
    Ok((0..130).all(|n| opened(page, mine) && (n % 8 > 0 || opened(long, own.address()))))
}

/// Whose callee keeps all it is given is told so when there is no slot left, and keeps the page; a slot given
/// up is there for the next. Calls whose windows end with them go on.
fn full(to: &str) -> Result<bool, Errno> {
    let (mine, own) = (page(), Buffer::new(16)?);
    let fill = |what: &str, at: u64, most: usize| -> Result<bool, Errno> {
        let index = portal(to, what)?;
        let opened = (0..=most).take_while(|_| call(index, [at]) == Ok(0)).count();
        Ok(opened == most && is_refusal(call(index, [at])))
    };
    let ends = || -> Result<bool, Errno> {
        Ok(ask(to, "w", mine)?.is_ok() && ask(to, "w16", own.address())?.is_ok())
    };
    let filled = fill("o", mine, SLOTS)? && refused(to, "t", &[mine])? && ends()?;
    let again = ask(to, "close", 0)? == Ok(0) && fill("o", mine, 1)?;
    let long = fill("o16", own.address(), LONG_SLOTS)? && refused(to, "t16", &[own.address()])?;
    Ok(filled && again && long && ends()?)
}
