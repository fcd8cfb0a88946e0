//! `pebble-sfi-same`: what [`pebble_sfi_same`] compares, as a command.
#![forbid(unsafe_code)]

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use anyhow::{Context, Result};
use clap::{Parser, Subcommand};
use pebble_sfi_same::batch::{Batch, Program, Side};
use pebble_sfi_same::combination::Combination;
use pebble_sfi_same::run::{Ended, Verdict, compare};
use pebble_sfi_same::{Place, csmith, torture};

/// Programs in one executable.
const TOGETHER: usize = 20;

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

/// A batch to be done: its programs and what they are compiled with.
type Job = (Vec<Program>, Combination);

struct Work {
    place: Place,
    side: Side,
    jobs: usize,
}

impl Work {
    fn directory(&self, name: &str) -> PathBuf {
        self.place.target.join("same").join(name)
    }

    /// Does all batches, and says how far it is.
    fn all(&self, jobs: &[Job], passes: fn(&Ended) -> bool) -> Result<Verdict> {
        let (next, sum) = (AtomicUsize::new(0), Mutex::new((0, Ok(Verdict::default()))));
        let worker = |number: usize| {
            let place = self.directory(&format!("{}-{number}", std::process::id()));
            while let Some((programs, combination)) = jobs.get(next.fetch_add(1, Relaxed)) {
                let batch = Batch { programs, combination: *combination, place: &place };
                let done = compare(&batch, &self.side, passes);
                let mut sum = sum.lock().unwrap_or_else(|e| e.into_inner());
                sum.0 += 1;
                let count = sum.0;
                match (&mut sum.1, done) {
                    (Ok(verdict), Ok(more)) => {
                        more.differences.iter().for_each(|d| eprintln!("DIFFERENT {d}"));
                        verdict.add(more);
                        eprintln!("{count} of {} batches: {verdict}", jobs.len());
                    }
                    (_, Err(error)) => {
                        next.store(jobs.len(), Relaxed);
                        sum.1 = Err(error);
                    }
                    _ => {}
                }
            }
            let _ = fs::remove_dir_all(&place);
        };
        std::thread::scope(|scope| {
            (0..self.jobs).for_each(|number| drop(scope.spawn(move || worker(number))));
        });
        sum.into_inner().unwrap_or_else(|e| e.into_inner()).1
    }
}

/// Sources are made beside the jobs, and stay: a difference names its file.
fn random(work: &Work, count: usize, seed: u64, combination: usize) -> Result<Vec<Job>> {
    let directory = work.directory("csmith");
    fs::create_dir_all(&directory)?;
    let mut programs = Vec::new();
    for made in csmith::programs(seed, count) {
        let (seed, text) = made?;
        let source = directory.join(format!("{seed}.c"));
        fs::write(&source, text)?;
        programs.push(Program {
            name: source.display().to_string(),
            source,
            options: vec!["-I/usr/include/csmith".into()],
            outside: None,
        });
    }
    Ok(jobs(programs, combination))
}

fn jobs(programs: Vec<Program>, combination: usize) -> Vec<Job> {
    let batches = programs.chunks(TOGETHER).enumerate();
    batches.map(|(n, batch)| (batch.to_vec(), Combination::nth(combination + n))).collect()
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
        What::Csmith { count, seed, combination } => {
            let jobs = random(&work, *count, *seed, *combination)?;
            work.all(&jobs, |ended| ended.code == Some(0))?
        }
        What::Torture { filter, combination, rounds } => {
            let all = torture::programs(&work.place)?;
            let chosen: Vec<_> = all.into_iter().filter(|p| p.name.contains(filter)).collect();
            let jobs: Vec<Job> =
                (0..*rounds).flat_map(|k| jobs(chosen.clone(), combination + 31 * k)).collect();
            work.all(&jobs, |ended| ended.code == Some(0))?
        }
    };
    println!("{verdict}");
    Ok(verdict.differences.is_empty())
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
