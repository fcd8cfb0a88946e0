//! The commands: measuring, and building by itself.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::Serialize;

use crate::compile::{self, Compiler};
use crate::manifest::{self, Program};
use crate::measure::{self, Subject};
use crate::place::Place;
use crate::side::{self, Built, Side};
use crate::{count, crossing, figure, real, report, size, source, table};
use pebble_rows::Row;

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Options {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    measure: Measure,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Fetch the sources and show the programs
    List,
    /// Build programs with a compiler of your choice, and run each once
    Build {
        /// The compiler, with options: `pebble sfi cc`
        #[arg(long)]
        cc: String,
        /// What runs the result: `pebble sfi run`
        #[arg(long, default_value = "")]
        run: String,
        /// Where the programs go
        #[arg(long, default_value = "target/sfi/own")]
        out: PathBuf,
        /// Go on with the next program when one fails
        #[arg(long)]
        keep_going: bool,
        /// All when none is named
        programs: Vec<String>,
    },
    /// Build existing projects with their own builds, and compare their programs with native ones
    Real { projects: Vec<String> },
    /// Build programs for every side and compare what they say
    Check { programs: Vec<String> },
}

#[derive(clap::Args)]
struct Measure {
    /// Write the rows as JSON to this file; `-`: to standard output, and the tables to standard error
    #[arg(long, value_name = "FILE|-")]
    json: Option<PathBuf>,
    /// Where to write the figures, and the tables
    #[arg(long, value_name = "DIRECTORY", default_value = "target/bench/sfi")]
    svg: PathBuf,
    /// Measure only these: programs, `calls` (crossings and instances), `verify` (the verifier's speed), or
    /// rows by their ids
    #[arg(long, value_name = "WHAT", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure only these sides, and native
    #[arg(long, value_name = "SIDE", value_delimiter = ',')]
    sides: Vec<Side>,
    /// How often every program is run on every side
    #[arg(long, value_name = "TIMES", default_value_t = 11)]
    repeat: u32,
    /// Run fault domains with the segment elsewhere than at address zero, as all instances of a process but
    /// the first have it
    #[arg(long)]
    elsewhere: bool,
    /// Leave out the count of instructions
    #[arg(long)]
    no_count: bool,
}

/// What `--only` leaves.
struct Wanted {
    programs: Vec<Program>,
    calls: bool,
    verify: bool,
}

const CALLS: [&str; 3] = ["calls", "sfi.call", "sfi.instance"];
const VERIFY: [&str; 2] = ["verify", "sfi.verify"];

impl Wanted {
    fn new(place: &Place, only: &[String]) -> Result<Wanted> {
        if only.is_empty() {
            return Ok(Wanted { programs: manifest::load(&place.root, &[])?, calls: true, verify: true });
        }
        let begins = |word: &str, names: &[&str]| names.iter().any(|name| word.starts_with(name));
        let (calls, rest): (Vec<&String>, Vec<&String>) = only.iter().partition(|w| begins(w, &CALLS));
        let (verify, rest): (Vec<&String>, Vec<&String>) = rest.into_iter().partition(|w| begins(w, &VERIFY));
        // A program's row ends with its name.
        let name = |word: &String| match word.starts_with("sfi.") {
            true => word.rsplit('.').next().unwrap_or_default().to_string(),
            false => word.clone(),
        };
        let names: Vec<String> = rest.into_iter().map(name).collect();
        let programs = if names.is_empty() { Vec::new() } else { manifest::load(&place.root, &names)? };
        Ok(Wanted { programs, calls: !calls.is_empty(), verify: !verify.is_empty() })
    }
}

/// Everything that `--json` tells.
#[derive(Serialize)]
struct Output {
    machine: String,
    compiler: String,
    commit: String,
    rows: Vec<Row>,
}

pub fn bench(options: &Options) -> Result<()> {
    let place = Place::find()?;
    match &options.action {
        None => measure_all(&place, &options.measure),
        Some(Action::List) => list(&place),
        Some(Action::Check { programs }) => check(&place, programs),
        Some(Action::Real { projects }) => real::test(&place, projects),
        Some(Action::Build { cc, run, out, keep_going, programs }) => {
            let sources = source::fetch(&place)?;
            let mut failed = 0;
            for program in manifest::load(&place.root, programs)? {
                let file = compile::build(&place, &sources, &program, &Compiler::plain(cc), out);
                let said = file.and_then(|file| {
                    let mut words = compile::words(run);
                    words.push(file.canonicalize()?.display().to_string());
                    compile::run(compile::command(&words).arg("1")).context("built, but")
                });
                match said {
                    Ok(said) => print!("{said}"),
                    Err(error) if *keep_going => {
                        failed += 1;
                        println!("{}: {error:#}", program.name);
                    }
                    Err(error) => return Err(error.context(program.name)),
                }
            }
            ensure!(failed == 0, "{failed} programs failed");
            Ok(())
        }
    }
}

fn list(place: &Place) -> Result<()> {
    let sources = source::fetch(place)?;
    for program in manifest::load(&place.root, &[])? {
        let from: Vec<String> =
            program.from.iter().map(|p| format!("{} {}", p.package, sources.version(&p.package))).collect();
        let origin = if from.is_empty() { program.driver() } else { from.join(", ") };
        let paper = program.paper.as_deref().map_or(String::new(), |name| format!("  (like {name})"));
        println!("{:10} {:4} {origin}{paper}", program.name, program.kind.name());
    }
    Ok(())
}

fn check(place: &Place, programs: &[String]) -> Result<()> {
    let sources = source::fetch(place)?;
    place.renew_tool()?;
    let mut wrong = 0;
    for program in manifest::load(&place.root, programs)? {
        let mut expected: Option<String> = None;
        for side in side::ALL {
            let said = side.build(place, &sources, &program).and_then(|built| measure::run(&built, 1));
            let verdict = match said {
                Ok((_, said)) => {
                    let expected = expected.get_or_insert_with(|| said.clone());
                    let same = *expected == said;
                    wrong += usize::from(!same);
                    if same { said } else { format!("WRONG: {said}") }
                }
                Err(error) => {
                    wrong += 1;
                    format!("{error:#}")
                }
            };
            println!("{:8} {verdict}", side.name());
        }
    }
    ensure!(wrong == 0, "{wrong} differ from native, or do not run");
    Ok(())
}

fn note(text: &str) {
    eprintln!("{text}");
}

fn measure_all(place: &Place, options: &Measure) -> Result<()> {
    let wanted =
        |side: &Side| *side == Side::Native || options.sides.is_empty() || options.sides.contains(side);
    let sides: Vec<Side> = side::ALL.into_iter().filter(wanted).collect();
    let mut missing = Vec::new();
    let wanted = Wanted::new(place, &options.only)?;
    let mut subjects = match wanted.programs.is_empty() {
        true => Vec::new(),
        false => build_all(place, &wanted.programs, &sides, &mut missing)?,
    };
    if options.elsewhere {
        for subject in &mut subjects {
            subject.sides = subject.sides.drain(..).map(Built::elsewhere).collect();
        }
    }
    let repeat = if subjects.is_empty() { 0 } else { options.repeat };
    let all = measure::measure(&subjects, repeat, |n| note(&format!("repetition {n} of {repeat}")))?;
    let mut results = Vec::new();
    for (subject, times) in subjects.into_iter().zip(all) {
        let confined = || subject.sides.iter().filter(|b| b.side == Side::Native || b.side.confined());
        let code = confined().map(|b| Ok((b.side, size::objects(&b.code)?))).collect::<Result<_>>()?;
        let mut instructions = Vec::new();
        if !options.no_count {
            note(&format!("counting instructions of {}", subject.program.name));
        }
        for built in confined().filter(|_| !options.no_count) {
            match count::count(built) {
                Ok(n) => instructions.push((built.side, n)),
                Err(error) => {
                    missing.push(format!("{} of {}: {error:#}", built.side.name(), subject.program.name))
                }
            }
        }
        results.push(report::Result { program: subject.program, times, code, instructions });
    }
    let mut rows = report::rows(&results);
    let mut text = String::new();
    if !results.is_empty() {
        text += &table::overheads(&results, options.repeat);
    }
    if wanted.calls {
        note("measuring calls");
        let (calls, reasons) = crossing::calls(place);
        missing.extend(reasons);
        rows.extend(calls);
    }
    if wanted.verify {
        note("measuring the verifier");
        let (verification, reasons) = crossing::verification(place);
        missing.extend(reasons);
        rows.extend(verification);
    }
    text += &table::crossings(&rows);
    text += &table::break_even(&rows);
    for reason in missing {
        text += &format!("not measured: {reason}\n");
    }
    let mut files = figure::write(&options.svg, &results, &rows)?;
    fs::write(options.svg.join("tables.txt"), &text)?;
    files.push("tables.txt".into());
    print_and_save(place, options, &text, rows)?;
    note(&format!("{}: {}", place.shown(&options.svg), files.join(", ")));
    Ok(())
}

/// Builds what can be built: a side that a program lacks is noted, but native must be there.
fn build_all(
    place: &Place,
    programs: &[Program],
    sides: &[Side],
    missing: &mut Vec<String>,
) -> Result<Vec<Subject>> {
    let sources = source::fetch(place)?;
    if sides.iter().any(|side| side.confined()) {
        note("building the tool and its C library, where they have changed");
        place.renew_tool()?;
    }
    let mut subjects = Vec::new();
    for program in programs {
        note(&format!("building {}", program.name));
        let mut built: Vec<Built> = Vec::new();
        for side in sides {
            match side.build(place, &sources, program).and_then(|b| measure::run(&b, 0).map(|_| b)) {
                Ok(ready) => built.push(ready),
                Err(error) if *side == Side::Native => return Err(error.context(program.name.clone())),
                Err(error) => {
                    let first = format!("{error:#}");
                    let first: Vec<&str> = first.lines().take(2).collect();
                    missing.push(format!("{} of {}: {}", side.name(), program.name, first.join(" ")));
                }
            }
        }
        subjects.push(Subject { program: program.clone(), sides: built });
    }
    Ok(subjects)
}

fn print_and_save(place: &Place, options: &Measure, text: &str, rows: Vec<Row>) -> Result<()> {
    let to_stdout = options.json.as_ref().is_some_and(|file| file.as_os_str() == "-");
    if to_stdout {
        eprint!("{text}");
    } else {
        std::io::stdout().write_all(text.as_bytes())?;
    }
    let Some(file) = &options.json else { return Ok(()) };
    let first_line = |command: &mut Command| {
        compile::run(command).unwrap_or_default().lines().next().unwrap_or("unknown").trim().to_string()
    };
    let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = processor.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or_default();
    let output = Output {
        machine: model.trim_start_matches(['\t', ' ', ':']).to_string(),
        compiler: first_line(Command::new(side::CLANG).arg("--version")),
        commit: first_line(Command::new("git").current_dir(&place.root).args([
            "rev-parse",
            "--short=12",
            "HEAD",
        ])),
        rows,
    };
    let json = serde_json::to_string_pretty(&output)? + "\n";
    if to_stdout {
        std::io::stdout().write_all(json.as_bytes())?;
        return Ok(());
    }
    fs::write(file, json).with_context(|| file.display().to_string())
}
