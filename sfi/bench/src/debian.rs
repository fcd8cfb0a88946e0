//! Source archives from Debian, by `apt-get source`: lists of source packages are kept in a directory of our own, so that the
//! system's stay as they are, and every archive is checked against a checksum.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use serde::Deserialize;

use crate::compile;
use crate::place::Place;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// Name and version: `musl=1.2.3-1`.
    pub package: String,
    pub archive: String,
    /// The directory in it.
    pub directory: String,
    pub sha256: String,
}

/// The archive's directory, unpacked in `into`.
pub fn unpack(place: &Place, archive: &Archive, into: &Path) -> Result<PathBuf> {
    let directory = into.join(&archive.directory);
    if !directory.exists() {
        fs::create_dir_all(into)?;
        let file = fetch(place, archive)?;
        compile::run(Command::new("tar").arg("-xf").arg(file).arg("-C").arg(into))?;
    }
    Ok(directory)
}

fn fetch(place: &Place, archive: &Archive) -> Result<PathBuf> {
    let directory = place.target.join("debian");
    let file = directory.join(&archive.archive);
    if !file.exists() {
        for part in ["parts", "lists/partial"] {
            fs::create_dir_all(directory.join(part))?;
        }
        for (i, file) in source_lists().iter().enumerate() {
            let text = fs::read_to_string(file)?;
            let extension = file.extension().unwrap_or_default().to_string_lossy();
            fs::write(directory.join(format!("parts/{i}.{extension}")), sources_only(&text))?;
        }
        let apt = |arguments: &[&str]| {
            let mut command = Command::new("apt-get");
            command.current_dir(&directory).args(["-q", "-o", "Dir::Etc::sourcelist=/dev/null"]);
            command.arg("-o").arg(format!("Dir::Etc::sourceparts={}/parts", directory.display()));
            command.arg("-o").arg(format!("Dir::State::lists={}/lists", directory.display()));
            compile::run(command.args(["-o", "APT::Sandbox::User="]).args(arguments))
        };
        apt(&["update"])?;
        apt(&["source", "--download-only", &archive.package])?;
    }
    let sum = compile::run(Command::new("sha256sum").arg(&file))?;
    ensure!(sum.starts_with(&archive.sha256), "{}: not the file that was expected", file.display());
    Ok(file)
}

/// The system's lists of packages.
fn source_lists() -> Vec<PathBuf> {
    let directory = fs::read_dir("/etc/apt/sources.list.d").into_iter().flatten().flatten().map(|e| e.path());
    let known = |path: &PathBuf| path.extension().is_some_and(|e| e == "list" || e == "sources");
    let mut files: Vec<PathBuf> = directory.filter(known).collect();
    files.sort();
    files.extend([PathBuf::from("/etc/apt/sources.list")].into_iter().filter(|path| Path::exists(path)));
    files
}

/// The same list for source packages.
fn sources_only(text: &str) -> String {
    let line = |line: &str| match line.strip_prefix("deb ") {
        Some(rest) => format!("deb-src {rest}\n"),
        None if line.starts_with("Types:") => "Types: deb-src\n".into(),
        None => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::sources_only;

    #[test]
    fn lists_become_lists_of_sources() {
        assert_eq!(
            sources_only("deb http://mirror x main\n# deb y\n"),
            "deb-src http://mirror x main\n# deb y\n"
        );
        assert_eq!(sources_only("Types: deb\nURIs: z\n"), "Types: deb-src\nURIs: z\n");
    }
}
