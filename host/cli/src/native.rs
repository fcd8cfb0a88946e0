//! Components built for the machine that builds them.
//!
//! **Problem.** What a program prints "as on Linux" is best known from Linux. **Strategy.** The component's own
//! description, sources and options, with the same compiler, for the host and with the host's C library.
//! **Invariant.** What stands in `target/c/native` is what the description says today ([`stamp`]).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::sources::{self, Language, Unit};
use crate::stamp;
use crate::tools::{Tools, run_quietly};

/// The program that a component in this directory of the project is here.
pub fn built(tools: &Tools, component: &str) -> Result<PathBuf> {
    let sources = sources::find(tools, &tools.root.join(component))?;
    let place = tools.target().join("c/native").join(component);
    let all = sources.units.iter().chain(&sources.libraries);
    let objects =
        all.map(|unit| compiled(tools, unit, &place.join("objects"))).collect::<Result<Vec<_>>>()?;
    let program = place.join("program");
    let mut link = Command::new(tools.llvm(if sources.in_cxx() { "clang++" } else { "clang" })?);
    link.args(&objects).arg("-lm").arg("-o").arg(&program);
    if !stamp::is_fresh(&program, &link) {
        stamp::withdraw(&program)?;
        run_quietly(&mut link, &format!("linking {component} for this machine"))?;
        stamp::set(&program, &link, &objects)?;
    }
    Ok(program)
}

fn compiled(tools: &Tools, unit: &Unit, place: &Path) -> Result<PathBuf> {
    let (object, language) = (place.join(&unit.object), unit.language);
    let rule = object.with_extension("d");
    let mut clang = Command::new(tools.llvm("clang")?);
    clang
        .args([if language == Language::C { "-std=gnu17" } else { "-std=c++17" }, "-O1"])
        .args(&unit.options);
    clang.args(["-MD", "-MF"]).arg(&rule).arg("-c").arg(&unit.file).arg("-o").arg(&object);
    if !stamp::is_fresh(&object, &clang) {
        let folder = object.parent().unwrap_or(place);
        fs::create_dir_all(folder).with_context(|| tools.shown(folder))?;
        stamp::withdraw(&object)?;
        run_quietly(&mut clang, &format!("compiling {} for this machine", tools.shown(&unit.file)))?;
        let rule = fs::read_to_string(&rule).with_context(|| tools.shown(&rule))?;
        stamp::set(&object, &clang, &stamp::dependencies(&rule))?;
    }
    Ok(object)
}
