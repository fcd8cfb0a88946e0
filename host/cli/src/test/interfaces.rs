//! Interfaces are described once (`servers/*/interface.toml`), and all that comes from the descriptions is as
//! they say.
//!
//! With `BLESS` set the manual's tables are made anew instead of compared.

use std::path::Path;
use std::{env, fs};

use anyhow::{Context, Result, anyhow, ensure};
use pebble_interface::{Server, manual, of_room, parse};

use crate::lock;
use crate::tools::Tools;

/// Pages with tables of interfaces.
const PAGES: [&str; 2] = ["docs/src/servers.md", "docs/src/capability.md"];
/// How a component exports something by hand.
const BY_HAND: [&str; 4] = ["export!(", "export_wide!(", "export_switching!(", "interface!("];
/// How it exports what is described.
const DESCRIBED: &str = "pebble::interfaces!();";

/// A package whose functions fit, but for the one that a feature of it takes: the feature, the line of the
/// description, what the compiler says.
const MISFIT: &str = "pebble-misfit";
const MISFITS: [(&str, usize, &str); 7] = [
    ("type", 4, "the function takes `Asid` where `interface.toml` says `ThreadId`"),
    ("fewer", 4, "incorrect number of function parameters"),
    ("more", 4, "incorrect number of function parameters"),
    ("result", 4, "-> u32 {plain}"),
    ("wide", 10, "is not satisfied"),
    ("decides", 17, "an entry of the scheduler returns its decision"),
    ("missing", 4, "cannot find value `plain`"),
];

/// Calls, and exports by hand, that do not fit: the feature, and what the compiler says.
const MISCALLS: [(&str, &str); 5] = [
    ("call-type", "expected `Ticks`, found `Asid`"),
    ("call-more", "takes 1 argument but 2 arguments were supplied"),
    ("call-fewer", "takes 1 argument but 0 arguments were supplied"),
    ("export-words", "\"npii\" gives another number of words than the function takes"),
    ("export-letter", "the specification has a letter that stands for no argument"),
];
/// The same in C: a statement, and what the compiler says; the first one is right.
const C_CALLS: [(&str, &str); 5] = [
    ("return clock_bound(1, 2).value", ""),
    ("return clock_bound(1).value", "too few arguments"),
    ("return clock_bound(1, 2, 3).value", "too many arguments"),
    ("return vm_buffer_free(1, 2).value", "integer to pointer"),
    ("long one[1]; return vm_domain_info(one, 1, 2).value", "array argument is too small"),
];

pub const GROUPS: [(&str, fn(&Tools) -> Result<()>); 4] = [
    ("interfaces.described", are_described),
    ("interfaces.manual", are_in_the_manual),
    ("interfaces.misfits", misfits_do_not_compile),
    ("interfaces.header", c_calls_fit),
];

fn servers(tools: &Tools) -> Result<Vec<Server>> {
    Ok(of_room(&tools.root, "servers")?)
}

/// Every server with a description exports it, and no server anything else.
fn are_described(tools: &Tools) -> Result<()> {
    let described = servers(tools)?;
    for folder in fs::read_dir(tools.root.join("servers"))? {
        let folder = folder?.path();
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut exports = false;
        each_source(&folder.join("src"), &mut |path, text| {
            let shown = tools.shown(path);
            let by_hand = BY_HAND.iter().find(|word| text.contains(*word));
            ensure!(by_hand.is_none(), "{shown}: {by_hand:?} by hand: describe it in interface.toml");
            exports |= text.lines().any(|line| line == DESCRIBED);
            Ok(())
        })?;
        let has = described.iter().any(|server| server.folder == name);
        ensure!(has == exports, "{}: interface.toml and `{DESCRIBED}` go together", tools.shown(&folder));
    }
    Ok(())
}

fn each_source(folder: &Path, look: &mut impl FnMut(&Path, &str) -> Result<()>) -> Result<()> {
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            each_source(&path, look)?;
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            look(&path, &fs::read_to_string(&path).with_context(|| path.display().to_string())?)?;
        }
    }
    Ok(())
}

/// Every server has its table, and every table is what the description says.
fn are_in_the_manual(tools: &Tools) -> Result<()> {
    let mut servers = servers(tools)?;
    servers.push(parse::library()?);
    let mut pages = String::new();
    for page in PAGES {
        let path = tools.root.join(page);
        let text = fs::read_to_string(&path).with_context(|| page)?;
        let fresh = manual::refreshed(&text, &servers).map_err(|error| anyhow!("{page}: {error}"))?;
        if env::var_os("BLESS").is_some() {
            crate::c::write_if_changed(&path, fresh.as_bytes())?;
        } else {
            ensure!(
                fresh == text,
                "{page} is not what the descriptions say: BLESS=1 ./pebble test interfaces"
            );
        }
        pages += &text;
    }
    let untold = servers.iter().map(manual::marker).find(|marker| !pages.lines().any(|line| line == marker));
    ensure!(untold.is_none(), "no page has the line {:?}", untold.unwrap_or_default());
    Ok(())
}

/// A function that does not fit its description is an error of the compiler, which shows the description's
/// line.
fn misfits_do_not_compile(tools: &Tools) -> Result<()> {
    let _alone = lock::builds(tools)?;
    let build = |feature: &str| -> Result<(bool, String)> {
        let mut cargo = tools.cross_cargo()?;
        let output = cargo.args(["-p", MISFIT, "--features", feature]).output()?;
        Ok((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
    };
    let (built, said) = build("component")?;
    ensure!(built, "all functions fit, but:\n{said}");
    let refused = |feature: &str, expected: &str, place: &str| -> Result<()> {
        let (built, said) = build(&format!("component,{feature}"))?;
        ensure!(!built, "{feature}: compiles, and should not");
        ensure!(
            said.contains(expected) && said.contains(place),
            "{feature}: no {expected:?}, {place:?} in {said}"
        );
        Ok(())
    };
    for (feature, line, expected) in MISFITS {
        refused(feature, expected, &format!("tests/misfit/interface.toml:{line} "))?;
    }
    MISCALLS.iter().try_for_each(|(feature, expected)| refused(feature, expected, "tests/misfit/src/main.rs"))
}

/// Every stub in C compiles, without a warning; a call that does not fit does not.
fn c_calls_fit(tools: &Tools) -> Result<()> {
    let compiler = crate::c::Compiler::new(tools, "interfaces")?;
    let folder = tools.target().join("interfaces");
    fs::create_dir_all(&folder)?;
    for (statement, expected) in C_CALLS {
        let source = folder.join("call.c");
        fs::write(&source, format!("#include <pebble-interfaces.h>\n\nlong f(void) {{ {statement}; }}\n"))?;
        let said = compiler.says(&source)?;
        let right = if expected.is_empty() { said.is_empty() } else { said.contains(expected) };
        ensure!(right, "{statement}: {expected:?} is not what the compiler says: {said}");
    }
    Ok(())
}
