//! Existing projects, built unmodified with their own builds by `CC='pebble sfi cc'`: their programs must
//! say, byte for byte, what they say when they were built natively, and end with the same status.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use pebble_debian::Archive;
use serde::Deserialize;

use crate::compile;
use crate::manifest::HOME;
use crate::place::Place;
use crate::side::CLANG;
use crate::source;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    project: Vec<Project>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Project {
    name: String,
    debian: Option<Archive>,
    /// Otherwise a package of `bench/sfi/sources`, and the directory in it.
    package: Option<String>,
    #[serde(default)]
    directory: String,
    build: Vec<Vec<String>>,
    golden: Vec<Vec<String>>,
}

/// The tools of a build, and what runs its programs.
struct Tools {
    name: &'static str,
    cc: String,
    ar: String,
    ranlib: String,
    run: Vec<String>,
}

/// Builds and compares all projects, or those that are named.
pub fn test(place: &Place, names: &[String]) -> Result<()> {
    let home = place.root.join(HOME);
    let path = home.join("real.toml");
    let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
    let projects = toml::from_str::<File>(&text).with_context(|| path.display().to_string())?.project;
    let sfi = place.tool();
    let plain = |tool: &str| tool.to_string();
    let own = |tool: &str| format!("{sfi} {tool}");
    let sides = [
        Tools { name: "native", cc: plain(CLANG), ar: plain("ar"), ranlib: plain("ranlib"), run: vec![] },
        Tools {
            name: "domain",
            cc: own("cc"),
            ar: own("ar"),
            ranlib: own("ranlib"),
            run: compile::words(&own("run")),
        },
    ];
    let mut failed = 0;
    for project in projects.iter().filter(|p| names.is_empty() || names.contains(&p.name)) {
        match compare(place, project, &sides) {
            Ok(n) => println!("{:8} {n} runs are identical to native", project.name),
            Err(error) => {
                failed += 1;
                println!("{:8} {error:#}", project.name);
            }
        }
    }
    ensure!(failed == 0, "{failed} projects failed");
    Ok(())
}

fn compare(place: &Place, project: &Project, sides: &[Tools; 2]) -> Result<usize> {
    let real = place.root.join(HOME).join("real");
    let [native, domain] = sides;
    let (a, b) = (build(place, project, native, &real)?, build(place, project, domain, &real)?);
    for (i, golden) in project.golden.iter().enumerate() {
        let (here, there) = (run(&a, golden, native, &real)?, run(&b, golden, domain, &real)?);
        if here != there {
            let said = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(300)]).into_owned();
            bail!("{golden:?}: status {:?}, not {:?}; says {:?}", there.0, here.0, said(&there.1));
        }
        // What the first run has packed is there for a later one to unpack.
        if i == 1 {
            for directory in [&a, &b] {
                fs::write(directory.join("golden.gz"), &here.1)?;
            }
        }
    }
    Ok(project.golden.len())
}

/// The project's directory after its build.
fn build(place: &Place, project: &Project, tools: &Tools, real: &Path) -> Result<PathBuf> {
    let directory = place.target.join("real").join(tools.name).join(&project.name);
    if directory.exists() {
        fs::remove_dir_all(&directory)?;
    }
    fs::create_dir_all(&directory)?;
    let root = match (&project.debian, &project.package) {
        (Some(archive), None) => pebble_debian::unpack(&place.debian(), archive, &directory)?,
        (None, Some(package)) => {
            let from = source::fetch(place)?.directory(package)?.join(&project.directory);
            compile::run(Command::new("cp").arg("-r").arg(from).arg(&directory))?;
            directory.join(Path::new(&project.directory).file_name().unwrap_or_default())
        }
        _ => bail!("{}: either a Debian archive or a package", project.name),
    };
    for words in &project.build {
        let words: Vec<String> = words.iter().map(|word| filled(word, tools, real)).collect();
        // A compiler may be several words: its own command line has none that are quoted.
        let mut command = match words[0] == tools.cc {
            true => compile::command(&[compile::words(&words[0]), words[1..].to_vec()].concat()),
            false => compile::command(&words),
        };
        command.current_dir(&root).env("CC", &tools.cc).env("AR", &tools.ar).env("RANLIB", &tools.ranlib);
        compile::run(&mut command).with_context(|| format!("{} build", tools.name))?;
    }
    Ok(root)
}

/// What a program of the project ends with and says.
fn run(directory: &Path, golden: &[String], tools: &Tools, real: &Path) -> Result<(Option<i32>, Vec<u8>)> {
    let program = directory.join(&golden[0]).display().to_string();
    let mut words = tools.run.clone();
    if !words.is_empty() {
        words.extend(["--dir".into(), directory.display().to_string()]);
        words.extend(["--dir".into(), real.display().to_string()]);
    }
    words.push(program);
    words.extend(golden[1..].iter().map(|word| filled(word, tools, real)));
    let mut command = compile::command(&words);
    let output = command.current_dir(directory).stdin(Stdio::null()).output()?;
    Ok((output.status.code(), output.stdout))
}

fn filled(word: &str, tools: &Tools, real: &Path) -> String {
    let word = word.replace("{cc}", &tools.cc).replace("{ar}", &tools.ar);
    word.replace("{ranlib}", &tools.ranlib).replace("{real}", &real.display().to_string())
}
