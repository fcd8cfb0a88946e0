//! Families that take all that they can, and others who want a little meanwhile.

use anyhow::{Context as _, Result, ensure};
use pebble_qemu::Guest;

use super::context::{Context, LIMIT, output};

/// What is scarce, and what a family is told there is no more of.
const SCARCE: [(&str, &str); 14] = [
    ("interfaces", "interfaces"),
    ("semaphores", "semaphores"),
    ("names", "semaphores"),
    // Programs need some of each, and may find that there is no more of something else.
    ("stacks", ""),
    ("limits", "time limits"),
    ("programs", ""),
    ("files", "open files"),
    ("pipes", "pipes"),
    ("room", "room in /ram"),
    ("bytes", "room in /ram"),
    ("code", "portal code"),
    ("capabilities", "capabilities"),
    ("passed", "capabilities"),
    // Of places at which handlers are asked nobody is refused any: threads wait, each family's for its own.
    ("handlers", "threads"),
];

/// What a modest program wants meanwhile, if not the same.
fn wanted(what: &str) -> &str {
    match what {
        "passed" => "capabilities",
        "handlers" => "pages",
        what => what,
    }
}

/// Families that take all that they get.
const HOGS: usize = 3;

/// Hogs with two children, each with all that it gets; one more program gets its little, as does the shell.
pub fn others_go_on(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("secret")?;
    // What servers make when they first need it, they keep: the pipe server two semaphores for each pipe.
    all_but_a_little(&mut guest, "pipes", "pipes")?;
    let before = count(&mut guest)?;
    for (what, more) in SCARCE {
        all_but_a_little(&mut guest, what, more).with_context(|| format!("families that take {what}"))?;
    }
    // What they had is given back, but for locks that met for the first time. A family's share that stays
    // would be hundreds.
    let after = count(&mut guest)?;
    let same = before.iter().zip(&after).all(|(before, after)| before.abs_diff(*after) <= 16);
    ensure!(same && before[..2] == after[..2] && before[4] == after[4], "{before:?}, then {after:?}");
    output(&mut guest, "echo still here").map(|_| ())
}

/// Families with all of one thing that they get, until they are dead.
fn all_but_a_little(guest: &mut Guest, what: &str, more: &str) -> Result<()> {
    for _ in 0..HOGS {
        output(guest, &format!("hostile hog {what} 2 &"))?;
    }
    // They are at it until families are refused.
    let told = "for this program and what it has started";
    let mut said = String::new();
    for _ in 0..200 {
        said += &output(guest, "sleep 0.2")?;
        if said.matches(told).count() >= HOGS {
            break;
        }
    }
    let refused = said.matches(told).count() >= HOGS && said.contains(&format!("no more {more}"));
    ensure!(refused, "{what}: families were not refused {more:?}: {said}");
    let reply = guest.run_line(&format!("hostile want {}", wanted(what)), LIMIT)?;
    ensure!(reply.status == 0, "{what}: {reply:?}");
    output(guest, "ls /bin | cat | wc")?;
    // Parents or children, as the numbers have it, until there is none.
    let mut left = 600;
    while left > 0 && guest.run_line("kill hostile", LIMIT)?.status == 0 {
        output(guest, "sleep 0.1")?;
        left -= 1;
    }
    ensure!(left > 0, "{what}: some hog does not die:\n{}", output(guest, "ps")?);
    output(guest, "sleep 0.5 ; hostile sweep")?;
    Ok(())
}

/// Domains, threads, portals, semaphores, interfaces.
fn count(guest: &mut Guest) -> Result<Vec<usize>> {
    let said = output(guest, "hostile count")?;
    let words = said.lines().next().unwrap_or_default().split(' ');
    words.map(|word| word.parse().with_context(|| said.clone())).collect()
}

/// Programs take all memory, and go on trying. Nobody else is sure to get any, but no server dies: whatever
/// is asked is answered, if only with an error that says so, and all is as before when they are gone.
pub fn no_memory_is_left(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    output(&mut guest, "ls /bin | cat | wc")?;
    let before = count(&mut guest)?;
    let (mut refused, mut said) = (0, String::new());
    for round in 0..12 {
        said += &guest.run_line("glut & sleep 0.3", LIMIT * 4)?.output;
        if round < 6 {
            continue;
        }
        for line in ["ls /bin", "ls /bin | cat | wc", "ps", "mem", "echo here", "hello", "names"] {
            let reply = guest.run_line(line, LIMIT * 4)?;
            ensure!(reply.status == 0 || !reply.output.trim().is_empty(), "{line}: {reply:?}");
            refused += u32::from(reply.status != 0);
            said += &reply.output;
        }
    }
    ensure!(refused > 0, "there is memory: {}", output(&mut guest, "mem")?);
    let dead = said.lines().find(|line| line.contains("panic") || line.starts_with("fault: "));
    ensure!(dead.is_none(), "{dead:?}");
    for _ in 0..400 {
        if !output(&mut guest, "ps")?.contains("glut") {
            break;
        }
        guest.run_line("kill glut", LIMIT)?;
    }
    output(&mut guest, "sleep 0.5")?;
    output(&mut guest, "ls /bin | cat | wc")?;
    let after = count(&mut guest)?;
    let same = before.iter().zip(&after).all(|(before, after)| before.abs_diff(*after) <= 16);
    ensure!(same && before[..2] == after[..2] && before[4] == after[4], "{before:?}, then {after:?}");
    // What keeps the system going has been there all the time.
    let alive = output(&mut guest, "ps")?;
    for server in ["scheduler", "vm", "portal-manager", "name", "console", "file", "process", "supervisor"] {
        let lives = |line: &str| line.trim_end().ends_with(server) && line.contains("alive");
        ensure!(alive.lines().any(lives), "{server}: {alive}");
    }
    Ok(())
}

/// Portal tables with entries far apart: each family is told that there is no room, others begin, and all
/// goes on when the families die.
pub fn tables_far_apart(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    let mut said = String::new();
    for _ in 0..HOGS {
        said += &output(&mut guest, "spread & sleep 2")?;
    }
    let told = said.matches("No more room in portal tables for this program").count();
    ensure!(told == HOGS, "{told} were refused: {said}");
    output(&mut guest, "ls /bin | cat | wc")?;
    output(&mut guest, "count hello")?;
    while guest.run_line("kill spread", LIMIT)?.status == 0 {
        output(&mut guest, "sleep 0.5")?;
    }
    let said = output(&mut guest, "spread & sleep 2")?;
    ensure!(said.contains("No more room in portal tables"), "once more: {said}");
    output(&mut guest, "ls /bin | cat | wc").map(|_| ())
}

/// What is cheap for who does it and costs a server much, as fast as it can be done: nobody else waits for
/// long.
pub fn what_costs_others_much(context: &mut Context) -> Result<()> {
    for storm in ["hostile storm exits 44", "hostile storm faults 3", "limbo 30 40"] {
        let mut guest = context.shell("test")?;
        // Until it has begun, which takes some seconds; fewer of those in which an emulator counts.
        let seconds = if context.tools().is_default() { 8 } else { 2 };
        guest.run_line(&format!("{storm} & sleep {seconds}"), LIMIT * 4)?;
        let said = guest.run_line("tick 300", LIMIT * 4)?.output;
        let worst = said.lines().find_map(|line| line.strip_prefix("worst ")?.strip_suffix(" ms"));
        let worst = worst.and_then(|ms| ms.parse().ok()).unwrap_or(u32::MAX);
        ensure!(worst < 1000, "{storm}: {worst} ms: {said}");
        output(&mut guest, "ls /bin | cat | wc")?;
    }
    Ok(())
}
