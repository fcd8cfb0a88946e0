//! Servers replaced and restarted while clients call them; the judge in the guest counts, here what came over
//! the console is counted.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use super::context::Context;

/// What the clients write, one byte now and then (`tests/replace-test`).
const MARKS: &str = "!$%&*+^~";

/// Has the judge do a job; what was printed before its last line, and that.
fn judge(context: &mut Context, line: &str, limit: u64, says: &str) -> Result<(String, String)> {
    let mut guest = context.shell("replace")?;
    let reply = guest.run_line(&format!("replace-test {line}"), Duration::from_secs(limit))?;
    let failed: Vec<&str> = reply.output.lines().filter(|l| l.starts_with("FAILED ")).take(8).collect();
    ensure!(failed.is_empty(), "{}", failed.join("; "));
    let (before, last) = reply.output.trim_end().rsplit_once('\n').context("no line")?;
    ensure!(reply.status == 0 && last.starts_with(says), "status {}, {last:?}", reply.status);
    // Everything still works.
    super::context::output(&mut guest, "echo still here")?;
    Ok((before.into(), last.into()))
}

/// Every server is replaced so many times; no mark that a client has written is lost, or there twice.
pub fn load(context: &mut Context, times: u64, limit: u64) -> Result<()> {
    let times = context.times(times);
    let (before, last) = judge(context, &format!("load {times}"), limit, "replaced: ")?;
    ensure!(last.contains(&format!("replaced: {} times, ", times * 8)), "{last}");
    let written: Vec<usize> = last
        .split_once("marks")
        .map_or("", |(_, marks)| marks)
        .split_whitespace()
        .flat_map(str::parse)
        .collect();
    let seen: Vec<usize> = MARKS.chars().map(|mark| before.chars().filter(|c| *c == mark).count()).collect();
    ensure!(written.len() == seen.len() && written.iter().all(|n| *n > 0), "{last}");
    ensure!(written == seen, "written {written:?}, came {seen:?}");
    Ok(())
}

/// A C program never sees that what it calls is being replaced.
pub fn c_client(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("replace")?;
    const CLIENTS: usize = 4;
    let seconds = context.times(10);
    let mut shown = String::new();
    let mut run = |line: &str| -> Result<String> {
        let reply = guest.run_line(line, super::context::LIMIT)?;
        ensure!(reply.status == 0, "{line}: {}", reply.output);
        shown += &reply.output;
        Ok(shown.clone())
    };
    for _ in 0..CLIENTS {
        run(&format!("mover {seconds} &"))?;
    }
    for _ in 0..15 {
        run("replace file components/file")?;
        run("replace clock components/clock")?;
    }
    // The last to end is one more, in the foreground.
    let ended = |shown: &str| shown.matches("mover: ").count() > CLIENTS;
    let mut shown = run("mover 1")?;
    for _ in 0..60 {
        if ended(&shown) {
            break;
        }
        shown = run("echo")?;
        std::thread::sleep(Duration::from_secs(1));
    }
    ensure!(ended(&shown) && !shown.contains("FAILED"), "{shown}");
    Ok(())
}

/// After rounds of one scheduler and the other, none is there but the one in charge, and as many pages are
/// free as before.
pub fn schedulers(context: &mut Context) -> Result<()> {
    let (before, last) = judge(context, "schedulers 10", 60, "schedulers: ")?;
    ensure!(last == "schedulers: 22 replaced, 0 failed", "{last}; {before}");
    let mut guest = context.shell("replace")?;
    for _ in 0..3 {
        for file in ["edf", "default"] {
            super::context::output(&mut guest, &format!("replace scheduler {file}"))?;
        }
    }
    let listed = super::context::output(&mut guest, "ps")?;
    let schedulers: Vec<&str> = listed.lines().filter(|line| line.contains("scheduler")).collect();
    ensure!(schedulers.len() == 1 && schedulers[0].contains("alive"), "{schedulers:?}");
    Ok(())
}

pub fn refused(context: &mut Context) -> Result<()> {
    let (before, _) = judge(context, "refused 6", 240, "refused: 36 successors, 0 failed")?;
    for wanted in [
        "process: components/counter-bad: the state of the component in use: invalid argument",
        "process: components/counter: the state of the component in use: invalid argument",
        "process: components/counter-less: an interface of the component in use is missing",
        "process: components/console: import ",
        "process: share/lines: not a program",
    ] {
        ensure!(before.contains(wanted), "no {wanted:?}");
    }
    Ok(())
}

/// A component dies so many times under its clients.
pub fn restart(context: &mut Context, times: u64, limit: u64) -> Result<()> {
    let times = context.times(times);
    let (before, last) = judge(context, &format!("restart {times}"), limit, "restarted: ")?;
    ensure!(last.contains(&format!("restarted: {times} times, ")), "{last}");
    ensure!(before.contains("supervisor: fragile (domain "), "the supervisor says nothing");
    Ok(())
}

pub fn policy(context: &mut Context) -> Result<()> {
    let (before, _) = judge(context, "policy 1", 60, "policy: 0 failed")?;
    let restarts = before.matches("supervisor: fragile-few (domain ").count();
    ensure!(restarts == 4 && before.contains("giving up after 3 restarts"), "{before}");
    ensure!(!before.contains("supervisor: fragile-never"), "{before}");
    Ok(())
}
