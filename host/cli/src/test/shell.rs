//! What the shell gives to programs: files in place of the console, and variables.

use anyhow::{Result, ensure};

use super::context::{Context, LIMIT, output};

/// Runs each line: its status, and what it prints.
fn told(context: &mut Context, system: &str, lines: &[(&str, i32, &str)]) -> Result<()> {
    let mut guest = context.shell(system)?;
    for (line, status, wanted) in lines {
        let reply = guest.run_line(line, LIMIT)?;
        let same = i64::from(*status) == i64::from(reply.status) && reply.output == *wanted;
        ensure!(same, "{line:?} ended with {} and printed {:?}", reply.status, reply.output);
    }
    Ok(())
}

/// Programs and built-ins alike, in the foreground, in pipelines and behind.
pub fn redirections(context: &mut Context) -> Result<()> {
    told(
        context,
        "libc",
        &[
            ("echo one > /ram/a; cat < /ram/a", 0, "one\n"),
            ("echo two >>/ram/a; echo three >> ram/b; cat /ram/a /ram/b", 0, "one\ntwo\nthree\n"),
            ("echo four > /ram/a; cat /ram/a", 0, "four\n"),
            // Two files that lead to one place, in the order of the line.
            ("cat /none /ram/a > /ram/c 2>&1; wc -l < /ram/c", 0, "2\n"),
            ("cat /none /ram/a 2>&1 > /ram/c | wc -l; cat /ram/c", 0, "1\nfour\n"),
            ("cat /none 2> /ram/c; cat /ram/c", 0, "cat: /none: No such file or directory\n"),
            ("cat < /ram/a | cat | wc -c > /ram/c; cat /ram/c", 0, "5\n"),
            ("echo lost > /ram/c | wc -c < /ram/a; cat /ram/c", 0, "5\nlost\n"),
            ("echo to the console > /dev/console 2>&1", 0, "to the console\n"),
            ("wc -l < /bin > /ram/c; wc -l /ram/c", 0, "1 /ram/c\n"),
            // Commands of the shell's own.
            ("status > /ram/c; cat /ram/c", 0, "0\n"),
            ("names > /ram/c 2>&1; kill 2> /ram/c", 2, ""),
            ("cat /ram/c; help | cat > /ram/c; echo $?", 0, "shell: usage: kill DOMAIN\n0\n"),
            // A shell, and what it starts.
            ("echo 'echo a; status; none' > /ram/s; shell < /ram/s > /ram/c 2>&1", 127, ""),
            ("cat /ram/c", 0, "a\n0\nshell: none: no such command\n"),
            ("count cat < /ram/a > /ram/c 2> /ram/d; cat /ram/c", 0, "four\n"),
            // Nothing is lost where two write at once.
            ("libc-test voices > /ram/v & libc-test voices >> /ram/v; sleep 2", 0, "[1] started\n"),
            ("wc -l < /ram/v", 0, "[1] ended with status 0: libc-test voices > /ram/v\n800\n"),
        ],
    )
}

/// Each says why, and nothing has been started or emptied.
pub fn refused(context: &mut Context) -> Result<()> {
    let long = format!("/ram/{}", "x".repeat(28));
    let too_long = format!("shell: {long}: name too long: a redirection's has 32 bytes at most\n");
    told(
        context,
        "libc",
        &[
            ("echo kept > /ram/a; none > /ram/a", 127, "shell: none: no such command\n"),
            (
                "cat < /ram/none > /ram/a; echo $?; cat < /ram/a",
                0,
                "shell: /ram/none: no such file\n1\nkept\n",
            ),
            ("echo x > /etc/x", 1, "shell: /etc/x: read-only; only files in /ram can be written\n"),
            (
                "echo x >> /etc/supervisor",
                1,
                "shell: /etc/supervisor: read-only; only files in /ram can be written\n",
            ),
            ("ps 2> /etc/x", 1, "shell: /etc/x: read-only; only files in /ram can be written\n"),
            ("echo x > /ram", 1, "shell: /ram: is a directory\n"),
            ("echo x >> /ram/", 1, "shell: /ram/: is a directory\n"),
            ("echo x > /bin", 1, "shell: /bin: is a directory\n"),
            ("echo x > /ram/a/b", 1, "shell: /ram/a/b: no such directory; /ram has none in it\n"),
            ("echo x > ''", 1, "shell: a file's name cannot be empty\n"),
            ("cat < /dev/console/ctl", 1, "shell: /dev/console/ctl: no file\n"),
            ("echo x > /pipe/0123456789abcdef/w", 1, "shell: /pipe/0123456789abcdef/w: no file\n"),
            (&format!("echo x > {long}"), 1, &too_long),
            ("echo x >", 2, "shell: column 9: a file's name is missing here\n"),
            ("echo x 3> y", 2, "shell: column 8: only 0<, 1> and 2> are files of a command\n"),
            // The others of a pipeline run.
            (
                "echo x > /etc/x | wc -c",
                0,
                "shell: /etc/x: read-only; only files in /ram can be written\n0\n",
            ),
            (
                "sleep 0.01 | wc -c > /etc/x",
                1,
                "shell: /etc/x: read-only; only files in /ram can be written\n",
            ),
        ],
    )?;
    // What goes while it is written to is gone, whether the program has opened it or not.
    told(
        context,
        "libc",
        &[
            ("libc-test vanish /ram/a > /ram/a", 0, "lost: No such file or directory\n"),
            ("libc-test vanish /ram/b late > /ram/b; ls /ram", 0, "lost: Not an open file or portal\n"),
        ],
    )?;
    // As many as a family may have, here a shell within the shell. What is more is refused before it starts.
    let mut guest = context.shell("libc")?;
    for n in 0..25 {
        output(&mut guest, &format!("echo 'status > /ram/{n}' >> /ram/script"))?;
    }
    let reply = guest.run_line("shell < /ram/script", LIMIT)?;
    let wanted = "shell: /ram/24: no more room in /ram for this program and what it has started\n";
    ensure!(reply.status == 1 && reply.output.ends_with(wanted), "{reply:?}");
    Ok(())
}

/// A redirection takes what the shell may open and what the program may open, both.
pub fn rights(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("secret")?;
    let refused = "the name server's policy refuses it";
    for (line, who, wanted) in [
        ("cat < /etc/secret", "shell: /etc/secret: ", refused),
        ("echo x > /ram/secret", "shell: /ram/secret: ", refused),
        ("hostile < /etc/secret", "shell: /etc/secret: ", refused),
        // The shell may, and so may cat, but not what runs below count.
        ("count cat < /etc/uncounted", "cat: -: ", "Permission denied"),
    ] {
        let reply = guest.run_line(line, LIMIT)?;
        let told = reply.output.lines().any(|l| l.starts_with(who) && l.contains(wanted));
        ensure!(reply.status != 0 && told, "{line}: {reply:?}");
    }
    let text = output(&mut guest, "cat < /etc/uncounted")?;
    ensure!(text.lines().count() == 3, "{text:?}");
    Ok(())
}

/// What programs inherit, what they find, and how long they took.
pub fn variables(context: &mut Context) -> Result<()> {
    told(
        context,
        "libc",
        &[
            ("A=1 B='x  y'; echo $A \"$B\" ${A}$B '$A' \\$A $none", 0, "1 x  y 1x  y $A $A \n"),
            ("none; echo $?; echo $?", 0, "shell: none: no such command\n127\n0\n"),
            ("A=2 libc-test env A B C; echo $A", 0, "A=2\nB=x  y\nC is not set\n1\n"),
            ("export C=3 D; count libc-test env A C 2> /ram/x", 0, "A=1\nC=3\n"),
            ("echo 'libc-test env A; E=5; export' | F=6 shell", 0, "A=1\nA=1\nB=x  y\nC=3\nE=5\nF=6\n"),
            ("unset A B C; export; libc-test env A", 0, "A is not set\n"),
            ("export 1=2", 1, "shell: export: 1: no name of a variable\n"),
        ],
    )?;
    let mut guest = context.shell("libc")?;
    let long = "x".repeat(60);
    for n in 0..70 {
        output(&mut guest, &format!("V{n}={long}"))?;
    }
    let reply = guest.run_line("echo nothing", LIMIT)?;
    let wanted = "shell: echo: arguments and variables are too long together: 3839 bytes at most\n";
    ensure!(reply.status == 126 && reply.output == wanted, "{reply:?}");
    let mut guest = context.shell("libc")?;
    for line in ["time echo a | wc -l", "time status", "time none | status"] {
        let reply = guest.run_line(line, LIMIT)?;
        let last = reply.output.lines().last().unwrap_or_default();
        let seconds = last.strip_prefix("time: ").and_then(|t| t.strip_suffix(" s")?.parse::<f64>().ok());
        ensure!(reply.status == 0 && seconds.is_some(), "{line}: {reply:?}");
    }
    let said = output(&mut guest, "time sleep 0.01 &")?
        + &output(&mut guest, "sleep 0.5; ")?
        + &output(&mut guest, "status")?;
    ensure!(said.contains("[1] ended with status 0 after 0.") && said.contains(" s: sleep 0.01\n"), "{said}");
    Ok(())
}
