//! The C library of components, held against the standard by `tests/libc-test`.

use anyhow::{Context as _, Result, ensure};

use super::context::{Context, LIMIT, output};

/// One group of checks, each told of if it fails.
pub fn group(context: &mut Context, name: &str) -> Result<()> {
    let mut guest = context.shell("libc")?;
    let reply = guest.run_line(&format!("libc-test {name}"), LIMIT * 4)?;
    let last = reply.output.lines().last().unwrap_or_default();
    ensure!(reply.status == 0 && last.ends_with(" checks, 0 failed"), "{}", reply.output);
    Ok(())
}

/// What is still in a stream when the program ends is written by then; nothing of a closed one is.
pub fn streams(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("libc")?;
    let said = output(&mut guest, "libc-test streams")?;
    ensure!(said.ends_with(" checks, 0 failed\n"), "{said}");
    for (file, wanted) in [("left", "left to exit"), ("at-exit", "printed by a handler of exit")] {
        let left = output(&mut guest, &format!("cat /ram/{file}"))?;
        ensure!(left.trim_end() == wanted, "/ram/{file}: {left:?}");
    }
    let left = output(&mut guest, "ls /ram")?;
    ensure!(left.lines().all(|name| name.len() != 2), "temporary files stay: {left}");
    let filtered = output(&mut guest, "echo hi | libc-test filter | libc-test filter | cat")?;
    ensure!(filtered == "hi\n", "{filtered:?}");
    let told = output(&mut guest, "echo all of it | libc-test place | cat")?;
    ensure!(told == "all of it\n", "{told:?}");
    Ok(())
}

/// Four threads print to a pipe, which is often full, and to the console: each call's line is whole. Nobody
/// waits for a lock of who will not be back.
pub fn threads(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("libc")?;
    for line in ["libc-test voices | cat", "libc-test voices"] {
        let said = guest.run_line(line, LIMIT * 4)?.output;
        let wanted = |voice, n| format!("voice {voice} says {n:03} by one call of many characters");
        for (voice, n) in (0..4).flat_map(|voice| (0..100).map(move |n| (voice, n))) {
            let whole = said.lines().filter(|line| *line == wanted(voice, n)).count();
            ensure!(whole == 1, "{line}: {:?} is there {whole} times: {said}", wanted(voice, n));
        }
    }
    output(&mut guest, "libc-test serve & sleep 0.2")?;
    for name in ["threads", "unwound"] {
        let said = guest.run_line(&format!("libc-test {name}"), LIMIT * 4)?.output;
        ensure!(said.contains(" checks, 0 failed\n"), "{name}: {said}");
    }
    Ok(())
}

/// Directories, POSIX threads and semaphores, reads at places, poll; stacks that grow.
pub fn posix(context: &mut Context) -> Result<()> {
    for name in ["directories", "pthreads", "semaphores", "places", "poll", "stacks"] {
        group(context, name)?;
    }
    Ok(())
}

/// Files as pages, also of a program whose portals are all another's; and nothing that is not mapped.
pub fn pages(context: &mut Context) -> Result<()> {
    group(context, "pages")?;
    let mut guest = context.shell("libc")?;
    for under in ["count", "count count"] {
        let reply = guest.run_line(&format!("{under} libc-test pages"), LIMIT * 4)?;
        let judged = reply.output.lines().any(|line| line.ends_with(" checks, 0 failed"));
        ensure!(reply.status == 0 && judged, "{under}: {}", reply.output);
    }
    for how in ["write", "behind", "ended"] {
        let reply = guest.run_line(&format!("libc-test trespass {how}"), LIMIT)?;
        ensure!(reply.status > 128 && reply.output.contains("fault: "), "{how}: {reply:?}");
    }
    Ok(())
}

/// The heap is sound, and a block that is freed twice ends the program, not somebody else's data.
pub fn memory(context: &mut Context) -> Result<()> {
    group(context, "memory")?;
    let mut guest = context.shell("libc")?;
    let reply = guest.run_line("libc-test free-twice", LIMIT)?;
    ensure!(reply.status != 0 && reply.output.contains("free: not a block"), "{}", reply.output);
    Ok(())
}

/// Programs that take more memory than there is, one after the other, and leave none of it as they got it:
/// each gets zeroes, whether the idle thread has had the time to make them or not.
pub fn memory_of_others(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("libc")?;
    for round in 0..14 {
        let reply = guest.run_line("libc-test fresh", LIMIT)?;
        ensure!(reply.status == 0, "round {round}: {}", reply.output);
        if round % 2 == 1 {
            output(&mut guest, "sleep 0.1")?;
        }
    }
    Ok(())
}

/// Instructions for each block of 40,000, and for each page by which a block of 4 MiB grows.
pub fn memory_cost(context: &mut Context) -> Result<()> {
    let mut guest = context.shell_counting("libc")?;
    // Time for the idle thread, which any system has now and then: it zeroes pages before somebody wants
    // them.
    let said = guest.run_line("sleep 0.1; libc-test growth; libc-test cost", LIMIT * 4)?.output;
    for what in ["malloc", "free-every-second", "free-the-rest", "grow", "grow-fresh"] {
        let cost = said
            .lines()
            .find_map(|line| line.strip_prefix(what)?.strip_prefix(' ')?.split(' ').next()?.parse().ok());
        let cost: u64 = cost.with_context(|| format!("{what}: {said}"))?;
        // Of a page, filling the TLB for it is a part where software does that.
        let most = if what == "grow-fresh" && !context.tools().is_default() { 450 } else { 300 };
        ensure!(cost <= most, "{what}: {cost} instructions, more than {most}: {said}");
    }
    Ok(())
}

/// A program of 2.6 MB starts from the image's archive, and from where another program has put it.
pub fn large_programs(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("libc")?;
    let first = guest.run_line("large", LIMIT * 4)?;
    ensure!(first.output == "all there\n", "{}", first.output);
    let copied = guest.run_line("libc-test copy /bin/large /ram/large", LIMIT * 6)?;
    ensure!(copied.status == 0, "{}", copied.output);
    let second = guest.run_line("/ram/large", LIMIT * 4)?;
    ensure!(second.output == "all there\n", "{}", second.output);
    Ok(())
}

/// A call through a pointer that leads to no function ends the program, and is told with registers and a
/// backtrace, whatever it leads to, and whatever the compiler makes of it. (Of an odd address the processor
/// leaves out the lowest bit.)
pub fn wild_pointers(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    ensure!(output(&mut guest, "wild")? == "2\n", "a pointer to a function");
    for how in ["data", "constant", "bytes", "stack", "heap", "null", "far", "visibly"] {
        // Many crashes at once are not all told.
        output(&mut guest, "sleep 1")?;
        let reply = guest.run_line(&format!("wild {how}"), LIMIT)?;
        let told =
            ["fault: domain ", "(wild)", "main+0x", " ra="].iter().all(|word| reply.output.contains(word));
        ensure!(reply.status > 128 && told, "{how}: {reply:?}");
    }
    // Where the compiler has left nothing, nothing is run on into.
    let reply = guest.run_line("nowhere", LIMIT)?;
    ensure!(
        reply.status > 128
            && ["instruction", "breakpoint"].iter().any(|what| reply.output.contains(what))
            && reply.output.contains("main+0x0"),
        "{reply:?}"
    );
    Ok(())
}
