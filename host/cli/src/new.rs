//! `pebble new`: a component to start from, out of `templates/`.

use std::fs;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;

use crate::tools::Tools;
use crate::ui;

#[derive(clap::Args)]
pub struct Options {
    /// The component's name: lower-case letters, digits and hyphens
    name: String,
    /// The language to write it in
    #[arg(long, value_enum)]
    lang: Language,
}

#[derive(Clone, Copy, ValueEnum)]
enum Language {
    C,
    Rust,
}

/// Files of a template; `{{name}}` stands for the component's name, `{{crate}}` for that of its library.
type Template = &'static [(&'static str, &'static str)];

const C: Template = &[("main.c", include_str!("../templates/c/main.c"))];
const RUST: Template = &[
    ("Cargo.toml", include_str!("../templates/rust/Cargo.toml.in")),
    ("src/lib.rs", include_str!("../templates/rust/lib.rs.in")),
    ("src/main.rs", include_str!("../templates/rust/main.rs.in")),
];

impl Language {
    fn template(self) -> Template {
        match self {
            Language::C => C,
            Language::Rust => RUST,
        }
    }
}

pub fn new(tools: &Tools, options: &Options) -> Result<()> {
    let name = &options.name;
    ensure!(
        is_name(name),
        "{name:?} is no name: lower-case letters, digits and hyphens, a letter first, 20 at most"
    );
    let dir = tools.root.join("programs").join(name);
    ensure!(!dir.exists(), "{} exists", tools.shown(&dir));
    for (path, text) in options.lang.template() {
        let path = dir.join(path);
        fs::create_dir_all(path.parent().context("no directory")?)?;
        fs::write(&path, text.replace("{{crate}}", &name.replace('-', "_")).replace("{{name}}", name))
            .with_context(|| path.display().to_string())?;
    }
    install(tools, options)?;
    ui::done(&format!("{}; try: echo {name} | ./pebble run", tools.shown(&dir)));
    Ok(())
}

/// Adds the program to the archive of the default system.
fn install(tools: &Tools, options: &Options) -> Result<()> {
    let manifest = tools.manifest(crate::DEFAULT_SYSTEM)?;
    let name = &options.name;
    let source = match options.lang {
        Language::C => format!("c = \"programs/{name}\""),
        Language::Rust => format!("package = \"{name}\""),
    };
    let mut text = fs::read_to_string(&manifest).with_context(|| tools.shown(&manifest))?;
    text.push_str(&format!("\n[[file]]\npath = \"bin/{name}\"\n{source}\n"));
    fs::write(&manifest, text).with_context(|| tools.shown(&manifest))
}

fn is_name(name: &str) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= 20 && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(good)
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names() {
        assert!(is_name("a") && is_name("my-filter2"));
        assert!(!is_name("") && !is_name("2a") && !is_name("A") && !is_name("a/b") && !is_name("../a"));
    }
}
