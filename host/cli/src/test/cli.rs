//! Tests of the tool itself: what it builds, starts, refuses and leaves behind.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, ensure};

use crate::tools::{BOARD_VARIABLE, Tools};

type Test = fn(&Tools) -> Result<()>;

/// Every group of its own.
pub const GROUPS: [(&str, Test); 8] = [
    ("cli.products", products_are_those_of_their_sources),
    ("cli.leash", no_emulator_outlives_the_tool),
    ("cli.port", a_taken_port_is_refused),
    ("cli.uncounted", counts_are_shown_only_where_the_emulator_counts),
    ("cli.crash", super::crash::from_the_console_to_functions_and_lines),
    ("cli.rows", only_the_rows_that_are_asked_for_are_measured),
    ("cli.project", projects_are_built_outside),
    ("cli.judged", tests_of_components_fail_for_what_is_wrong),
];

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

pub fn pebble(tools: &Tools, arguments: &[&str]) -> Command {
    let mut command = Command::new(tools.root.join("pebble"));
    command.args(arguments).env(BOARD_VARIABLE, &tools.board.name);
    command
}

/// What `pebble run SYSTEM` says to these lines.
pub fn run(tools: &Tools, system: &str, lines: &str) -> Result<Output> {
    let mut command = pebble(tools, &["run", system, "--timeout", "60"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    child.stdin.take().context("no standard input")?.write_all(lines.as_bytes())?;
    Ok(child.wait_with_output()?)
}

/// A fresh directory in `target/`.
pub fn directory(tools: &Tools, name: &str) -> Result<PathBuf> {
    let dir = tools.target().join("tmp").join(name);
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir)?;
    Ok(dir)
}

/// A project with a component in each language, from nothing to its tests; and what goes wrong with one.
fn projects_are_built_outside(tools: &Tools) -> Result<()> {
    let dir = directory(tools, "project")?;
    let home = dir.join("clockwork");
    let made = pebble(tools, &["new", &home.display().to_string(), "--project"]).output()?;
    ensure!(made.status.success(), "{made:?}");
    let inside = |arguments: &[&str]| {
        let mut command = Command::new(home.join("pebble"));
        command.args(arguments).env(BOARD_VARIABLE, &tools.board.name).current_dir(&home);
        // As somebody would who has only the project.
        command.env_remove("PEBBLE_ROOT").env_remove("PEBBLE_CARGO").env_remove("PEBBLE_RUSTC");
        command
    };
    let added = inside(&["new", "cuckoo", "--lang", "rust"]).output()?;
    ensure!(added.status.success() && home.join("programs/cuckoo/src/main.rs").exists(), "{added:?}");
    let tested = inside(&["test"]).output()?;
    let said = String::from_utf8_lossy(&tested.stdout);
    // Each as a component, and one on the host, after that is built.
    ensure!(tested.status.success() && said.lines().last() == Some("4 passed, 0 failed"), "{tested:?}");
    ensure!(home.join("target/image").exists() && home.join("target/compile_commands.json").exists());

    // What the project has, and what Pebble has: a file of the project's own comes first.
    fs::create_dir(home.join("etc"))?;
    fs::write(home.join("etc/said"), "by the clock\n")?;
    let manifest = home.join("systems/default.toml");
    let text = fs::read_to_string(&manifest)?;
    fs::write(&manifest, text.clone() + "\n[[file]]\npath = \"etc/said\"\nfrom = \"etc/said\"\n")?;
    let mut run = inside(&["run", "--timeout", "60"]);
    let mut child = run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    child.stdin.take().context("no standard input")?.write_all(b"cuckoo\ncat /etc/said\n")?;
    let ran = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&ran.stdout);
    ensure!(said.starts_with("hello from cuckoo") && said.ends_with("by the clock\n"), "{ran:?}");

    let fails = |command: &mut Command, status: i32, what: &str| -> Result<()> {
        let output = command.output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.code() == Some(status) && said.contains(what), "{what}: {output:?}");
        Ok(())
    };
    fs::write(&manifest, text + "\n[[file]]\npath = \"etc/more\"\nfrom = \"etc/more\"\n")?;
    fails(&mut inside(&["build"]), 1, "systems/default.toml: file 'etc/more': there is no etc/more")?;
    fails(&mut inside(&["bench"]), 2, "bench measures Pebble itself")?;
    fails(&mut inside(&["new", "x", "--lang", "rust", "--server"]), 2, "in Pebble's own folder")?;
    fails(&mut pebble(tools, &["new", &home.display().to_string(), "--project"]), 1, "exists")?;
    for (written, what) in [
        ("pebble = \"77\"", "pebble = \"^77\", and this Pebble is"),
        ("pebbles = 1", "unknown field `pebbles`"),
    ] {
        fs::write(home.join("pebble.toml"), written)?;
        fails(&mut inside(&["build"]), 1, what)?;
    }
    fails(inside(&["build"]).env("PEBBLE_SDK", &dir), 1, "there is no Pebble in")?;
    fs::remove_file(home.join(".pebble"))?;
    fails(&mut inside(&["build"]), 1, "this project has no Pebble yet")?;

    let sdk = dir.join("sdk.tar.gz");
    let packed = pebble(tools, &["sdk", "--out", &sdk.display().to_string()]).output()?;
    ensure!(packed.status.success(), "{packed:?}");
    let listed = Command::new("tar").arg("-tzf").arg(&sdk).output()?;
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    for file in ["pebble", "lib/pebble/component.ld", "lib/c/pebble.h.in", "systems/default.toml"] {
        let wanted = format!("pebble-{}/{file}", env!("CARGO_PKG_VERSION"));
        ensure!(listed.lines().any(|line| line == wanted), "{wanted} is not in the SDK");
    }
    Ok(())
}

/// Programs of one base name, in two systems and in one; and changes that leave a file's time as it was.
fn products_are_those_of_their_sources(tools: &Tools) -> Result<()> {
    let dir = directory(tools, "products")?;
    let says = |word: &str| {
        format!("#include <stdio.h>\n#include \"more.h\"\nint main(void) {{ puts(\"{word}\" MORE); }}\n")
    };
    for (place, word) in [("one", "first"), ("two", "second")] {
        fs::create_dir(dir.join(place))?;
        fs::write(dir.join(place).join("cat.c"), says(word))?;
        fs::write(dir.join(place).join("more.h"), "#define MORE \"\"\n")?;
    }
    // Our own `cat` beside two others, of another name in the archive, and of the same in another directory.
    let source = |place: &str| dir.join(place).join("cat.c").display().to_string();
    let include = tools.root.join("systems/default.toml");
    let manifest = format!(
        "name = \"products\"\ninclude = \"{}\"\n[[file]]\npath = \"bin/first\"\nc = \"{}\"\n[[file]]\npath \
         = \"etc/cat\"\nc = \"{}\"\n",
        include.display(),
        source("one"),
        source("two"),
    );
    let path = dir.join("default.toml");
    fs::write(&path, manifest)?;
    let path = path.display().to_string();

    let plain = "echo real | cat\n";
    for (system, lines, expected) in [
        ("default", plain, "real\n"),
        (&*path, "first\n/etc/cat\necho real | cat\n", "first\nsecond\nreal\n"),
        ("default", plain, "real\n"),
    ] {
        said(&run(tools, system, lines)?, expected).with_context(|| system.to_string())?;
    }
    // A header, and a source, with the time that they had.
    rewrite(&dir.join("one/more.h"), "#define MORE \"!\"\n")?;
    said(&run(tools, &path, "first\n/etc/cat\n")?, "first!\nsecond\n").context("another header")?;
    rewrite(&dir.join("two/cat.c"), &says("third!"))?;
    said(&run(tools, &path, "first\n/etc/cat\n")?, "first!\nthird!\n").context("another source")
}

fn said(output: &Output, expected: &str) -> Result<()> {
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(
        text == expected,
        "{text:?} instead of {expected:?}; {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}

fn rewrite(file: &Path, text: &str) -> Result<()> {
    let then: SystemTime = fs::metadata(file)?.modified()?;
    fs::write(file, text)?;
    Ok(fs::File::options().append(true).open(file)?.set_modified(then)?)
}

/// Whatever ends the tool ends the emulator.
fn no_emulator_outlives_the_tool(tools: &Tools) -> Result<()> {
    ended(tools, &["build"], "")?;
    let port = free_port()?.to_string();
    let debug = ["debug", "--port", &port];
    for (arguments, signal) in [
        (&["run"][..], "TERM"),
        (&["run"], "INT"),
        (&["run"], "HUP"),
        (&["run"], "KILL"),
        (&debug, "TERM"),
        (&debug, "KILL"),
    ] {
        outlives(tools, arguments, signal).with_context(|| format!("{arguments:?}, SIG{signal}"))?;
    }
    Ok(())
}

fn outlives(tools: &Tools, arguments: &[&str], signal: &str) -> Result<()> {
    let mut command = pebble(tools, arguments);
    let mut tool = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let emulator = until(|| emulator_of(tool.id()));
    let outcome = kill(tool.id(), signal);
    tool.wait()?;
    outcome?;
    let emulator = emulator.context("the tool has started no emulator")?;
    let gone = until(|| (!is_emulator(emulator)).then_some(()));
    if gone.is_none() {
        kill(emulator, "KILL")?;
    }
    gone.context("the emulator goes on")
}

fn kill(process: u32, signal: &str) -> Result<()> {
    let status = Command::new("/bin/sh").args(["-c", &format!("kill -{signal} {process}")]).status()?;
    ensure!(status.success(), "kill: {status}");
    Ok(())
}

fn until<T>(what: impl Fn() -> Option<T>) -> Option<T> {
    let end = Instant::now() + LIMIT;
    loop {
        match what() {
            None if Instant::now() < end => std::thread::sleep(Duration::from_millis(20)),
            found => return found,
        }
    }
}

/// A process's child that runs QEMU.
fn emulator_of(parent: u32) -> Option<u32> {
    let processes = fs::read_dir("/proc").ok()?.flatten();
    let mut numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    numbers.find(|process| parent_of(*process) == Some(parent) && is_emulator(*process))
}

fn parent_of(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

/// A living one: a dead one's command line is empty.
fn is_emulator(process: u32) -> bool {
    fs::read_to_string(format!("/proc/{process}/cmdline"))
        .is_ok_and(|line| line.starts_with("qemu") || line.contains("/qemu"))
        && fs::read_to_string(format!("/proc/{process}/comm")).is_ok_and(|name| name.starts_with("qemu"))
}

fn free_port() -> Result<u16> {
    Ok(TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port())
}

/// The tool's end: status and what it said on standard error, which must have `words` in it.
fn ended(tools: &Tools, arguments: &[&str], words: &str) -> Result<i32> {
    let output = pebble(tools, arguments).stdin(Stdio::null()).output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(said.contains(words), "{arguments:?}: {said}");
    output.status.code().context("killed")
}

fn a_taken_port_is_refused(tools: &Tools) -> Result<()> {
    let taken = TcpListener::bind(("127.0.0.1", 0))?;
    let port = taken.local_addr()?.port().to_string();
    let status = ended(tools, &["debug", "--port", &port], &format!("port {port} is taken"))?;
    ensure!(status == 1, "status {status}");
    // And one that is free is gdb's.
    drop(taken);
    let mut command = pebble(tools, &["debug", "--port", &port]);
    let mut tool = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let answers = until(|| std::net::TcpStream::connect(("127.0.0.1", port.parse().ok()?)).ok());
    let ended = end(&mut tool);
    ensure!(answers.is_some(), "nobody listens on port {port}");
    ended
}

fn end(tool: &mut Child) -> Result<()> {
    tool.kill()?;
    tool.wait()?;
    Ok(())
}

fn counts_are_shown_only_where_the_emulator_counts(tools: &Tools) -> Result<()> {
    for line in ["boot", "bench"] {
        let plain = run(tools, "default", &format!("{line}\n"))?;
        let text = String::from_utf8_lossy(&plain.stdout).into_owned();
        ensure!(plain.status.code() == Some(1) && text.contains("only with --count"), "{line}: {text}");
    }
    let mut command = pebble(tools, &["run", "--count"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn()?;
    child.stdin.take().context("no standard input")?.write_all(b"boot\nbench\n")?;
    let output = child.wait_with_output()?;
    let text = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success() && text.contains("short-circuit portal"), "{text:?}");
    let count: Option<u64> = text.split_whitespace().nth(2).and_then(|word| word.parse().ok());
    // Some ten million; a count of nanoseconds since the host started is far beyond.
    ensure!(count.is_some_and(|n| (100_000..10_000_000_000).contains(&n)), "{text:?}");
    Ok(())
}

fn only_the_rows_that_are_asked_for_are_measured(tools: &Tools) -> Result<()> {
    let status =
        ended(tools, &["bench", "--only", "yield.2,no.such.row"], "no row has \"no.such.row\" in its id")?;
    ensure!(status == 2, "status {status}");
    let told = if tools.is_default() { "Linux has no row with \"boot\"" } else { "leave out --board" };
    let status = ended(tools, &["bench", "--against", "linux", "--only", "boot"], told)?;
    ensure!(status == if tools.is_default() { 2 } else { 1 }, "status {status}");
    let svg = tools.target().join("tmp/only.svg");
    let output = pebble(tools, &["bench", "--only", "portal.short_circuit", "--svg"])
        .arg(svg)
        .stdin(Stdio::null())
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    let measured: Vec<_> = said.lines().filter_map(|line| line.trim().strip_prefix("measured ")).collect();
    ensure!(output.status.success() && measured == ["portal.short_circuit"], "{said}");
    Ok(())
}

/// A project's own manifest, with tests that hold and tests that do not: by what was printed, by the status,
/// by the program's own judgement, and by its death before the end.
fn tests_of_components_fail_for_what_is_wrong(tools: &Tools) -> Result<()> {
    let dir = directory(tools, "judged")?;
    let source = "#include <pebble-test.h>\n#include <stdlib.h>\n\
                  TEST(holds) { EXPECT(1); }\n\
                  TEST(differs) { EXPECT_EQ(1 + 1, 3); EXPECT_STR(\"a\", \"b\"); }\n\
                  TEST(dies) { abort(); }\nTEST_MAIN\n";
    fs::write(dir.join("own.c"), source)?;
    let test = |name: &str, rest: &str| format!("[[test]]\nname = \"{name}\"\n{rest}\n");
    let manifest = format!(
        "name = \"judged\"\ninclude = \"{}\"\n[[file]]\npath = \"bin/own\"\nc = \"{}\"\n{}{}{}{}{}{}",
        tools.root.join("systems/default.toml").display(),
        dir.join("own.c").display(),
        test("good", "run = [\"echo a\", \"echo b\"]\nprints = \"a\\nb\\n\""),
        test("chosen", "run = [\"own holds\"]"),
        test("printed", "run = [\"echo a\"]\nprints = \"b\\n\""),
        test("status", "run = [\"cat /none\"]"),
        test("judged", "run = [\"own holds differs\"]\nstatus = 1"),
        test("early", "run = [\"own holds dies\"]\nstatus = 134"),
    );
    let (path, junit) = (dir.join("judged.toml"), dir.join("junit.xml"));
    fs::write(&path, manifest)?;
    let path = path.display().to_string();
    let output = pebble(tools, &["test", &path, "--junit", &junit.display().to_string()]).output()?;
    let said = String::from_utf8_lossy(&output.stdout);
    let notes = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.code() == Some(1) && said.contains("2 passed, 4 failed"), "{said}{notes}");
    let all = format!("{said}{notes}");
    let place = format!("differs: {}:4: 1 + 1 is 2, not 3", tools.shown(&dir.join("own.c")));
    let told = "it told of 1 tests, and not that these were all";
    for wanted in ["printed \"a\\n\", not \"b\\n\"", "ended with status 1, not 0", &place, told] {
        ensure!(all.contains(wanted), "{wanted} is not in {all}");
    }
    let xml = fs::read_to_string(&junit)?;
    for wanted in
        ["failures=\"5\"", "name=\"component.judged.judged::holds\"", "name=\"component.judged.early\""]
    {
        ensure!(xml.contains(wanted), "{wanted} is not in {xml}");
    }
    Ok(())
}
