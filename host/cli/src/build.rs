//! Builds the components of a system and puts them into an image.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, Command, Stdio};
use std::thread;

use anyhow::{Context, Result, anyhow, bail, ensure};
use pebble_image::{Artifacts, Manifest, Report};
use serde::Deserialize;

use crate::archive::Archive;
use crate::tools::{Tools, program, run_quietly};
use crate::{c, lock, ui};

/// The package that holds the nucleus, and what its program is called.
const NUCLEUS_PACKAGE: &str = "pebble-nucleus";
pub const NUCLEUS: &str = "nucleus";

/// A system that is ready to run.
pub struct Built {
    pub image: PathBuf,
    pub report: Report,
    /// ELF files with symbols: the nucleus and components by their names, programs of the archive by their
    /// paths.
    pub symbols: BTreeMap<String, PathBuf>,
}

impl Built {
    pub fn bytes(&self) -> Result<u64> {
        Ok(fs::metadata(&self.image)?.len())
    }
}

/// Where the image of a manifest goes.
pub fn image_path(tools: &Tools, manifest: &Path) -> PathBuf {
    tools.made_at_home().join("image").join(tools.system_name(manifest) + ".elf")
}

/// Where it is noted which ELF files with symbols an image was made of.
fn list_path(image: &Path) -> PathBuf {
    image.with_extension("symbols")
}

/// The ELF files that an image was made of, by the name of the component or the path of the file; none if
/// that is not known.
pub fn elfs(image: &Path) -> BTreeMap<String, PathBuf> {
    let text = fs::read_to_string(list_path(image)).unwrap_or_default();
    let entry = |line: &str| line.split_once('\t').map(|(name, elf)| (name.into(), PathBuf::from(elf)));
    text.lines().filter_map(entry).collect()
}

/// Builds the named system.
pub fn system(tools: &Tools, name: &str) -> Result<Built> {
    let path = tools.manifest(name)?;
    let manifest = Manifest::load(&path, &tools.board).with_context(|| tools.shown(&path))?;
    let _alone = lock::builds(tools)?;

    let components = manifest.component.iter().map(|component| component.package.as_str());
    let files = manifest.file.iter().filter_map(|file| file.package.as_deref());
    let mut packages: Vec<&str> = components.chain(files).chain([NUCLEUS_PACKAGE]).collect();
    packages.sort_unstable();
    packages.dedup();
    let programs = Programs::build(tools, &packages).map_err(|error| match unknown(tools, &packages) {
        Some(package) => {
            anyhow!("{}: the project has no package \"{package}\"", tools.shown(&path))
        }
        None => error,
    })?;

    let mut symbols = BTreeMap::new();
    let mut components = BTreeMap::new();
    for component in &manifest.component {
        let elf = programs.elf(&component.package, component.binary.as_deref())?;
        components.insert(component.name.clone(), read(elf)?);
        symbols.insert(component.name.clone(), elf.to_path_buf());
    }
    let archive = archive(tools, &tools.system_name(&path), &manifest, &programs, &mut symbols)
        .with_context(|| tools.shown(&path))?;
    let nucleus = programs.elf(NUCLEUS_PACKAGE, None)?;
    symbols.insert(NUCLEUS.into(), nucleus.to_path_buf());

    let artifacts = Artifacts { nucleus: read(nucleus)?, components, archive };
    let built =
        pebble_image::build(&manifest, &artifacts, &tools.board).with_context(|| tools.shown(&path))?;
    let image = image_path(tools, &path);
    c::write_if_changed(&image, &built.elf)?;
    let list: String = symbols.iter().map(|(name, elf)| format!("{name}\t{}\n", elf.display())).collect();
    c::write_if_changed(&list_path(&image), list.as_bytes())?;
    Ok(Built { image, report: built.report, symbols })
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

/// The file archive: programs without what only a debugger needs, and plain files.
fn archive(
    tools: &Tools,
    system: &str,
    manifest: &Manifest,
    programs: &Programs,
    symbols: &mut BTreeMap<String, PathBuf>,
) -> Result<Vec<u8>> {
    let mut archive = Archive::default();
    let mut compiler = None;
    for file in &manifest.file {
        let at = || format!("file '{}'", file.path);
        let there = |named: &str| tools.file(named).with_context(|| format!("{}: there is no {named}", at()));
        let elf = match (&file.package, &file.c, &file.from, file.lines) {
            (Some(package), None, None, None) => {
                programs.elf(package, file.binary.as_deref()).with_context(at)?.to_path_buf()
            }
            (None, Some(source), None, None) => {
                if compiler.is_none() {
                    compiler = Some(c::Compiler::new(tools, system)?);
                }
                let compiler = compiler.as_ref().context("no compiler")?;
                compiler.build(&there(source)?, &file.path).with_context(at)?
            }
            (None, None, Some(from), None) => {
                archive.add(&file.path, &read(&there(from)?).with_context(at)?);
                continue;
            }
            (None, None, None, Some(lines)) => {
                let text: String = (1..=lines).map(|n| format!("this is line {n:06}\n")).collect();
                archive.add(&file.path, text.as_bytes());
                continue;
            }
            _ => bail!("{}: needs exactly one of: package, c, from, lines", at()),
        };
        archive.add(&file.path, &stripped(tools, &Path::new(system).join(&file.path), &elf)?);
        symbols.insert(file.path.clone(), elf);
    }
    compiler.map_or(Ok(()), |compiler| compiler.note_commands())?;
    Ok(archive.finish())
}

/// A program with its symbol table, for fault reports, but without the rest of its debugging information.
fn stripped(tools: &Tools, name: &Path, elf: &Path) -> Result<Vec<u8>> {
    let out = tools.made().join("stripped").join(name);
    fs::create_dir_all(out.parent().context("no directory")?)?;
    let mut objcopy = Command::new(tools.llvm("llvm-objcopy")?);
    run_quietly(
        objcopy.args(["--strip-debug", "--discard-locals"]).args([elf, &out]),
        &format!("stripping {}", name.display()),
    )?;
    read(&out)
}

/// Programs that cargo has built, by package and binary.
struct Programs(BTreeMap<(String, String), PathBuf>);

impl Programs {
    /// Builds all binaries of these packages: those of a project, and Pebble's own.
    fn build(tools: &Tools, packages: &[&str]) -> Result<Self> {
        let own = if tools.is_project() { own_packages(tools)? } else { Vec::new() };
        let (own, pebbles): (Vec<&str>, _) =
            packages.iter().partition(|package| own.iter().any(|own| own == *package));
        let mut all = Self::built_by(tools.cross_cargo()?, &pebbles)?;
        if !own.is_empty() {
            let cargo = tools.at_home(tools.cross_cargo()?, tools.made_at_home());
            all.0.extend(Self::built_by(cargo, &own)?.0);
        }
        Ok(all)
    }

    fn built_by(mut cargo: Command, packages: &[&str]) -> Result<Self> {
        for package in packages {
            cargo.args(["-p", package, "--features", &format!("{package}/component")]);
        }
        let mut programs = BTreeMap::new();
        cargo_artifacts(&mut cargo, |artifact| {
            let package = artifact.package().to_string();
            let Some(elf) = artifact.executable else { return };
            if !artifact.fresh {
                let size = fs::metadata(&elf).map_or(0, |m| m.len());
                ui::progress(
                    "built",
                    &format!("{} ({} with symbols)", artifact.target.name, ui::bytes(size)),
                );
            }
            programs.insert((package, artifact.target.name), elf);
        })
        .context("the components do not build")?;
        one_each(&programs)?;
        Ok(Programs(programs))
    }

    /// The program of a package: the only one, or the one that is named.
    fn elf(&self, package: &str, binary: Option<&str>) -> Result<&Path> {
        let mut found =
            self.0.iter().filter(|((p, b), _)| p == package && binary.is_none_or(|name| name == b));
        match (found.next(), found.next(), binary) {
            (Some((_, elf)), None, _) => Ok(elf),
            (None, _, Some(name)) => bail!("package {package} has no binary {name}"),
            (None, _, None) => bail!("package {package} has no binary"),
            _ => bail!("package {package} has several binaries: the manifest must name one"),
        }
    }
}

/// Of these packages one that neither the project nor Pebble has; cargo speaks of features only.
fn unknown<'a>(tools: &Tools, packages: &[&'a str]) -> Option<&'a str> {
    let mut known = packages_of(tools.cargo("metadata")).ok()?;
    if tools.is_project() {
        known.extend(own_packages(tools).ok()?);
    }
    packages.iter().copied().find(|name| known.iter().all(|known| known != name))
}

/// Those of the project.
fn own_packages(tools: &Tools) -> Result<Vec<String>> {
    if !tools.home.join("Cargo.toml").exists() {
        return Ok(Vec::new());
    }
    packages_of(tools.at_home(tools.cargo("metadata"), tools.made_at_home())).context("Cargo.toml")
}

/// Names of a workspace's packages.
fn packages_of(mut metadata: Command) -> Result<Vec<String>> {
    #[derive(Deserialize)]
    struct Workspace {
        packages: Vec<Package>,
    }
    #[derive(Deserialize)]
    struct Package {
        name: String,
    }
    let output = metadata.args(["--no-deps", "--offline", "--format-version", "1"]).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
    let workspace: Workspace = serde_json::from_slice(&output.stdout)?;
    Ok(workspace.packages.into_iter().map(|package| package.name).collect())
}

/// Cargo lays all binaries of one name into one file, whosever they are.
fn one_each(programs: &BTreeMap<(String, String), PathBuf>) -> Result<()> {
    let mut owners = BTreeMap::new();
    for ((package, binary), elf) in programs {
        if let Some(other) = owners.insert(elf, package) {
            bail!(
                "packages {other} and {package} both have a binary {binary}: give one of them another name"
            );
        }
    }
    Ok(())
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

/// Runs a cargo that builds, and hands on what it has built as it goes. Its own words are shown with `-v` or
/// when it fails.
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
    fn two_binaries_of_one_name_are_refused() {
        let program =
            |package: &str, elf: &str| ((package.to_string(), "tool".to_string()), PathBuf::from(elf));
        assert!(one_each(&BTreeMap::from([program("a", "out/tool"), program("b", "out/b/tool")])).is_ok());
        let refused = one_each(&BTreeMap::from([program("a", "out/tool"), program("b", "out/tool")]));
        assert_eq!(
            refused.unwrap_err().to_string(),
            "packages a and b both have a binary tool: give one of them another name"
        );
    }

    #[test]
    fn other_messages_are_passed_over() {
        let message = serde_json::from_str(r#"{"reason":"build-finished","success":true}"#);
        assert!(matches!(message, Ok(Message::Other)));
    }
}
