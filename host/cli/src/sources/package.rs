//! Sources in C and C++ out of packages for Rust and for Python.
//!
//! **Problem.** Some programs are nowhere in Debian as one would compile them: SQLite's one large file is in a
//! package that binds it to Rust, CoreMark in one for Python. **Strategy.** The registry's own client fetches
//! the package and checks it: cargo, for a workspace of no code that depends on it, or pip. **Invariants.**
//! What is used has the checksum that the description says. It is fetched once; a copy that is there is whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::Value;

use crate::tools::{Tools, in_path, missing, program, run_quietly};

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    pub name: String,
    pub version: String,
    /// Of the package: `checksum` in a `Cargo.lock`, `hash` of a requirement for pip.
    pub sha256: String,
    /// The directory in it, if the sources are not at its top.
    #[serde(default)]
    pub directory: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Registry {
    Crates,
    Pypi,
}

impl Package {
    fn called(&self) -> String {
        format!("{}-{}", self.name, self.version)
    }

    /// Where the sources are in what [`unpack`] makes.
    pub fn unpacked(&self) -> PathBuf {
        Path::new(&self.called()).join(&self.directory)
    }
}

/// A copy of the package in `into`.
pub fn unpack(tools: &Tools, registry: Registry, package: &Package, into: &Path) -> Result<()> {
    let (place, of) = match registry {
        Registry::Crates => ("crates", "Rust's"),
        Registry::Pypi => ("pypi", "Python's"),
    };
    // Another checksum is another package.
    let kept = tools.target().join(place).join(package.called()).join(&package.sha256);
    let whole = kept.join("package");
    if !whole.exists() {
        fs::create_dir_all(&kept).with_context(|| tools.shown(&kept))?;
        let part = kept.join("part");
        let _ = fs::remove_dir_all(&part);
        match registry {
            Registry::Crates => from_crates(tools, package, &kept, &part),
            Registry::Pypi => from_pypi(package, &kept, &part),
        }
        .with_context(|| format!("{of} package {} cannot be had; is there a network?", package.called()))?;
        fs::rename(&part, &whole).with_context(|| tools.shown(&whole))?;
    }
    fs::create_dir_all(into).with_context(|| tools.shown(into))?;
    copy(&whole, &into.join(package.called()))
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    run_quietly(Command::new("cp").arg("-r").arg(from).arg(to), "copying the sources")
}

fn from_crates(tools: &Tools, package: &Package, kept: &Path, part: &Path) -> Result<()> {
    let Package { name, version, .. } = package;
    let (manifest, lock) = (kept.join("Cargo.toml"), kept.join("Cargo.lock"));
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
    let lock = fs::read_to_string(&lock).with_context(|| tools.shown(&lock))?;
    let found = checksum(&lock, package).context("Cargo.lock does not name it")?;
    ensure!(
        found == package.sha256,
        "it has checksum {found}, not {}: write that, if it is the package you mean",
        package.sha256
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().context("cargo metadata names no packages")?;
    let found = packages.iter().find(|one| one["name"] == **name && one["version"] == **version);
    let manifest = found.and_then(|one| one["manifest_path"].as_str()).map(Path::new);
    copy(manifest.and_then(Path::parent).context("cargo metadata does not name the package")?, part)
}

fn checksum(lock: &str, package: &Package) -> Option<String> {
    let lock: toml::Table = toml::from_str(lock).ok()?;
    let mut packages = lock["package"].as_array()?.iter();
    let is =
        |one: &&toml::Value, key: &str, value: &str| one.get(key).and_then(|v| v.as_str()) == Some(value);
    let found =
        packages.find(|one| is(one, "name", &package.name) && is(one, "version", &package.version))?;
    Some(found.get("checksum")?.as_str()?.into())
}

/// pip compares the checksum itself, and says which one the package has.
fn from_pypi(package: &Package, kept: &Path, part: &Path) -> Result<()> {
    let Package { name, version, sha256, .. } = package;
    let wanted = kept.join("requirements.txt");
    fs::write(&wanted, format!("{name}=={version} --hash=sha256:{sha256}\n"))?;
    let pip = in_path("pip3").ok_or_else(|| missing("pip3")).context("Debian: python3-pip")?;
    let mut fetch = Command::new(pip);
    fetch.args(["download", "--quiet", "--no-deps", "--only-binary=:all:", "--require-hashes"]);
    fetch.arg("--dest").arg(kept).arg("--requirement").arg(&wanted);
    run_quietly(&mut fetch, "pip download")?;
    let files = fs::read_dir(kept)?.flatten().map(|entry| entry.path());
    let wheel = files.into_iter().find(|file| file.extension().is_some_and(|e| e == "whl"));
    let mut unpack = Command::new("python3");
    unpack.args(["-m", "zipfile", "-e"]).arg(wheel.context("pip has left no package")?).arg(part);
    run_quietly(&mut unpack, "unpacking the package")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lock_file_tells_the_checksum() {
        let lock = "[[package]]\nname = \"fetched\"\nversion = \"0.0.0\"\n\n\
                    [[package]]\nname = \"p\"\nversion = \"1.0.0\"\nchecksum = \"ab\"\n\n\
                    [[package]]\nname = \"p\"\nversion = \"2.0.0\"\nchecksum = \"cd\"\n";
        let package = |version: &str| Package {
            name: "p".into(),
            version: version.into(),
            sha256: String::new(),
            directory: PathBuf::new(),
        };
        assert_eq!(checksum(lock, &package("2.0.0")).as_deref(), Some("cd"));
        assert_eq!(checksum(lock, &package("3.0.0")), None);
    }
}
