//! Builds the components of a system and puts them into an image.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::image::{self, Artifacts, Manifest, Sizes};
use crate::tools::{Tools, program};
use crate::{c, ui};

/// A system that is ready to run.
pub struct Built {
    pub image: PathBuf,
    pub artifacts: Artifacts,
    pub sizes: Sizes,
}

impl Built {
    pub fn bytes(&self) -> Result<u64> {
        Ok(fs::metadata(&self.image)?.len())
    }
}

/// Builds the named system.
pub fn system(tools: &Tools, name: &str) -> Result<Built> {
    let path = tools.manifest(name)?;
    let manifest = Manifest::load(&path)?;
    let mut artifacts = rust_components(tools, &manifest.packages)?;
    for dir in &manifest.c {
        let (program, elf) = c::build(tools, &tools.root.join(dir))?;
        artifacts.insert(program, elf);
    }
    let (bytes, sizes) = image::build(&manifest, &artifacts).with_context(|| tools.shown(&path))?;
    let image = tools.target().join("image").join(path.file_stem().unwrap_or_default()).with_extension("elf");
    write_if_changed(&image, &bytes)?;
    Ok(Built { image, artifacts, sizes })
}

fn write_if_changed(path: &Path, bytes: &[u8]) -> Result<()> {
    if fs::read(path).is_ok_and(|old| old == bytes) {
        return Ok(());
    }
    fs::create_dir_all(path.parent().unwrap_or(Path::new(".")))?;
    fs::write(path, bytes).with_context(|| path.display().to_string())
}

/// Builds the components in these packages, all at once.
fn rust_components(tools: &Tools, packages: &[String]) -> Result<Artifacts> {
    if packages.is_empty() {
        return Ok(Artifacts::new());
    }
    let mut cargo = tools.cross_cargo()?;
    for package in packages {
        cargo.args(["-p", package, "--features", &format!("{package}/component")]);
    }
    let mut artifacts = Artifacts::new();
    cargo_artifacts(&mut cargo, |artifact| {
        let Some(elf) = artifact.executable else { return };
        if !artifact.fresh {
            let size = fs::metadata(&elf).map_or(0, |m| m.len());
            ui::progress("built", &format!("{} ({} with symbols)", artifact.target.name, ui::bytes(size)));
        }
        artifacts.insert(artifact.target.name, elf);
    })
    .context("the components do not build")?;
    Ok(artifacts)
}

/// What cargo says about a thing that it has built.
#[derive(Deserialize)]
pub struct Artifact {
    pub package_id: String,
    pub manifest_path: PathBuf,
    pub target: Target,
    pub profile: Profile,
    pub executable: Option<PathBuf>,
    pub fresh: bool,
}

#[derive(Deserialize)]
pub struct Target {
    pub name: String,
}

#[derive(Deserialize)]
pub struct Profile {
    pub test: bool,
}

impl Artifact {
    /// The package's name: cargo leaves it out of the identity when it is that of the directory.
    pub fn package(&self) -> &str {
        let (url, fragment) = self.package_id.rsplit_once('#').unwrap_or(("", &self.package_id));
        match fragment.split_once('@') {
            Some((name, _)) => name,
            None => url.rsplit('/').next().unwrap_or(url),
        }
    }
}

#[derive(Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
enum Message {
    CompilerArtifact(Artifact),
    #[serde(other)]
    Other,
}

/// Runs a cargo that builds, and hands on what it has built as it goes. Its own words are shown with `-v` or when it
/// fails.
pub fn cargo_artifacts(cargo: &mut Command, mut built: impl FnMut(Artifact)) -> Result<()> {
    cargo.arg("--message-format=json-render-diagnostics");
    cargo.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = cargo.spawn().with_context(|| program(cargo))?;
    let said = child.stderr.take().map(|stderr| thread::spawn(move || listen(stderr)));
    for line in BufReader::new(child.stdout.take().context("no output")?).lines() {
        if let Ok(Message::CompilerArtifact(artifact)) = serde_json::from_str(&line?) {
            built(artifact);
        }
    }
    let said = said.and_then(|thread| thread.join().ok()).unwrap_or_default();
    if child.wait()?.success() {
        return Ok(());
    }
    if !ui::verbose() {
        eprint!("{said}");
    }
    bail!("cargo failed")
}

/// What cargo says, shown at once with `-v`.
fn listen(stderr: ChildStderr) -> String {
    let mut said = String::new();
    let mut reader = BufReader::new(stderr);
    if !ui::verbose() {
        let _ = reader.read_to_string(&mut said);
    }
    for line in reader.lines().map_while(Result::ok) {
        ui::note(&line);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(package_id: &str) -> Artifact {
        let text = format!(
            r#"{{"reason":"compiler-artifact","package_id":"{package_id}","manifest_path":"/p/Cargo.toml",
            "target":{{"name":"scheduler"}},"profile":{{"test":false}},"executable":null,"fresh":true}}"#
        );
        match serde_json::from_str(&text).unwrap() {
            Message::CompilerArtifact(artifact) => artifact,
            Message::Other => panic!("not an artifact"),
        }
    }

    #[test]
    fn packages_are_named_with_and_without_a_fragment() {
        assert_eq!(
            artifact("path+file:///src/servers/scheduler#pebble-scheduler@0.1.0").package(),
            "pebble-scheduler"
        );
        assert_eq!(artifact("path+file:///src/lib/pebble#0.1.0").package(), "pebble");
    }

    #[test]
    fn other_messages_are_passed_over() {
        let message = serde_json::from_str(r#"{"reason":"build-finished","success":true}"#);
        assert!(matches!(message, Ok(Message::Other)));
    }
}
