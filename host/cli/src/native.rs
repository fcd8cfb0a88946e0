//! Components built for Linux: for the machine that builds them, or for another.
//!
//! **Problem.** What a program prints "as on Linux", and what that costs there, is best known from Linux.
//! **Strategy.** The component's own description, sources and options, with the same compiler, for a
//! [`Target`] and with its C library. **Invariant.** What stands in the target's place is what the
//! description says today ([`stamp`]).

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::sources::{self, Language, Unit};
use crate::stamp;
use crate::tools::{Tools, run_quietly};

/// What programs are built for.
pub struct Target {
    /// In messages.
    pub name: String,
    /// Where they are built.
    pub place: PathBuf,
    /// For each source, before its component's own options.
    pub compile: Vec<OsString>,
    /// For each program.
    pub link: Vec<OsString>,
    /// Files that a program is made of beside its objects, and that may change.
    pub libraries: Vec<PathBuf>,
}

impl Target {
    /// The machine that builds.
    pub fn host(tools: &Tools) -> Target {
        Target {
            name: "this machine".into(),
            place: tools.target().join("c/native"),
            compile: vec!["-O1".into()],
            link: vec![],
            libraries: vec![],
        }
    }

    /// The program that a component in this directory of the project is there.
    pub fn built(&self, tools: &Tools, component: &str) -> Result<PathBuf> {
        let sources = sources::find(tools, &tools.root.join(component))?;
        let place = self.place.join(component);
        let all = sources.units.iter().chain(&sources.libraries);
        let objects = all.map(|unit| self.compiled(tools, unit, &place.join("objects")));
        let objects = objects.collect::<Result<Vec<_>>>()?;
        let program = place.join("program");
        let mut link = Command::new(tools.llvm(if sources.in_cxx() { "clang++" } else { "clang" })?);
        link.args(&self.link).args(&objects).arg("-lm").arg("-o").arg(&program);
        if !stamp::is_fresh(&program, &link) {
            stamp::withdraw(&program)?;
            run_quietly(&mut link, &format!("linking {component} for {}", self.name))?;
            stamp::set(&program, &link, &[objects, self.libraries.clone()].concat())?;
        }
        Ok(program)
    }

    fn compiled(&self, tools: &Tools, unit: &Unit, place: &Path) -> Result<PathBuf> {
        let (object, language) = (place.join(&unit.object), unit.language);
        let rule = object.with_extension("d");
        let mut clang = Command::new(tools.llvm("clang")?);
        clang.arg(if language == Language::C { "-std=gnu17" } else { "-std=c++17" });
        clang.args(&self.compile).args(&unit.options);
        clang.args(["-MD", "-MF"]).arg(&rule).arg("-c").arg(&unit.file).arg("-o").arg(&object);
        if !stamp::is_fresh(&object, &clang) {
            let folder = object.parent().unwrap_or(place);
            fs::create_dir_all(folder).with_context(|| tools.shown(folder))?;
            stamp::withdraw(&object)?;
            let what = format!("compiling {} for {}", tools.shown(&unit.file), self.name);
            run_quietly(&mut clang, &what)?;
            let rule = fs::read_to_string(&rule).with_context(|| tools.shown(&rule))?;
            stamp::set(&object, &clang, &stamp::dependencies(&rule))?;
        }
        Ok(object)
    }
}
