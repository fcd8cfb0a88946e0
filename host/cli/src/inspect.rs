//! `pebble inspect`: what an image holds.

use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, anyhow, ensure};
use pebble_image::Report;
use pebble_image::report::PortalReport;

use crate::build::image_path;
use crate::tools::{Tools, run_quietly};
use crate::{trusted, ui};

#[derive(clap::Args)]
pub struct Options {
    /// The image, such as target/image/default.elf, or the name of a system that has been built; without it
    /// the default system's
    image: Option<PathBuf>,
    /// Show what the walls rest on instead: each piece, its lines, what it could do, and what checks it
    #[arg(long, conflicts_with = "portal")]
    trusted: bool,
    /// Disassemble this portal: the interface's name, or DOMAIN:INDEX
    #[arg(long, value_name = "NAME|DOMAIN:INDEX")]
    portal: Option<String>,
}

pub fn inspect(tools: &Tools, options: &Options) -> Result<()> {
    let report = match &options.image {
        Some(image) => tools.report(&find(tools, image))?,
        None if options.trusted => trusted::built(tools)?,
        None => tools.report(&find(tools, Path::new(crate::DEFAULT_SYSTEM)))?,
    };
    let text = match &options.portal {
        _ if options.trusted => trusted::show(tools, &report)?,
        None => overview(&report)?,
        Some(which) => portal(tools, &report, which)?,
    };
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}

/// A file; or the image of a system.
fn find(tools: &Tools, image: &Path) -> PathBuf {
    let name = image.to_str().filter(|_| !image.exists());
    name.and_then(|name| tools.manifest(name).ok()).map_or(image.into(), |path| image_path(tools, &path))
}

fn overview(report: &Report) -> Result<String> {
    let mut out = String::new();
    let kib = |pages: u32| u64::from(pages) * pebble_abi::map::PAGE / 1024;
    writeln!(out, "system {}", report.system)?;
    writeln!(out, "  nucleus, code and constants  {:>9}", ui::bytes(report.nucleus_bytes))?;
    let essential = report.essential_pages();
    writeln!(out, "  essential system, resident   {:>5} KiB ({essential} pages)", kib(essential))?;
    writeln!(out, "  portal code                  {:>9}", ui::bytes(report.code_bytes))?;
    writeln!(out, "  file archive                 {:>9}", ui::bytes(report.archive_bytes))?;
    writeln!(out, "  image                        {:>9}", ui::bytes(report.image_bytes))?;

    writeln!(out, "\n domain                   pages    text  rodata    data  threads stacks")?;
    for d in &report.domains {
        let marks = [(d.core, "essential"), (d.exclusive, "exclusive"), (d.float, "floating point")];
        let marks: Vec<_> = marks.iter().filter(|(is, _)| *is).map(|(_, name)| *name).collect();
        let (asid, name) = (d.asid, &d.name);
        write!(out, "{asid:>3} {name:<22} {:>3} {:>7} {:>7} {:>7}", d.pages, d.text, d.rodata, d.data)?;
        writeln!(out, "  {:>7} {:>6}  {}", d.threads, d.stacks, marks.join(", "))?;
    }
    for d in &report.domains {
        writeln!(out, "\nportals of {}\nindex {:<24} {:<12} {:<22} bytes", d.name, "name", "spec", "target")?;
        for p in report.portals.iter().filter(|p| p.domain == d.name) {
            let (index, name, spec, target) = (p.index, &p.name, &p.spec, &p.target);
            writeln!(out, "{index:>5} {name:<24} {spec:<12} {target:<22} {:>5}", p.words.len() * 4)?;
        }
    }
    Ok(out)
}

/// The disassembly of the portal that is named. Many domains may hold a portal to an interface: the first is
/// shown.
fn portal(tools: &Tools, report: &Report, which: &str) -> Result<String> {
    let place = which.split_once(':').and_then(|(domain, index)| Some((domain, index.parse::<u16>().ok()?)));
    let named = |p: &&PortalReport| match place {
        Some((domain, index)) => p.domain == domain && p.index == index,
        None => p.name == which,
    };
    let found: Vec<_> = report.portals.iter().filter(named).collect();
    let first = found.first().ok_or_else(|| anyhow!("the image has no portal {which}"))?;

    let (name, spec, target, words) = (&first.name, &first.spec, &first.target, first.words.len());
    let mut out = format!("{}:{} {name} \"{spec}\" into {target}\n", first.domain, first.index);
    writeln!(
        out,
        "{words} words at {:#x}, {} instructions on the call leg",
        first.address, first.call_words
    )?;
    out.push_str(&disassemble(tools, first)?);
    if found.len() > 1 {
        let others: Vec<_> = found[1..].iter().map(|p| format!("{}:{}", p.domain, p.index)).collect();
        writeln!(out, "also: {}", others.join(" "))?;
    }
    Ok(out)
}

/// Lets LLVM disassemble the code: an opinion independent of the portal compiler's own.
fn disassemble(tools: &Tools, portal: &PortalReport) -> Result<String> {
    let dir = tools.made().join("inspect");
    fs::create_dir_all(&dir)?;
    let (code, object) = (dir.join("portal.bin"), dir.join("portal.o"));
    let bytes: Vec<u8> = portal.words.iter().flat_map(|word| word.to_le_bytes()).collect();
    fs::write(&code, bytes)?;
    let mut objcopy = Command::new(tools.llvm("llvm-objcopy")?);
    objcopy.args([
        "-I",
        "binary",
        "-O",
        tools.isa.elf_format,
        "--rename-section=.data=.text,alloc,code,contents",
    ]);
    run_quietly(objcopy.args([&code, &object]), "llvm-objcopy")?;
    let mut objdump = Command::new(tools.llvm("llvm-objdump")?);
    objdump.args([
        "-d",
        &format!("--mattr={}", tools.isa.disassembly),
        &format!("--adjust-vma={:#x}", portal.address),
    ]);
    let output = objdump.arg(&object).output()?;
    ensure!(output.status.success(), "llvm-objdump: {}", String::from_utf8_lossy(&output.stderr).trim());
    let text = String::from_utf8_lossy(&output.stdout);
    let code: Vec<&str> = text.lines().skip_while(|line| !line.ends_with(">:")).skip(1).collect();
    Ok(code.join("\n") + "\n")
}
