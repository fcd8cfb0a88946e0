//! The sources of the packages: cargo fetches them by the lock file of `bench/sfi/sources`, whose checksums
//! it verifies, and says where they are. Nothing of them is kept in the repository, and nothing is compiled
//! by cargo.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;

use crate::manifest::{HOME, Part};
use crate::place::Place;

/// Directories of packages by name, and their versions.
pub struct Sources {
    packages: BTreeMap<String, Package>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    version: String,
    manifest_path: PathBuf,
}

/// Fetches what is not there yet.
pub fn fetch(place: &Place) -> Result<Sources> {
    let manifest = place.root.join(HOME).join("sources/Cargo.toml");
    let target = "x86_64-unknown-linux-gnu";
    let cargo = |arguments: &[&str]| {
        let mut command = Command::new(&place.cargo);
        command.args(arguments).arg("--locked").arg("--manifest-path").arg(&manifest);
        command.env("CARGO_TARGET_DIR", place.target.join("cargo"));
        command
    };
    let status = cargo(&["fetch", "--quiet", "--target", target]).status().context("cargo")?;
    ensure!(status.success(), "cargo could not fetch the sources");
    let output = cargo(&["metadata", "--offline", "--format-version", "1", "--filter-platform", target])
        .output()
        .context("cargo metadata")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let metadata: Metadata = serde_json::from_slice(&output.stdout)?;
    Ok(Sources { packages: metadata.packages.into_iter().map(|p| (p.name.clone(), p)).collect() })
}

impl Sources {
    pub fn version(&self, package: &str) -> &str {
        self.packages.get(package).map_or("?", |p| &p.version)
    }

    /// A package's directory.
    pub fn directory(&self, name: &str) -> Result<PathBuf> {
        let package =
            self.packages.get(name).with_context(|| format!("bench/sfi/sources does not name {name}"))?;
        Ok(package.manifest_path.parent().unwrap_or(Path::new("/")).to_path_buf())
    }

    /// The directory that a part's paths are relative to.
    pub fn root(&self, part: &Part) -> Result<PathBuf> {
        Ok(self.directory(&part.package)?.join(&part.root))
    }

    /// The files of a part that are compiled, in order.
    pub fn files(&self, part: &Part) -> Result<Vec<PathBuf>> {
        let root = self.root(part)?;
        let mut files = Vec::new();
        for pattern in &part.sources {
            let (directory, name) = pattern.rsplit_once('/').unwrap_or(("", pattern));
            let directory = root.join(directory);
            let mut found = Vec::new();
            for entry in fs::read_dir(&directory).with_context(|| directory.display().to_string())? {
                let entry = entry?.file_name().to_string_lossy().into_owned();
                if matches(name, &entry) && !part.except.iter().any(|except| matches(except, &entry)) {
                    found.push(directory.join(entry));
                }
            }
            ensure!(!found.is_empty(), "{}: no file is called {pattern}", part.package);
            found.sort();
            files.extend(found);
        }
        Ok(files)
    }
}

/// Does a name fit a pattern with at most one `*`?
fn matches(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        None => pattern == name,
        Some((begin, end)) => {
            name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns() {
        assert!(matches("*.c", "a.c") && matches("gz*.c", "gzread.c") && matches("a.c", "a.c"));
        assert!(!matches("*.c", "a.h") && !matches("jf*.c", "jc.c") && !matches("ab*bc", "abc"));
    }
}
