//! `pebble-sfi-same`: what [`pebble_sfi_same`] compares, as a command.
#![forbid(unsafe_code)]

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use anyhow::{Context, Result, ensure};
use clap::{Parser, Subcommand};
use pebble_sfi_same::batch::{Batch, Program, Side};
use pebble_sfi_same::combination::Combination;
use pebble_sfi_same::run::{Verdict, compare, known};
use pebble_sfi_same::{Place, bytes, csmith, torture};

/// Programs in one executable.
const TOGETHER: usize = 20;
/// Seeds of a batch: half of them give a program that is worth it.
const SEEDS: u64 = 36;

#[derive(Parser)]
#[command(about = "Compares what programs compute natively and in fault domains")]
struct Arguments {
    #[command(subcommand)]
    what: What,
    /// Batches at a time
    #[arg(long, default_value_t = 2, global = true)]
    jobs: usize,
    /// Another tool than the one in target/release
    #[arg(long, global = true)]
    tool: Option<PathBuf>,
}

#[derive(Subcommand)]
enum What {
    /// Random programs
    Csmith {
        #[arg(default_value_t = 1000)]
        count: usize,
        /// The first program's
        #[arg(long, default_value_t = 1)]
        seed: u64,
        /// The first batch's combination of compiler, level and options
        #[arg(long, default_value_t = 0)]
        combination: usize,
    },
    /// Instructions that name `ah`, `bh`, `ch` or `dh`, with every compiler, level and options
    Bytes,
    /// The execution tests of GCC's torture suite
    Torture {
        /// Those whose names contain this
        #[arg(default_value = "")]
        filter: String,
        /// The first batch's combination of compiler, level and options
        #[arg(long, default_value_t = 0)]
        combination: usize,
        /// How many combinations each test gets
        #[arg(long, default_value_t = 1)]
        rounds: usize,
    },
}

struct Work {
    place: Place,
    side: Side,
    jobs: usize,
}

impl Work {
    fn directory(&self, name: &str) -> PathBuf {
        self.place.target.join("same").join(name)
    }

    /// Does batches by their numbers until there are none, or enough is known, and says how far it is.
    fn all(
        &self,
        batch: impl Fn(usize, &Path) -> Result<Option<Verdict>> + Sync,
        enough: impl Fn(&Verdict) -> bool + Sync,
    ) -> Result<Verdict> {
        let (next, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let sum = Mutex::new(Ok(Verdict::default()));
        let worker = |number: usize| {
            let place = self.directory(&format!("{}-{number}", std::process::id()));
            while !over.load(Relaxed) {
                let done = batch(next.fetch_add(1, Relaxed), &place);
                let mut sum = sum.lock().unwrap_or_else(|e| e.into_inner());
                match (sum.as_mut(), done) {
                    (Ok(verdict), Ok(Some(more))) => {
                        more.differences.iter().for_each(|what| eprintln!("DIFFERENT {what}"));
                        let first = |what: &String| what.lines().next().unwrap_or_default().to_string();
                        more.unfit.iter().for_each(|what| eprintln!("fails natively: {}", first(what)));
                        verdict.add(more);
                        eprintln!("{verdict}");
                        over.fetch_or(enough(verdict), Relaxed);
                    }
                    (Ok(_), Err(error)) => {
                        *sum = Err(error);
                        over.store(true, Relaxed);
                    }
                    _ => over.store(true, Relaxed),
                }
            }
            let _ = fs::remove_dir_all(&place);
        };
        std::thread::scope(|scope| {
            (0..self.jobs).for_each(|number| drop(scope.spawn(move || worker(number))));
        });
        sum.into_inner().unwrap_or_else(|e| e.into_inner())
    }

    /// The programs of some seeds. Sources stay: a difference names its file.
    fn random(&self, seeds: Range<u64>, combination: Combination, place: &Path) -> Result<Verdict> {
        let directory = self.directory("csmith");
        fs::create_dir_all(&directory)?;
        let mut programs = Vec::new();
        for seed in seeds.clone() {
            let Some(text) = csmith::program(seed)? else { continue };
            let options = vec!["-I/usr/include/csmith".into()];
            programs.push(written(directory.join(format!("{seed}.c")), &text, options)?);
        }
        let known = known(&Batch { programs: &programs, combination, place })?;
        let mut verdict = compare(&Batch { programs: &known, combination, place }, &self.side)?;
        verdict.seeds = seeds.end - seeds.start;
        verdict.endless = programs.len() - known.len();
        Ok(verdict)
    }
}

/// A program of which this is the text.
fn written(source: PathBuf, text: &str, options: Vec<String>) -> Result<Program> {
    fs::write(&source, text)?;
    let name = source.display().to_string();
    Ok(Program { name, source, options, plain: true, prints: None, outside: None })
}

fn work(arguments: &Arguments) -> Result<Work> {
    let place = Place::find()?;
    let tool = arguments.tool.clone().unwrap_or_else(|| place.target.join("../release/pebble-sfi"));
    let tool = tool.canonicalize().with_context(|| tool.display().to_string())?;
    let library = place.target.join("libc");
    Ok(Work { side: Side::Confined { tool, library }, place, jobs: arguments.jobs })
}

fn judge(arguments: &Arguments) -> Result<bool> {
    let work = work(arguments)?;
    let verdict = match &arguments.what {
        What::Csmith { count, seed, combination } => work.all(
            |n, place| {
                let first = seed + n as u64 * SEEDS;
                work.random(first..first + SEEDS, Combination::nth(combination + n), place).map(Some)
            },
            |verdict| verdict.same + verdict.differences.len() >= *count,
        )?,
        What::Bytes => {
            let directory = work.directory("bytes");
            fs::create_dir_all(&directory)?;
            let source = |(name, text): (String, String)| {
                written(directory.join(format!("{name}.c")), &text, Vec::new())
            };
            let programs: Vec<_> = bytes::programs().into_iter().map(source).collect::<Result<_>>()?;
            // Assembly is the same at every optimisation.
            let all: Vec<_> = Combination::all().filter(|c| c.optimise == "-O2").collect();
            let known = known(&Batch { programs: &programs, combination: all[0], place: &directory })?;
            ensure!(known.len() == programs.len(), "what is compared does not work natively");
            let batch = |n: usize, place: &Path| {
                let Some(combination) = all.get(n).copied() else { return Ok(None) };
                compare(&Batch { programs: &known, combination, place }, &work.side).map(Some)
            };
            work.all(batch, |_| false)?
        }
        What::Torture { filter, combination, rounds } => {
            let all = torture::programs(&work.place)?;
            let chosen: Vec<_> = all.into_iter().filter(|p| p.name.contains(filter)).collect();
            let batches: Vec<_> = chosen.chunks(TOGETHER).collect();
            let batch = |n: usize, place: &Path| {
                let (round, k) = (n / batches.len().max(1), n % batches.len().max(1));
                let Some(programs) = batches.get(k).filter(|_| round < *rounds) else { return Ok(None) };
                let combination = Combination::nth(combination + k + 31 * round);
                compare(&Batch { programs, combination, place }, &work.side).map(Some)
            };
            work.all(batch, |_| false)?
        }
    };
    println!("{verdict}");
    Ok(verdict.passes())
}

fn main() -> ExitCode {
    match judge(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("pebble-sfi-same: {error:#}");
            ExitCode::FAILURE
        }
    }
}
