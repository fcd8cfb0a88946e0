//! Programs that wait in a server with more threads than it has stacks: everybody else goes on, and Ctrl-C
//! and `kill` end them.

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pebble_qemu::{Guest, PROMPT};

use super::context::{Context, LIMIT, output};

/// Types a line at the prompt; what is shown until the next.
fn types(guest: &mut Guest, line: &str) -> Result<String> {
    guest.send(format!("{line}\n").as_bytes());
    let shown = guest.expect(PROMPT, LIMIT).with_context(|| format!("after {line:?}"))?;
    Ok(String::from_utf8_lossy(&shown).into_owned())
}

fn shows(guest: &mut Guest, line: &str, wanted: &str) -> Result<()> {
    let shown = types(guest, line)?;
    ensure!(shown.contains(wanted), "{line:?} shows no {wanted:?}: {shown:?}");
    Ok(())
}

/// What must go on whatever programs do.
fn all_is_well(guest: &mut Guest) -> Result<()> {
    shows(guest, "ls", "bin/")?;
    shows(guest, "ps", "scheduler")?;
    shows(guest, "echo thr'ou'gh | cat", "through")?;
    types(guest, "sleep 1000 &")?;
    types(guest, "kill sleep")?;
    // Ctrl-C, which may come before the program has begun.
    guest.send(b"sleep 1000\n");
    for _ in 0..20 {
        std::thread::sleep(Duration::from_millis(500));
        guest.send(b"\x03");
        if guest.expect(PROMPT, Duration::from_secs(3)).is_ok() {
            return Ok(());
        }
    }
    anyhow::bail!("Ctrl-C does not end sleep: {:?}", guest.take_output())
}

/// Ends all of this name. One that is dying has it still.
fn end(guest: &mut Guest, name: &str) -> Result<()> {
    let mut shown = String::new();
    for _ in 0..400 {
        shown = types(guest, "ps")?;
        if !shown.contains(name) {
            return Ok(());
        }
        types(guest, &format!("kill {name}"))?;
    }
    anyhow::bail!("{name} cannot be killed: {shown}")
}

/// With all of these in the background, everything goes on, and they die when they are told to.
fn beside(context: &mut Context, blockers: &[&str]) -> Result<()> {
    let mut guest = context.prompt("test")?;
    for line in blockers {
        shows(&mut guest, &format!("{line} &"), "started")?;
    }
    types(&mut guest, "sleep 1")?;
    all_is_well(&mut guest)?;
    let first = blockers.first().and_then(|line| line.split_whitespace().next()).unwrap_or_default();
    end(&mut guest, first)?;
    end(&mut guest, "hostile")?;
    all_is_well(&mut guest)
}

/// The console has 4 stacks.
pub fn console(context: &mut Context) -> Result<()> {
    beside(context, &["hostile block read 12", "hostile block read 12"])
}

/// Readers of empty pipes and writers to full ones; the pipe server has 16 stacks.
pub fn pipe(context: &mut Context) -> Result<()> {
    beside(context, &["hostile block empty 30", "hostile block full 30"])
}

/// Threads that wait for a child, and such as load programs: the process server has fewer stacks than either.
pub fn process(context: &mut Context) -> Result<()> {
    beside(context, &["hostile block wait 30", "hostile block wait 30", "hostile block load 30"])
}

/// Programs of the lowest priority, with a lock of the portal manager's and all its stacks, when more urgent
/// ones come and compute for ever: who holds a lock gets to run while somebody waits for it. So does who is
/// the loader, for whom others wait without a lock.
pub fn inversion(context: &mut Context) -> Result<()> {
    for least in ["least 1", "least 30", "laggard block load 4"] {
        beside(context, &[least, "sleep 0.2", "hostile block ambush 4"])?;
    }
    Ok(())
}

/// The idle thread zeroes free pages, and takes the VM manager's lock for each few. Who wants that lock has
/// it at once, though the idle thread may have been interrupted, and others have begun to compute: it can not
/// be interrupted by them where it has the lock.
pub fn idle(context: &mut Context) -> Result<()> {
    let mut guest = context.shell_counting("test")?;
    let said = guest.run_line("sleep 0.1; hostile idle 100", LIMIT * 4)?.output;
    let most = said.split_whitespace().find_map(|word| word.parse().ok());
    let most: u64 = most.with_context(|| said.clone())?;
    // The emulator counts an instruction each nanosecond.
    let instructions = most * 1_000_000_000 / context.tools().board.time_hz;
    ensure!(instructions < 2000, "that is a call, and more than the idle thread needs: {said}");
    Ok(())
}

/// Below tools, which have stacks of their own.
pub fn tools(context: &mut Context) -> Result<()> {
    beside(context, &["count hostile block empty 20", "chroot / hostile block read 20"])
}

/// Such as come, block and die, and such as are told to wait and stay away: what they were woken for is
/// others'.
pub fn gone(context: &mut Context) -> Result<()> {
    let mut guest = context.prompt("test")?;
    for line in
        ["hostile block-and-die empty 5000", "hostile block-and-die read 5000", "hostile block away 20"]
    {
        shows(&mut guest, &format!("{line} &"), "started")?;
    }
    all_is_well(&mut guest)?;
    // A line goes to whoever reads, though others were told of it first.
    guest.send(b"cat\n");
    std::thread::sleep(Duration::from_millis(500));
    guest.send(b"for whoever reads\n");
    guest.expect("for whoever reads\r\nfor whoever reads", LIMIT)?;
    guest.send(b"\x03");
    guest.expect(PROMPT, LIMIT)?;
    end(&mut guest, "hostile")
}

/// Servers are replaced, and killed, under their waiters: these call again.
pub fn replaced(context: &mut Context) -> Result<()> {
    let mut guest = context.prompt("test")?;
    for line in ["hostile block empty 30", "hostile block full 30", "hostile block read 12"] {
        shows(&mut guest, &format!("{line} &"), "started")?;
    }
    types(&mut guest, "sleep 1")?;
    shows(&mut guest, "hello", "Hello")?;
    for _ in 0..3 {
        for server in ["pipe", "console", "scheduler"] {
            shows(&mut guest, &format!("replace {server} default"), "is domain")?;
        }
        // What was shown by then is told by the console of now.
        shows(&mut guest, "log", "Hello")?;
        all_is_well(&mut guest)?;
    }
    end(&mut guest, "hostile")
}

/// More jobs in the background than there are pipes, or threads in a program: one that cannot start says so,
/// all others run, and so do pipelines in the foreground.
pub fn jobs(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    for (line, most) in [("sleep 1000 | sleep 1000 | sleep 1000 | sleep 1000 &", 6), ("sleep 1000 &", 20)] {
        let mut refused = 0;
        for _ in 0..most * 2 {
            let reply = guest.run_line(line, LIMIT)?;
            let says = reply.output.contains("not started: too much runs in the background");
            ensure!(if reply.status == 0 { !says } else { says }, "{reply:?}");
            refused += u32::from(says);
        }
        ensure!((1..most * 2).contains(&refused), "{refused} of {} refused: {line}", most * 2);
        ensure!(output(&mut guest, "echo still here")? == "still here\n", "a command in the foreground");
        let piped = output(&mut guest, "echo still here | cat | cat | wc")?;
        ensure!(piped.split_whitespace().eq(["1", "2", "11"]), "a pipeline in the foreground: {piped}");
    }
    // One that is dying already has the name still.
    let ended = |guest: &mut Guest| Ok::<_, anyhow::Error>(!output(guest, "ps")?.contains("sleep"));
    for _ in 0..400 {
        guest.run_line("kill sleep", LIMIT)?;
        if ended(&mut guest)? {
            break;
        }
    }
    let again =
        (0..100).any(|_| matches!(guest.run_line("echo back &", LIMIT), Ok(reply) if reply.status == 0));
    ensure!(again, "what has ended gives back what it had");
    guest.send(b"exit\n");
    let exit = guest.wait_exit(LIMIT)?;
    ensure!(exit == pebble_qemu::Exit::PoweredOff, "{exit}");
    Ok(())
}

/// Who opens the console in the background gets nothing that is typed for the shell or for what is in the
/// foreground.
pub fn foreground(context: &mut Context) -> Result<()> {
    let mut guest = context.prompt("test")?;
    for _ in 0..2 {
        shows(&mut guest, "cat /dev/console &", "started")?;
    }
    shows(&mut guest, "hostile front &", "started")?;
    types(&mut guest, "sleep 1")?;
    for round in 0..3 {
        // What is typed ahead for the shell, and for a program of which two read, and that has started
        // another.
        guest.send(format!("sleep 1\necho 'typed ' 'ahead' {round}\n").as_bytes());
        guest.expect(&format!("typed  ahead {round}\r\n"), LIMIT)?;
        for line in ["cat | wc", "count wc", "cat /dev/console | wc"] {
            guest.send(format!("{line}\none line\nand another\n\x04").as_bytes());
            guest
                .expect("      2       4      21", LIMIT)
                .with_context(|| format!("{line} in round {round}"))?;
            guest.expect(PROMPT, LIMIT)?;
        }
        // Ctrl-C, and the end of who was in front.
        guest.send(b"cat\n");
        guest.send(b"\x03");
        guest.expect(PROMPT, LIMIT)?;
        if round == 1 {
            shows(&mut guest, "replace console default", "is domain")?;
        }
        ensure!(!types(&mut guest, "log")?.contains("front: got"), "hostile front has got something");
    }
    all_is_well(&mut guest)?;
    end(&mut guest, "cat")?;
    end(&mut guest, "hostile")
}
