//! The table of programs: `bench/sfi/programs.toml`.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

/// Where the table and the sources beside it are, from the repository's root.
pub const HOME: &str = "bench/sfi";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    program: Vec<Program>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    pub name: String,
    pub kind: Kind,
    /// The paper's program that this one is like.
    pub paper: Option<String>,
    /// How often the work is done when time is measured.
    pub rounds: u32,
    #[serde(default)]
    pub define: Vec<String>,
    /// Directories of headers beside the table.
    #[serde(default)]
    pub include: Vec<String>,
    /// Where its library comes from; a program without is a kernel of ours.
    #[serde(default)]
    pub from: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub enum Kind {
    #[serde(rename = "INT")]
    Integer,
    #[serde(rename = "FP")]
    Real,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Integer => "INT",
            Kind::Real => "FP",
        }
    }
}

/// A package's part in a program.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    pub package: String,
    /// The directory in the package that the other paths are relative to.
    pub root: String,
    /// What is compiled: paths in which a `*` in the file's name stands for anything.
    pub sources: Vec<String>,
    /// Names of files that are not, though a pattern has them.
    #[serde(default)]
    pub except: Vec<String>,
    #[serde(default)]
    pub include: Vec<String>,
}

impl Program {
    /// The file with `main`, from the repository's root.
    pub fn driver(&self) -> String {
        let room = if self.from.is_empty() { "kernels" } else { "programs" };
        format!("{HOME}/{room}/{}.c", self.name)
    }
}

/// All programs, or those that are named.
pub fn load(root: &Path, names: &[String]) -> Result<Vec<Program>> {
    let path = root.join(HOME).join("programs.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let all = parse(&text).with_context(|| path.display().to_string())?;
    if let Some(name) = names.iter().find(|name| !all.iter().any(|p| p.name == **name)) {
        let known: Vec<&str> = all.iter().map(|p| p.name.as_str()).collect();
        bail!("there is no program {name:?}; there are {}", known.join(", "));
    }
    Ok(all.into_iter().filter(|p| names.is_empty() || names.contains(&p.name)).collect())
}

fn parse(text: &str) -> Result<Vec<Program>> {
    let programs = toml::from_str::<File>(text)?.program;
    for (i, program) in programs.iter().enumerate() {
        ensure!(programs[..i].iter().all(|p| p.name != program.name), "{} is there twice", program.name);
        ensure!(program.rounds > 0, "{} has no rounds", program.name);
    }
    Ok(programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_well_formed_and_its_drivers_are_there() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let programs = load(&root, &[]).unwrap();
        assert!(programs.len() >= 18);
        for program in &programs {
            assert!(root.join(program.driver()).exists(), "{}", program.driver());
        }
    }

    #[test]
    fn what_is_wrong_is_named() {
        let twice = "[[program]]\nname = 'a'\nkind = 'INT'\nrounds = 1\n".repeat(2);
        assert!(parse(&twice).unwrap_err().to_string().contains("a is there twice"));
        let unknown = load(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), &["gcc".into()]);
        assert!(unknown.unwrap_err().to_string().contains("\"gcc\""));
    }
}
