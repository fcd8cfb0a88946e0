//! Programs that die, and what is told of it: on the console, in the log, and on the host.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Output, Stdio};

use anyhow::{Context as _, Result, ensure};

use super::cli::{directory, pebble, run};
use super::context::{Context, LIMIT, output};
use crate::tools::Tools;

/// A server that faults three calls deep in a client's call.
const DEEP: &str = r#"#include <pebble.h>
static volatile int zero;
__attribute__((noinline)) static long third(volatile int *at, long n) { *at = (int)n; return n + zero; }
__attribute__((noinline)) static long second(long n) { volatile char room[40]; room[n & 7] = 1; return third(zero ? (int *)room : (int *)8, n + room[0]) + 1; }
__attribute__((noinline)) static long first(long n) { return second(n * 3) + 2; }
static long call(long caller, long n) { return first(n + caller) + 3; }
int main(void) {
    portal_register("deep.call", "npai", call);
    thread_exit();
}
"#;
const CLIENT: &str = r#"#include <pebble.h>
#include <stdio.h>
#include <stdlib.h>
__attribute__((noinline)) static void gives_up(int n) { puts("giving up"); if (n) abort(); }
int main(int argc, char **argv) {
    if (argc > 1) { gives_up(argc); return 0; }
    invoke_portal(portal_open("deep.call"), 4);
    return portal_status() == 0;
}
"#;

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// All of these, in this order.
fn says(text: &str, words: &[&str]) -> Result<()> {
    let mut rest = text;
    for word in words {
        rest = rest.split_once(word).with_context(|| format!("no {word:?} where it should be in {text}"))?.1;
    }
    Ok(())
}

/// `pebble crash` with these arguments, which must end so.
fn crash(tools: &Tools, arguments: &[&str], input: &[u8], status: i32) -> Result<Output> {
    let mut command = pebble(tools, &["crash"]);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    child.stdin.take().context("no standard input")?.write_all(input)?;
    let output = child.wait_with_output()?;
    ensure!(
        output.status.code() == Some(status),
        "{arguments:?}: {}, {}",
        output.status,
        text(&output.stderr)
    );
    Ok(output)
}

/// The text of a crash that is kept under this name.
fn shown(tools: &Tools, name: &str) -> Result<String> {
    Ok(text(&crash(tools, &[name], b"", 0)?.stdout))
}

/// A fault below a portal call, `abort()` in C, a panic in Rust: from the run to the functions and lines on
/// the host.
pub fn from_the_console_to_functions_and_lines(tools: &Tools) -> Result<()> {
    let dir = directory(tools, "crash")?;
    let manifest = dir.join("crash.toml");
    write_system(tools, &dir, &manifest)?;
    let system = manifest.display().to_string();
    let output = run(tools, &system, "deep &\nsleep 0.3\nclient\nclient abort\nhostile do panic\n")?;
    ensure!(output.status.code() == Some(134), "{}: {}", output.status, text(&output.stdout));
    let (console, notes) = (text(&output.stdout), text(&output.stderr));
    says(
        &console,
        &["(deep): store to 0x8", "pc=", "call deep.call from domain", "called from second+", " first+"],
    )?;
    says(&console, &["giving up", "(client): aborted at kill+", "called from", " gives_up+", " main+"])?;
    says(&console, &["told to", "(hostile): aborted"])?;
    for name in ["deep", "client", "hostile"] {
        ensure!(notes.contains(&format!("{name} crashed: ")), "{notes}");
    }

    let deep = shown(tools, "deep")?;
    says(
        &deep,
        &[
            "store to 0x8",
            "third+0x0",
            "deep.c:3",
            "second+",
            "deep.c:4",
            "first+",
            "deep.c:5",
            "call+",
            "deep.c:6",
        ],
    )?;
    says(&deep, &["portal calls under way", "deep.call from domain", "client) at", "invoke_portal+"])?;
    says(
        &shown(tools, "client")?,
        &["aborted", "kill+", "abort+", "gives_up+", "client.c:4", "main+", "client.c:6"],
    )?;
    let panicked = text(&crash(tools, &[], b"", 0)?.stdout);
    says(
        &panicked,
        &["hostile", "aborted", "backtrace", "rust_begin_unwind", "start.rs", "panic_fmt", "pebble_main"],
    )?;

    others_are_told(tools, &dir, &system)
}

fn write_system(tools: &Tools, dir: &Path, manifest: &Path) -> Result<()> {
    let mut text =
        format!("name = \"crash\"\ninclude = \"{}\"\n", tools.root.join("tests/systems/test.toml").display());
    for (name, source) in [("deep", DEEP), ("client", CLIENT)] {
        let file = dir.join(format!("{name}.c"));
        fs::write(&file, source)?;
        text += &format!("[[file]]\npath = \"bin/{name}\"\nc = \"{}\"\n", file.display());
    }
    Ok(fs::write(manifest, text)?)
}

/// What cannot be shown, and a program whose code is another by now.
fn others_are_told(tools: &Tools, dir: &Path, system: &str) -> Result<()> {
    let kept = tools.made().join("crash/deep");
    let told = fs::read(&kept)?;
    says(&text(&crash(tools, &["-"], &told, 0)?.stdout), &["third+0x0"])?;
    crash(tools, &["no-such-crash"], b"", 1)?;
    crash(tools, &["-"], b"nothing at all", 1)?;
    crash(tools, &["--no-such-option"], b"", 2)?;
    let help = text(&crash(tools, &["--help"], b"", 0)?.stdout);
    ensure!(help.contains("target/crash"), "{help}");

    // The lines of a console alone: the system must be named.
    let lines: String = text(&told).lines().skip(1).map(|line| format!("{line}\r\n")).collect();
    says(
        &text(&crash(tools, &["-"], lines.as_bytes(), 1)?.stderr),
        &["no ELF file of /bin/deep", "--system"],
    )?;
    says(&text(&crash(tools, &["-", "--system", system], lines.as_bytes(), 0)?.stdout), &["third+0x0"])?;

    fs::write(dir.join("deep.c"), DEEP.replace("n * 3", "n * 5"))?;
    let built = pebble(tools, &["build", system]).stdin(Stdio::null()).output()?;
    ensure!(built.status.success(), "{}", text(&built.stderr));
    let stale = crash(tools, &["deep"], b"", 1)?;
    says(&text(&stale.stderr), &["bin/deep", "its code is another"])?;
    ensure!(!text(&stale.stdout).contains("third+0x0  "), "{}", text(&stale.stdout));
    Ok(())
}

/// Whatever the stack pointer is, the crash is told to its end, without anybody else's words; and who may not
/// look at the log does not.
pub fn crashes_tell_nothing_else(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    for kind in ["sp-zero", "sp-end", "sp-nucleus", "sp-other", "sp-device"] {
        let shown = guest.run_line(&format!("hostile do {kind}"), LIMIT)?.output;
        says(&shown, &["store to 0x0", "crash ", "program /bin/hostile text ", "pc=", ": end"])?;
        ensure!(!shown.contains(": stack"), "{kind}: {shown}");
        // A crash of the same second may be left out, after four.
        output(&mut guest, "sleep 1")?;
    }
    let again = "hostile do null; ".repeat(30);
    let shown = guest.run_line(&again, LIMIT * 2)?.output;
    ensure!(shown.matches("fault: domain").count() == 30, "{shown}");

    let log = output(&mut guest, "log hostile")?;
    ensure!(log.is_empty(), "a shell's own program has said nothing: {log}");
    guest.run_line("hostile do panic", LIMIT)?;
    says(&output(&mut guest, "log hostile")?, &["hostile: ", "told to"])?;
    says(&output(&mut guest, "log process")?, &["process: fault: domain"])?;
    // A shell is whom the rules mean; this one was started by a program, which hears what it says.
    let refused = guest.run_line("echo log | shell", LIMIT)?.output;
    ensure!(refused.contains("process.log") && !refused.contains("told to"), "{refused}");
    let mine = guest.run_line("hostile do policy", LIMIT)?;
    ensure!(mine.status == 7, "hostile opens what only servers may: {}", mine.output);
    Ok(())
}
