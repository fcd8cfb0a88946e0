//! The one place that knows the image builder.
//!
//! A manifest names the components; their ELF files go in, one image for the emulator comes out, together with its sizes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// What the command needs to know about a system before it builds it.
#[derive(Debug, Deserialize)]
pub struct Manifest {
    /// Cargo packages, each with one component.
    #[serde(default)]
    pub packages: Vec<String>,
    /// Directories of components written in C, relative to the repository.
    #[serde(default)]
    pub c: Vec<PathBuf>,
}

/// The ELF file of each component, by the name of its program.
pub type Artifacts = BTreeMap<String, PathBuf>;

/// Bytes of what bears the name, such as `size.nucleus`.
pub type Sizes = BTreeMap<String, u64>;

impl Manifest {
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        toml::from_str(&text).with_context(|| path.display().to_string())
    }
}

/// Lays the system out.
pub fn build(_manifest: &Manifest, _artifacts: &Artifacts) -> Result<(Vec<u8>, Sizes)> {
    bail!("the image builder is not connected yet")
}

/// Describes an image, or the portal that `NAME` or `DOMAIN:INDEX` names.
pub fn inspect(_image: &[u8], _portal: Option<&str>) -> Result<String> {
    bail!("the image builder is not connected yet")
}
