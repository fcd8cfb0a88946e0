//! `pebble inspect`: what an image holds.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::image;

#[derive(clap::Args)]
pub struct Options {
    /// The image, such as target/image/default.elf
    image: PathBuf,
    /// Disassemble this portal: the interface's name, or DOMAIN:INDEX
    #[arg(long, value_name = "NAME|DOMAIN:INDEX")]
    portal: Option<String>,
}

pub fn inspect(options: &Options) -> Result<()> {
    let shown = || options.image.display().to_string();
    let bytes = fs::read(&options.image).with_context(shown)?;
    let text = image::inspect(&bytes, options.portal.as_deref()).with_context(shown)?;
    Ok(std::io::stdout().write_all(text.as_bytes())?)
}
