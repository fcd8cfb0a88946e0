//! `pebble test`: everything that must hold, in groups.
//!
//! `format`; `seam`; `interfaces.NAME`; `host.NAME`, the unit and property tests of a package; `system.NAME`,
//! systems in the emulator; `system.c.NAME`, the C library of components; `sfi-attack`, `sfi-fault`,
//! `sfi-tour`, `sfi-stubs`, `sfi-policy`, `sfi-cxx`, `sfi-same`, `sfi-real`, what fault domains withstand;
//! `cli.NAME`, the tool itself; `component.SYSTEM.NAME`, what manifests have; `budget.ID`, a measured row
//! against its budget. What is tested on another board than the first has the board's name before it
//! (`BOARD.system.NAME`); `--quick`, and a filter that does not begin with that name, leave it out, unless
//! `--board` says otherwise. A filter selects the groups whose names contain it, or of which it is a part
//! between dots, if it has only one or two letters (`c`).

mod blockers;
mod boards;
mod cli;
mod component;
mod context;
mod crash;
mod cxx;
mod documents;
mod hog;
mod host;
mod hostile;
mod interfaces;
mod interpose;
mod junit;
mod libc;
mod ports;
mod profile;
mod replace;
mod seam;
mod sfi;
mod shell;
mod stack;
mod system;

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Instant;

use anyhow::{Result, ensure};

use self::boards::OnBoard;
use crate::tools::{Tools, run_quietly};
use crate::ui;

#[derive(clap::Args)]
pub struct Options {
    /// Run only groups whose names contain this, such as portal, scheduler, hostile, budget; GROUP::TEST,
    /// such as host.vm::fork, of host tests only those whose names contain TEST; or, with a path to a
    /// manifest, the tests that it has
    filter: Option<String>,
    /// Leave out what takes long, and try fewer random cases
    #[arg(long)]
    quick: bool,
    /// Only say what would run
    #[arg(long)]
    list: bool,
    /// Write to this file, too, how each test went, as JUnit does
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl Options {
    /// A letter or two are in many names: they mean a part of the name between dots.
    fn selects(&self, group: &str) -> bool {
        let filter =
            self.filter.as_deref().map(|filter| filter.split_once("::").map_or(filter, |(group, _)| group));
        filter.is_none_or(|filter| match filter.len() {
            _ if component::is_manifest(filter) => group.split('.').any(|part| part == "component"),
            0..=2 => group.split('.').any(|part| part == filter),
            _ => group.contains(filter),
        })
    }

    /// Without being told of boards, one takes in this one too: everything is tested, or it is named first.
    pub fn takes_in(&self, board: &str) -> bool {
        let named = |filter: &str| filter.split('.').next() == Some(board);
        self.filter.as_deref().map_or(!self.quick, named)
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
        let took = start.elapsed();
        let seconds = took.as_secs_f32();
        junit::record(name, took, result.as_ref().err().map(|error| format!("{error:#}")));
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

/// What is tested without a system does not depend on the board, and is tested with the first.
pub fn test(boards: &[Tools], options: &Options) -> Result<u8> {
    let host = boards.iter().find(|tools| tools.is_default());
    // Of a project there are host tests, and what its manifests have.
    let selected = |group: &str| host.filter(|tools| !tools.is_project() && options.selects(group));
    let packages = match host {
        Some(tools) => host::packages(tools, |name| options.selects(name))?,
        None => Vec::new(),
    };
    let slow = cli::GROUPS.into_iter().chain(sfi::GROUPS).filter(|_| !options.quick);
    let own = interfaces::GROUPS.into_iter().chain(slow);
    let own: Vec<_> = own.filter_map(|(group, test)| Some((group, test, selected(group)?))).collect();
    let boards: Vec<_> = boards.iter().map(|tools| OnBoard::new(tools, options)).collect::<Result<_>>()?;
    let systems: Vec<_> = boards.iter().flat_map(OnBoard::groups).collect();
    let first: Vec<_> = ["format", "seam"].into_iter().filter(|group| selected(group).is_some()).collect();
    let filter = options.filter.as_deref().unwrap_or_default();
    let count = first.len() + packages.len() + own.len() + systems.len();
    if count == 0 {
        let on = if host.is_none() { " on that board alone: `./pebble test --list` has all" } else { "" };
        return Err(ui::usage(format!("no group of tests has {filter:?} in its name{on}")));
    }
    if options.list {
        let hosts = packages.iter().flat_map(host::groups).filter(|group| options.selects(group));
        let own = own.iter().map(|(group, ..)| String::from(*group));
        let mut out = std::io::stdout().lock();
        for name in first.into_iter().map(String::from).chain(hosts).chain(own).chain(systems) {
            writeln!(out, "{name}")?;
        }
        return Ok(0);
    }

    let mut tally = Tally::default();
    if let Some(tools) = selected("format") {
        tally
            .run("format", || run_quietly(tools.cargo_fmt().args(["--all", "--check"]), "cargo fmt --check"));
    }
    if let Some(tools) = selected("seam") {
        tally.run("seam", || seam::is_kept(tools));
    }
    let built = host.map(|tools| host::build(tools, &packages, options));
    let (programs, built) = built.unwrap_or_default();
    tally.add(built);
    let mut jobs: Vec<Job> = Vec::new();
    jobs.extend(host.into_iter().flat_map(|tools| {
        programs.iter().map(move |(group, programs)| {
            Job::new(group, move || host::run_group(tools, group, programs, options))
        })
    }));
    jobs.extend(own.into_iter().map(|(group, test, tools)| Job::test(group, move || test(tools))));
    jobs.extend(boards.iter().flat_map(OnBoard::systems));
    jobs.extend(boards.iter().flat_map(OnBoard::components));
    jobs.sort_by_key(|job| LONG.iter().position(|long| job.name.ends_with(long)).unwrap_or(LONG.len()));
    jobs.extend(boards.iter().filter_map(|board| board.budgets(options.filter.is_none())));
    tally.add(side_by_side(&jobs));
    let test = options.test();
    ensure!(
        test.is_empty() || tally.passed + tally.failed > 1,
        "no host test there has {test:?} in its name"
    );
    if let Some(path) = &options.junit {
        junit::write(path)?;
    }
    println!("{} passed, {} failed", tally.passed, tally.failed);
    Ok(u8::from(tally.failed > 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(filter: Option<&str>) -> Options {
        Options { filter: filter.map(String::from), quick: false, list: false, junit: None }
    }

    #[test]
    fn another_board_is_taken_in_with_everything_or_by_its_name() {
        let takes = |filter| options(filter).takes_in("pebbly");
        assert!(takes(None) && takes(Some("pebbly")) && takes(Some("pebbly.system.vm")));
        assert!(!Options { quick: true, ..options(None) }.takes_in("pebbly"));
        assert!(!takes(Some("pebblystone")) && !takes(Some("system.pebbly")));
    }

    #[test]
    fn a_letter_or_two_are_a_part_of_a_name() {
        assert!(options(Some("c")).selects("system.c.memory") && !options(Some("c")).selects("cli.run"));
        assert!(options(Some("host.vm::fork")).selects("host.vm") && options(None).selects("seam"));
    }
}
