//! Programs that exist already, as components (`systems/ports.toml`): they ask the C library what nobody
//! thinks of who tests it by itself.
//!
//! **Problem.** What they print is right if it is what they print on Linux. **Strategy.** The same sources are
//! built for the host, too ([`Target`]), and given the same lines. **Invariant.** Nothing in those lines
//! depends on time, or on where a file is.
//!
//! Without a network there are no sources, unless an earlier run has left them in `target`: then this fails,
//! and says so.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use pebble_qemu::PROMPT;

use super::context::{Context, LIMIT};
use crate::native::Target;
use crate::tools::program;

const EXAMPLES: &str = "examples/ports";

/// The host's part.
struct Host {
    /// Where the programs are, under their names in the system.
    programs: PathBuf,
    /// What is `/ram/` in the system.
    ram: PathBuf,
    /// What is `/share/` there.
    share: PathBuf,
}

impl Host {
    /// With these components, and nothing in `/ram`.
    fn with(context: &Context, test: &str, components: &[(&str, &str)]) -> Result<Host> {
        let tools = context.tools();
        let place = tools.made().join("c/native").join(test);
        let host =
            Host { programs: place.join("bin"), ram: place.join("ram"), share: tools.root.join(EXAMPLES) };
        let _ = fs::remove_dir_all(&place);
        for folder in [&host.programs, &host.ram] {
            fs::create_dir_all(folder).with_context(|| tools.shown(folder))?;
        }
        for (name, component) in components {
            let built = Target::host(tools).built(tools, &format!("{EXAMPLES}/{component}"))?;
            std::os::unix::fs::symlink(built, host.programs.join(name))?;
        }
        Ok(host)
    }

    /// What a line prints here, as if it were there, and the status.
    fn said(&self, line: &str) -> Result<(i32, String)> {
        let (ram, share) = (format!("{}/", self.ram.display()), format!("{}/", self.share.display()));
        let mut shell = Command::new("sh");
        shell.arg("-c").arg(format!("{{ {line}\n}} 2>&1").replace("/ram/", &ram).replace("/share/", &share));
        let path = format!("{}:{}", self.programs.display(), std::env::var("PATH").unwrap_or_default());
        shell.env_clear().env("PATH", path).env("TZ", "UTC").env("HOME", &self.ram).stdin(Stdio::null());
        let output = shell.output().with_context(|| program(&shell))?;
        let text = String::from_utf8_lossy(&output.stdout);
        let text = text.replace(&ram, "/ram/").replace(&share, "/share/");
        Ok((output.status.code().unwrap_or(-1), text))
    }
}

/// Each line prints the same in the system as on the host, with the same status. The programs are named as in
/// the system, with the components that they are.
fn as_on_the_host(
    context: &mut Context,
    test: &str,
    programs: &[(&str, &str)],
    lines: &[&str],
) -> Result<()> {
    lines_as_on_the_host(context, test, programs, lines, |_| true)
}

/// The same, where only some of what is printed is to be the same.
fn lines_as_on_the_host(
    context: &mut Context,
    test: &str,
    programs: &[(&str, &str)],
    lines: &[&str],
    matters: impl Fn(&str) -> bool,
) -> Result<()> {
    let host = Host::with(context, test, programs)?;
    let mut guest = context.shell("ports")?;
    for line in lines {
        let reply = guest.run_line(line, LIMIT * 4)?;
        let (status, said) = host.said(line)?;
        let [here, there] = [&reply.output, &said].map(|text| text.lines().filter(|line| matters(line)));
        ensure!(there.clone().next().is_some() || said.is_empty(), "{line}: nothing of it matters: {said}");
        let same = reply.status == status && here.clone().eq(there.clone());
        let other = here.zip(there).find(|(here, there)| here != there);
        ensure!(
            same,
            "{line}: status {} and on the host {status}; the first other line: {other:?}; in all:\n{}\n\
             on the host:\n{said}",
            reply.status,
            reply.output
        );
    }
    Ok(())
}

/// In memory, into a file, and to who opens that file again.
pub fn sqlite(context: &mut Context) -> Result<()> {
    let lines = [
        "cat /share/sqlite/make.sql | sqlite3",
        "cat /share/sqlite/make.sql | sqlite3 /ram/db",
        "cat /share/sqlite/again.sql | sqlite3 /ram/db",
        "sqlite3 /ram/db 'select nosuch'",
        "sqlite3 /ram/db 'select * from log'",
        "ls /ram/",
    ];
    as_on_the_host(context, "sqlite", &[("sqlite3", "sqlite")], &lines)
}

/// What zlib's own test says of a file, a stream, a dictionary.
pub fn zlib(context: &mut Context) -> Result<()> {
    let lines = ["zlib-example /ram/hello.gz", "minigzip -d /ram/hello.gz", "cat /ram/hello"];
    as_on_the_host(context, "zlib", &[("zlib-example", "zlib-example"), ("minigzip", "minigzip")], &lines)
}

/// Checksums of a performance and of a validation run: they do not depend on how long it took, as the rest does.
pub fn coremark(context: &mut Context) -> Result<()> {
    let lines = ["coremark 0 0 0x66 4 7 1 2000", "coremark 0x3415 0x3415 0x66 4 7 1 2000"];
    let checked = |line: &str| line.contains("crc") || line.contains("validat");
    lines_as_on_the_host(context, "coremark", &[("coremark", "coremark")], &lines, checked)
}

/// All functions of Lua's library.
pub fn lua(context: &mut Context) -> Result<()> {
    as_on_the_host(context, "lua", &[("lua", "lua")], &["lua /share/lua/library.lua"])
}

/// Ciphers, checksums, large numbers, elliptic curves. The host's processor has instructions for some.
pub fn mbedtls(context: &mut Context) -> Result<()> {
    let programs = [("mbedtls-selftest", "mbedtls")];
    let any = |line: &str| !line.contains(" note: ");
    lines_as_on_the_host(context, "mbedtls", &programs, &["mbedtls-selftest"], any)
}

/// C++: simdjson, which has programs of its own, and what C++17 programs use every day.
pub fn cxx(context: &mut Context) -> Result<()> {
    let lines =
        ["jsonpointer /share/jsonpointer/sample.json name year legs parts a/b m~n none", "simdjson-test"];
    let programs = ["jsonpointer", "simdjson-test", "cxx17"].map(|name| (name, name));
    lines_as_on_the_host(context, "cxx", &programs, &lines, |line| !line.contains("implementation"))
}

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
    ("mawk -f /share/mawk/check.awk /share/mawk/check.awk", 0, "mawk: all is well\n"),
    ("lua /share/lua/check.lua", 0, "lua: all is well\n"),
    ("echo 6 7 | lua -e 'print(io.read(\"n\") * io.read(\"n\"), io.read(\"a\"))'", 0, "42\t\n\n"),
    (
        "cat /ram/text | lua -e 'local n = 0 for line in io.lines() do n = n + #line end print(n)'",
        0,
        "168894\n",
    ),
    ("lua -e 'os.exit(7)'", 7, ""),
];

pub fn tools(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("ports")?;
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
    let mut guest = context.prompt("ports")?;
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
