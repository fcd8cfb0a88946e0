//! `pebble test`: everything that must hold, in groups.
//!
//! `format`; `seam`; `interfaces.NAME`; `host.NAME`, the unit and property tests of a package; `system.NAME`,
//! systems in the emulator; `system.c.NAME`, the C library of components; `sfi-attack`, `sfi-fault`,
//! `sfi-tour`, `sfi-stubs`, `sfi-policy`, `sfi-cxx`, `sfi-same`, `sfi-real`, what fault domains withstand;
//! `cli.NAME`, the tool itself; `budget.ID`, a measured row against its budget. A filter selects the groups
//! whose names contain it, or of which it is a part between dots, if it has only one or two letters (`c`).

mod blockers;
mod cli;
mod context;
mod crash;
mod cxx;
mod documents;
mod hog;
mod host;
mod hostile;
mod interfaces;
mod interpose;
mod libc;
mod ported;
mod replace;
mod seam;
mod sfi;
mod stack;
mod system;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::tools::{Tools, run_quietly};
use crate::{bench, ui};

#[derive(clap::Args)]
pub struct Options {
    /// Run only groups whose names contain this, such as portal, scheduler, hostile, budget; GROUP::TEST,
    /// such as host.vm::fork, of host tests only those whose names contain TEST
    filter: Option<String>,
    /// Leave out what takes long, and try fewer random cases
    #[arg(long)]
    quick: bool,
    /// Only say what would run
    #[arg(long)]
    list: bool,
}

impl Options {
    /// A letter or two are in many names: they mean a part of the name between dots.
    fn selects(&self, group: &str) -> bool {
        let filter =
            self.filter.as_deref().map(|filter| filter.split_once("::").map_or(filter, |(group, _)| group));
        filter.is_none_or(|filter| match filter.len() {
            0..=2 => group.split('.').any(|part| part == filter),
            _ => group.contains(filter),
        })
    }

    /// Of the host tests that are selected, those that run; empty: all.
    fn test(&self) -> &str {
        self.filter.as_deref().and_then(|filter| filter.split_once("::")).map_or("", |(_, test)| test)
    }
}

/// Counts individual tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    pub passed: usize,
    pub failed: usize,
}

impl Tally {
    fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
    }

    /// Runs one test, and says how it went.
    fn run(&mut self, name: &str, test: impl FnOnce() -> Result<()>) {
        let start = Instant::now();
        let result = test();
        let seconds = start.elapsed().as_secs_f32();
        match result {
            Ok(()) => {
                self.passed += 1;
                ui::passed(&format!("{name} ({seconds:.1} s)"));
            }
            Err(error) => {
                self.failed += 1;
                ui::failed(&format!("{name} ({seconds:.1} s)\n  {error:#}"));
            }
        }
    }
}

/// A group, or groups that share what they need.
struct Job<'a> {
    name: String,
    run: Box<dyn Fn() -> Tally + Sync + 'a>,
}

impl<'a> Job<'a> {
    fn new(name: impl Into<String>, run: impl Fn() -> Tally + Sync + 'a) -> Self {
        Job { name: name.into(), run: Box::new(run) }
    }

    fn test(name: impl Into<String>, test: impl Fn() -> Result<()> + Sync + 'a) -> Self {
        let name = name.into();
        let own = name.clone();
        Job::new(name, move || {
            let mut tally = Tally::default();
            tally.run(&own, &test);
            tally
        })
    }
}

/// What takes minutes begins first, so that nothing is long alone at the end.
const LONG: [&str; 8] = [
    "sfi-same",
    "system.replace.load",
    "system.restart.load",
    "system.documents",
    "system.bench.repeatable",
    "sfi-real",
    "sfi-cxx",
    "system.hostile.thousand",
];

/// Does all jobs, one for each core at a time.
fn side_by_side(jobs: &[Job]) -> Tally {
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let (next, tally) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    let worker = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Relaxed)) {
            let counted = (job.run)();
            tally.lock().unwrap_or_else(PoisonError::into_inner).add(counted);
        }
    };
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(worker))));
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

pub fn test(tools: &Tools, options: &Options) -> Result<u8> {
    // What is tested without a system does not depend on the board, and is tested with the first.
    let host = tools.is_default();
    let packages = if host { host::packages(tools, |name| options.selects(name))? } else { Vec::new() };
    let runs = |test: &&system::SystemTest| options.selects(&test.group()) && !(options.quick && test.slow);
    let systems = || system::ALL.iter().filter(runs).filter(|test| test.missing(tools).is_none());
    let budgets: Vec<_> = match options.quick {
        true => Vec::new(),
        false => {
            bench::budget::load(tools)?.into_iter().filter(|(id, _)| options.selects(&group(id))).collect()
        }
    };
    let (format, seam) = (host && options.selects("format"), host && options.selects("seam"));
    let filter = options.filter.as_deref().unwrap_or_default();
    let domains = || {
        let slow = cli::GROUPS.into_iter().chain(sfi::GROUPS).filter(|_| !options.quick);
        let groups = interfaces::GROUPS.into_iter().chain(slow);
        groups.filter(|(group, _)| host && options.selects(group))
    };
    let count = domains().count()
        + packages.len()
        + systems().count()
        + budgets.len()
        + usize::from(format)
        + usize::from(seam);
    ensure!(count > 0, "no group of tests has {filter:?} in its name");
    if options.list {
        let hosts = packages.iter().flat_map(host::groups).filter(|group| options.selects(group));
        let own = domains().map(|(group, _)| group.into());
        let names = hosts.chain(own).chain(systems().map(|test| test.group()));
        let first = [("format", format), ("seam", seam)].into_iter().filter(|(_, selected)| *selected);
        let names = first.map(|(name, _)| name.into()).chain(names);
        names.chain(budgets.iter().map(|(id, _)| group(id))).for_each(|name| println!("{name}"));
        return Ok(0);
    }

    for test in system::ALL.iter().filter(runs) {
        if let Some(what) = test.missing(tools) {
            ui::note(&format!("{} is left out: it needs {what}", test.group()));
        }
    }
    let mut tally = Tally::default();
    if format {
        tally
            .run("format", || run_quietly(tools.cargo_fmt().args(["--all", "--check"]), "cargo fmt --check"));
    }
    if seam {
        tally.run("seam", || seam::is_kept(tools));
    }
    let (programs, built) = host::build(tools, &packages, options);
    tally.add(built);
    let made = context::Made::default();
    let mut jobs: Vec<Job> = Vec::new();
    jobs.extend(
        programs.iter().map(|(group, programs)| {
            Job::new(group, move || host::run_group(tools, group, programs, options))
        }),
    );
    jobs.extend(domains().map(|(group, test)| Job::test(group, move || test(tools))));
    let made = &made;
    jobs.extend(
        systems()
            .map(|test| Job::test(test.group(), move || test.run(&mut context::Context::new(tools, made)))),
    );
    jobs.sort_by_key(|job| LONG.iter().position(|long| *long == job.name).unwrap_or(LONG.len()));
    if !budgets.is_empty() {
        let budgets = &budgets;
        jobs.push(Job::new("budget", move || check_budgets(tools, budgets, made, options.filter.is_some())));
    }
    tally.add(side_by_side(&jobs));
    let test = options.test();
    ensure!(
        test.is_empty() || tally.passed + tally.failed > 1,
        "no host test there has {test:?} in its name"
    );
    println!("{} passed, {} failed", tally.passed, tally.failed);
    Ok(u8::from(tally.failed > 0))
}

fn group(id: &str) -> String {
    format!("budget.{id}")
}

/// Measures once, all or only what is asked for, unless all has been measured already; and holds each row
/// against its budget.
fn check_budgets(
    tools: &Tools,
    budgets: &[(String, bench::budget::Budget)],
    made: &context::Made,
    some: bool,
) -> Tally {
    let mut tally = Tally::default();
    let mut rows = Vec::new();
    tally.run("budget.measure", || {
        let only = budgets.iter().flat_map(|(id, budget)| [Some(id.clone()), budget.of()]).flatten();
        let measure = || bench::measure(tools, &only.filter(|_| some).collect::<Vec<_>>());
        rows = made.rows().map_or_else(measure, Ok)?;
        Ok(())
    });
    for (id, budget) in budgets {
        tally.run(&group(id), || {
            let row = rows.iter().find(|row| row.id == *id);
            let excess = row.map_or(Some("was not measured".into()), |row| budget.excess(row, &rows));
            ensure!(excess.is_none(), "{}", excess.unwrap_or_default());
            Ok(())
        });
    }
    tally
}
