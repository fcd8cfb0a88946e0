//! `pebble inspect --trusted`: all that must work as it should for the walls to hold.
//!
//! **Problem.** The privileged code is small, but it is not all that is trusted: whoever writes page tables
//! or portal code can do what the nucleus can. **Strategy.** `trusted.toml` names each piece, what it could
//! do and what checks it; its lines are counted in the sources as they are. The tests here hold the table
//! against the sources, the manifest and the README: nothing that has a privilege in the image is missing
//! from it, and no piece has others than it says.

use std::collections::BTreeSet;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use pebble_image::{Board, Report};
use serde::Deserialize;

use crate::tools::Tools;
use crate::ui;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    piece: Vec<Piece>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Piece {
    name: String,
    /// In which domain of the image, or where else.
    runs: String,
    /// What of it runs elsewhere.
    #[serde(default)]
    beside: String,
    sources: Vec<String>,
    /// What the image gives to the domain.
    #[serde(default)]
    grants: Vec<String>,
    #[serde(default)]
    exclusive: bool,
    #[serde(default)]
    devices: bool,
    #[serde(default)]
    essential: bool,
    could: String,
    checked: String,
}

impl Piece {
    fn sources(&self, board: &Board) -> Vec<String> {
        let named = |source: &String| source.replace("{processor}", board.processor.name());
        self.sources.iter().map(named).collect()
    }
}

fn table() -> Result<Table> {
    toml::from_str(include_str!("trusted.toml")).context("trusted.toml")
}

/// The table, with the bytes of this image.
pub fn show(tools: &Tools, report: &Report) -> Result<String> {
    const WIDTH: usize = 100;
    let mut out = format!("What the walls of system {} and of fault domains rest on.\n", report.system);
    for piece in &table()?.piece {
        let mut size = Vec::new();
        let lines = lines(&tools.root, piece, &tools.board)?;
        if lines > 0 {
            size.push(format!("{lines} lines"));
        }
        size.extend(bytes(report, piece).map(|n| format!("{n} bytes")));
        let place = if piece.grants.is_empty() {
            String::new()
        } else {
            format!("; granted: {}", piece.grants.join(", "))
        };
        let beside = if piece.beside.is_empty() { String::new() } else { format!("; {}", piece.beside) };
        let marks = [
            (piece.exclusive, "interrupts off"),
            (piece.devices, "device registers"),
            (piece.essential, "the system stops with it"),
        ];
        let marks =
            marks.iter().filter(|(is, _)| *is).map(|(_, mark)| format!("; {mark}")).collect::<String>();
        writeln!(out, "\n{:<26} {}", piece.name, size.join(", "))?;
        for (label, text) in [
            ("runs in", &format!("{}{place}{marks}{beside}", piece.runs)),
            ("could do", &piece.could),
            ("checked by", &piece.checked),
        ] {
            let mut label = label;
            for line in wrapped(text, WIDTH) {
                writeln!(out, "  {label:<12} {line}")?;
                label = "";
            }
        }
    }
    writeln!(
        out,
        "\nLines are those of the sources without blank lines, comments and tests; libraries and compilers \
         are not counted."
    )?;
    Ok(out)
}

/// What the image has of a piece: the code of a whole domain stands with the piece that is named as it.
fn bytes(report: &Report, piece: &Piece) -> Option<u64> {
    match piece.name.as_str() {
        "nucleus" => Some(report.nucleus_bytes),
        "portal code" => Some(report.code_bytes),
        "portal verifier" | "portal compiler" => None,
        _ => report.domains.iter().find(|d| d.name == piece.runs).map(|d| d.text + d.rodata + d.data),
    }
}

fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let last = lines.last_mut().filter(|line| line.is_empty() || line.len() + word.len() < width);
        match last {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) => *line += &format!(" {word}"),
            None => lines.push(word.into()),
        }
    }
    lines
}

fn lines(root: &Path, piece: &Piece, board: &Board) -> Result<usize> {
    let foreign = foreign(root, board)?;
    let below = |source| lines_below(&root.join(source), &foreign);
    piece.sources(board).iter().map(below).sum()
}

/// Names of files and folders that only other boards need: their processors, and their kinds of devices.
fn foreign(root: &Path, board: &Board) -> Result<BTreeSet<String>> {
    let names = |board: &Board| {
        let kinds = board.device.values().map(|device| device.kind.clone());
        kinds.chain([board.processor.name().into()]).collect::<BTreeSet<_>>()
    };
    let (own, mut foreign) = (names(board), BTreeSet::new());
    for file in fs::read_dir(root.join("boards")).context("boards")? {
        foreign.extend(names(&Board::load(&file?.path())?));
    }
    Ok(&foreign - &own)
}

/// Of all sources at or below a path, but for those with such names.
fn lines_below(path: &Path, foreign: &BTreeSet<String>) -> Result<usize> {
    if path.file_stem().and_then(|name| name.to_str()).is_some_and(|name| foreign.contains(name)) {
        return Ok(0);
    }
    if path.is_dir() {
        let entries = fs::read_dir(path).with_context(|| path.display().to_string())?;
        return entries.map(|entry| lines_below(&entry?.path(), foreign)).sum();
    }
    let source = path.extension().is_some_and(|e| e == "rs" || e == "S" || e == "c");
    let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
    Ok(if source { code_lines(&text) } else { 0 })
}

/// Lines that are neither blank, nor a comment, nor in the tests at a file's end.
fn code_lines(text: &str) -> usize {
    let code = text.lines().map(str::trim).take_while(|line| *line != "#[cfg(test)]");
    code.filter(|line| {
        !line.is_empty() && !line.starts_with("//") && !line.starts_with("/*") && !line.starts_with("* ")
    })
    .count()
}

/// The image's report, wanted by whoever gives no image.
pub fn built(tools: &Tools) -> Result<Report> {
    ui::progress("building", crate::DEFAULT_SYSTEM);
    Ok(crate::build::system(tools, crate::DEFAULT_SYSTEM)?.report)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use pebble_image::Manifest;
    use pebble_image::manifest::Component;

    use super::*;

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    fn board() -> Board {
        Board::load(&root().join("boards/virt.toml")).unwrap()
    }

    fn default_system() -> Manifest {
        Manifest::load(&root().join("systems/default.toml"), &board()).unwrap()
    }

    /// By domain: a piece that is a library of a domain's has no privilege of its own.
    fn claims() -> BTreeMap<String, Piece> {
        let pieces = table().unwrap().piece.into_iter();
        let whole = pieces.filter(|p| !["portal verifier", "portal compiler"].contains(&p.name.as_str()));
        whole.map(|piece| (piece.runs.clone(), piece)).collect()
    }

    /// What somebody has added to the system to try it out mostly is not.
    fn is_privileged(c: &Component) -> bool {
        let given = [c.exclusive, c.essential, c.server, c.core];
        given.contains(&true) || !(c.grants.is_empty() && c.devices.is_empty() && c.templates.is_empty())
    }

    #[test]
    fn whoever_has_a_privilege_in_the_image_is_in_the_table_with_just_that() {
        let claims = claims();
        for c in &default_system().component {
            let Some(piece) = claims.get(&c.name) else {
                assert!(!is_privileged(c), "{} may do what others may not: not in trusted.toml", c.name);
                continue;
            };
            let mut grants: Vec<_> = c.grants.iter().map(|grant| format!("{grant:?}")).collect();
            let mut said = piece.grants.clone();
            grants.sort();
            said.sort();
            assert_eq!(said, grants, "grants of {}", c.name);
            let given = (c.exclusive, !c.devices.is_empty(), c.essential);
            assert_eq!(
                (piece.exclusive, piece.devices, piece.essential),
                given,
                "exclusive, devices, essential: {}",
                c.name
            );
            assert!(c.templates.is_empty(), "{} may register templates: say so", c.name);
        }
    }

    #[test]
    fn whomever_a_rule_trusts_is_in_the_table() {
        let claims = claims();
        for rule in &default_system().rule {
            let rule = &rule.get_ref().0;
            let (client, allowed) = (&rule.client, rule.verdict == pebble_boot::Verdict::Allow);
            // The shell has its row with init, which starts it.
            let known = client == "*" || client == "shell" || claims.contains_key(client);
            assert!(
                known || !allowed,
                "a rule of the manifest allows {client} what others may not: not in trusted.toml"
            );
        }
    }

    #[test]
    fn every_piece_has_sources_and_every_server_is_a_piece() {
        let pieces = table().unwrap().piece;
        for piece in &pieces {
            for source in piece.sources(&board()) {
                assert!(root().join(&source).exists(), "{}: there is no {source}", piece.name);
            }
            let expected = piece.name != "portal code";
            assert_eq!(
                lines(root(), piece, &board()).unwrap() > 0,
                expected,
                "{} has no line of code",
                piece.name
            );
            assert!(!piece.could.is_empty() && !piece.checked.is_empty());
        }
        let covered: Vec<_> = pieces.iter().flat_map(|piece| piece.sources(&board())).collect();
        let foreign = foreign(root(), &board()).unwrap();
        for c in &default_system().component {
            let package = c.package.trim_start_matches("pebble-");
            let place = [format!("servers/{package}/src"), format!("programs/{package}/src")];
            let told = place.iter().any(|p| covered.contains(&p));
            assert!(
                told || !is_privileged(c),
                "nothing tells of {}, which may do what others may not",
                c.package
            );
        }
        // All of the portal compiler's room is in one row or another.
        for path in files_below(&root().join("portal/src")) {
            let name = path.strip_prefix(root()).unwrap();
            let told = covered.iter().any(|source| name.starts_with(source));
            let other = name.iter().any(|part| foreign.contains(&*part.to_string_lossy()));
            let short = || lines_below(&path, &foreign).unwrap() < 20;
            assert!(told || other || short(), "{} is in no row", name.display());
        }
    }

    fn files_below(directory: &Path) -> Vec<PathBuf> {
        let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
        entries.flat_map(|path| if path.is_dir() { files_below(&path) } else { vec![path] }).collect()
    }

    /// `| piece | lines | ...` between the two marks.
    #[test]
    fn the_readme_has_the_same_pieces_and_lines() {
        let text = fs::read_to_string(root().join("README.md")).unwrap();
        let rows = text
            .split("<!-- trusted -->")
            .nth(1)
            .expect("README.md has no table between two <!-- trusted -->");
        let rows = rows.lines().filter(|line| line.starts_with("| ")).skip(1);
        let told: BTreeMap<_, _> = rows
            .map(|row| row.split('|').map(str::trim).collect::<Vec<_>>())
            .map(|cells| (cells[1].to_string(), cells[2].replace(',', "").parse::<usize>().unwrap_or(0)))
            .collect();
        let pieces = table().unwrap().piece;
        for piece in &pieces {
            let lines = lines(root(), piece, &board()).unwrap();
            let Some(n) = told.get(&piece.name) else {
                panic!("README.md does not tell of the {}", piece.name)
            };
            assert!(n.abs_diff(lines) * 10 <= lines, "README.md: {} has {lines} lines, not {n}", piece.name);
        }
        assert_eq!(told.len(), pieces.len(), "README.md tells of a piece that is not in trusted.toml");
    }

    #[test]
    fn comments_blank_lines_and_tests_are_no_code() {
        let text = "//! Head.\n\nfn a() {\n    // Why.\n    b() // here\n}\n#[cfg(test)]\nmod tests {}\n";
        assert_eq!(code_lines(text), 3);
        assert_eq!(wrapped("one two three", 8), ["one two", "three"]);
    }
}
