//! Running pipelines of programs.
//!
//! Problem: a program of a pipeline may end without ever having opened its end of a pipe, and the other side
//! must not wait for it. Strategy: a thread waits for each program; when it has ended, the shell, as creator
//! of the pipes, abandons the two sides that were this program's. A lone program in the foreground needs no
//! thread. A job for which there are not enough pipes or threads does not start, and says so; jobs in the
//! background leave some of both for the foreground.
//!
//! What goes to and comes from files is the business of [`redirect`](crate::redirect): the programs open
//! them, so a job in the background needs the shell no more.
//!
//! All jobs are in one table, under one lock: that of the foreground, so that Ctrl-C finds it, and those in
//! the background until their end has been told.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use pebble::abi::{errno, map::TIME_HZ};
use pebble::api::{self, Errno};
use pebble::io::{self, File};
use pebble::portal;
use pebble::process::Child;
use pebble::sync::Lock;
use pebble_shell::format::interval;

use crate::builtins::{self, Builtin};
use crate::redirect::{self, Files};
use crate::servers::{self, READING, WRITING};
use crate::terminal::{Mode, standard_path};
use crate::{Shell, complain};

type Command = pebble_shell::Command<String>;
type Job = pebble_shell::Job<String>;

/// Status of a command for which a file could not be opened, one that could not be run, and one that is not
/// there.
const NO_FILE: i64 = 1;
const NOT_RUN: i64 = 126;
const NOT_FOUND: i64 = 127;

/// So many programs and pipes may be in the background: this shell has thirty threads to wait with, and
/// sixteen pipes, one of which is [`nothing`].
const BEHIND: usize = 24;
const PIPES_BEHIND: usize = 10;

/// A command of a job: a program, or, without a domain, a built-in or one that could not be started.
struct Stage {
    domain: u16,
    /// Tokens of the pipes that it reads and writes.
    input: Option<u64>,
    output: Option<u64>,
    status: Option<i64>,
}

struct Running {
    number: usize,
    text: String,
    background: bool,
    /// When it began and when the last of its commands ended, if that shall be told.
    times: Option<[u64; 2]>,
    stages: Vec<Stage>,
}

static JOBS: Lock<Vec<Running>> = Lock::new(Vec::new());
/// Index of P of the semaphore that gets a V whenever a program of the foreground has ended in another
/// thread.
static ENDED: AtomicUsize = AtomicUsize::new(0);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

pub fn prepare() -> Result<(), Errno> {
    ENDED.store(api::sem_create(0)?, Ordering::Relaxed);
    Ok(())
}

/// Whether there was a Ctrl-C since the job in the foreground began.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Ctrl-C: ends what is in the foreground.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::Relaxed);
    let jobs = JOBS.lock();
    let foreground = jobs.iter().filter(|job| !job.background).flat_map(|job| &job.stages);
    for stage in foreground.filter(|stage| stage.domain != 0 && stage.status.is_none()) {
        let _ = servers::kill(stage.domain);
    }
}

/// Sleeps; says whether a Ctrl-C cut it short.
pub fn pause(ticks: u64) -> bool {
    let end = portal::time() + ticks;
    while !interrupted() {
        let now = portal::time();
        if now >= end {
            return false;
        }
        let _ = api::hrsleep(end.min(now + TIME_HZ / 50));
    }
    true
}

/// Runs a job; its status if it is in the foreground.
pub fn run(shell: &mut Shell, job: &Job) -> i64 {
    INTERRUPTED.store(false, Ordering::Relaxed);
    let first = &job.commands[0];
    if first.words.is_empty() {
        first.assignments.iter().for_each(|(name, value)| shell.set(name, value));
        return 0;
    }
    // In the background, and in a script, nobody types.
    let typed = !job.background && shell.terminal.mode != Mode::Script;
    if job.background && !fits_behind(job.commands.len()) {
        complain(format_args!("{}: not started: too much runs in the background", first.words[0]));
        return NOT_RUN;
    }
    let begin = portal::time();
    let Some(pipes) = pipes(job.commands.len() - 1) else { return NOT_RUN };
    let end = |n: Option<usize>| n.and_then(|n| pipes.get(n)).copied();
    let builtins: Vec<_> = job.commands.iter().map(|command| builtins::find(&command.words[0])).collect();
    let mut stages = Vec::new();
    for (n, command) in job.commands.iter().enumerate() {
        let mut stage = Stage { domain: 0, input: end(n.checked_sub(1)), output: end(Some(n)), status: None };
        if builtins[n].is_none() {
            load(shell, command, &mut stage, typed);
        }
        if stage.domain == 0 {
            let idle = if stage.status.is_some() { READING | WRITING } else { READING };
            give_up(&stage, idle);
        }
        stages.push(stage);
    }
    let domains: Vec<u16> = stages.iter().map(|stage| stage.domain).collect();
    let number = enter(job, stages, begin);
    let programs: Vec<u64> = domains.iter().filter(|d| **d != 0).map(|d| who(number, *d)).collect();
    let alone = job.commands.len() == 1 && programs.len() == 1 && !job.background;
    let watched = if alone { 0 } else { programs.iter().take_while(|program| watched(**program)).count() };
    let begins = alone || watched == programs.len();
    if !begins {
        complain(format_args!("{}: not started: no thread is left to wait for it", first.words[0]));
        programs.iter().for_each(|program| _ = servers::kill(*program as u16));
        programs[watched..].iter().for_each(|program| bury(*program));
    }
    if typed {
        shell.terminal.front(&domains);
    }
    for (command, domain) in job.commands.iter().zip(&domains).filter(|(_, domain)| begins && **domain != 0) {
        start(command, number, *domain);
    }
    if interrupted() {
        interrupt();
    }
    for (n, builtin) in builtins.iter().enumerate() {
        if let Some(builtin) = builtin.filter(|_| begins) {
            run_builtin(shell, builtin, &job.commands[n], number, n);
        }
    }
    if alone {
        programs.into_iter().for_each(bury);
    }
    if job.background && begins {
        shell.terminal.write(format!("[{number}] started\n").as_bytes());
        return 0;
    }
    for _ in 0..watched {
        let _ = api::sem_wait(ENDED.load(Ordering::Relaxed));
    }
    shell.terminal.front(&[]);
    let (status, took) = leave(number);
    if let Some(took) = took.filter(|_| begins) {
        pebble::eprintln!("time: {}", interval(took));
    }
    if begins { status } else { NOT_RUN }
}

/// Whether the foreground has threads and pipes left beside a job of so many commands.
fn fits_behind(commands: usize) -> bool {
    let (mut programs, mut pipes) = (commands, commands - 1);
    for job in JOBS.lock().iter().filter(|job| job.background) {
        programs += job.stages.iter().filter(|stage| stage.status.is_none()).count();
        // A pipe is there until both sides are given up.
        pipes += job.stages.windows(2).filter(|pair| pair.iter().any(|stage| stage.status.is_none())).count();
    }
    programs <= BEHIND && pipes <= PIPES_BEHIND
}

/// A program of a job, in a word.
fn who(number: usize, domain: u16) -> u64 {
    (number as u64) << 16 | u64::from(domain)
}

/// Whether a thread waits for the program from now on.
fn watched(program: u64) -> bool {
    api::thread_create(watch, program, 0).is_ok()
}

/// So many pipes, or none.
fn pipes(count: usize) -> Option<Vec<u64>> {
    let mut pipes = Vec::new();
    for _ in 0..count {
        match servers::pipe() {
            Ok(pipe) => pipes.push(pipe),
            Err(failure) => {
                complain(format_args!("{failure}"));
                pipes.iter().for_each(|pipe| servers::abandon(*pipe, READING | WRITING));
                return None;
            }
        }
    }
    Some(pipes)
}

/// The input of programs for which nobody types: a pipe that has ended, which this shell keeps open. It is
/// made anew if its server has died.
fn nothing() -> Result<String, Errno> {
    static NOTHING: Lock<Option<(u64, File)>> = Lock::new(None);
    let mut nothing = NOTHING.lock();
    if let Some((pipe, file)) = *nothing
        && file.read(&mut [0; 1]) == Ok(0)
    {
        return Ok(end_path(pipe, 'r'));
    }
    let pipe = servers::pipe().map_err(|failure| failure.error)?;
    servers::abandon(pipe, WRITING);
    let path = end_path(pipe, 'r');
    let file = io::open(&path).inspect_err(|_| servers::abandon(pipe, READING))?;
    *nothing = Some((pipe, file));
    Ok(path)
}

fn end_path(pipe: u64, side: char) -> String {
    format!("/pipe/{pipe:016x}/{side}")
}

/// Where a command's program is.
fn program(name: &str) -> String {
    if name.contains('/') { name.into() } else { format!("/bin/{name}") }
}

/// The paths that a command's files have when its redirections are done.
fn files(command: &Command, stage: &Stage, typed: bool) -> Result<Files, String> {
    let input = match stage.input {
        Some(pipe) => end_path(pipe, 'r'),
        None if typed => standard_path(0),
        None => nothing().map_err(|error| format!("{error}"))?,
    };
    let output = stage.output.map_or_else(|| standard_path(1), |pipe| end_path(pipe, 'w'));
    let mut files = [input, output, standard_path(2)];
    redirect::apply(&command.redirections, &mut files)?;
    Ok(files)
}

/// Makes the program of a command, ready to be started.
fn load(shell: &Shell, command: &Command, stage: &mut Stage, typed: bool) {
    let name = &command.words[0];
    if name.is_empty() {
        stage.status = Some(NOT_FOUND);
        return complain(format_args!("a command's name cannot be empty"));
    }
    let child = match Child::load(&program(name)) {
        Ok(child) => child,
        Err(error) => {
            stage.status = Some(if error == errno::ENOENT { NOT_FOUND } else { NOT_RUN });
            let text = if error == errno::ENOENT { "no such command" } else { error.text() };
            return complain(format_args!("{name}: {text}"));
        }
    };
    // No file is emptied for a program that is not there.
    match files(command, stage, typed) {
        Ok(files) => match furnish(shell, command, &child, &files) {
            Ok(()) => return stage.domain = child.0,
            Err(error) => {
                stage.status = Some(NOT_RUN);
                complain(format_args!(
                    "{name}: {}",
                    if error == errno::E2BIG { TOO_LONG } else { error.text() }
                ));
            }
        },
        Err(reason) => {
            stage.status = Some(NO_FILE);
            complain(format_args!("{reason}"));
        }
    }
    let _ = child.kill();
    let _ = child.wait();
}

const TOO_LONG: &str = "arguments and variables are too long together: 3839 bytes at most";

/// Gives the program what its start-up page has.
fn furnish(shell: &Shell, command: &Command, child: &Child, files: &Files) -> Result<(), Errno> {
    command.words.iter().try_for_each(|argument| child.argument(argument))?;
    for variable in shell.environment(&command.assignments) {
        child.environment(&variable)?;
    }
    files.iter().enumerate().try_for_each(|(n, path)| child.stdio(n, path))
}

/// One that cannot be started ends at once; whoever waits for it buries it.
fn start(command: &Command, number: usize, domain: u16) {
    if let Err(error) = Child(domain).start() {
        if !interrupted() {
            complain(format_args!("{}: {error}", command.words[0]));
        }
        finish(number, |stage| stage.domain == domain, NOT_RUN);
        let _ = servers::kill(domain);
    }
}

/// Nobody will open these sides of the stage's pipes any more.
fn give_up(stage: &Stage, sides: u64) {
    if let Some(pipe) = stage.input.filter(|_| sides & READING != 0) {
        servers::abandon(pipe, READING);
    }
    if let Some(pipe) = stage.output.filter(|_| sides & WRITING != 0) {
        servers::abandon(pipe, WRITING);
    }
}

/// Puts a job into the table; returns its number, the lowest that is free.
fn enter(job: &Job, stages: Vec<Stage>, begin: u64) -> usize {
    let commands: Vec<String> = job.commands.iter().map(Command::to_string).collect();
    let mut jobs = JOBS.lock();
    let number = (1..).find(|n| jobs.iter().all(|job| job.number != *n)).unwrap_or(0);
    let times = job.timed.then_some([begin; 2]);
    jobs.push(Running { number, text: commands.join(" | "), background: job.background, times, stages });
    number
}

/// Removes a job whose commands have all ended; the status of the last, and how long it took if that is to be
/// told.
fn leave(number: usize) -> (i64, Option<u64>) {
    let mut jobs = JOBS.lock();
    let Some(at) = jobs.iter().position(|job| job.number == number) else { return (NOT_RUN, None) };
    jobs.swap_remove(at).outcome()
}

impl Running {
    fn outcome(&self) -> (i64, Option<u64>) {
        let status = self.stages.last().and_then(|stage| stage.status).unwrap_or(NOT_RUN);
        (status, self.times.map(|[begin, end]| end - begin))
    }
}

/// A thread's work: see the head of the file. The word is the job's number and the program's domain.
extern "C" fn watch(who: u64) {
    bury(who);
    let number = (who >> 16) as usize;
    let foreground = JOBS.lock().iter().any(|job| job.number == number && !job.background);
    if foreground {
        let _ = api::sem_post(ENDED.load(Ordering::Relaxed));
    }
}

fn bury(who: u64) {
    let (number, domain) = ((who >> 16) as usize, who as u16);
    let status = Child(domain).wait().unwrap_or(NOT_RUN);
    finish(number, |stage| stage.domain == domain && stage.status.is_none(), status);
}

/// A command of the job has ended.
fn finish(number: usize, which: impl Fn(&Stage) -> bool, status: i64) {
    let mut jobs = JOBS.lock();
    let Some(job) = jobs.iter_mut().find(|job| job.number == number) else { return };
    if let Some(stage) = job.stages.iter_mut().find(|stage| which(stage)) {
        stage.status = Some(status);
        give_up(stage, READING | WRITING);
        if let Some([_, end]) = &mut job.times {
            *end = portal::time();
        }
    }
}

fn run_builtin(shell: &mut Shell, builtin: &'static Builtin, command: &Command, number: usize, n: usize) {
    let output = JOBS.lock().iter().find(|job| job.number == number).and_then(|job| job.stages[n].output);
    let own = Stage { domain: 0, input: None, output, status: None };
    let status = match files(command, &own, true).map(|paths| builtin_files(shell, &paths)) {
        Ok(Ok(files)) => {
            let status = builtins::run(shell, builtin, &command.words[1..], files.map(|(file, _)| file));
            files.into_iter().filter(|(_, opened)| *opened).for_each(|(file, _)| file.close());
            status
        }
        Ok(Err(error)) => {
            complain(format_args!("{}: {error}", command.words[0]));
            NOT_RUN
        }
        Err(reason) => {
            complain(format_args!("{reason}"));
            NO_FILE
        }
    };
    // Of the stages without a domain and a status, those before have theirs.
    finish(number, |stage| stage.domain == 0 && stage.status.is_none(), status);
}

/// A built-in's files 1 and 2, and whether they were opened for it.
fn builtin_files(shell: &Shell, paths: &Files) -> Result<[(File, bool); 2], Errno> {
    let open = |n: usize| {
        if paths[n] != standard_path(n) {
            return io::open_at_end(&paths[n]).map(|file| (file, true));
        }
        let own = if n == 1 { shell.terminal.output() } else { io::standard(n)? };
        Ok((own, false))
    };
    let first = open(1)?;
    match open(2) {
        Ok(second) => Ok([first, second]),
        Err(error) => {
            if first.1 {
                first.0.close();
            }
            Err(error)
        }
    }
}

/// Jobs of the background that have ended since the last time, a line each.
pub fn notes() -> String {
    let mut text = String::new();
    JOBS.lock().retain(|job| {
        let ended = job.background && job.stages.iter().all(|stage| stage.status.is_some());
        if ended {
            let (status, took) = job.outcome();
            let after = took.map(|took| format!(" after {}", interval(took))).unwrap_or_default();
            text.push_str(&format!("[{}] ended with status {status}{after}: {}\n", job.number, job.text));
        }
        !ended
    });
    text
}

/// All of a file of text.
pub fn read_all(path: &str) -> Result<String, Errno> {
    let file: File = io::open(path)?;
    let mut bytes = Vec::new();
    let mut chunk = [0; 32];
    let outcome = loop {
        match file.read(&mut chunk) {
            Ok(0) => break Ok(()),
            Ok(count) => bytes.extend_from_slice(&chunk[..count]),
            Err(error) => break Err(error),
        }
    };
    file.close();
    outcome.map(|()| String::from_utf8_lossy(&bytes).into_owned())
}
