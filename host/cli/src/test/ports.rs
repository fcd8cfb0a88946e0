//! Programs that exist already, as C components: zlib's minigzip, mawk and Lua, from Debian's sources
//! (`systems/ported.toml`). They ask the C library what nobody thinks of who tests it by itself.
//!
//! Without a network there are no sources, unless an earlier run has left them in `target/debian`: then this
//! fails, and says so.

use anyhow::{Context as _, Result, ensure};
use pebble_qemu::PROMPT;

use super::context::{Context, LIMIT};

/// 10,000 lines.
const TEXT: &str = r#"lua -e "local f = io.open('/ram/text', 'w') for n = 1, 10000 do f:write('this is line ', n, '\n') end f:close()""#;

/// What is printed, and the status with which the line ends.
const SAID: [(&str, i32, &str); 17] = [
    ("echo hi | minigzip | minigzip -d", 0, "hi\n"),
    (TEXT, 0, ""),
    ("minigzip /ram/text", 0, ""),
    ("cat /ram/text", 1, "cat: /ram/text: No such file or directory\n"),
    ("minigzip -c -d /ram/text.gz | wc", 0, "  10000   40000  178894\n"),
    ("minigzip -d /ram/text.gz", 0, ""),
    ("minigzip -9 -c /ram/text | minigzip -d | wc", 0, "  10000   40000  178894\n"),
    ("echo no archive | minigzip -d", 0, "no archive\n"),
    ("mawk '{ sum += $4 } END { print NR, sum, $0 }' /ram/text", 0, "10000 50005000 this is line 10000\n"),
    ("cat /ram/text | mawk '/99/ { n++ } END { print n }'", 0, "280\n"),
    (
        "echo a b c | mawk '{ print $3 $1; print NF | \"cat\" }'",
        2,
        "ca\nmawk: run time error: pipes not supported\n\tFILENAME=\"-\" FNR=1 NR=1\n",
    ),
    ("mawk 'BEGIN { while ((getline line) > 0) n++; print n }' /ram/text", 0, "10000\n"),
    ("mawk -f /share/check.awk /share/check.awk", 0, "mawk: all is well\n"),
    ("lua /share/check.lua", 0, "lua: all is well\n"),
    ("echo 6 7 | lua -e 'print(io.read(\"n\") * io.read(\"n\"), io.read(\"a\"))'", 0, "42\t\n\n"),
    (
        "cat /ram/text | lua -e 'local n = 0 for line in io.lines() do n = n + #line end print(n)'",
        0,
        "168894\n",
    ),
    ("lua -e 'os.exit(7)'", 7, ""),
];

pub fn real_programs(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("ported")?;
    for (line, status, said) in SAID {
        let reply = guest.run_line(line, LIMIT * 4)?;
        ensure!(reply.status == status && reply.output == said, "{line}: {reply:?}");
    }
    let reply = guest.run_line("lua -e 'local function f() error(\"no\") end f()'", LIMIT)?;
    let told = ["lua: (command line):1: no\n", "stack traceback:\n", "in local 'f'"]
        .map(|part| reply.output.contains(part));
    ensure!(reply.status == 1 && told == [true; 3], "{reply:?}");
    ended_by_the_console(context)
}

/// Ctrl-D ends what a person types, and the shell has the console again.
fn ended_by_the_console(context: &mut Context) -> Result<()> {
    let mut guest = context.prompt("ported")?;
    for (lines, wanted) in [
        ("mawk '{ print NF, NR } END { print \"e\" \"nd\" }'\na b c\n\x04", "end\r\n"),
        ("lua\n6 * 7\n'a' .. io.read()\nwords\n\x04", "awords\r\n"),
        ("minigzip -c | minigzip -d\nwords\n\x04", "words\r\nwords\r\n"),
    ] {
        guest.send(lines.as_bytes());
        guest.expect(wanted, LIMIT)?;
        guest.expect(PROMPT, LIMIT).with_context(|| lines.to_string())?;
    }
    Ok(())
}
