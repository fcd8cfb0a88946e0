//! What of Linux comes out of Debian's archive: the kernel, and what programs are built with.
//!
//! **Problem.** Both come out of packages, whose lists are large, and mostly everything is there already.
//! **Strategy.** The lists are fetched when the first package is, and forgotten at the end. **Invariants.**
//! What is fetched lies in `target/linux` ([`place`]). Who fetches has the lock of builds.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use pebble_debian::binary::{Apt, Release};

use crate::tools::{Tools, in_path};
use crate::{lock, ui};

/// Debian 13.
const SUITE: &str = "trixie";

/// Where everything of Linux is made.
pub fn place(tools: &Tools) -> PathBuf {
    tools.target().join("linux")
}

/// Debian's archive, for the board's processor.
pub struct Debian<'a> {
    pub tools: &'a Tools,
    apt: Option<Apt>,
    _alone: File,
}

impl<'a> Debian<'a> {
    /// Nothing is fetched yet.
    pub fn new(tools: &'a Tools) -> Result<Self> {
        Ok(Debian { tools, apt: None, _alone: lock::builds(tools)? })
    }

    pub fn architecture(&self) -> &'static str {
        self.tools.board.processor.name()
    }

    /// With the lists of packages.
    pub fn apt(&mut self) -> Result<&Apt> {
        if self.apt.is_none() {
            for program in ["apt-get", "apt-cache", "dpkg-deb", "tar"] {
                if in_path(program).is_none() {
                    bail!("there is no {program}: Linux comes out of Debian's archive, by Debian's tools");
                }
            }
            let release = Release { suite: SUITE, architecture: self.architecture() };
            self.apt = Some(Apt::updated(&place(self.tools).join("apt"), &release)?);
        }
        self.apt.as_ref().context("no lists of packages")
    }

    /// The files of a package that match the pattern, below what is in `into` already.
    pub fn extract(&mut self, package: &str, pattern: &str, into: &Path) -> Result<()> {
        ui::progress("fetching", package);
        fs::create_dir_all(into).with_context(|| self.tools.shown(into))?;
        self.apt()?.extract(package, pattern, into)
    }

    /// The lists are not needed any more.
    pub fn forget(self) -> Result<()> {
        self.apt.map_or(Ok(()), Apt::forget)
    }
}
