//! `pebble sfi ld`: links confined objects into a module file.
//!
//! The ftab's size must be known before anything is laid out, imports have to become slots, and exports must
//! survive garbage collection: so lld runs two or three times, each run told what the one before has found.

use crate::elf::{self, Elf};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Debug)]
pub enum Error {
    Io(PathBuf, std::io::Error),
    /// lld failed; its messages.
    Linker(String),
    Elf(elf::Error),
    NoExport(String),
    Undefined(Vec<String>),
    /// Functions of Rust crates, demangled.
    Crates(Vec<String>),
    Argument(String),
    /// By the verifier, as it would be when it is loaded.
    Refused(String),
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Error::Io(path, e) => write!(f, "{}: {e}", path.display()),
            Error::Linker(text) => write!(f, "{}", mistakes(text)),
            Error::Elf(e) => write!(f, "linked module: {e}"),
            Error::NoExport(name) => write!(f, "export `{name}`: no object file defines this function"),
            Error::Undefined(names) => write!(f, "undefined: {}", names.join(", ")),
            Error::Crates(names) => write!(
                f,
                "functions of Rust crates that are not linked: {}; link with `pebble sfi rustc FILE.rs -o \
                 FILE.pbl`, which adds core and alloc, and give it the confined objects of other crates",
                names.join(", ")
            ),
            Error::Argument(a) => write!(f, "`{a}` needs a value"),
            Error::Refused(why) => write!(f, "the verifier refuses the module: {why}"),
        }
    }
}

impl From<elf::Error> for Error {
    fn from(e: elf::Error) -> Error {
        Error::Elf(e)
    }
}

#[derive(Debug, Default)]
pub struct Job {
    pub args: Vec<String>,
    pub output: PathBuf,
    /// Name and portal specification.
    pub exports: Vec<(String, String)>,
    pub full: bool,
    /// A program with its C library: nobody provides what it does not define itself, but for the runtime's
    /// `pbl_` functions.
    pub whole: bool,
    /// No instruction of the module may read a clock of the processor's.
    pub no_timer: bool,
}

/// `NAME=SPEC`, or a name with the default specification.
pub fn export(text: &str) -> (String, String) {
    let (name, spec) = text.split_once('=').unwrap_or((text, ""));
    (name.into(), spec.into())
}

const FIRST: u64 = 0x2_0000;
/// What programs export.
const START: &str = "_start";
/// Where the ELF header leaves room, and what stands there: so systems know modules among other programs
/// (`pebble sfi install`).
pub const MARK: (usize, &[u8; 4]) = (9, b"PBLM");

fn io<T>(path: &Path, r: std::io::Result<T>) -> Result<T, Error> {
    r.map_err(|e| Error::Io(path.into(), e))
}

fn script(ftab: u64, size: u64) -> String {
    format!(
        "PHDRS {{ text PT_LOAD FLAGS(5); ro PT_LOAD FLAGS(4); rw PT_LOAD FLAGS(6); native PT_LOAD FLAGS(5); tls PT_TLS FLAGS(4); }}
__pbl_ftab_mask = ABSOLUTE({mask:#x});
SECTIONS {{
  . = {ftab:#x};
  .text : {{
    __pbl_ftab = .;
    *(.pbl.ftab .pbl.ftab.*)
    __pbl_ftab_end = .;
    FILL(0xcccccccc)
    . = ALIGN(8);
    . = MAX(., __pbl_ftab + {size:#x});
    *(.text.unlikely .text.unlikely.* .text.cold .text.cold.*)
    *(.text.startup .text.startup.* .text.hot .text.hot.*)
    *(.text .text.*)
    *(.init .fini)
  }} :text
  . = ALIGN(4096);
  .rodata : {{ __pbl_ro = .; QUAD(0) *(.rodata .rodata.*) }} :ro
  .rela.dyn : {{ *(.rela.dyn .rela.*) }} :ro
  .dynsym : {{ *(.dynsym) }} :ro
  .dynstr : {{ *(.dynstr) }} :ro
  .hash : {{ *(.hash) *(.gnu.hash) }} :ro
  __pbl_ro_end = .;
  . = ALIGN(4096);
  .tdata : {{ __pbl_rw = .; *(.tdata .tdata.*) }} :rw :tls
  .tbss : {{ *(.tbss .tbss.* .tcommon) }} :rw :tls
  .data.rel.ro : {{ *(.data.rel.ro .data.rel.ro.*) }} :rw
  .init_array : {{
    PROVIDE_HIDDEN(__preinit_array_start = .); PROVIDE_HIDDEN(__preinit_array_end = .);
    PROVIDE_HIDDEN(__init_array_start = .);
    KEEP(*(SORT_BY_INIT_PRIORITY(.init_array.*) SORT_BY_INIT_PRIORITY(.ctors.*)))
    KEEP(*(.init_array .ctors))
    PROVIDE_HIDDEN(__init_array_end = .);
  }} :rw
  .fini_array : {{
    PROVIDE_HIDDEN(__fini_array_start = .);
    KEEP(*(SORT_BY_INIT_PRIORITY(.fini_array.*)))
    KEEP(*(.fini_array .dtors))
    PROVIDE_HIDDEN(__fini_array_end = .);
  }} :rw
  .dynamic : {{ *(.dynamic) }} :rw
  .got : {{ *(.got .got.plt) }} :rw
  .data : {{ QUAD(0) *(.data .data.*) }} :rw
  .bss : {{ *(.bss .bss.* COMMON) }} :rw
  __pbl_end = .; PROVIDE(_end = .); PROVIDE(end = .);
  . = ALIGN(4096);
  .pbl.native : {{ *(.pbl.native) }} :native
  .pbl.export 0 : {{ KEEP(*(.pbl.export)) }}
  .pbl.facts 0 : {{ *(.pbl.facts) }}
  .pbl.labels 0 : {{ KEEP(*(.pbl.labels)) }}
  .pbl.module 0 : {{ KEEP(*(.pbl.module)) }}
  /DISCARD/ : {{ *(.eh_frame .eh_frame.*) *(.note.GNU-stack) *(.note.gnu.property) *(.gcc_except_table*) *(.interp) }}
}}
",
        mask = ftab + size - 8
    )
}

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A directory for temporary files, removed at the end.
fn scratch() -> Result<Scratch, Error> {
    let dir = std::env::temp_dir().join(format!("pebble-sfi-ld-{}", std::process::id()));
    io(&dir, std::fs::create_dir_all(&dir))?;
    Ok(Scratch(dir))
}

/// What the linking step itself adds: slots of imports, room for what describes the module, and what a system
/// runs that takes it for a program.
fn own_object(pass: &Pass) -> Result<PathBuf, Error> {
    let mut text = String::new();
    for (i, name) in pass.imports.iter().enumerate() {
        text.push_str(&format!(
            "\t.section \".pbl.ftab.{name}\",\"ax\",@progbits\n\t.balign 8, 0xcc\n\
             \t.globl \"{name}\", \"{name}$code\"\n\
             \t.type \"{name}\",@function\n\"{name}\":\n\"{name}$code\":\n\tjmp *%gs:{}\n",
            0x10100 + 8 * i
        ));
    }
    text.push_str(&format!("\t.section .pbl.module,\"\",@progbits\n\t.zero {}\n", pass.module));
    text.push_str("\t.section .pbl.labels,\"\",@progbits\n\t.zero 1\n");
    let (what, end) = match pass.exports.iter().any(|(name, _)| name == START) {
        true => (": run it with `pebble sfi run ", "`"),
        false => (" of functions: a host loads it with pbl_module_open(\\\"", "\\\")"),
    };
    text.push_str(include_str!("native.s"));
    text.push_str(&format!(
        ".Lwhat:\t.asciz \": this is a Pebble module{what}\"\n.Lend:\t.asciz \"{end}\\n\"\n"
    ));
    let (source, object) = (pass.dir.join("own.s"), pass.dir.join("own.o"));
    io(&source, std::fs::write(&source, text))?;
    run(Command::new("clang-19").args(["-c", "-x", "assembler"]).arg(&source).arg("-o").arg(&object))?;
    Ok(object)
}

fn run(command: &mut Command) -> Result<String, Error> {
    let out = command.output().map_err(|e| Error::Io(command.get_program().into(), e))?;
    let text = String::from_utf8_lossy(&out.stderr).into_owned();
    if out.status.success() { Ok(text) } else { Err(Error::Linker(text)) }
}

/// What the linker said, without its warnings if there are errors.
fn mistakes(text: &str) -> String {
    let mut wanted = !text.contains("error: ");
    let kept = text.lines().filter(|line| {
        wanted = match line.starts_with(">>>") {
            true => wanted,
            false => !text.contains("error: ") || line.contains("error: "),
        };
        wanted && !line.is_empty()
    });
    kept.collect::<Vec<_>>().join("\n")
}

struct Pass<'a> {
    job: &'a Job,
    dir: &'a Path,
    imports: BTreeSet<String>,
    exports: Vec<(String, String)>,
    size: u64,
    module: usize,
}

impl Pass<'_> {
    fn ftab(&self) -> u64 {
        FIRST.max(self.size)
    }

    fn output(&self) -> PathBuf {
        self.dir.join("pass.pbl")
    }

    fn link(&self, last: bool) -> Result<(Elf, String), Error> {
        let path = self.dir.join("module.ld");
        io(&path, std::fs::write(&path, script(self.ftab(), self.size)))?;
        let object = own_object(self)?;
        // What is refused in the end must not be there for `make`.
        let output = self.output();
        let mut c = Command::new("ld.lld-19");
        c.args([
            "-pie",
            "--no-dynamic-linker",
            "--gc-sections",
            "--no-demangle",
            "--error-limit=0",
            "-z",
            "norelro",
        ]);
        c.args([
            "-z",
            "max-page-size=4096",
            "-z",
            "nognustack",
            "--hash-style=sysv",
            "--build-id=none",
            "-e",
            "__pbl_native",
        ]);
        // A program starts there; a library has none.
        c.arg("--undefined=_start$code").arg("-T").arg(&path);
        if !last {
            c.arg("--warn-unresolved-symbols");
        }
        for (name, _) in &self.exports {
            c.arg(format!("--undefined={name}$code"));
        }
        c.args(&self.job.args).arg(&object).arg("-o").arg(&output);
        let messages = run(&mut c)?;
        let bytes = io(&output, std::fs::read(&output))?;
        Ok((Elf::parse(bytes)?, messages))
    }
}

fn undefined(messages: &str) -> BTreeSet<String> {
    messages
        .lines()
        .filter_map(|l| l.split_once("undefined symbol: ").map(|(_, n)| n.trim()))
        .map(|n| n.strip_suffix("$code").unwrap_or(n).to_string())
        .collect()
}

/// A name as rustc makes them, with or without its hash; no process provides such a function.
fn is_rust(name: &str) -> bool {
    let hash = name.strip_suffix('E').and_then(|n| n.get(n.len().checked_sub(19)?..));
    let old = |h: &str| h.starts_with("17h") && h[3..].bytes().all(|b| b.is_ascii_hexdigit());
    name.starts_with("_R") || name.starts_with("_ZN") && hash.is_some_and(old)
}

/// As they are if there is no tool for it.
fn demangled(names: Vec<String>) -> Vec<String> {
    let said = Command::new("llvm-cxxfilt-19").args(&names).output();
    let text = said.map(|o| String::from_utf8_lossy(&o.stdout).into_owned()).unwrap_or_default();
    let lines: Vec<String> = text.lines().map(String::from).collect();
    if lines.len() == names.len() { lines } else { names }
}

fn symbol(symbols: &[(String, u64)], name: &str) -> Option<u64> {
    symbols.iter().find(|(n, _)| n == name).map(|(_, v)| *v)
}

/// Exports that object files ask for, as `NAME=SPEC` strings.
fn asked(elf: &Elf) -> Vec<(String, String)> {
    elf.contents(".pbl.export")
        .split(|b| *b == 0)
        .filter(|s| !s.is_empty())
        .map(|s| export(&String::from_utf8_lossy(s)))
        .collect()
}

pub fn link(job: &Job) -> Result<(), Error> {
    let scratch = scratch()?;
    let mut pass = Pass {
        job,
        dir: &scratch.0,
        imports: BTreeSet::new(),
        exports: job.exports.clone(),
        size: 1 << 16,
        module: 64,
    };
    // The first run finds the exports that objects ask for; the second, what is not defined and how large the
    // ftab is.
    let (elf, _) = pass.link(false)?;
    for e in asked(&elf) {
        if !pass.exports.iter().any(|(n, _)| *n == e.0) {
            pass.exports.push(e);
        }
    }
    let has_start = |elf: &Elf| elf.symbols().map(|s| symbol(&s, "_start$code").is_some());
    if has_start(&elf)? && !pass.exports.iter().any(|(n, _)| n == START) {
        pass.exports.push((START.into(), String::new()));
    }
    let (elf, messages) = pass.link(false)?;
    pass.imports = undefined(&messages);
    if let Some((name, _)) = pass.exports.iter().find(|(n, _)| pass.imports.contains(n)) {
        return Err(Error::NoExport(name.clone()));
    }
    let strange: Vec<_> = pass.imports.iter().filter(|n| !n.starts_with("pbl_")).cloned().collect();
    let crates: Vec<_> = strange.iter().filter(|n| is_rust(n)).cloned().collect();
    if !crates.is_empty() {
        return Err(Error::Crates(demangled(crates)));
    }
    if job.whole && !strange.is_empty() {
        return Err(Error::Undefined(strange));
    }
    let symbols = elf.symbols()?;
    let slots = symbol(&symbols, "__pbl_ftab_end").unwrap_or(0) - symbol(&symbols, "__pbl_ftab").unwrap_or(0);
    pass.size = (slots + 8 * pass.imports.len() as u64).next_power_of_two().max(64);
    pass.module = 64
        + pass.exports.iter().map(|(n, s)| 16 + n.len() + s.len() + 2).sum::<usize>()
        + pass.imports.iter().map(|n| 8 + n.len() + 1).sum::<usize>();
    let (mut elf, _) = pass.link(true)?;
    let header = header(&pass, &elf)?;
    elf.patch(".pbl.module", &header)?;
    sort_facts(&mut elf);
    elf.mark(MARK.0, MARK.1);
    let file = crate::judge::label(elf.bytes).map_err(Error::Refused)?;
    if let Some(why) = crate::judge::refusal(&file, job.no_timer) {
        return Err(Error::Refused(why));
    }
    // It may be executed, as far as `make` and `configure` can see: the linker's own file has the right.
    let made = pass.output();
    io(&made, std::fs::write(&made, &file))?;
    io(&job.output, std::fs::copy(&made, &job.output)).map(drop)
}

fn header(pass: &Pass, elf: &Elf) -> Result<Vec<u8>, Error> {
    let symbols = elf.symbols()?;
    let text = elf.section(".text")?;
    let find = |n: &str| symbol(&symbols, n).ok_or_else(|| Error::NoExport(n.into()));
    let tls = elf.segments()?.into_iter().find(|s| s[0] == 7 && s[3] != 0).unwrap_or_default();
    let mut out = Vec::new();
    let mut word = |v: u64| out.extend_from_slice(&(v as u32).to_le_bytes());
    word(0x4d4c_4250);
    word(1 | if pass.job.full { 2 } else { 1 } << 16);
    for v in [pass.ftab(), pass.size, text.address, text.address + text.size as u64] {
        word(v);
    }
    for n in ["__pbl_ro", "__pbl_ro_end", "__pbl_rw", "__pbl_end"] {
        word(find(n)?);
    }
    for v in [tls[1], tls[2], tls[3], tls[4]] {
        word(v);
    }
    word(pass.exports.len() as u64);
    word(pass.imports.len() as u64);
    let mut strings = Vec::new();
    let start = 64 + 16 * pass.exports.len() + 8 * pass.imports.len();
    let mut string = |s: &str| {
        let at = start + strings.len();
        strings.extend_from_slice(s.as_bytes());
        strings.push(0);
        at as u64
    };
    for (name, spec) in &pass.exports {
        word(string(name));
        word(find(&format!("{name}$code"))?);
        word(string(spec));
        word(0);
    }
    for name in &pass.imports {
        word(string(name));
        word(find(name)?);
    }
    out.extend_from_slice(&strings);
    Ok(out)
}

/// Sections come in the order of their code, but not with certainty.
fn sort_facts(elf: &mut Elf) {
    let records = elf.contents_mut(".pbl.facts").as_chunks_mut::<20>().0;
    records.sort_by_key(|r| u32::from_le_bytes([r[0], r[1], r[2], r[3]]));
}
