//! Debian's kernel, as shipped.
//!
//! **Problem.** The kernel must be the one that people run, and not ours to keep. **Strategy.** It comes from
//! Debian's archive, for the board's processor ([`Debian`]): of the whole package only the kernel itself is
//! kept. **Invariants.** It is fetched once, into `target/linux`; the file with its name is written last, so
//! what was interrupted is not taken for whole.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};

use super::debian::{Debian, place};
use crate::tools::Tools;
use crate::ui;

/// With the processor's name behind it, the package that depends on the newest one.
const BEGINS: &str = "linux-image-";
const FILES: &str = "./boot/vmlinu*";

pub fn image(tools: &Tools) -> PathBuf {
    place(tools).join("kernel")
}

/// Sees to it that the kernel is there; the name of its package.
pub fn fetched(debian: &mut Debian) -> Result<String> {
    let tools = debian.tools;
    let (place, image) = (place(tools), image(tools));
    let name = place.join("kernel.name");
    if let (Ok(package), true) = (fs::read_to_string(&name), image.exists()) {
        return Ok(package);
    }
    let architecture = debian.architecture();
    ui::progress("fetching", &format!("Debian's Linux for {architecture}, 130 MB: once, into target/linux"));
    let package = debian.apt()?.behind(&format!("{BEGINS}{architecture}"), BEGINS)?;
    let unpacked = place.join("unpacked");
    let _ = fs::remove_dir_all(&unpacked);
    debian.extract(&package, FILES, &unpacked)?;
    let boot = unpacked.join("boot");
    let files = fs::read_dir(&boot).with_context(|| tools.shown(&boot))?;
    let files: Vec<_> = files.flatten().map(|entry| entry.path()).collect();
    ensure!(files.len() == 1, "the package {package} has not one kernel in {}", tools.shown(&boot));
    fs::rename(&files[0], &image).with_context(|| tools.shown(&image))?;
    fs::remove_dir_all(&unpacked).with_context(|| tools.shown(&unpacked))?;
    fs::write(&name, &package).with_context(|| tools.shown(&name))?;
    Ok(package)
}
