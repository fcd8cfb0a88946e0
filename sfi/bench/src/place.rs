//! Where things are: the repository, the directory for what is made, and the tools.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::compile;

pub struct Place {
    /// The repository.
    pub root: PathBuf,
    /// Everything that the bench makes.
    pub target: PathBuf,
    pub cargo: PathBuf,
    pub rustc: PathBuf,
}

impl Place {
    /// The bootstrap script says where things are; without it the repository is where this was built.
    pub fn find() -> Result<Self> {
        let path = |name: &str, otherwise: &str| env::var_os(name).map_or(otherwise.into(), PathBuf::from);
        let root = path("PEBBLE_ROOT", concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
        let root = root.canonicalize().with_context(|| root.display().to_string())?;
        let target = env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from).join("sfi");
        fs::create_dir_all(&target).with_context(|| target.display().to_string())?;
        let target = target.canonicalize()?;
        Ok(Place {
            root,
            target,
            cargo: path("PEBBLE_CARGO", "/usr/bin/cargo"),
            rustc: path("PEBBLE_RUSTC", "/usr/bin/rustc"),
        })
    }

    /// Where archives of Debian's sources stay.
    pub fn debian(&self) -> PathBuf {
        self.target.with_file_name("debian")
    }

    /// The command of `pebble sfi`.
    pub fn tool(&self) -> String {
        format!("{} sfi", self.root.join("pebble").display())
    }

    /// Makes the tool and the C library of each level from their sources as they are now.
    pub fn renew_tool(&self) -> Result<()> {
        compile::run(&mut compile::command(&compile::words(&format!("{} libc", self.tool())))).map(drop)
    }

    /// What the tool and the C library of a level were made from.
    pub fn tool_is_of(&self, level: &str) -> PathBuf {
        self.target.join("libc").join(level).join("made")
    }

    /// A path as the user would name it.
    pub fn shown(&self, path: &Path) -> String {
        let here = env::current_dir().unwrap_or_default();
        path.strip_prefix(here).unwrap_or(path).display().to_string()
    }
}
