//! Sources in C out of a package for Rust.
//!
//! **Problem.** Some C libraries are nowhere in Debian as one would compile them: SQLite's one large file is
//! in the packages that bind it to Rust. **Strategy.** A workspace of no code that depends on the package:
//! cargo fetches it, checks it, and says where it is. **Invariants.** What is used has the checksum that the
//! description says, as cargo has noted it. It is fetched once; a copy that is there is whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::tools::{Tools, program, run_quietly};

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Crate {
    pub name: String,
    pub version: String,
    /// Of the package, as `Cargo.lock` calls it `checksum`.
    pub sha256: String,
    /// The directory in it, if the sources are not at its top.
    #[serde(default)]
    pub directory: PathBuf,
}

impl Crate {
    fn called(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// Where the sources are in what [`unpack`] makes.
    pub fn unpacked(&self) -> PathBuf {
        Path::new(&self.called()).join(&self.directory)
    }
}

/// A copy of the package in `into`.
pub fn unpack(tools: &Tools, package: &Crate, into: &Path) -> Result<()> {
    let kept = tools.target().join("crates").join(package.called());
    let whole = kept.join("package");
    if !whole.exists() {
        fetch(tools, package, &kept, &whole).with_context(|| {
            format!("Rust's package {} cannot be had; is there a network?", package.called())
        })?;
    }
    check(package, &kept)?;
    fs::create_dir_all(into).with_context(|| tools.shown(into))?;
    let mut copy = Command::new("cp");
    run_quietly(copy.arg("-r").arg(&whole).arg(into.join(package.called())), "copying the sources")
}

fn fetch(tools: &Tools, package: &Crate, kept: &Path, whole: &Path) -> Result<()> {
    let Crate { name, version, .. } = package;
    fs::create_dir_all(kept).with_context(|| tools.shown(kept))?;
    let manifest = kept.join("Cargo.toml");
    let text = format!(
        "[package]\nname = \"fetched\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[lib]\npath = \"none.rs\"\n\n\
         [dependencies]\n{name} = {{ version = \"={version}\", default-features = false }}\n\n[workspace]\n"
    );
    fs::write(&manifest, text).with_context(|| tools.shown(&manifest))?;
    fs::write(kept.join("none.rs"), "").with_context(|| tools.shown(kept))?;
    let mut cargo = tools.cargo("metadata");
    cargo.args(["--format-version", "1", "--manifest-path"]).arg(&manifest);
    let output = cargo.output().with_context(|| program(&cargo))?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    check(package, kept)?;
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let found = packages.iter().find(|one| one["name"] == **name && one["version"] == **version);
    let manifest = found.and_then(|one| one["manifest_path"].as_str()).map(Path::new);
    let place = manifest.and_then(Path::parent).context("cargo metadata does not name the package")?;
    let part = kept.join("part");
    let _ = fs::remove_dir_all(&part);
    run_quietly(Command::new("cp").arg("-r").arg(place).arg(&part), "copying the package")?;
    fs::rename(&part, whole).with_context(|| tools.shown(whole))
}

/// That cargo has found the package that is meant.
fn check(package: &Crate, kept: &Path) -> Result<()> {
    let path = kept.join("Cargo.lock");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let found =
        checksum(&text, package).with_context(|| format!("{} names no {}", path.display(), package.name))?;
    ensure!(
        found == package.sha256,
        "{} has checksum {found}, not {}: write that, if it is the package you mean",
        package.called(),
        package.sha256
    );
    Ok(())
}

fn checksum(lock: &str, package: &Crate) -> Option<String> {
    let lock: toml::Table = toml::from_str(lock).ok()?;
    let mut packages = lock["package"].as_array()?.iter();
    let is =
        |one: &&toml::Value, key: &str, value: &str| one.get(key).and_then(|v| v.as_str()) == Some(value);
    let found =
        packages.find(|one| is(one, "name", &package.name) && is(one, "version", &package.version))?;
    Some(found.get("checksum")?.as_str()?.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_tells_the_checksum() {
        let lock = "[[package]]\nname = \"fetched\"\nversion = \"0.0.0\"\n\n\
                    [[package]]\nname = \"p\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n\n\
                    [[package]]\nname = \"p\"\nversion = \"2.0.0\"\nchecksum = \"cd\"\n";
        let package = |version: &str| Crate {
            name: "p".into(),
            version: version.into(),
            sha256: String::new(),
            directory: PathBuf::new(),
        };
        assert_eq!(checksum(lock, &package("2.0.0")).as_deref(), Some("cd"));
        assert_eq!(checksum(lock, &package("3.0.0")), None);
    }
}
