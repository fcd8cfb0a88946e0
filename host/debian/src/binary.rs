//! Files out of binary packages of another architecture, or release.
//!
//! **Problem.** A kernel to be compared with is a package that this system would never install.
//! **Strategy.** `apt` with everything of its own in one directory: lists, state, cache; its sources are the
//! system's, for the other release. The package is fetched and the wanted files are taken out of it.
//! **Invariants.** Nothing of the system is changed, and nobody must be root. apt has checked every package
//! against the archive's signature. The package itself is not kept.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};

use crate::{run, source_lists};

/// Where a package is looked for.
pub struct Release<'a> {
    pub suite: &'a str,
    pub architecture: &'a str,
}

/// apt in a directory of its own.
pub struct Apt {
    place: PathBuf,
    architecture: String,
    /// What `update` complained of: a hint when a package is missing.
    complaint: Option<String>,
}

impl Apt {
    /// Fetches the release's lists of packages.
    pub fn updated(place: &Path, release: &Release) -> Result<Apt> {
        let here = || place.display().to_string();
        for part in ["parts", "state/lists/partial", "cache/archives/partial"] {
            fs::create_dir_all(place.join(part)).with_context(here)?;
        }
        fs::write(place.join("state/status"), "").with_context(here)?;
        let own = codename(&fs::read_to_string("/etc/os-release").unwrap_or_default());
        let own = own.context("/etc/os-release names no release of Debian: only there this works")?;
        for (i, file) in source_lists().iter().enumerate() {
            let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
            let extension = file.extension().unwrap_or_default().to_string_lossy();
            let text = of_release(&text, &own, release.suite);
            fs::write(place.join(format!("parts/{i}.{extension}")), text).with_context(here)?;
        }
        let place = place.canonicalize().with_context(here)?;
        let mut apt = Apt { place, architecture: release.architecture.into(), complaint: None };
        // Somebody else's archive may lack this release or architecture: what matters is the package.
        apt.complaint =
            run(apt.call("apt-get").args(["-q", "update"])).err().map(|error| format!("{error:#}"));
        Ok(apt)
    }

    fn call(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(&self.place);
        let place = self.place.display();
        for option in [
            "Dir::Etc::sourcelist=/dev/null".to_string(),
            format!("Dir::Etc::sourceparts={place}/parts"),
            format!("Dir::State={place}/state"),
            format!("Dir::State::status={place}/state/status"),
            format!("Dir::Cache={place}/cache"),
            format!("APT::Architecture={}", self.architecture),
            format!("APT::Architectures={}", self.architecture),
            "APT::Sandbox::User=".into(),
            "APT::Update::Error-Mode=any".into(),
        ] {
            command.arg("-o").arg(option);
        }
        command
    }

    /// The package that a package without contents stands for: its first dependency that begins like this.
    pub fn behind(&self, package: &str, begins: &str) -> Result<String> {
        let shown = run(self.call("apt-cache").args(["show", "--no-all-versions", package]));
        let shown = shown.or_else(|error| match &self.complaint {
            Some(complaint) => bail!("{complaint}"),
            None => Err(error),
        });
        let shown = shown.with_context(|| {
            format!("Debian's lists for {} have no {package}; is there a network?", self.architecture)
        })?;
        dependency(&shown, begins).with_context(|| format!("{package} depends on no {begins}*"))
    }

    /// The files of a package whose paths match the pattern (`./boot/vmlinux-*`), unpacked in `into`.
    pub fn extract(&self, package: &str, pattern: &str, into: &Path) -> Result<()> {
        let what = || format!("Debian's package {package} cannot be had; is there a network?");
        run(self.call("apt-get").args(["-q", "download", package])).with_context(what)?;
        let archive = self.downloaded(package)?;
        let mut packer = Command::new("dpkg-deb")
            .arg("--fsys-tarfile")
            .arg(&archive)
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start dpkg-deb")?;
        let files = packer.stdout.take().context("dpkg-deb has no output")?;
        let mut tar = Command::new("tar");
        tar.args(["-x", "--wildcards", "-C"]).arg(into).arg(pattern).stdin(files);
        let unpacked = run(&mut tar).with_context(|| archive.display().to_string());
        let packed = packer.wait()?;
        unpacked?;
        ensure!(packed.success(), "dpkg-deb: {packed}: {}", archive.display());
        fs::remove_file(&archive).with_context(|| archive.display().to_string())
    }

    /// Its lists are not needed any more.
    pub fn forget(self) -> Result<()> {
        fs::remove_dir_all(&self.place).with_context(|| self.place.display().to_string())
    }

    fn downloaded(&self, package: &str) -> Result<PathBuf> {
        let begins = format!("{package}_");
        let mut files = fs::read_dir(&self.place)?.flatten().map(|entry| entry.path());
        let named = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with(&begins) && name.ends_with(".deb")
        };
        files.find(named).with_context(|| format!("apt-get has left no package {package}"))
    }
}

/// What the system's release is called.
fn codename(release: &str) -> Option<String> {
    let line = release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    Some(line.trim_matches('"').into())
}

/// The sources for the system's own release, as they are for another, whatever the architecture.
fn of_release(text: &str, own: &str, suite: &str) -> String {
    let line = |line: &str| {
        let (options, rest) = match line.strip_prefix("deb ")?.trim_start().strip_prefix('[') {
            Some(rest) => rest.split_once(']')?,
            None => ("", line.strip_prefix("deb ")?),
        };
        let mut words = rest.split_whitespace();
        let (place, named) = (words.next()?, words.next()?);
        let kept: Vec<_> = options.split_whitespace().filter(|option| !option.starts_with("arch")).collect();
        let options = if kept.is_empty() { String::new() } else { format!("[{}] ", kept.join(" ")) };
        let components: Vec<_> = words.collect();
        (named == own).then(|| format!("deb {options}{place} {suite} {}\n", components.join(" ")))
    };
    let part = |part: &str| {
        let suites = part.lines().find_map(|line| line.strip_prefix("Suites:"))?;
        suites.split_whitespace().any(|named| named == own).then_some(())?;
        let kept = part.lines().filter(|line| !line.starts_with("Architectures:"));
        let kept = kept.map(|line| match line.split_once(':') {
            Some(("Types", _)) => "Types: deb\n".into(),
            Some(("Suites", _)) => format!("Suites: {suite}\n"),
            _ => format!("{line}\n"),
        });
        Some(kept.collect::<String>() + "\n")
    };
    let lines = text.lines().filter_map(line);
    lines.chain(text.split("\n\n").filter_map(part)).collect()
}

/// Of what `apt-cache show` says: the name of the first dependency that begins like this.
fn dependency(shown: &str, begins: &str) -> Option<String> {
    let list = shown.lines().find_map(|line| line.strip_prefix("Depends: "))?;
    let names = list.split(',').filter_map(|one| one.split_whitespace().next());
    names.map(String::from).find(|name| name.starts_with(begins))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_systems_own_sources_are_taken_over() {
        let old = "deb [arch=amd64 signed-by=k] http://mirror x main extra\n\
                   deb http://mirror x-updates main\n\
                   # deb http://mirror x main\n\
                   deb http://other stable main\n";
        assert_eq!(of_release(old, "x", "y"), "deb [signed-by=k] http://mirror y main extra\n");
        let old = "Types: deb\n# mirror\nURIs: z\nSuites: x x-updates\nComponents: main\n\
                   Architectures: amd64\n\n\
                   Types: deb\nURIs: z\nSuites: x-security\n\n\
                   Types: deb\nURIs: v\nSuites: nodistro\n";
        let new = "Types: deb\n# mirror\nURIs: z\nSuites: y\nComponents: main\n\n";
        assert_eq!(of_release(old, "x", "y"), new);
    }

    #[test]
    fn a_package_is_found_behind_another() {
        let shown = "Package: linux-image\nDepends: base (= 1), linux-image-6 (= 6.1-2), linux-image-7\n";
        assert_eq!(dependency(shown, "linux-image-").unwrap(), "linux-image-6");
        assert_eq!(dependency("Package: x\n", "linux-image-"), None);
    }

    #[test]
    fn the_release_has_a_name() {
        assert_eq!(codename("ID=debian\nVERSION_CODENAME=trixie\n").unwrap(), "trixie");
        assert_eq!(codename("ID=x\nVERSION_CODENAME=\"y\"\n").unwrap(), "y");
        assert_eq!(codename("ID=x\n"), None);
    }
}
