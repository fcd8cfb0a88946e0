//! Where things are: the repository, the directory for what is made, and the tools.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

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

    /// The command that stands for `pebble sfi`: PEBBLE_SFI names another.
    pub fn tool(&self) -> Result<String> {
        match env::var("PEBBLE_SFI") {
            Ok(tool) => Ok(tool),
            Err(_) => Ok(format!("{} sfi", self.root.join("pebble").display())),
        }
    }

    /// A path as the user would name it.
    pub fn shown(&self, path: &Path) -> String {
        let here = env::current_dir().unwrap_or_default();
        path.strip_prefix(here).unwrap_or(path).display().to_string()
    }
}
