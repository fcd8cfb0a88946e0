//! `pebble crash`: what a program did when it died, from what the console told of it.
//!
//! Problem: the board knows registers, a few words of the stack and the portal calls under way; functions and
//! lines are in files that only the host has. Strategy: `pebble run` finds crashes in what the console shows
//! ([`record`]) and keeps each in `target/crash/NAME`, with the system and its image named before it. `pebble
//! crash` reads such a file, or any text with these lines in it, and asks the programs' files for the rest
//! ([`symbols`]); a file whose code is not that which ran is told, and not asked.

mod record;
mod symbols;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};

use crate::isa::Isa;
use crate::tools::Tools;
use crate::{build, ui};
use record::{Finder, Record};
use symbols::Symbols;

/// Crashes of one run that are kept.
const MOST_KEPT: usize = 64;
/// Bytes of a file that are looked at.
const MOST_READ: u64 = 64 << 20;

#[derive(clap::Args)]
pub struct Options {
    /// A file of target/crash, or any text in which a console tells of crashes (-: standard input). Without
    /// one, the last crash
    file: Option<PathBuf>,
    /// The system that ran, if the file does not say: a name in systems/, or a path to a manifest
    #[arg(long)]
    system: Option<String>,
    /// The program's ELF file with symbols, if it is none of the system's
    #[arg(long, value_name = "FILE")]
    elf: Option<PathBuf>,
}

fn directory(tools: &Tools) -> PathBuf {
    tools.made().join("crash")
}

// --- while a system runs -----------------------------------------------------------------------

fn finder(tools: &Tools) -> Finder {
    Finder::new(tools.isa.layout.registers)
}

/// Passes on what a console shows, and keeps the crashes in it.
pub struct Keeper<'a, W> {
    to: W,
    tools: &'a Tools,
    /// What stands before each.
    head: String,
    finder: Finder,
    kept: usize,
    /// What to say when the system has ended; at once if that is `None`.
    notes: Option<Vec<String>>,
}

impl<'a, W: Write> Keeper<'a, W> {
    /// `quiet`: nothing is said before the end.
    pub fn new(tools: &'a Tools, image: &Path, to: W, quiet: bool) -> Result<Self> {
        let number = number(&fs::read(image)?);
        let head = format!("image {number:x} {}\n", image.canonicalize()?.display());
        Ok(Keeper { to, tools, head, finder: finder(tools), kept: 0, notes: quiet.then(Vec::new) })
    }

    fn keep(&mut self, records: Vec<Record>) {
        for record in records.into_iter().filter(|record| record.lines.len() > 1) {
            if self.kept == MOST_KEPT {
                return;
            }
            self.kept += 1;
            let note = match self.store(&record) {
                Ok(path) => format!("{} crashed: {path}; ./pebble crash shows it", record.name),
                Err(error) => format!("{} crashed, but that cannot be kept: {error:#}", record.name),
            };
            match &mut self.notes {
                Some(notes) => notes.push(note),
                None => ui::note(&note),
            }
        }
    }

    fn store(&self, record: &Record) -> Result<String> {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
        let name: String = record.name.chars().map(plain).take(40).collect();
        ensure!(!name.is_empty(), "it has no name");
        let dir = directory(self.tools);
        fs::create_dir_all(&dir)?;
        let path = dir.join(name);
        let text = format!("{}{}\n", self.head, record.lines.join("\n"));
        // Under its name stands a whole one, always.
        let new = path.with_extension("new");
        fs::write(&new, text)
            .and_then(|()| fs::rename(&new, &path))
            .with_context(|| self.tools.shown(&path))?;
        Ok(self.tools.shown(&path))
    }

    /// The system has ended.
    pub fn finish(mut self) {
        let left = self.finder.finish();
        self.keep(left);
        self.notes.iter().flatten().for_each(|note| ui::note(note));
    }
}

impl<W: Write> Write for Keeper<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let count = self.to.write(bytes)?;
        let found = self.finder.feed(&bytes[..count]);
        self.keep(found);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

// --- afterwards --------------------------------------------------------------------------------

/// Tells an image from another: FNV-1a, 64 bits.
fn number(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}

/// The programs of a system, and what became of it.
struct System {
    image: PathBuf,
    /// The image is the one that ran.
    same: Option<bool>,
    elfs: BTreeMap<String, PathBuf>,
    isa: &'static Isa,
}

impl System {
    fn find(tools: &Tools, options: &Options, text: &str) -> Result<System> {
        let head = text.lines().next().and_then(|line| line.strip_prefix("image ")?.split_once(' '));
        let (ran, image) = match (&options.system, head) {
            (None, Some((number, image))) => (u64::from_str_radix(number, 16).ok(), PathBuf::from(image)),
            (system, _) => {
                let manifest = tools.manifest(system.as_deref().unwrap_or(crate::DEFAULT_SYSTEM))?;
                (None, build::image_path(tools, &manifest))
            }
        };
        let same = ran.map(|ran| fs::read(&image).is_ok_and(|bytes| number(&bytes) == ran));
        let elfs = build::elfs(&image);
        Ok(System { image, same, elfs, isa: tools.isa })
    }

    fn elf(&self, path: &str) -> Option<&Path> {
        self.elfs.get(path.trim_start_matches('/')).map(PathBuf::as_path)
    }

    /// The file of the program at this path, if its code is that which ran.
    fn symbols(&self, path: &str, text: Option<u64>, elf: Option<&Path>) -> Result<Symbols> {
        let file = elf.or(self.elf(path));
        let file = file.with_context(|| {
            format!("no ELF file of {path} is known in {}: --system or --elf names it", self.image.display())
        })?;
        let symbols = Symbols::load(file, self.isa)?;
        match text {
            Some(text) => symbols.check(text).with_context(|| file.display().to_string())?,
            None if self.same == Some(false) => bail!("{}: has been built anew since", self.image.display()),
            None => {}
        }
        Ok(symbols)
    }
}

pub fn crash(tools: &Tools, options: &Options) -> Result<u8> {
    let (name, text) = read(tools, options)?;
    let mut finder = finder(tools);
    let mut records = finder.feed(text.as_bytes());
    records.append(&mut finder.finish());
    ensure!(!records.is_empty(), "{name} tells of no crash");
    let system = System::find(tools, options, &text)?;
    let (mut out, mut complaints) = (String::new(), Vec::new());
    for record in &records {
        show(&mut out, &mut complaints, &system, record, options.elf.as_deref())?;
    }
    std::io::stdout().write_all(out.as_bytes())?;
    complaints.dedup();
    complaints.iter().for_each(|complaint| ui::error(complaint));
    Ok(u8::from(!complaints.is_empty()))
}

fn read(tools: &Tools, options: &Options) -> Result<(String, String)> {
    let path = match &options.file {
        Some(path) if path.as_os_str() == "-" => {
            let mut bytes = Vec::new();
            std::io::stdin().take(MOST_READ).read_to_end(&mut bytes)?;
            return Ok(("standard input".into(), String::from_utf8_lossy(&bytes).into_owned()));
        }
        Some(path) if path.exists() => path.clone(),
        Some(path) if path.components().count() == 1 => directory(tools).join(path),
        Some(path) => path.clone(),
        None => last(tools).with_context(|| format!("no crash in {}", tools.shown(&directory(tools))))?,
    };
    let shown = tools.shown(&path);
    let mut bytes = Vec::new();
    let file = fs::File::open(&path).with_context(|| shown.clone())?;
    file.take(MOST_READ).read_to_end(&mut bytes).with_context(|| shown.clone())?;
    Ok((shown, String::from_utf8_lossy(&bytes).into_owned()))
}

/// The newest.
fn last(tools: &Tools) -> Option<PathBuf> {
    let files = fs::read_dir(directory(tools)).ok()?.flatten();
    let dated = files.filter_map(|file| Some((file.metadata().ok()?.modified().ok()?, file.path())));
    dated.filter(|(_, path)| path.extension().is_none()).max().map(|(_, path)| path)
}

fn show(
    out: &mut String,
    complaints: &mut Vec<String>,
    system: &System,
    record: &Record,
    elf: Option<&Path>,
) -> Result<()> {
    let Record { domain, name, what, .. } = record;
    writeln!(out, "{name} (domain {domain}): {what}")?;
    if !record.whole {
        writeln!(out, "  the end of what was told is missing")?;
    }
    let path = if record.path.is_empty() { name } else { &record.path };
    let component = !path.contains('/');
    let symbols = system.symbols(path, record.text.filter(|_| !component), elf);
    let symbols = symbols.map_err(|error| complaints.push(format!("{error:#}"))).ok();

    if record.register(record::PC).is_some() {
        writeln!(out, "\nregisters")?;
        let all: Vec<_> = system.isa.layout.registers.iter().enumerate().collect();
        for line in all.chunks(4) {
            let shown =
                line.iter().map(|(n, r)| format!("{:>5} {:016x}", r.name, record.register(*n).unwrap_or(0)));
            writeln!(out, "{}", shown.collect::<Vec<_>>().join(" "))?;
        }
        writeln!(out, "\nbacktrace")?;
        backtrace(out, record, symbols.as_ref())?;
    }
    if !record.calls.is_empty() {
        writeln!(out, "\nportal calls under way, the last first")?;
    }
    for call in &record.calls {
        let record::Call { interface, domain, path, address } = call;
        write!(out, "  {interface} from domain {domain} ({path}) at {address:#x}")?;
        // Of a caller there is no number of its code: the image must be the same.
        let symbols = system.symbols(path, None, None).ok().filter(|_| system.same != Some(false));
        match symbols.and_then(|symbols| symbols.describe(*address, true).pop()) {
            Some(place) => writeln!(out, "  {place}")?,
            None => writeln!(out)?,
        }
    }
    Ok(writeln!(out)?)
}

fn backtrace(out: &mut String, record: &Record, symbols: Option<&Symbols>) -> Result<()> {
    let Some(symbols) = symbols else {
        let pc = record.register(record::PC).unwrap_or(0);
        return Ok(writeln!(out, "  {pc:#010x}  (no symbols)")?);
    };
    let mut guesses = false;
    for (n, frame) in symbols.unwind(record).iter().enumerate() {
        guesses |= frame.guessed;
        let mark = if frame.guessed { "?" } else { " " };
        for (m, place) in symbols.describe(frame.address, frame.called).into_iter().enumerate() {
            match m {
                0 => writeln!(out, "{n:>3} {mark} {:#010x}  {place}", frame.address)?,
                _ => writeln!(out, "                  {place}")?,
            }
        }
    }
    if guesses {
        writeln!(out, "  ?: found by its look on the stack; how to unwind what it called is not known")?;
    }
    Ok(())
}
