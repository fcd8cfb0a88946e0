//! What a call means: the interface behind an index, and its words.
//!
//! A controller sees every call of a program, those by which it opens portals too; so it needs no right to
//! look into the portal manager, and works within other controllers. What got into the program's table
//! otherwise (the loader's work, or a server's) is asked for when it is first called, since the controller
//! has the same portals itself.
//!
//! Nobody tells it of a program that dies, whose indices others get: so a name is asked for again when an
//! index may have come to lead elsewhere.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::ops::Range;
use pebble_abi::control::BEHALF;
use pebble_abi::errno::Errno;
use pebble_abi::map::TABLE_ENTRIES;
use pebble_abi::{link, status, sys};

/// Words of a call.
pub type Words = [u64; 5];

/// A portal's interface while it has this index, and how often it was called.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Portal {
    pub index: usize,
    pub name: String,
    pub calls: u64,
    /// Another may have come there.
    pub doubtful: bool,
}

/// The portals of a program.
pub struct Portals {
    now: Vec<Portal>,
    /// Those that were called and are closed.
    past: Vec<Portal>,
    /// First of the portals on behalf; 0: not known. A program that is a controller itself calls these for
    /// its children.
    behalf: usize,
    /// Calls of an index that were counted elsewhere; they are no longer, once told.
    elsewhere: fn(usize) -> u64,
}

/// Most portals that a server makes at once.
const MADE: usize = 8;

/// For portals of which nothing is known.
pub const NAMELESS: &str = "?";

impl Portals {
    pub const fn new() -> Self {
        Portals { now: Vec::new(), past: Vec::new(), behalf: 0, elsewhere: |_| 0 }
    }

    /// Some calls are counted elsewhere, by index alone.
    pub fn set_elsewhere(&mut self, take: fn(usize) -> u64) {
        self.elsewhere = take;
    }

    /// Adds what was counted elsewhere to the interface that the index has now.
    pub fn gather(&mut self, index: usize) {
        let calls = (self.elsewhere)(index);
        if calls > 0 {
            self.count(index, calls);
        }
    }

    /// The portals on behalf begin there.
    pub fn set_behalf(&mut self, first: usize) {
        self.behalf = first;
    }

    /// The interface behind an index.
    pub fn name(&self, index: usize) -> &str {
        let opened = self.now.iter().find(|p| p.index == index && !p.doubtful).map(|p| p.name.as_str());
        let on_behalf = index.checked_sub(self.behalf).filter(|_| self.behalf > 0);
        let index = on_behalf.and_then(|place| BEHALF.get(place)).copied().unwrap_or(index);
        let born = || sys::ALL.iter().find(|(i, _)| *i == index).map(|(_, name)| *name);
        opened.or_else(born).unwrap_or(NAMELESS)
    }

    /// So many more calls.
    pub fn count(&mut self, index: usize, calls: u64) {
        if let Some(portal) = self.now.iter_mut().find(|p| p.index == index) {
            portal.calls += calls;
        } else {
            self.now.push(Portal { index, name: self.name(index).into(), calls, doubtful: false });
        }
    }

    /// Learns from a call that took place: its index, words and answer.
    pub fn learn(&mut self, index: usize, p: &Words, answer: i64) {
        let Ok(made) = usize::try_from(answer) else { return };
        let name: &str = self.name(index);
        match name {
            "pm.open" => {
                let name = text(&p[..3]);
                self.set(made, name);
            }
            "pm.sem_create" | "pm.sem_open" => {
                self.set(made, "semaphore.p".into());
                self.set(made + 1, "semaphore.v".into());
            }
            "pm.close" => {
                for index in p[0]..p[0].saturating_add(p[1].min(4096)) {
                    self.forget(index as usize);
                }
            }
            "file.open" | "file.create" | "file.make" | "console.open" | "pipe.open" => {
                let server = String::from(name.split('.').next().unwrap_or_default());
                for (n, what) in ["read", "write", "seek", "close"].into_iter().enumerate() {
                    self.set(made + n, format!("{server}.{what}"));
                }
            }
            // The loader has opened what the new program imports, perhaps where one that is dead had
            // something else.
            "process.spawn" | "process.control" => self.doubt(sys::FIRST_FREE..TABLE_ENTRIES),
            // So may a server have done, which then says where.
            name if words(name).is_none() && (sys::FIRST_FREE..TABLE_ENTRIES).contains(&made) => {
                self.doubt(made..made + MADE);
            }
            _ => {}
        }
    }

    /// What is behind these must be asked for.
    fn doubt(&mut self, indices: Range<usize>) {
        self.now.iter_mut().filter(|p| indices.contains(&p.index)).for_each(|p| p.doubtful = true);
    }

    fn forget(&mut self, index: usize) {
        self.gather(index);
        if let Some(at) = self.now.iter().position(|p| p.index == index) {
            let portal = self.now.swap_remove(at);
            if portal.calls > 0 {
                self.past(portal);
            }
        }
    }

    /// One line for each interface that an index has had.
    fn past(&mut self, portal: Portal) {
        match self.past.iter_mut().find(|p| p.index == portal.index && p.name == portal.name) {
            Some(same) => same.calls += portal.calls,
            None => self.past.push(portal),
        }
    }

    /// This interface is behind an index from now on.
    pub fn set(&mut self, index: usize, name: String) {
        if let Some(same) = self.now.iter_mut().find(|p| p.index == index && p.doubtful && p.name == name) {
            same.doubtful = false;
            return;
        }
        self.forget(index);
        self.now.push(Portal { index, name, calls: 0, doubtful: false });
    }

    /// Index, interface and calls of everything that was called, by index; and the sum.
    pub fn table(&self) -> String {
        let mut all = Portals { past: self.past.clone(), ..Portals::new() };
        self.now.iter().filter(|p| p.calls > 0).for_each(|p| all.past(p.clone()));
        let mut rows = all.past;
        rows.sort_by(|a, b| (a.index, &a.name).cmp(&(b.index, &b.name)));
        let mut table = String::from("index  interface                 calls\n");
        for row in &rows {
            let _ = writeln!(table, "{:>5}  {:<24}{:>7}", row.index, row.name, row.calls);
        }
        let sum: u64 = rows.iter().map(|row| row.calls).sum();
        let _ = writeln!(table, "       {:<24}{sum:>7}", "all");
        table
    }
}

/// The text in words: up to the first zero byte.
pub fn text(words: &[u64]) -> String {
    let mut bytes = [0; link::PATHLEN];
    let len = link::unpack(words, &mut bytes);
    String::from_utf8_lossy(&bytes[..len]).into_owned()
}

/// What a word, or several, say.
#[derive(Clone, Copy)]
enum Word {
    Number,
    Hex,
    /// A name or path in so many words.
    Text(usize),
    /// So many bytes as the word before says, in the words that are left; in its bits from there on.
    Bytes(u32),
}

/// The words of the interfaces that every program knows.
fn words(name: &str) -> Option<&'static [Word]> {
    use Word::{Bytes, Hex, Number, Text};
    Some(match name {
        "nucleus.get_asid"
        | "nucleus.get_thread_id"
        | "nucleus.hrtime"
        | "scheduler.yield"
        | "scheduler.park"
        | "scheduler.thread_exit"
        | "semaphore.p"
        | "semaphore.v"
        | "pipe.create"
        | "vm.stats"
        | "pm.stats"
        | "clock.nanoseconds"
        | "clock.wall" => &[],
        "scheduler.sleep" | "process.exit" | "process.start" | "process.wait" | "process.kill"
        | "vm.sbrk" | "process.list" | "name.list" => &[Number],
        "vm.thread_create" => &[Hex, Hex, Number],
        "pm.open" | "pm.sem_open" | "pm.interface" => &[Text(3)],
        "pm.register" => &[Text(3), Text(1), Hex],
        "pm.sem_create" | "pm.remove" | "pm.close" => &[Number, Number],
        "pm.create" => &[Number, Number, Hex],
        "pm.sem_publish" => &[Number, Text(3)],
        "pm.control" | "process.control" => &[Hex, Hex, Hex, Hex],
        "file.open" | "file.create" | "file.make" | "file.remove" | "file.rename" | "file.rename_to"
        | "file.capability" | "console.open" | "pipe.open" | "process.spawn" => &[Text(5)],
        "process.argument" => &[Hex, Bytes(16)],
        "process.stdio" => &[Hex, Text(4)],
        _ => match name.rsplit('.').next()? {
            "read" => &[Number],
            "write" => &[Number, Bytes(0)],
            "seek" => &[Number, Number],
            "close" => &[],
            _ => return None,
        },
    })
}

/// A call as text: the interface, its words.
pub fn call(name: &str, p: &Words) -> String {
    let mut out = format!("{name}(");
    let mut at = 0;
    let unknown: Vec<Word> =
        (0..p.iter().rposition(|w| *w != 0).map_or(0, |n| n + 1)).map(|_| Word::Hex).collect();
    for (n, word) in words(name).unwrap_or(&unknown).iter().enumerate() {
        let comma = if n > 0 { ", " } else { "" };
        let _ = match word {
            Word::Number => write!(out, "{comma}{}", p[at] as i64),
            Word::Hex => write!(out, "{comma}{:#x}", p[at]),
            Word::Text(count) => write!(out, "{comma}{:?}", text(&p[at..at + count])),
            Word::Bytes(shift) => write!(out, "{comma}{:?}", bytes(&p[at..], (p[at - 1] >> shift) as usize)),
        };
        at += if let Word::Text(count) = word { *count } else { 1 };
    }
    out.push(')');
    out
}

fn bytes(words: &[u64], count: usize) -> String {
    let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).take(count).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The answer as text; what was read, too.
pub fn answer(name: &str, value: i64, broken: u64, more: &[u64]) -> String {
    if broken != 0 {
        return format!("broken: status {}, domain {}", status::code(broken), status::domain(broken));
    }
    match value {
        ..0 => format!("{value} ({})", error(Errno::of(value))),
        _ if name.ends_with(".read") => format!("{value} {:?}", bytes(more, value as usize)),
        0..0x1_0000 => format!("{value}"),
        _ => format!("{value:#x}"),
    }
}

/// The name of an error number.
pub fn error(error: Errno) -> &'static str {
    error.name().unwrap_or("no known error")
}
