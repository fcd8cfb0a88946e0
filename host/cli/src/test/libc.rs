//! The C library of components, held against the standard by `programs/libc-test`.

use anyhow::{Result, ensure};

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
    let filtered = output(&mut guest, "echo hi | libc-test filter | libc-test filter | cat")?;
    ensure!(filtered == "hi\n", "{filtered:?}");
    Ok(())
}
