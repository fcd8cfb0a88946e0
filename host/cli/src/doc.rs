//! `pebble doc`: the book in `docs/`, as web pages.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::tools::{Tools, in_path, program, run_quietly};
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
    ui::progress(
        "building",
        &format!("mdbook {MDBOOK_VERSION}, once: the system has no package of it (a mdbook in PATH will do)"),
    );
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
    // The book is small: a quick build is worth more than quick code.
    install.arg("--debug").env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_DEV_INCREMENTAL", "false");
    install.arg("--root").arg(&root).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = install.spawn().with_context(|| program(&install))?;
    let said = child.stderr.take().map(tell_crates).unwrap_or_default();
    if child.wait()?.success() {
        return Ok(own);
    }
    eprint!("{said}");
    bail!(
        "building mdbook failed; `cargo install mdbook` somewhere in PATH, or a package of it, will do \
         instead"
    )
}

/// A line for every tenth crate that is compiled; returns all that cargo says.
fn tell_crates(stderr: ChildStderr) -> String {
    let (mut said, mut crates) = (String::new(), 0);
    for line in BufReader::new(stderr).lines().map_while(Result::ok) {
        if let Some(name) = line.trim_start().strip_prefix("Compiling ") {
            crates += 1;
            if crates % 10 == 0 || name.starts_with("mdbook v") {
                ui::progress("building", &format!("crate {crates}: {name}"));
            }
        }
        said.push_str(&line);
        said.push('\n');
    }
    said
}
