//! What the numbers of a recording are called.
//!
//! Problem: a recording knows the numbers of domains, and the code that they have executed. The image's
//! report knows the numbers of those that are there from the start; of programs, and of servers that were
//! replaced, it knows nothing. Strategy: a domain is the program whose file has, at the same addresses, the
//! code that it has executed. Files have symbols and exported interfaces, the report has the image's portals.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use object::{Object, ObjectSection, ObjectSymbol, SectionKind, SymbolKind};
use pebble_abi::map;
use pebble_image::Report;
use pebble_image::elf::Component;
use pebble_profile::{Block, BlockId, DomainId, Names, Recording, Region};

use crate::build::{Built, NUCLEUS};
use crate::tools::Tools;

/// So much of the executed code must be a file's, in percent, that the domain is called after it.
const ENOUGH: usize = 90;
/// Portals that are made while the system runs; those of them that lead into no other domain are semaphores,
/// most of them.
const MADE: &str = "(made at run time)";

/// A file of code.
struct Program {
    name: String,
    component: Component,
    functions: BTreeMap<u64, String>,
}

impl Program {
    fn load(tools: &Tools, name: &str, path: &Path) -> Result<Program> {
        let shown = || path.display().to_string();
        let file = fs::read(path).with_context(shown)?;
        let component = (tools.isa.component)(&file).with_context(shown)?;
        let name = name.rsplit('/').next().unwrap_or(name).into();
        Ok(Program { name, component, functions: functions(&file).with_context(shown)? })
    }

    /// Whether its code has these bytes at that address.
    fn has(&self, block: &Block) -> bool {
        let segments = self.component.segments.iter().filter(|segment| segment.execute);
        let mut found = segments.filter_map(|segment| {
            let at = usize::try_from(block.address.checked_sub(segment.va)?).ok()?;
            segment.bytes.get(at..at.checked_add(block.bytes.len())?)
        });
        found.any(|bytes| bytes == block.bytes)
    }

    /// The function at an address, as it stands in the source.
    fn function(&self, address: u64) -> Option<String> {
        self.functions.range(..=address).next_back().map(|(_, name)| name.clone())
    }

    /// What is entered there: an interface, or a function.
    fn entry(&self, domain: &str, address: u64) -> Option<String> {
        let export = self.component.exports.iter().find(|export| export.entry == address);
        let interface = export.map(|export| match export.name.split_once('.') {
            Some(("self", method)) => format!("{domain}.{method}"),
            _ => export.name.clone(),
        });
        interface.or_else(|| Some(format!("{domain}: {}", self.function(address)?)))
    }
}

fn plain(name: &str) -> String {
    let name = format!("{:#}", rustc_demangle::demangle(name));
    name.chars().filter(|c| !c.is_control()).collect()
}

pub fn find(tools: &Tools, built: &Built, recording: &Recording) -> Result<Names> {
    let files = built.symbols.iter().filter(|(name, _)| *name != NUCLEUS);
    let programs: Vec<Program> =
        files.filter_map(|(name, path)| Program::load(tools, name, path).ok()).collect();
    let nucleus = built.symbols.get(NUCLEUS).context("the system has no nucleus")?;
    let nucleus = functions(&fs::read(nucleus).with_context(|| nucleus.display().to_string())?)?;
    let executed = executed(recording);

    let mut names = Names { functions: vec!["?".into(); recording.blocks.len()], ..Names::default() };
    let mut of = Vec::new();
    for (n, domain) in recording.domains.iter().enumerate() {
        let blocks = executed.get(&DomainId::new(n)).map_or(&[][..], Vec::as_slice);
        let blocks = || blocks.iter().map(|id| &recording.blocks[id.index()]);
        let known = built.report.domains.iter().find(|d| d.asid == domain.asid && domain.before == 0);
        let program = program(&programs, known.map(|d| d.name.as_str()), blocks);
        names.domains.push(match (known, program) {
            (Some(known), Some(program)) if known.name == program.name => known.name.clone(),
            (_, Some(program)) => program.name.clone(),
            (Some(known), None) => known.name.clone(),
            (None, None) => format!("domain {}", domain.asid),
        });
        of.push(program);
    }
    for (domain, blocks) in &executed {
        for id in blocks {
            let address = recording.blocks[id.index()].address;
            let name = match of[domain.index()] {
                _ if address / map::PAGE == map::GATE_VA / map::PAGE => Some("(gate page)".into()),
                Some(program) => program.function(address),
                None => Some(format!("{:#x}", address & !0xff)),
            };
            names.functions[id.index()] = name.unwrap_or_else(|| "?".into());
        }
    }
    for node in recording.nodes.iter().filter(|node| node.entry > 0) {
        let (program, domain) = (of[node.domain.index()], names.domain(node.domain));
        if let Some(name) = program.and_then(|program| program.entry(domain, node.entry)) {
            names.entries.insert((node.domain, node.entry), name);
        }
    }
    for (id, _) in &recording.privileged {
        let Block { address, region, .. } = recording.blocks[id.index()];
        names.functions[id.index()] = privileged(&built.report, &nucleus, region, address);
    }
    for short in &recording.shorts {
        let region = if short.address >= map::CODE_VA { Region::Portal } else { Region::Nucleus };
        names.codes.insert(short.address, privileged(&built.report, &nucleus, region, short.address));
    }
    Ok(names)
}

/// The blocks that each domain has executed.
fn executed(recording: &Recording) -> BTreeMap<DomainId, Vec<BlockId>> {
    let mut all: BTreeMap<DomainId, Vec<BlockId>> = BTreeMap::new();
    for node in &recording.nodes {
        all.entry(node.domain).or_default().extend(node.blocks.iter().map(|(id, _)| *id));
    }
    for blocks in all.values_mut() {
        blocks.sort();
        blocks.dedup();
    }
    all
}

/// The file that has most of the code; of those that have as much, the one with the name that is known.
fn program<'a, 'b, I: Iterator<Item = &'b Block>>(
    programs: &'a [Program],
    known: Option<&str>,
    blocks: impl Fn() -> I,
) -> Option<&'a Program> {
    let own = || blocks().filter(|block| block.address / map::PAGE != map::GATE_VA / map::PAGE);
    let all = own().count();
    let counted = programs.iter().map(|program| (own().filter(|block| program.has(block)).count(), program));
    let best = counted.max_by_key(|(count, program)| (*count, known == Some(program.name.as_str())));
    best.filter(|(count, _)| all > 0 && count * 100 >= all * ENOUGH).map(|(_, program)| program)
}

/// The functions of a file, by address. In assembly they are labels, of which global ones are functions.
fn functions(file: &[u8]) -> Result<BTreeMap<u64, String>> {
    let file = object::File::parse(file)?;
    let is_code = |symbol: &object::Symbol| {
        let section = symbol.section_index().and_then(|index| file.section_by_index(index).ok());
        section.is_some_and(|section| section.kind() == SectionKind::Text)
    };
    let is_function = |symbol: &object::Symbol| symbol.kind() == SymbolKind::Text && symbol.size() > 0;
    let (sized, labels): (Vec<_>, Vec<_>) = file.symbols().filter(is_code).partition(is_function);
    // Where there are both, the function has the last word.
    let all = labels.into_iter().filter(|label| label.is_global()).chain(sized);
    Ok(all.filter_map(|symbol| Some((symbol.address(), plain(symbol.name().ok()?)))).collect())
}

fn privileged(report: &Report, nucleus: &BTreeMap<u64, String>, region: Region, address: u64) -> String {
    match region {
        Region::Portal => {
            let inside = |at: u64, words: usize| (at..at + words as u64 * 4).contains(&address);
            let portal = report.portals.iter().find(|portal| inside(portal.address, portal.words.len()));
            portal.map_or_else(|| MADE.into(), |portal| portal.name.clone())
        }
        Region::Nucleus => nucleus.range(..=address).next_back().map_or("?", |(_, name)| name).into(),
        Region::Firmware | Region::User => "?".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pebble_image::elf::{Export, Segment};

    fn program(name: &str, code: &[u8]) -> Program {
        let segment = Segment { va: 0x10000, bytes: code.to_vec(), size: 4096, write: false, execute: true };
        let export = |name: &str, entry| Export { name: name.into(), spec: "smi".into(), entry };
        let component = Component {
            entry: 0x10000,
            float: false,
            segments: vec![segment],
            exports: vec![export("self.read", 0x10004), export("file.open", 0x10008)],
            imports: Vec::new(),
            symbols: Vec::new(),
        };
        let open = plain("_ZN4file4open17h0123456789abcdefE");
        let functions = BTreeMap::from([(0x10000, "_start".into()), (0x1000c, open)]);
        Program { name: name.into(), component, functions }
    }

    fn block(address: u64, bytes: &[u8]) -> Block {
        Block { address, region: Region::User, bytes: bytes.to_vec() }
    }

    #[test]
    fn a_domain_is_called_after_the_file_with_its_code() {
        let programs = [program("ls", b"abcdefgh"), program("cat", b"abcdxxgh"), program("dog", b"abcdxxgh")];
        let name = |known: Option<&str>, blocks: &[Block]| {
            super::program(&programs, known, || blocks.iter()).map(|program| program.name.clone())
        };
        assert_eq!(name(None, &[block(0x10000, b"abcd"), block(0x10004, b"ef")]), Some("ls".into()));
        assert_eq!(name(Some("cat"), &[block(0x10004, b"xx")]), Some("cat".into()));
        assert_eq!(name(Some("dog"), &[block(0x10004, b"xx")]), Some("dog".into()));
        assert_eq!(name(None, &[block(0x10004, b"yy")]), None);
        assert_eq!(name(None, &[block(u64::MAX, b"ab"), block(0, b"ab")]), None);
        assert_eq!(name(None, &[]), None);
    }

    #[test]
    fn functions_and_entries_have_names() {
        let program = program("file", b"");
        let functions = [0xffff, 0x10000, 0x1000b, 0x20000].map(|address| program.function(address));
        let names = [None, Some("_start"), Some("_start"), Some("file::open")];
        assert_eq!(functions, names.map(|name| name.map(String::from)));
        let entries = [0x10004, 0x10008, 0x1000c].map(|address| program.entry("files", address).unwrap());
        assert_eq!(entries, ["files.read", "file.open", "files: file::open"]);
    }
}
