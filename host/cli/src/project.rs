//! Projects: systems and components in a folder of their own, built with the Pebble that they name.
//!
//! **Problem.** Who uses Pebble does not want to work inside it. **Strategy.** A project has Pebble's layout:
//! `systems/` with manifests, `programs/` with sources, a Cargo workspace if it has Rust. Its script `pebble`
//! hands over to that of the Pebble to which the link `.pebble` leads, and says where the project is
//! ([`VARIABLE`]). From then on names and paths are looked for in the project first, and then in Pebble.
//!
//! **Invariant.** Nothing of Pebble's own is changed by what is done in a project; only what is built of it
//! goes into its `target/`, so that all projects share that.

use std::env;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use semver::{Version, VersionReq};
use serde::Deserialize;

use crate::tools::Tools;
use crate::ui;

/// By which the script says where the project is.
const VARIABLE: &str = "PEBBLE_PROJECT";
/// What makes a folder a project.
const FILE: &str = "pebble.toml";
/// Leads to the Pebble that it is built with.
pub const LINK: &str = ".pebble";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    /// The version that it was made with: a compatible one will do.
    pebble: VersionReq,
}

/// The project from which Pebble was called.
pub fn find() -> Result<Option<PathBuf>> {
    let Some(folder) = env::var_os(VARIABLE) else { return Ok(None) };
    let path = PathBuf::from(folder).join(FILE);
    let text = fs::read_to_string(&path).with_context(|| format!("no project: {}", path.display()))?;
    let wanted = toml::from_str::<Description>(&text).with_context(|| path.display().to_string())?.pebble;
    let own = Version::parse(env!("CARGO_PKG_VERSION"))?;
    if !wanted.matches(&own) {
        let path = path.display();
        bail!(
            "{path}: pebble = \"{wanted}\", and this Pebble is {own}: say PEBBLE_SDK=FOLDER of another once"
        );
    }
    Ok(path.parent().map(Path::canonicalize).transpose()?)
}

/// Files of a new project; `{{name}}` and `{{version}}` stand for its name and Pebble's version.
const FILES: [(&str, &str); 6] = [
    ("pebble", include_str!("../templates/project/pebble")),
    (FILE, include_str!("../templates/project/pebble.toml.in")),
    ("Cargo.toml", include_str!("../templates/project/Cargo.toml.in")),
    ("systems/default.toml", include_str!("../templates/project/systems/default.toml.in")),
    (".gitignore", include_str!("../templates/project/gitignore")),
    ("README.md", include_str!("../templates/project/README.md.in")),
];

/// An empty project in a folder that does not exist.
pub fn make(tools: &Tools, folder: &Path, name: &str) -> Result<()> {
    ensure!(!folder.exists(), "{} exists", tools.shown(folder));
    for (path, text) in FILES {
        let path = folder.join(path);
        fs::create_dir_all(path.parent().context("no folder")?)?;
        let text = text.replace("{{name}}", name).replace("{{version}}", env!("CARGO_PKG_VERSION"));
        fs::write(&path, text).with_context(|| tools.shown(&path))?;
        ui::progress("made", &tools.shown(&path));
    }
    fs::set_permissions(folder.join("pebble"), fs::Permissions::from_mode(0o755))?;
    fs::create_dir_all(folder.join("programs"))?;
    symlink(&tools.root, folder.join(LINK))?;
    Ok(())
}
