//! `pebble doc`: the book in `docs/`, as web pages.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::tools::{Tools, in_path, run_quietly};
use crate::ui;

const MDBOOK_VERSION: &str = "0.5.4";

pub fn doc(tools: &Tools, out: &Path) -> Result<()> {
    let out = std::path::absolute(out)?;
    let mut command = Command::new(mdbook(tools)?);
    command.arg("build").arg(tools.root.join("docs")).arg("-d").arg(&out);
    run_quietly(&mut command, "mdbook")?;
    ui::done(&tools.shown(&out.join("index.html")));
    Ok(())
}

/// The system's mdbook, or one of our own, built once.
fn mdbook(tools: &Tools) -> Result<PathBuf> {
    let root = tools.target().join("tools");
    let own = root.join("bin/mdbook");
    if let Some(found) = in_path("mdbook").or_else(|| own.exists().then(|| own.clone())) {
        return Ok(found);
    }
    ui::progress("building", &format!("mdbook {MDBOOK_VERSION} (once; some minutes)"));
    let mut install = tools.cargo("install");
    install.args([
        "mdbook",
        "--version",
        MDBOOK_VERSION,
        "--locked",
        "--no-default-features",
        "--features",
        "search",
    ]);
    install.arg("--root").arg(&root);
    run_quietly(&mut install, "building mdbook")?;
    Ok(own)
}
