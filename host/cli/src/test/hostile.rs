//! Tests that the program `hostile` judges in the guest: it knows each kind of attack, and counts what is
//! lost by it.

use std::time::Duration;

use anyhow::{Result, ensure};
use pebble_qemu::{Guest, Reply};

use super::context::{Context, LIMIT, output};

/// What was said, by a judge who has the last word: nothing failed. Faults are told beside it.
fn judged(guest: &mut Guest, line: &str, limit: Duration) -> Result<String> {
    let Reply { output: said, status } = guest.run_line(line, limit)?;
    let own = || said.lines().filter(|line| !line.starts_with("fault: "));
    let verdict = own().rfind(|line| line.starts_with("hostile: ")).unwrap_or_default();
    ensure!(
        status == 0 && verdict.ends_with(", 0 failed"),
        "{line}: {}",
        own().collect::<Vec<_>>().join("; ")
    );
    Ok(said)
}

/// The process server waits a second for the client's thread, which counts as 1,100 million instructions.
const WAITED_FOR: u32 = 4;

/// Its thread is no more urgent than it was: everybody else goes on, and all is well when the server is
/// killed.
pub fn a_dead_clients_thread_in_a_server_that_keeps_it(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    for how in ["spin", "nap"] {
        let started = output(&mut guest, &format!("stuck serve {how} &"))?;
        ensure!(started.contains("started"), "{started}");
        output(&mut guest, "sleep 0.3")?;
        for _ in 0..2 {
            let Reply { output: said, status } = guest.run_line("stuck call", LIMIT * WAITED_FOR)?;
            ensure!(status == 0 && said.contains("leaves a thread behind"), "{how}: {status}: {said}");
            let alive = output(&mut guest, "echo on")?;
            ensure!(alive == "on\n", "{how}: {alive:?}");
        }
        guest.run_line("kill stuck", LIMIT)?;
        guest.run_line("sleep 0.1", LIMIT)?;
    }
    Ok(())
}

/// Each kind of attack, as a program and as a server in a client's call.
pub fn each_kind(context: &mut Context, rounds: u64) -> Result<()> {
    let rounds = context.times(rounds) as u32;
    let mut guest = context.shell("test")?;
    judged(&mut guest, &format!("hostile judge {rounds}"), LIMIT * (10 + 3 * rounds))?;
    output(&mut guest, "echo still here")?;
    Ok(())
}

/// The thread's program dies of it, or is refused.
pub fn full_invocation_stacks(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    judged(&mut guest, "hostile depth 1", LIMIT * 20).map(drop)
}

/// Exporters whose specifications ask for stacks, registers and pages of whoever opens them, and of whoever
/// controls that one.
pub fn openers_give_what_they_say(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    judged(&mut guest, "hostile consent 2", LIMIT * 10).map(drop)
}

/// Pages that are lent to servers of files and pipes, and taken away meanwhile.
pub fn pages_lent_to_files_and_pipes(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    judged(&mut guest, "hostile streams 3", LIMIT * 10).map(drop)
}

/// Pages that change places through a pipe: taken away, spied on, somebody else's.
pub fn pages_that_go_through_pipes(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    judged(&mut guest, "hostile flips 3", LIMIT * 10).map(drop)
}

/// Servers that put portals into the tables of whoever calls them.
pub fn tables_that_others_fill(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    judged(&mut guest, "hostile gifts 2", LIMIT * 10).map(drop)
}

/// Memory that is lent, and lent as it must not be.
pub fn windows(context: &mut Context, which: &str) -> Result<()> {
    // Some kinds are a matter of milliseconds, which a busy machine must not count.
    let mut guest = context.shell_counting("test")?;
    judged(&mut guest, &format!("hostile windows {which} 3"), LIMIT * 10).map(drop)
}

/// Servers that do not come back, called with a time limit: a thousand calls end.
pub fn calls_whose_time_is_over(context: &mut Context) -> Result<()> {
    // The limits are milliseconds, which a busy machine must not count.
    let mut guest = context.shell_counting("test")?;
    let reply = guest.run_line("late", LIMIT * 10)?;
    ensure!(reply.output.trim_end().ends_with("late: 0 failed"), "{reply:?}");
    judged(&mut guest, "hostile late 3", LIMIT * 10).map(drop)
}

/// Two handlers for two ranges; what nobody answers is a fault like any other, and so is what a third handler
/// would answer below two.
pub fn pages_come_from_their_handlers(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    let said = judged(&mut guest, "hostile pages 3", LIMIT * 10)?;
    let told = |wanted: &str| said.lines().any(|l| l.starts_with("fault: ") && l.contains(wanted));
    ensure!(told("load from 0x5028000") && told("store to 0x6000000"), "{said}");
    ensure!(told("access to 0x5025000, below two fault handlers"), "{said}");
    Ok(())
}

/// Lists and policies; policies that loop, sleep and die refuse in time, and hold up nobody else.
pub fn exporters_decide_who_opens(context: &mut Context) -> Result<()> {
    // In time is half a second, which a busy machine must not count.
    let mut guest = context.shell_counting("test")?;
    judged(&mut guest, "hostile guards 2", LIMIT * 10).map(drop)
}

/// Good templates and bad ones, unfinished ones, dead components; tokens until there are none.
pub fn components_register_letters(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("template")?;
    judged(&mut guest, "hostile templates 3", LIMIT * 10).map(drop)
}

/// The file server says that there is no more memory, and goes on.
pub fn files_that_take_all_memory(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    for how in ["0 keep", "20 keep", "40"] {
        judged(&mut guest, &format!("hostile fill {how}"), LIMIT * 4)?;
    }
    ensure!(output(&mut guest, "echo hello | cat")? == "hello\n", "programs start");
    Ok(())
}

/// Each is refused with what is wrong and where, as a program and in the place of a server, and nothing is
/// left of it.
pub fn files_that_are_no_programs(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    let said = judged(&mut guest, "hostile files 1", LIMIT * 10)?;
    let lines: Vec<&str> = said.lines().collect();
    let wanted: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("wanted ")).collect();
    ensure!(wanted.len() >= 3 * 50, "{} files", wanted.len());
    for line in &wanted {
        ensure!(lines.contains(line), "nothing says {line:?}");
    }
    // Some at a time: a family may have no more files there.
    for first in (0..).step_by(16) {
        let written = output(&mut guest, &format!("hostile files-write {first}"))?;
        let count = written.split_whitespace().next().and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
        ensure!(count >= 40, "{written}");
        for n in first..count.min(first + 16) {
            let reply = guest.run_line(&format!("replace console /ram/broken{n}"), LIMIT)?;
            let says = wanted.iter().find_map(|line| line.strip_prefix(&format!("process: /ram/file{n}: ")));
            // The shell leaves the first slash out: names have 24 characters there.
            let wanted = format!("process: ram/broken{n}: {}", says.unwrap_or_default());
            ensure!(reply.status != 0, "{wanted:?}, and replaced all the same");
            // What the process server has to say it may say a moment later.
            let heard = reply.output + &output(&mut guest, "sleep 0")?;
            ensure!(heard.lines().any(|line| line == wanted), "{wanted:?}, but {heard:?}");
        }
        output(&mut guest, &format!("hostile files-remove {first}"))?;
        if first + 16 >= count {
            break;
        }
    }
    Ok(())
}

pub fn names_are_opened_by_capability(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("secret")?;
    by_capability(&mut guest, "secrets")
}

/// Alone, and below controllers: capabilities are then the subject's, and `k` goes through stubs.
fn by_capability(guest: &mut Guest, which: &str) -> Result<()> {
    let deep = "chroot / ".repeat(8);
    for tools in ["", "count ", "sandbox --allow * ", &deep] {
        judged(guest, &format!("{tools}hostile {which} 10"), LIMIT * 12)?;
    }
    Ok(())
}

/// As a program may want them, and as a hostile one does; a tool changes where a path begins, not whether it
/// may be opened.
pub fn files_are_opened_by_capability(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("secret")?;
    for line in [
        "cat /etc/secret",
        "cat etc//secret",
        "count cat /etc/secret",
        "chroot /etc cat /secret",
        "chroot /etc cat ../secret",
        "chroot /vault cat run",
        "ls /vault",
        "/vault/run",
        "count cat /etc/uncounted",
    ] {
        let reply = guest.run_line(line, LIMIT)?;
        let told = ["Permission denied", "policy refuses it"].iter().any(|text| reply.output.contains(text));
        ensure!(reply.status != 0 && told, "{line}: {}, {}", reply.status, reply.output);
    }
    output(&mut guest, "cat /etc/uncounted")?;
    // What the process server has read for one that may, it does not start for another.
    for line in ["uncounted yes", "count uncounted no", "uncounted yes", "count count uncounted no"] {
        let reply = guest.run_line(line, LIMIT)?;
        let (may, ran) = (line.ends_with("yes"), reply.output.ends_with("yes\n") && reply.status == 0);
        let refused = reply.status != 0 && reply.output.contains("policy refuses it");
        ensure!(if may { ran } else { refused }, "{line}: {reply:?}");
    }
    let listed = output(&mut guest, "ls /etc")?;
    ensure!(listed.contains("secret") && listed.contains("supervisor"), "{listed}");
    by_capability(&mut guest, "paths")
}

/// A supervisor and drivers of the clock's alarm, which die with interrupts that they have not acknowledged.
pub fn devices_are_driven_by_capability(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("secret")?;
    by_capability(&mut guest, "devices")
}
