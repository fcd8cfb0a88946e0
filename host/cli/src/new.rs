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

/// Files of a template, in `programs/`; `{{name}}` stands for the component's name, `{{crate}}` for that of its library.
struct Template {
    files: &'static [(&'static str, &'static str)],
    /// The key by which a manifest names it, and the value.
    source: (&'static str, &'static str),
}

const C: Template = Template {
    files: &[("{{name}}.c", include_str!("../templates/c/main.c"))],
    source: ("c", "programs/{{name}}.c"),
};
const RUST: Template = Template {
    files: &[
        ("{{name}}/Cargo.toml", include_str!("../templates/rust/Cargo.toml.in")),
        ("{{name}}/src/lib.rs", include_str!("../templates/rust/lib.rs.in")),
        ("{{name}}/src/main.rs", include_str!("../templates/rust/main.rs.in")),
    ],
    source: ("package", "{{name}}"),
};

pub fn new(tools: &Tools, options: &Options) -> Result<()> {
    let name = &options.name;
    ensure!(
        is_name(name),
        "{name:?} is no name: lower-case letters, digits and hyphens, a letter first, 20 at most"
    );
    let manifest = tools.manifest(crate::DEFAULT_SYSTEM)?;
    let mut system = fs::read_to_string(&manifest).with_context(|| tools.shown(&manifest))?;
    let programs = tools.root.join("programs");
    for path in [programs.join(name), programs.join(format!("{name}.c"))] {
        ensure!(!path.exists(), "{} exists", tools.shown(&path));
    }
    let template = match options.lang {
        Language::C => C,
        Language::Rust => RUST,
    };
    let fill = |text: &str| text.replace("{{crate}}", &name.replace('-', "_")).replace("{{name}}", name);
    for (path, text) in template.files {
        let path = programs.join(fill(path));
        fs::create_dir_all(path.parent().context("no directory")?)?;
        fs::write(&path, fill(text)).with_context(|| tools.shown(&path))?;
        ui::progress("made", &tools.shown(&path));
    }
    let (key, value) = template.source;
    system.push_str(&format!("\n[[file]]\npath = \"bin/{name}\"\n{key} = \"{}\"\n", fill(value)));
    fs::write(&manifest, system).with_context(|| tools.shown(&manifest))?;
    ui::progress("changed", &tools.shown(&manifest));
    ui::done(&format!("try: echo {name} | ./pebble run"));
    Ok(())
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
