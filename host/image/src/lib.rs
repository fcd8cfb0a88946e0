//! From a manifest and compiled components to one bootable image.
//!
//! The image is the memory of the running system, laid out beforehand: page tables, portal tables, portal
//! code made by the same compiler as the portal manager's, thread blocks, component images. The nucleus only
//! turns it on.
#![forbid(unsafe_code)]

pub mod audit;
pub mod board;
pub mod build;
pub mod elf;
mod grants;
pub mod manifest;
pub mod memory;
pub mod output;
pub mod portals;
pub mod report;

pub use board::Board;
pub use build::{Artifacts, Image, build};
pub use manifest::Manifest;
pub use output::read_report;
pub use report::Report;

use pebble_arch::Processor;

/// Why no image was built.
#[derive(Debug)]
pub enum BuildError {
    Component {
        name: String,
        what: String,
    },
    Portal {
        spec: String,
        what: String,
    },
    Missing {
        who: String,
        interface: String,
    },
    BootInfo,
    /// It has no hardware domains yet.
    Processor(Processor),
}

impl std::fmt::Display for BuildError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            BuildError::Component { name, what } => write!(f, "component '{name}': {what}"),
            BuildError::Portal { spec, what } => write!(f, "portal \"{spec}\": {what}"),
            BuildError::Missing { who, interface } => {
                write!(f, "{who} needs interface {interface}, which no component of the manifest exports")
            }
            BuildError::Processor(processor) => {
                write!(f, "there are no hardware domains on {processor} yet: no system can be built for it")
            }
            BuildError::BootInfo => write!(f, "the boot information could not be encoded"),
        }
    }
}

impl std::error::Error for BuildError {}
