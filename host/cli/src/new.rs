//! `pebble new`: a component to start from, out of `templates/`; in Pebble itself, in the project from which
//! it is called, or in a new [project].

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use pebble_image::Manifest;
use pebble_interface::words::is_taken;

use crate::project;
use crate::tools::Tools;
use crate::ui;

#[derive(clap::Args)]
pub struct Options {
    /// The component's name: lower-case letters, digits and hyphens; with --project, a folder of that name
    name: PathBuf,
    /// The language to write it in
    #[arg(long, value_enum, required_unless_present = "project")]
    lang: Option<Language>,
    /// Make a project outside of Pebble's own folder, with this component in it (without --lang: in C)
    #[arg(long, conflicts_with = "server")]
    project: bool,
    /// A server that can be restarted and replaced, in two versions, and a client of it (Rust only)
    #[arg(long)]
    server: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Language {
    C,
    Rust,
}

/// What a template makes; `{{name}}` stands for the component's name, `{{crate}}` for that of its library.
struct Template {
    /// Files in `programs/`.
    files: &'static [(&'static str, &'static str)],
    /// What is added to the system's manifest.
    manifest: &'static str,
    /// What is added to the supervisor's policy.
    policy: &'static str,
    /// What to type at the shell's prompt.
    command: &'static str,
    /// Letters that the name may have: interfaces of servers have names as well.
    longest: usize,
}

const C: Template = Template {
    files: &[("{{name}}.c", include_str!("../templates/c/main.c"))],
    manifest: "\n[[file]]\npath = \"bin/{{name}}\"\nc = \"programs/{{name}}.c\"\n\n\
               [[test]]\nname = \"{{name}}\"\nrun = [\"{{name}}\"]\n",
    policy: "",
    command: "{{name}}",
    longest: 20,
};
const RUST: Template = Template {
    files: &[
        ("{{name}}/Cargo.toml", include_str!("../templates/rust/Cargo.toml.in")),
        ("{{name}}/src/lib.rs", include_str!("../templates/rust/lib.rs.in")),
        ("{{name}}/src/main.rs", include_str!("../templates/rust/main.rs.in")),
    ],
    manifest: "\n[[file]]\npath = \"bin/{{name}}\"\npackage = \"{{name}}\"\n\n\
               [[test]]\nname = \"{{name}}\"\nrun = [\"{{name}}\"]\n",
    ..C
};
const SERVER: Template = Template {
    files: &[
        ("{{name}}/Cargo.toml", include_str!("../templates/server/Cargo.toml.in")),
        ("{{name}}/interface.toml", include_str!("../templates/server/interface.toml.in")),
        ("{{name}}/src/lib.rs", include_str!("../templates/server/lib.rs.in")),
        ("{{name}}/src/server.rs", include_str!("../templates/server/server.rs.in")),
        ("{{name}}/src/main.rs", include_str!("../templates/server/main.rs.in")),
        ("{{name}}/src/version-2.rs", include_str!("../templates/server/version-2.rs.in")),
        ("{{name}}/src/client.rs", include_str!("../templates/server/client.rs.in")),
    ],
    manifest: include_str!("../templates/server/manifest.toml.in"),
    policy: "{{name}} always 10 components/{{name}}\n",
    command: "{{name}}-client ada",
    longest: 13,
};

/// Whom the supervisor restarts, and how often.
const POLICY: &str = "systems/etc/supervisor";

impl Template {
    fn of(options: &Options) -> Result<Template> {
        Ok(match (options.lang.unwrap_or(Language::C), options.server) {
            (Language::C, false) => C,
            (Language::Rust, false) => RUST,
            (Language::Rust, true) => SERVER,
            (Language::C, true) => {
                let c = "--server makes one in Rust; in C, begin with examples/counter-server.c";
                return Err(ui::usage(c.into()));
            }
        })
    }
}

pub fn new(mut tools: Tools, options: &Options) -> Result<()> {
    let template = Template::of(options)?;
    let name = if options.project { options.name.file_name() } else { Some(options.name.as_os_str()) };
    let name = &name.unwrap_or_default().to_string_lossy().into_owned();
    if !is_name(name, template.longest) {
        let good = "lower-case letters, digits and hyphens, a letter first";
        return Err(ui::usage(format!("{name:?} is no name: {good}, {} at most", template.longest)));
    }
    if is_reserved(&tools, name) {
        return Err(ui::usage(format!("{name:?} is the name of something else: choose another")));
    }
    if options.project {
        project::make(&tools, &options.name, name)?;
        tools.home = options.name.canonicalize()?;
    }
    if options.server && tools.is_project() {
        return Err(ui::usage("--server makes one in Pebble's own folder, not in a project".into()));
    }
    let tools = &tools;
    let programs = tools.home.join("programs");
    for path in [programs.join(name), programs.join(format!("{name}.c"))] {
        ensure!(!path.exists(), "{} exists", tools.shown(&path));
    }
    let system = tools.manifest(crate::DEFAULT_SYSTEM)?;
    let files = Manifest::load(&system, &tools.board).with_context(|| tools.shown(&system))?.file;
    for path in [format!("bin/{name}"), format!("bin/{name}-client"), format!("components/{name}")] {
        ensure!(
            files.iter().all(|file| file.path != path),
            "the system has a file {path} already: choose another name"
        );
    }
    let pebble = if tools.is_project() { "../../.pebble/" } else { "../../" };
    let fill = |text: &str| {
        let text = text.replace("{{crate}}", &name.replace('-', "_")).replace("{{pebble}}", pebble);
        text.replace("{{name}}", name)
    };
    let additions = [(system, fill(template.manifest)), (tools.root.join(POLICY), fill(template.policy))];
    for (path, text) in template.files {
        let path = programs.join(fill(path));
        fs::create_dir_all(path.parent().context("no directory")?)?;
        fs::write(&path, fill(text)).with_context(|| tools.shown(&path))?;
        ui::progress("made", &tools.shown(&path));
    }
    for (path, addition) in additions.iter().filter(|(_, addition)| !addition.is_empty()) {
        let text = fs::read_to_string(path).with_context(|| tools.shown(path))?;
        fs::write(path, text + addition).with_context(|| tools.shown(path))?;
        ui::progress("changed", &tools.shown(path));
    }
    let there = if options.project { format!("cd {}; ", options.name.display()) } else { String::new() };
    ui::done(&format!("try: {there}echo {} | ./pebble run", fill(template.command)));
    ui::done(&format!("and: ./pebble test {name}"));
    Ok(())
}

fn is_name(name: &str, longest: usize) -> bool {
    let good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= longest && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.chars().all(good)
}

/// A word of a language, a library, or one of Pebble's packages or modules of its library: the component
/// would not build under that name.
fn is_reserved(tools: &Tools, name: &str) -> bool {
    const LIBRARIES: [&str; 7] = ["alloc", "core", "nucleus", "pebble", "proc-macro", "std", "test"];
    let library = tools.root.join("lib/pebble/src").join(name.replace('-', "_"));
    let known = library.exists() || library.with_extension("rs").exists();
    is_taken(name) || LIBRARIES.contains(&name) || name.starts_with("pebble-") || known
}

#[cfg(test)]
mod tests {
    use super::is_name;

    #[test]
    fn names() {
        let is = |name| is_name(name, 13);
        assert!(is("a") && is("my-filter2") && is("thirteen-long"));
        assert!(!is("") && !is("2a") && !is("A") && !is("a/b") && !is("../a") && !is("fourteen-longer"));
    }
}
