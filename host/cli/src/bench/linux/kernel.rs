//! Debian's kernel, as shipped.
//!
//! **Problem.** The kernel must be the one that people run, and not ours to keep. **Strategy.** It comes from
//! Debian's archive, for the board's processor ([`pebble_debian::binary`]): of the whole package only the
//! kernel itself is kept. **Invariants.** It is fetched once, into `target/linux`; the file with its name is
//! written last, so what was interrupted is not taken for whole.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use pebble_debian::binary::{Apt, Release};

use crate::tools::{Tools, in_path};
use crate::{lock, ui};

/// Debian 13.
const SUITE: &str = "trixie";
/// With the processor's name behind it, the package that depends on the newest one.
const BEGINS: &str = "linux-image-";
const FILES: &str = "./boot/vmlinu*";

/// Where everything of Linux is made.
pub fn place(tools: &Tools) -> PathBuf {
    tools.target().join("linux")
}

pub fn image(tools: &Tools) -> PathBuf {
    place(tools).join("kernel")
}

/// Sees to it that the kernel is there; the name of its package.
pub fn fetched(tools: &Tools) -> Result<String> {
    let (place, image) = (place(tools), image(tools));
    let name = place.join("kernel.name");
    let _alone = lock::builds(tools)?;
    if let (Ok(package), true) = (fs::read_to_string(&name), image.exists()) {
        return Ok(package);
    }
    for program in ["apt-get", "apt-cache", "dpkg-deb", "tar"] {
        if in_path(program).is_none() {
            bail!("there is no {program}: Linux's kernel comes out of Debian's archive, by Debian's tools");
        }
    }
    let architecture = tools.board.processor.name();
    ui::progress("fetching", &format!("Debian's Linux for {architecture}, 130 MB: once, into target/linux"));
    let apt = Apt::updated(&place.join("apt"), &Release { suite: SUITE, architecture })?;
    let package = apt.behind(&format!("{BEGINS}{architecture}"), BEGINS)?;
    ui::progress("fetching", &package);
    let unpacked = place.join("unpacked");
    let _ = fs::remove_dir_all(&unpacked);
    fs::create_dir_all(&unpacked).with_context(|| tools.shown(&unpacked))?;
    apt.extract(&package, FILES, &unpacked)?;
    let boot = unpacked.join("boot");
    let files = fs::read_dir(&boot).with_context(|| tools.shown(&boot))?;
    let files: Vec<_> = files.flatten().map(|entry| entry.path()).collect();
    ensure!(files.len() == 1, "the package {package} has not one kernel in {}", tools.shown(&boot));
    fs::rename(&files[0], &image).with_context(|| tools.shown(&image))?;
    fs::remove_dir_all(&unpacked).with_context(|| tools.shown(&unpacked))?;
    apt.forget()?;
    fs::write(&name, &package).with_context(|| tools.shown(&name))?;
    Ok(package)
}
