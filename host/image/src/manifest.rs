//! System manifests (`systems/*.toml`): which components, with which rights.

use crate::board::{Board, Registers};
use pebble_abi::capability;
use pebble_abi::link::{NAMELEN, PATHLEN};
use pebble_abi::map::{self, PAGE};
use pebble_abi::scheduler::Wait;
use pebble_boot::{self as boot, rules};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use toml::Spanned;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// What `./pebble` calls the system.
    #[serde(deserialize_with = "file_name")]
    pub name: String,
    #[serde(default)]
    pub description: String,
    /// A manifest in the same folder whose components, semaphores, rules and files come first.
    pub include: Option<String>,
    #[serde(default)]
    pub component: Vec<Component>,
    #[serde(default)]
    pub semaphore: Vec<Semaphore>,
    #[serde(default)]
    pub rule: Vec<Spanned<Rule>>,
    /// Files of the archive.
    #[serde(default)]
    pub file: Vec<File>,
    /// Devices that programs can have, where rules let them.
    #[serde(default)]
    pub device: Vec<Spanned<NamedDevice>>,
    /// What `./pebble test` tries in this system; those of what it includes are not among them.
    #[serde(default)]
    pub test: Vec<Test>,
}

/// A component that is in the image from the start: one domain.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Component {
    pub name: String,
    /// Cargo package whose binary it is.
    pub package: String,
    /// Binary of the package, if it has several.
    pub binary: Option<String>,
    #[serde(default)]
    pub priority: u8,
    /// Interrupts off, one fixed stack.
    #[serde(default)]
    pub exclusive: bool,
    /// The system stops if it faults.
    #[serde(default)]
    pub essential: bool,
    /// Counts towards the resident size of the essential system.
    #[serde(default)]
    pub core: bool,
    /// Its portals keep floating-point state, where there is any, even if its code was compiled without.
    #[serde(default)]
    pub float: bool,
    /// Its calls may use the reserve of the invocation stack, and are refused where that is full: for servers
    /// that call others for their clients, which must work, and live on, for a client that has filled its
    /// part.
    #[serde(default)]
    pub server: bool,
    /// Has a thread of its own, which runs its entry point.
    #[serde(default)]
    pub thread: bool,
    /// Stacks in its stack queue, for `n` portals.
    #[serde(default)]
    pub stacks: usize,
    /// Pages of each of its stacks.
    #[serde(default = "one")]
    pub stack_pages: usize,
    /// The board's devices that it has to itself.
    #[serde(default)]
    pub devices: Vec<String>,
    /// Their registers, in this order.
    #[serde(skip)]
    pub registers: Vec<Registers>,
    #[serde(default)]
    pub grants: Vec<Grant>,
    /// Argument letters, `A` to `Z`, whose templates it may register: it is trusted with code that runs in
    /// other domains' calls.
    #[serde(default)]
    pub templates: Vec<char>,
    /// Its heap may grow beyond the first 2 MiB: for servers that hold what others give them.
    #[serde(default)]
    pub large_heap: bool,
    /// Interfaces of the system portals that it has, of those in `abi::sys`; all, if not said. The nucleus's
    /// own are always there.
    pub system: Option<Vec<String>>,
    /// Imports to be bound to other interfaces than they name.
    #[serde(default)]
    pub bind: BTreeMap<String, String>,
}

fn one() -> usize {
    1
}

/// A device of the board, by its name there, that no component has to itself.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NamedDevice {
    pub name: String,
    #[serde(skip)]
    pub at: u64,
    #[serde(skip)]
    pub len: u64,
    /// Source of its interrupt; 0: it has none.
    #[serde(skip)]
    pub irq: u16,
}

/// Memory that a trusted server has beyond its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grant {
    /// All physical memory.
    Physical,
    /// Portal code arena.
    Code,
    /// Semaphores, stack queues, counters.
    SharedData,
    /// The scheduler's part of it (`map::SCHEDULING`).
    Scheduling,
    /// All portal tables.
    Tables,
    /// All thread blocks.
    Threads,
    /// Boot information, read-only.
    BootInfo,
    /// The file archive, read-only.
    Archive,
    /// The capability table.
    Capabilities,
    /// The private data of an argument letter, given by `templates`.
    Template(u8),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Semaphore {
    pub name: String,
    /// Its interrupt posts the semaphore.
    pub device: Option<String>,
    /// The source of that.
    #[serde(skip)]
    pub interrupt: Option<u16>,
    #[serde(default)]
    pub initial: i64,
    #[serde(default)]
    pub interruptible: bool,
    /// Of a component's lock: while a thread waits, others that are less urgent get turns, for one of them
    /// holds it.
    #[serde(default)]
    pub lock: bool,
}

impl Semaphore {
    pub fn wait(&self) -> Wait {
        match (self.lock, self.interruptible) {
            (true, _) => Wait::Lock,
            (false, true) => Wait::Interruptible,
            (false, false) => Wait::Patient,
        }
    }
}

/// Whom it speaks of, what it is about, what it says.
#[derive(Clone, Debug, Deserialize)]
#[serde(try_from = "RuleText")]
pub struct Rule(pub boot::Rule);

/// As it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleText {
    client: Pattern,
    interface: Option<Pattern>,
    file: Option<PathPattern>,
    device: Option<Pattern>,
    allow: Allow,
    /// With `allow = "capability"`: clients named so can have the first one.
    #[serde(default)]
    holders: Pattern,
}

impl TryFrom<RuleText> for Rule {
    type Error = &'static str;

    fn try_from(text: RuleText) -> Result<Self, Self::Error> {
        let about = match (text.interface, text.file, text.device) {
            (Some(Pattern(name)), None, None) => boot::About::Interface(name),
            (None, Some(PathPattern(path)), None) => boot::About::File(path),
            (None, None, Some(Pattern(name))) => boot::About::Device(name),
            _ => {
                return Err(
                    "a rule is about one thing: interface = \"..\", file = \"..\" or device = \"..\"",
                );
            }
        };
        let verdict = match text.allow {
            Allow::Yes => boot::Verdict::Allow,
            Allow::No => boot::Verdict::Refuse,
            Allow::Capability => boot::Verdict::Capability,
        };
        if verdict != boot::Verdict::Capability && !text.holders.0.is_empty() {
            return Err("holders are who can have the first capability: only with allow = \"capability\"");
        }
        Ok(Rule(boot::Rule { client: text.client.0, about, verdict, holders: text.holders.0 }))
    }
}

/// A name, or the start of one with `*` behind it.
#[derive(Default, Deserialize)]
#[serde(try_from = "String")]
struct Pattern(String);

impl TryFrom<String> for Pattern {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if rules::well_formed(&text) {
            Ok(Pattern(text))
        } else {
            Err(format!("\"{text}\": a * stands for any rest, so it can only be the last character"))
        }
    }
}

/// A path as rules see it: one that is spelled otherwise would never match.
#[derive(Deserialize)]
#[serde(try_from = "Pattern")]
struct PathPattern(String);

impl TryFrom<Pattern> for PathPattern {
    type Error = String;

    fn try_from(Pattern(text): Pattern) -> Result<Self, String> {
        let fixed = text.strip_suffix('*').unwrap_or(&text);
        let whole = text.len() == fixed.len();
        let mut parts: Vec<&str> = fixed.split('/').skip(1).collect();
        // The last is the start of any name, or says that a directory is meant.
        let last = parts.pop().unwrap_or_default();
        let never = |part: &str| matches!(part, "." | "..");
        let what = if !fixed.starts_with('/') {
            "must start with /"
        } else if parts.iter().any(|part| part.is_empty() || never(part)) || whole && never(last) {
            "must have no empty part, and no . or .. in it"
        } else if fixed.len() > pebble_abi::link::PATHLEN + 1 {
            "is longer than any path"
        } else {
            return Ok(PathPattern(text));
        };
        Err(format!("file = \"{text}\": a path in a rule {what}"))
    }
}

/// `true`, `false`, or `"capability"`: to those who hold one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allow {
    Yes,
    No,
    Capability,
}

impl<'de> Deserialize<'de> for Allow {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Word {
            Flag(bool),
            Text(String),
        }
        match Word::deserialize(d)? {
            Word::Flag(true) => Ok(Allow::Yes),
            Word::Flag(false) => Ok(Allow::No),
            Word::Text(text) if text == "capability" => Ok(Allow::Capability),
            Word::Text(text) => Err(serde::de::Error::custom(format!(
                "allow = \"{text}\": must be true, false or \"capability\""
            ))),
        }
    }
}

/// A path in the archive, as programs open it, but for the slash in front.
fn archived<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let path = String::deserialize(from)?;
    let part = |part: &str| !matches!(part, "" | "." | "..") && part.bytes().all(|b| b.is_ascii_graphic());
    let what = if !path.split('/').all(part) {
        "names parts of visible ASCII, neither . nor .., with a / between two of them, none in front"
            .to_string()
    } else if path.len() > PATHLEN {
        format!("has {PATHLEN} characters at most")
    } else {
        return Ok(path);
    };
    Err(serde::de::Error::custom(format!("path = \"{path}\": a path {what}")))
}

/// A name of which files are called.
fn file_name<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    let good = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if !name.is_empty() && !name.starts_with('.') && name.chars().all(good) {
        return Ok(name);
    }
    let what = "a name is of letters, digits, '-', '_' and '.'";
    Err(serde::de::Error::custom(format!("name = \"{name}\": {what}")))
}

/// A file of the archive: a program (package or C source directory), or a plain file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct File {
    #[serde(deserialize_with = "archived")]
    pub path: String,
    pub package: Option<String>,
    pub binary: Option<String>,
    /// C source, or directory of C sources, relative to the project.
    pub c: Option<String>,
    /// Plain file, relative to the project.
    pub from: Option<String>,
    /// So many numbered lines of 20 bytes, made up.
    pub lines: Option<u32>,
}

/// What is typed at the system's shell, and what comes of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Test {
    #[serde(deserialize_with = "file_name")]
    pub name: String,
    /// Lines, one after the other; at least one.
    #[serde(deserialize_with = "some_lines")]
    pub run: Vec<String>,
    /// All that they print. It is not compared if it is not said.
    pub prints: Option<String>,
    /// Exit status of the last line. The others end with 0.
    #[serde(default)]
    pub status: i64,
    /// How long a line may take, of the emulator's processor time.
    #[serde(default = "half_a_minute")]
    pub seconds: u64,
}

/// A test without any would hold whatever is broken.
fn some_lines<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let lines = Vec::<String>::deserialize(from)?;
    if lines.is_empty() {
        Err(serde::de::Error::custom("run = []: a test types a line at least"))
    } else {
        Ok(lines)
    }
}

fn half_a_minute() -> u64 {
    30
}

/// What is wrong with a manifest, and where.
#[derive(Debug)]
pub enum ManifestError {
    Read {
        path: PathBuf,
        error: std::io::Error,
    },
    Syntax(toml::de::Error),
    Included {
        path: PathBuf,
        error: Box<ManifestError>,
    },
    /// Manifests include each other in a circle.
    Circle(PathBuf),
    Component {
        component: String,
        what: &'static str,
    },
    /// The board has no such device, or none that can do this.
    Device {
        device: String,
        board: String,
        what: String,
    },
    /// In the text.
    At {
        line: usize,
        column: usize,
        what: String,
    },
    /// Two files of the archive have this path.
    Twice(String),
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManifestError::Twice(path) => {
                write!(f, "file '{path}': the path is used twice; give one of them another name")
            }
            ManifestError::Read { path, error } => write!(f, "cannot read {}: {error}", path.display()),
            ManifestError::Included { path, error } => write!(f, "in {}: {error}", path.display()),
            ManifestError::Circle(path) => write!(f, "{} includes itself", path.display()),
            ManifestError::Syntax(error) => write!(f, "{error}"),
            ManifestError::At { line, column, what } => write!(f, "line {line}, column {column}: {what}"),
            ManifestError::Device { device, board, what } => {
                write!(f, "device '{device}': {what} (boards/{board}.toml)")
            }
            ManifestError::Component { component, what } => write!(f, "component '{component}': {what}"),
        }
    }
}

impl std::error::Error for ManifestError {}

/// Manifests may include one another so deep.
const MAX_INCLUDES: usize = 8;

/// A mistake at this place of the text.
fn at<T>(text: &str, place: &Spanned<T>, what: String) -> ManifestError {
    let before = &text[..place.span().start];
    let line = before.matches('\n').count() + 1;
    let column = before.chars().rev().take_while(|c| *c != '\n').count() + 1;
    ManifestError::At { line, column, what }
}

impl Manifest {
    /// The manifest at `path`, with what it includes.
    pub fn load(path: &Path, board: &Board) -> Result<Manifest, ManifestError> {
        let mut manifest = Self::load_nested(path, board, 0)?;
        manifest.check()?;
        Ok(manifest)
    }

    fn load_nested(path: &Path, board: &Board, depth: usize) -> Result<Manifest, ManifestError> {
        if depth > MAX_INCLUDES {
            return Err(ManifestError::Circle(path.into()));
        }
        let text = std::fs::read_to_string(path)
            .map_err(|error| ManifestError::Read { path: path.into(), error })?;
        let mut manifest: Manifest = toml::from_str(&text).map_err(ManifestError::Syntax)?;
        let own = (manifest.rule.len(), manifest.device.len());
        if let Some(include) = manifest.include.take() {
            let base = path.with_file_name(include);
            let base = Self::load_nested(&base, board, depth + 1)
                .map_err(|error| ManifestError::Included { path: base, error: Box::new(error) })?;
            manifest.component.splice(0..0, base.component);
            manifest.semaphore.splice(0..0, base.semaphore);
            manifest.rule.splice(0..0, base.rule);
            manifest.file.splice(0..0, base.file);
            manifest.device.splice(0..0, base.device);
        }
        manifest.place(board)?;
        manifest.check_devices(&text, manifest.device.len() - own.1)?;
        manifest.check_rules(&text, manifest.rule.len() - own.0)?;
        Ok(manifest)
    }

    /// A manifest that includes nothing.
    pub fn parse(text: &str, board: &Board) -> Result<Manifest, ManifestError> {
        let mut manifest: Manifest = toml::from_str(text).map_err(ManifestError::Syntax)?;
        manifest.place(board)?;
        manifest.check_devices(text, 0)?;
        manifest.check_rules(text, 0)?;
        manifest.check()?;
        Ok(manifest)
    }

    /// Where the devices are that it names.
    fn place(&mut self, board: &Board) -> Result<(), ManifestError> {
        let fail = |device: &str, what: String| {
            Err(ManifestError::Device { device: device.into(), board: board.name.clone(), what })
        };
        let known = format!("the board has none of that name, but {}", board.devices());
        for c in &mut self.component {
            c.registers.clear();
            for name in &c.devices {
                let Some(device) = board.device.get(name) else { return fail(name, known) };
                c.registers.extend(device.registers.iter().map(|registers| registers.pages()));
            }
        }
        for device in &mut self.device {
            let device = device.get_mut();
            let Some(found) = board.device.get(&device.name) else { return fail(&device.name, known) };
            let [registers] = found.registers[..] else {
                return fail(
                    &device.name,
                    "programs can have devices whose registers are in one piece".into(),
                );
            };
            let Registers { at, bytes } = registers.pages();
            (device.at, device.len, device.irq) = (at, bytes, found.interrupt);
        }
        for semaphore in &mut self.semaphore {
            let Some(name) = &semaphore.device else { continue };
            let Some(device) = board.device.get(name) else { return fail(name, known) };
            if device.interrupt == 0 {
                return fail(name, "it has no interrupt to post a semaphore".into());
            }
            semaphore.interrupt = Some(device.interrupt);
        }
        Ok(())
    }

    /// The rules from `first` on, which are in this text, want nothing that the system has not.
    fn check_rules(&self, text: &str, first: usize) -> Result<(), ManifestError> {
        let tokens = self.component.iter().any(|c| c.grants.contains(&Grant::Capabilities));
        for (n, rule) in self.rule.iter().enumerate().skip(first) {
            let what = if n >= rules::MAX_RULES {
                format!("a system has at most {} rules", rules::MAX_RULES)
            } else if rule.get_ref().0.verdict == boot::Verdict::Capability && !tokens {
                "allow = \"capability\": the system has no capability manager; see tests/systems/secret.toml"
                    .into()
            } else if let boot::About::Device(pattern) = &rule.get_ref().0.about
                && !self.device.iter().any(|d| rules::matches(pattern, &d.get_ref().name))
            {
                format!("device = \"{pattern}\": the system has no such [[device]]")
            } else {
                continue;
            };
            return Err(at(text, rule, what));
        }
        Ok(())
    }

    /// The devices from `first` on, which are in this text, can be given to programs, and somebody is meant
    /// to have them.
    fn check_devices(&self, text: &str, first: usize) -> Result<(), ManifestError> {
        let mut pages = 0;
        for (n, spanned) in self.device.iter().enumerate() {
            let device = spanned.get_ref();
            pages += device.len.div_ceil(PAGE).min(u64::from(u16::MAX));
            let others = || self.device[..n].iter().map(Spanned::get_ref);
            let about = |rule: &boot::Rule| {
                rule.client == "*"
                    && rule.about.kind() == capability::DEVICE
                    && rules::matches(rule.about.pattern(), &device.name)
            };
            let driven = self.semaphore.iter().any(|s| s.interrupt == Some(device.irq));
            let what = if device.name.is_empty() || device.name.len() > NAMELEN {
                "its name must have 1 to 24 letters"
            } else if others().any(|other| other.name == device.name) {
                "the name is used twice"
            } else if n >= map::MAX_DEVICES {
                "a system has at most 8 devices"
            } else if pages * PAGE > map::DEVICES_END - map::DEVICES_VA {
                "the registers of all devices for programs have at most 8 MiB"
            } else if device.irq != 0 && driven {
                "a component has its interrupt"
            } else if !self.rule.iter().any(|rule| about(&rule.get_ref().0)) {
                "no rule with client = \"*\" says who can have it"
            } else {
                continue;
            };
            if n >= first {
                return Err(at(text, spanned, format!("device '{}': {what}", device.name)));
            }
        }
        Ok(())
    }

    fn check(&mut self) -> Result<(), ManifestError> {
        let mut seen = std::collections::BTreeSet::new();
        if let Some(file) = self.file.iter().find(|file| !seen.insert(file.path.clone())) {
            return Err(ManifestError::Twice(file.path.clone()));
        }
        seen.clear();
        let mut letters = std::collections::BTreeSet::new();
        for c in &mut self.component {
            let fail = |what| ManifestError::Component { component: c.name.clone(), what };
            if !seen.insert(c.name.clone()) {
                return Err(fail("the name is used twice"));
            }
            if c.priority > 31 {
                return Err(fail("priority must be 0 to 31"));
            }
            if c.exclusive && c.thread {
                return Err(fail(
                    "an exclusive component cannot have a thread: it would run with interrupts off",
                ));
            }
            if c.stack_pages == 0 || c.stack_pages > 15 {
                return Err(fail("stack_pages must be 1 to 15"));
            }
            if c.stacks + usize::from(c.thread) + usize::from(c.exclusive)
                > pebble_abi::map::STACKS_PER_DOMAIN
            {
                return Err(fail("too many stacks"));
            }
            if c.grants.iter().any(|g| matches!(g, Grant::Template(_))) {
                return Err(fail("letters are given by templates, not by grants"));
            }
            for letter in &c.templates {
                if !letter.is_ascii_uppercase() {
                    return Err(fail("templates are for the letters A to Z, such as [\"T\"]"));
                }
                if !letters.insert(*letter) {
                    return Err(fail("templates: another component has that letter"));
                }
                c.grants.push(Grant::Template(*letter as u8));
            }
        }
        Ok(())
    }
}
