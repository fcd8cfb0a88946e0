//! What a `component.toml` says.
//!
//! **Problem.** Programs come with build systems of all kinds; what these find out is a short list in the end:
//! files, folders, macros, options. **Strategy.** The list itself, with the names that every build system has
//! for it. **Invariant.** Whatever is wrong in it is told with file, line and key, and with what to do.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use pebble_debian::Archive;
use serde::Deserialize;
use toml::Spanned;

use super::package::{Package, Registry};

/// Its file's name.
pub const NAME: &str = "component.toml";

type List = Vec<Spanned<String>>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    #[serde(default)]
    sources: List,
    #[serde(default)]
    include: List,
    #[serde(default)]
    defines: List,
    #[serde(default)]
    options: Vec<String>,
    #[serde(default)]
    cflags: Vec<String>,
    #[serde(default)]
    cxxflags: Vec<String>,
    #[serde(default)]
    libraries: List,
    #[serde(default)]
    prepare: List,
    debian: Option<Spanned<Archive>>,
    #[serde(rename = "crate")]
    package: Option<Spanned<Package>>,
    pypi: Option<Spanned<Package>>,
}

/// Where the sources come from.
pub enum Origin {
    /// They lie with the description.
    Here,
    Debian(Archive),
    Package(Registry, Package),
}

pub struct Description {
    path: PathBuf,
    pub text: String,
    pub sources: List,
    pub include: List,
    pub defines: List,
    /// For the compiler, after those for all components; the same for C alone, and for C++ alone.
    pub options: Vec<String>,
    pub cflags: Vec<String>,
    pub cxxflags: Vec<String>,
    /// Directories of other components, whose objects are linked as far as they are used.
    pub libraries: List,
    /// Lines for the shell that make what is missing, in the directory of the sources; `$HERE` is the
    /// component's.
    pub prepare: List,
    pub origin: Origin,
}

impl Description {
    /// Of the component in this directory.
    pub fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(NAME);
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Self::parse(path, text)
    }

    pub fn parse(path: PathBuf, text: String) -> Result<Self> {
        let read: Result<Keys, _> = toml::from_str(&text);
        let keys = read.map_err(|error| {
            let line = line_of(&text, error.span().map_or(0, |span| span.start));
            anyhow!("{}:{line}: {}", path.display(), error.message().trim())
        })?;
        let origins = [
            keys.debian.map(|of| (of.span(), Origin::Debian(of.into_inner()))),
            keys.package.map(|of| (of.span(), Origin::Package(Registry::Crates, of.into_inner()))),
            keys.pypi.map(|of| (of.span(), Origin::Package(Registry::Pypi, of.into_inner()))),
        ];
        let mut origins: Vec<_> = origins.into_iter().flatten().collect();
        if let Some((second, _)) =
            origins.iter().max_by_key(|(span, _)| span.start).filter(|_| origins.len() > 1)
        {
            bail!(
                "{}:{}: the sources are to come from here too: one place is enough, so make two components, and \
                 name one in `libraries` of the other",
                path.display(),
                line_of(&text, second.start)
            );
        }
        let origin = origins.pop().map_or(Origin::Here, |(_, origin)| origin);
        let description = Description {
            path,
            text,
            sources: keys.sources,
            include: keys.include,
            defines: keys.defines,
            options: keys.options,
            cflags: keys.cflags,
            cxxflags: keys.cxxflags,
            libraries: keys.libraries,
            prepare: keys.prepare,
            origin,
        };
        description.check_defines()?;
        match (&description.origin, description.prepare.first()) {
            (Origin::Here, Some(line)) => Err(description.error(
                "prepare",
                line,
                "changes sources that are unpacked, and here are none: add [debian], [crate] or [pypi]",
            )),
            _ => Ok(description),
        }
    }

    fn check_defines(&self) -> Result<()> {
        let wrong = self.defines.iter().find(|define| {
            let name = define.get_ref().split('=').next().unwrap_or_default();
            let name = name.split('(').next().unwrap_or_default();
            name.is_empty()
                || name.starts_with(|c: char| c.is_ascii_digit())
                || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        wrong.map_or(Ok(()), |define| {
            Err(self.error("defines", define, "is no macro: write NAME or NAME=VALUE, without -D"))
        })
    }

    /// What is wrong with an entry of a list.
    pub fn error(&self, key: &str, entry: &Spanned<String>, what: impl std::fmt::Display) -> anyhow::Error {
        let line = line_of(&self.text, entry.span().start);
        anyhow!("{}:{line}: {key}: {:?} {what}", self.path.display(), entry.get_ref())
    }
}

fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        let parsed = Description::parse("x/component.toml".into(), text.into());
        parsed.err().map(|error| error.to_string()).unwrap_or_default()
    }

    #[test]
    fn what_is_wrong_is_told_with_file_line_and_key() {
        let said = error("sources = [\"a.c\"]\nsource = []\n");
        assert!(
            said.starts_with("x/component.toml:2: unknown field `source`, expected one of `sources`"),
            "{said}"
        );
        let said = error("defines = [\n    \"A\",\n    \"-DB\",\n]\n");
        assert_eq!(
            said,
            "x/component.toml:3: defines: \"-DB\" is no macro: write NAME or NAME=VALUE, without -D"
        );
        assert!(error("sources = \"a.c\"\n").starts_with("x/component.toml:1: invalid type"));
        let said = error("[debian]\npackage = \"p\"\n");
        assert!(said.starts_with("x/component.toml:1: missing field `archive`"), "{said}");
    }

    #[test]
    fn sources_come_from_one_place() {
        let text = "[debian]\npackage = \"p\"\narchive = \"a\"\ndirectory = \"d\"\nsha256 = \"0\"\n\
                    [crate]\nname = \"n\"\nversion = \"1.0.0\"\nsha256 = \"0\"\n";
        assert!(
            error(text).starts_with("x/component.toml:6: the sources are to come from here too"),
            "{}",
            error(text)
        );
    }

    #[test]
    fn own_sources_are_not_prepared() {
        assert!(error("prepare = [\"make\"]\n").starts_with("x/component.toml:1: prepare: \"make\" changes"));
    }

    #[test]
    fn macros_have_values_and_arguments() {
        for define in ["NDEBUG", "A=1", "TEXT=\\\"a b\\\"", "F(x)=x"] {
            assert_eq!(error(&format!("defines = [\"{define}\"]\n")), "");
        }
        for define in ["", "1A", "A B", "A-B=1"] {
            assert!(!error(&format!("defines = [\"{define}\"]\n")).is_empty(), "{define}");
        }
    }
}
