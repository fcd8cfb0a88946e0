//! Running pipelines of programs.
//!
//! Problem: a program of a pipeline may end without ever having opened its end of a pipe, and the other side
//! must not wait for it. Strategy: a thread waits for each program; when it has ended, the shell, as creator
//! of the pipes, abandons the two sides that were this program's. A lone program in the foreground needs no
//! thread. A job for which there are not enough pipes or threads does not start, and says so; jobs in the
//! background leave some of both for the foreground.
//!
//! All jobs are in one table, under one lock: that of the foreground, so that Ctrl-C finds it, and those in
//! the background until their end has been told.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use pebble::abi::{errno, map::TIME_HZ};
use pebble::api::{self, Errno};
use pebble::io::{self, File};
use pebble::portal;
use pebble::process::Child;
use pebble::sync::Lock;
use pebble_shell::{Command, Job};

use crate::builtins::{self, Builtin};
use crate::servers::{self, READING, WRITING};
use crate::terminal::{Mode, standard_path};
use crate::{Shell, complain};

/// Status of a command that could not be run, and of one that is not there.
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
    // In the background, and in a script, nobody types.
    let typed = !job.background && shell.terminal.mode != Mode::Script;
    if job.background && !fits_behind(job.commands.len()) {
        complain(format_args!("{}: not started: too much runs in the background", job.commands[0][0]));
        return NOT_RUN;
    }
    let Some(pipes) = pipes(job.commands.len() - 1) else { return NOT_RUN };
    let end = |n: Option<usize>| n.and_then(|n| pipes.get(n)).copied();
    let builtins: Vec<_> = job.commands.iter().map(|command| builtins::find(&command[0])).collect();
    let mut stages = Vec::new();
    for (n, command) in job.commands.iter().enumerate() {
        let mut stage = Stage { domain: 0, input: end(n.checked_sub(1)), output: end(Some(n)), status: None };
        if builtins[n].is_none() {
            load(command, &mut stage, typed);
        }
        if stage.domain == 0 {
            let idle = if stage.status.is_some() { READING | WRITING } else { READING };
            give_up(&stage, idle);
        }
        stages.push(stage);
    }
    let domains: Vec<u16> = stages.iter().map(|stage| stage.domain).collect();
    let number = enter(job, stages);
    let programs: Vec<u64> = domains.iter().filter(|d| **d != 0).map(|d| who(number, *d)).collect();
    let alone = job.commands.len() == 1 && programs.len() == 1 && !job.background;
    let watched = if alone { 0 } else { programs.iter().take_while(|program| watched(**program)).count() };
    let begins = alone || watched == programs.len();
    if !begins {
        complain(format_args!("{}: not started: no thread is left to wait for it", job.commands[0][0]));
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
    let status = leave(number);
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

/// Makes the program of a command, ready to be started.
fn load(command: &Command, stage: &mut Stage, typed: bool) {
    if command[0].is_empty() {
        stage.status = Some(NOT_FOUND);
        return complain(format_args!("a command's name cannot be empty"));
    }
    let prepare = |child: &Child| {
        let input = match stage.input {
            Some(pipe) => end_path(pipe, 'r'),
            None if typed => standard_path(0),
            None => nothing()?,
        };
        let output = stage.output.map_or_else(|| standard_path(1), |pipe| end_path(pipe, 'w'));
        command.iter().try_for_each(|argument| child.argument(argument))?;
        [input, output, standard_path(2)].iter().enumerate().try_for_each(|(n, path)| child.stdio(n, path))
    };
    let made = Child::load(&program(&command[0])).and_then(|child| {
        prepare(&child).map(|()| child).inspect_err(|_| {
            let _ = child.kill();
            let _ = child.wait();
        })
    });
    match made {
        Err(error) => {
            stage.status = Some(if error == errno::ENOENT { NOT_FOUND } else { NOT_RUN });
            let text = if error == errno::ENOENT { "no such command" } else { error.text() };
            complain(format_args!("{}: {text}", command[0]));
        }
        Ok(child) => stage.domain = child.0,
    }
}

/// One that cannot be started ends at once; whoever waits for it buries it.
fn start(command: &Command, number: usize, domain: u16) {
    if let Err(error) = Child(domain).start() {
        if !interrupted() {
            complain(format_args!("{}: {error}", command[0]));
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
fn enter(job: &Job, stages: Vec<Stage>) -> usize {
    let commands: Vec<String> = job.commands.iter().map(|command| command.join(" ")).collect();
    let mut jobs = JOBS.lock();
    let number = (1..).find(|n| jobs.iter().all(|job| job.number != *n)).unwrap_or(0);
    jobs.push(Running { number, text: commands.join(" | "), background: job.background, stages });
    number
}

/// Removes a job whose commands have all ended; the status of the last.
fn leave(number: usize) -> i64 {
    let mut jobs = JOBS.lock();
    let Some(at) = jobs.iter().position(|job| job.number == number) else { return NOT_RUN };
    jobs.swap_remove(at).stages.last().and_then(|stage| stage.status).unwrap_or(NOT_RUN)
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
    let job = jobs.iter_mut().find(|job| job.number == number);
    if let Some(stage) = job.and_then(|job| job.stages.iter_mut().find(|stage| which(stage))) {
        stage.status = Some(status);
        give_up(stage, READING | WRITING);
    }
}

fn run_builtin(shell: &mut Shell, builtin: &'static Builtin, command: &Command, number: usize, n: usize) {
    let output = JOBS.lock().iter().find(|job| job.number == number).and_then(|job| job.stages[n].output);
    let pipe = output.map(|pipe| io::open(&end_path(pipe, 'w')));
    let status = match pipe {
        Some(Err(error)) => {
            complain(format_args!("{}: {error}", command[0]));
            NOT_RUN
        }
        Some(Ok(file)) => {
            let status = builtins::run(shell, builtin, &command[1..], file);
            file.close();
            status
        }
        None => {
            let file = shell.terminal.output();
            builtins::run(shell, builtin, &command[1..], file)
        }
    };
    // Of the stages without a domain and a status, those before have theirs.
    finish(number, |stage| stage.domain == 0 && stage.status.is_none(), status);
}

/// Jobs of the background that have ended since the last time, a line each.
pub fn notes() -> String {
    let mut text = String::new();
    JOBS.lock().retain(|job| {
        let ended = job.background && job.stages.iter().all(|stage| stage.status.is_some());
        if ended {
            let status = job.stages.last().and_then(|stage| stage.status).unwrap_or(NOT_RUN);
            text.push_str(&format!("[{}] ended with status {status}: {}\n", job.number, job.text));
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
