//! Files that are open to those who hold a capability, and what they do with it.
//!
//! `hostile paths` has the first capabilities by the system's rules (`tests/systems/secret.toml`); it passes
//! weaker and stronger ones to a stranger (`stranger wait-paths NAME`), who tries every spelling and every
//! call that names a path; it revokes them, and looks whether the dead leave anything behind.

use crate::judge::Judge;
use crate::tokens::{derive, take_back, used, word};
use alloc::format;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed};
use pebble::abi::capability::{ALL, READ, WRITE};
use pebble::abi::link::{PATHLEN, pack, unpack};
use pebble::abi::{errno, sys};
use pebble::api::{self, Errno};
use pebble::io::{self, File};
use pebble::portal::call;
use pebble::process::{Child, Lazy};

const FIXED: &str = "/etc/secret";
const MADE: &str = "/ram/secret";
const PROGRAM: &str = "/vault/run";
/// All of these are under the rule about [`FIXED`] or that about the vault, whether there is such a file or
/// not.
const SPELLINGS: [&str; 18] = [
    FIXED,
    "etc/secret",
    "./etc/secret",
    "//etc///secret",
    "/etc/./secret",
    "/etc/secret/",
    "/etc/secret/.",
    "/etc/secret//",
    "/../etc/secret",
    "/bin/../etc/secret",
    "/bin/./../etc/../etc/secret",
    "/etc/secret.none",
    "/etc/secret/none",
    "/vault",
    "/vault/",
    "vault/.",
    "/etc/../vault/run",
    "/vault/none",
];

static CREATE: Lazy = Lazy::new("file.create");
static REMOVE: Lazy = Lazy::new("file.remove");
static FIRST: Lazy = Lazy::new("file.capability");

type Words = [u64; 5];

fn opened(path: Words) -> Result<File, Errno> {
    api::answer(call(sys::SYS_FILE_OPEN, path)).map(|index| File(index as usize))
}

/// What can be done with the file: `READ`, `WRITE`; or why it does not open. What it begins with is written
/// back.
extern "C" fn see(a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    let look = |file: File| {
        let mut byte = *b"s";
        let reads = file.read(&mut byte).is_ok();
        let writes = file.seek(0, 0).is_ok() && file.write(&byte).is_ok();
        file.close();
        u64::from(reads) * u64::from(READ) + u64::from(writes) * u64::from(WRITE)
    };
    word(opened([a, b, c, d, e]).map(look))
}

/// Makes it, or empties it.
extern "C" fn make(a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    word(CREATE.call([a, b, c, d, e]).map(|index| {
        File(index as usize).close();
        0
    }))
}

extern "C" fn remove(a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    word(REMOVE.call([a, b, c, d, e]))
}

extern "C" fn ask(a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    word(FIRST.call([a, b, c, d, e]))
}

/// Whether it can be loaded as a program.
extern "C" fn run(a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    let mut bytes = [0; PATHLEN];
    let len = unpack(&[a, b, c, d, e], &mut bytes);
    let loaded = Child::load(core::str::from_utf8(&bytes[..len]).unwrap_or_default());
    word(loaded.map(|child| {
        let _ = child.kill();
        let _ = child.wait();
        0
    }))
}

static KEPT: AtomicUsize = AtomicUsize::new(0);

/// Opens it for [`again`].
extern "C" fn keep(a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    word(opened([a, b, c, d, e]).map(|file| {
        KEPT.store(file.0, Relaxed);
        0
    }))
}

/// Bytes that the open file still gives.
extern "C" fn again() -> i64 {
    let file = File(KEPT.load(Relaxed));
    word(file.seek(0, 0).and_then(|_| file.read(&mut [0])).map(|count| count as u64))
}

extern "C" fn take(name: u64) -> i64 {
    name as i64
}

type Entry = extern "C" fn(u64, u64, u64, u64, u64) -> i64;
/// Calls that name a path.
const CALLS: [(&str, Entry); 6] =
    [(".see", see), (".make", make), (".remove", remove), (".ask", ask), (".run", run), (".keep", keep)];

fn path(text: &str) -> Words {
    pack(text).unwrap_or_default()
}

fn own(entry: Entry, text: &str) -> i64 {
    let [a, b, c, d, e] = path(text);
    entry(a, b, c, d, e)
}

const NO: i64 = errno::EACCES.word();

pub fn all(judge: &mut Judge, rounds: u32) {
    for spelling in SPELLINGS {
        let seen = own(see, spelling);
        judge.check("without one", seen == NO, || format!("{spelling}: {seen}"));
    }
    let first = [FIXED, MADE, PROGRAM].map(|text| own(ask, text));
    let twice = own(ask, FIXED);
    let good = first.iter().all(|name| *name > 0) && twice == -errno::EEXIST;
    judge.check("the first holder", good, || format!("{first:?}, {twice}"));
    let none = own(ask, "/etc/supervisor");
    judge.check("no rule", none == -errno::ENOENT, || format!("{none}"));
    let mine = [own(see, FIXED), own(make, MADE), io::open(MADE).map_or(9, |f| fill(&f)), own(run, PROGRAM)];
    judge.check("the first holder", mine == [i64::from(READ), 0, 0, 0], || format!("{mine:?}"));
    let list = [own(see, "/vault"), own(see, "/etc/listed")];
    judge.check("the first holder", list == [i64::from(READ); 2], || format!("{list:?}"));
    let first = first.map(|name| name as u64);
    stranger(judge, first);
    judge.rest();
    let (before, mut strangers) = (used(), 0);
    judge.steadily(rounds, |judge| {
        stranger(judge, first);
        strangers += 1;
    });
    // What the last one held goes with its burial.
    judge.rest();
    let controllers = controllers(judge, first[0]);
    let wanted = before + controllers * ONCE_MORE * strangers;
    judge.same("the dead hold nothing", used() as i64, wanted as i64);
    own(remove, MADE);
}

/// Controllers hold what they have passed on, until they die or it is revoked: so many of them there are.
fn controllers(judge: &mut Judge, own: u64) -> u64 {
    let weak = derive(own, READ);
    let alone = used();
    let passed = Stranger::new(judge).map_or(0, |stranger| {
        let _ = call(stranger.take, [weak]);
        let passed = used() - alone - 1;
        stranger.end();
        passed
    });
    let _ = take_back(weak);
    judge.rest();
    passed
}

/// Capabilities that a stranger dies with.
const ONCE_MORE: u64 = 3;

fn fill(file: &File) -> i64 {
    let written = file.write(b"secret");
    file.close();
    written.map_or_else(|error| -error, |()| 0)
}

/// A stranger's portals.
struct Stranger {
    child: Child,
    calls: [usize; CALLS.len()],
    again: usize,
    take: usize,
}

impl Stranger {
    fn new(judge: &mut Judge) -> Option<Stranger> {
        static SERIAL: AtomicU64 = AtomicU64::new(0);
        let name = format!("p{}.{}", api::get_asid(), SERIAL.fetch_add(1, Relaxed));
        let child = Child::run("/bin/stranger", &["stranger", "wait-paths", &name]).ok()?;
        let open = |end: &str| judge.await_given(&format!("{name}{end}"), "k").unwrap_or(0);
        let calls = CALLS.map(|(end, _)| open(end));
        Some(Stranger { child, calls, again: open(".again"), take: open("") })
    }

    /// What its call answers.
    fn says(&self, entry: &str, text: &str) -> i64 {
        let n = CALLS.iter().position(|(end, _)| end[1..] == *entry).unwrap_or(0);
        call(self.calls[n], path(text)).unwrap_or(-999)
    }

    fn end(self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        for index in self.calls.into_iter().chain([self.again, self.take]) {
            let _ = api::portal_close(index, 1);
        }
    }
}

fn stranger(judge: &mut Judge, [fixed, made, vault]: [u64; 3]) {
    let Some(stranger) = Stranger::new(judge) else {
        return judge.check("a stranger", false, || "did not start".into());
    };
    let s = &stranger;
    for spelling in SPELLINGS {
        judge.same(spelling, s.says("see", spelling), NO);
    }
    judge.same("a stranger sees what others may", s.says("see", "/etc/supervisor"), READ.into());
    judge.same("a stranger is refused by a rule", s.says("see", "/etc/listed"), NO);
    for entry in ["see", "make", "remove", "ask", "keep"] {
        judge.same(entry, s.says(entry, MADE), NO);
        judge.same(entry, s.says(entry, "ram//secret"), NO);
    }
    judge.same("a stranger makes one", s.says("make", "/ram/secret.new"), NO);
    judge.same("a stranger runs one", s.says("run", PROGRAM), NO);
    let takes = |name: u64| call(s.take, [name]).unwrap_or(-999) > 0;
    // To read alone: not to change, empty or remove; and what is open stays open when it is revoked.
    let weak = derive(made, READ);
    judge.same("read alone", takes(weak).into(), 1);
    judge.same("read alone", s.says("see", MADE), READ.into());
    judge.same("read alone, make", s.says("make", MADE), NO);
    judge.same("read alone, remove", s.says("remove", MADE), NO);
    judge.same("read alone, of another rule", s.says("see", FIXED), NO);
    judge.same("kept", s.says("keep", MADE), 0);
    judge.same("revoked", take_back(weak), 0);
    judge.same("revoked", s.says("see", MADE), NO);
    judge.same("open when it was revoked", call(s.again, []).unwrap_or(-999), 1);
    // To write alone.
    let weak = derive(made, WRITE);
    judge.same("write alone", takes(weak).into(), 1);
    judge.same("write alone", s.says("see", MADE), WRITE.into());
    judge.same("write alone, remove", s.says("remove", "ram/secret"), 0);
    judge.same("write alone, make", s.says("make", MADE), 0);
    judge.same("revoked", take_back(weak), 0);
    judge.same("revoked, make", s.says("make", MADE), NO);
    // All of it; it dies with these.
    for name in [fixed, made, vault] {
        judge.same("once more", takes(name).into(), 1);
    }
    judge.same("once more", s.says("see", MADE), ALL.into());
    judge.same("once more", s.says("see", FIXED), READ.into());
    judge.same("once more, run", s.says("run", PROGRAM), 0);
    judge.same("once more, the listing", s.says("see", "vault"), READ.into());
    stranger.end();
}

pub fn wait(name: &str) -> i64 {
    let register = |end: &str, spec, entry| api::portal_register(&format!("{name}{end}"), spec, entry, 0);
    let calls =
        CALLS.iter().try_for_each(|(end, f)| register(end, "npiiiii", *f as usize as u64).map(|_| ()));
    let again = register(".again", "np", again as extern "C" fn() -> i64 as usize as u64);
    let take = register("", "npk", take as extern "C" fn(u64) -> i64 as usize as u64);
    if calls.is_err() || again.is_err() || take.is_err() {
        return 98;
    }
    loop {
        let _ = api::hrsleep(u64::MAX >> 1);
    }
}
