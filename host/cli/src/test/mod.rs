//! `pebble test`: everything that must hold, in groups.
//!
//! `format`; `host.NAME`, the unit and property tests of a package; `system.NAME`, systems in the emulator;
//! `system.c.NAME`, the C library of components; `sfi-attack`, `sfi-fault`, `sfi-tour`, `sfi-stubs`, `sfi-policy`, `sfi-cxx`, `sfi-same`, `sfi-real`, what fault domains withstand; `cli.NAME`, the tool itself; `budget.ID`, a measured row against its budget. A filter selects the groups whose names contain it, or of which it is a
//! part between dots, if it has only one or two letters (`c`).

mod blockers;
mod cli;
mod context;
mod crash;
mod cxx;
mod documents;
mod hog;
mod host;
mod hostile;
mod interpose;
mod libc;
mod ported;
mod replace;
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
    /// Run only groups whose names contain this, such as portal, scheduler, hostile, budget
    filter: Option<String>,
    /// Leave out what takes long, and try fewer random cases
    #[arg(long)]
    quick: bool,
    /// Only say what would run
    #[arg(long)]
    list: bool,
}

impl Options {
    /// Groups that run side by side: with `--quick` one for each core. Otherwise each has the machine to itself, since some look at the clock.
    fn workers(&self) -> usize {
        if self.quick { thread::available_parallelism().map_or(1, usize::from) } else { 1 }
    }

    /// A letter or two are in many names: they mean a part of the name between dots.
    fn selects(&self, group: &str) -> bool {
        self.filter.as_ref().is_none_or(|filter| match filter.len() {
            0..=2 => group.split('.').any(|part| part == filter),
            _ => group.contains(filter.as_str()),
        })
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

/// Does all jobs, so many at a time, begun in their order.
fn side_by_side<T: Sync>(workers: usize, jobs: &[T], work: impl Fn(&T) -> Tally + Sync) -> Tally {
    let (next, tally) = (AtomicUsize::new(0), Mutex::new(Tally::default()));
    let worker = || {
        while let Some(job) = jobs.get(next.fetch_add(1, Relaxed)) {
            let counted = work(job);
            tally.lock().unwrap_or_else(PoisonError::into_inner).add(counted);
        }
    };
    thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(worker))));
    tally.into_inner().unwrap_or_else(PoisonError::into_inner)
}

pub fn test(tools: &Tools, options: &Options) -> Result<u8> {
    let packages = host::packages(tools, |name| options.selects(name))?;
    let runs = |test: &&system::SystemTest| options.selects(&test.group()) && !(options.quick && test.slow);
    let systems = || system::ALL.iter().filter(runs);
    let budgets: Vec<_> = match options.quick {
        true => Vec::new(),
        false => {
            bench::budget::load(tools)?.into_iter().filter(|(id, _)| options.selects(&group(id))).collect()
        }
    };
    let format = options.selects("format");
    let filter = options.filter.as_deref().unwrap_or_default();
    let domains = || {
        let all = cli::GROUPS.into_iter().chain(sfi::GROUPS);
        all.filter(|(group, _)| options.selects(group) && !options.quick)
    };
    let count = domains().count() + packages.len() + systems().count() + budgets.len() + usize::from(format);
    ensure!(count > 0, "no group of tests has {filter:?} in its name");
    if options.list {
        let hosts = packages.iter().flat_map(host::groups).filter(|group| options.selects(group));
        let own = domains().map(|(group, _)| group.into());
        let names = hosts.chain(own).chain(systems().map(|test| test.group()));
        let names = format.then(|| "format".into()).into_iter().chain(names);
        names.chain(budgets.iter().map(|(id, _)| group(id))).for_each(|name| println!("{name}"));
        return Ok(0);
    }

    let mut tally = Tally::default();
    if format {
        tally
            .run("format", || run_quietly(tools.cargo_fmt().args(["--all", "--check"]), "cargo fmt --check"));
    }
    if !packages.is_empty() {
        tally.add(host::run(tools, &packages, options));
    }
    for (group, test) in domains() {
        tally.run(group, || test(tools));
    }
    let images = context::Images::default();
    let systems: Vec<_> = systems().collect();
    tally.add(side_by_side(options.workers(), &systems, |test| {
        let mut tally = Tally::default();
        tally.run(&test.group(), || test.run(&mut context::Context::new(tools, &images)));
        tally
    }));
    if !budgets.is_empty() {
        tally.add(check_budgets(tools, &budgets, options.filter.is_some()));
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    Ok(u8::from(tally.failed > 0))
}

fn group(id: &str) -> String {
    format!("budget.{id}")
}

/// Measures once, all or only what is asked for, and holds each row against its budget.
fn check_budgets(tools: &Tools, budgets: &[(String, bench::budget::Budget)], some: bool) -> Tally {
    let mut tally = Tally::default();
    let mut rows = Vec::new();
    tally.run("budget.measure", || {
        let only = budgets.iter().flat_map(|(id, budget)| [Some(id.clone()), budget.of()]).flatten();
        rows = bench::measure(tools, &only.filter(|_| some).collect::<Vec<_>>())?;
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
