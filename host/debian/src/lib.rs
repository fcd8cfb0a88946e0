//! Sources, and programs, of others, from Debian's archive.
//!
//! **Problem.** Real programs show what made-up ones do not, and their sources are not ours to keep.
//! **Strategy.** `apt-get source`, with lists of source packages in a directory of our own, so that the
//! system's stay as they are. **Invariants.** Every archive is checked against its checksum before it is
//! unpacked, and is fetched once; nothing is there that was unpacked in part. One at a time unpacks from a
//! cache.
//!
//! * [`unpack`] a source package
//! * [`binary`] a binary package of any architecture and release
#![forbid(unsafe_code)]

pub mod binary;

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// Name of the source package, and a version if it must be that: `musl`, `musl=1.2.3-1`.
    pub package: String,
    /// The release of Debian that has it, if it is not to be the system's.
    pub suite: Option<String>,
    pub archive: String,
    /// The directory in it.
    pub directory: String,
    /// What is wanted of the directory; nothing here: all.
    #[serde(default)]
    pub only: Vec<String>,
    pub sha256: String,
}

/// The archive's directory, unpacked in `into`; the archive itself stays in `cache`.
pub fn unpack(cache: &Path, archive: &Archive, into: &Path) -> Result<PathBuf> {
    let directory = into.join(&archive.directory);
    fs::create_dir_all(cache).with_context(|| cache.display().to_string())?;
    let lock = cache.join("lock");
    let alone = File::create(&lock).with_context(|| lock.display().to_string())?;
    alone.lock().with_context(|| lock.display().to_string())?;
    if !directory.exists() {
        let file = fetch(cache, archive)?;
        let part = into.join("part");
        remove(&part)?;
        fs::create_dir_all(&part).with_context(|| part.display().to_string())?;
        let wanted = archive.only.iter().map(|path| format!("{}/{path}", archive.directory));
        run(Command::new("tar").arg("-xf").arg(file).arg("-C").arg(&part).args(wanted))?;
        let whole = part.join(&archive.directory);
        fs::rename(&whole, &directory).with_context(|| whole.display().to_string())?;
        remove(&part)?;
    }
    Ok(directory)
}

fn remove(directory: &Path) -> Result<()> {
    match directory.exists() {
        true => fs::remove_dir_all(directory).with_context(|| directory.display().to_string()),
        false => Ok(()),
    }
}

fn fetch(cache: &Path, archive: &Archive) -> Result<PathBuf> {
    let file = cache.join(&archive.archive);
    if !file.exists() {
        // What the checksum vouches for will do, though another file of the package were missing.
        let done = download(cache, &archive.package, archive.suite.as_deref());
        done.or_else(|error| if file.exists() { Ok(()) } else { Err(error) }).with_context(|| {
            format!("Debian's source package {} cannot be had; is there a network?", archive.package)
        })?;
    }
    ensure!(
        file.exists(),
        "Debian's source package {} has no {}: the system's lists are another release's",
        archive.package,
        archive.archive
    );
    let sum = run(Command::new("sha256sum").arg(&file))?;
    ensure!(sum.starts_with(&archive.sha256), "{}: not the file that was expected", file.display());
    Ok(file)
}

/// All files of a source package, into the cache.
fn download(cache: &Path, package: &str, suite: Option<&str>) -> Result<()> {
    let lists = cache.join(suite.unwrap_or("own"));
    for part in ["parts", "lists/partial"] {
        fs::create_dir_all(lists.join(part)).with_context(|| lists.display().to_string())?;
    }
    for (i, file) in source_lists().iter().enumerate() {
        let text = fs::read_to_string(file)?;
        let extension = file.extension().unwrap_or_default().to_string_lossy();
        fs::write(lists.join(format!("parts/{i}.{extension}")), sources_only(&text, suite))?;
    }
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.current_dir(cache).args(["-q", "-o", "Dir::Etc::sourcelist=/dev/null"]);
        command.arg("-o").arg(format!("Dir::Etc::sourceparts={}/parts", lists.display()));
        command.arg("-o").arg(format!("Dir::State::lists={}/lists", lists.display()));
        run(command.args(["-o", "APT::Sandbox::User="]).args(arguments)).map(drop)
    };
    apt(&["update"])?;
    apt(&["source", "--download-only", package])
}

/// What a command prints; what it complains of, if it fails.
fn run(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("{command:?}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said: String = said.lines().take(10).map(|line| format!("\n  {line}")).collect();
        bail!("{:?}: {}{said}", command.get_program(), output.status);
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
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

/// The same list for source packages, of another release if there is to be one: then without what belongs to
/// the system's alone, such as its updates.
fn sources_only(text: &str, suite: Option<&str>) -> String {
    let own = |named: &str| named.contains(['-', '/']);
    let line = |line: &str| {
        if let Some(rest) = line.strip_prefix("deb ") {
            let Some(suite) = suite else { return Some(format!("deb-src {rest}\n")) };
            let named = rest.rsplit(']').next()?.split_whitespace().nth(1).filter(|named| !own(named))?;
            return Some(format!(
                "deb-src {}\n",
                rest.replacen(&format!(" {named} "), &format!(" {suite} "), 1)
            ));
        }
        Some(match (line.split_once(':'), suite) {
            (Some(("Types", _)), _) => "Types: deb-src\n".into(),
            (Some(("Suites", _)), Some(suite)) => format!("Suites: {suite}\n"),
            _ => format!("{line}\n"),
        })
    };
    let foreign = |part: &str| {
        let suites = part.lines().find_map(|line| line.strip_prefix("Suites:"));
        suite.is_some() && suites.is_some_and(|suites| suites.split_whitespace().all(own))
    };
    let parts: Vec<String> = text
        .split("\n\n")
        .filter(|part| !foreign(part))
        .map(|part| part.lines().filter_map(line).collect())
        .collect();
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::sources_only;

    #[test]
    fn lists_become_lists_of_sources() {
        assert_eq!(
            sources_only("deb http://mirror x main\n# deb y\n", None),
            "deb-src http://mirror x main\n# deb y\n"
        );
        assert_eq!(sources_only("Types: deb\nURIs: z\n", None), "Types: deb-src\nURIs: z\n");
    }

    #[test]
    fn another_release_has_no_updates_of_the_systems() {
        let old =
            "deb [a=b] http://mirror x main\ndeb http://mirror x-updates main\ndeb http://mirror x main\n";
        let new = "deb-src [a=b] http://mirror y main\ndeb-src http://mirror y main\n";
        assert_eq!(sources_only(old, Some("y")), new);
        let old = "Types: deb\nSuites: x x-updates\nURIs: z\n\nTypes: deb\nSuites: x-security\nURIs: z\n";
        assert_eq!(sources_only(old, Some("y")), "Types: deb-src\nSuites: y\nURIs: z\n");
    }
}
