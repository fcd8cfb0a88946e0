//! The documents' examples, run as they stand: a reader who types what is shown sees what is shown.
//!
//! **What is run.** Every block fenced with `console`, in a copy of the tree of its own, for some commands
//! change it. A line `$ COMMAND` is given to the shell of this machine; `$ ./pebble run [SYSTEM]` starts a
//! guest, and a line `pebble> COMMAND` is typed at its prompt; the guest lives until the next one starts. The
//! lines after it must be what is printed. A block fenced with `toml,PATH` is written to that file.
//!
//! **What is the same.** Columns may be wider, and a line `...` stands for any lines. Numbers may differ in
//! blocks fenced with `console,numbers`: domains, addresses, times, sizes and their units. Everywhere else
//! they are exact.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, bail, ensure};
use pebble_qemu::{Guest, PROMPT};

use super::context::{Context, LIMIT};
use crate::run::BOOT_LIMIT;
use crate::tools::Tools;

/// The documents, in the order in which a newcomer reads them; what one of them makes, the next ones have.
const DOCUMENTS: [&str; 3] = ["README.md", "docs/src/components.md", "docs/src/tour.md"];
const TERMINAL: &str = "$ ";
const FILE: &str = "> ";

/// One command and what it prints.
#[derive(Debug, PartialEq, Eq)]
struct Example {
    line: usize,
    command: String,
    output: Vec<String>,
    exact: bool,
}

/// The examples of a document; anything before the first command of a block is a mistake.
fn examples(text: &str) -> Result<Vec<Example>> {
    let mut all: Vec<Example> = Vec::new();
    // Whether numbers count, and how many examples there were, when the block began.
    let mut block: Option<(bool, usize)> = None;
    for (n, line) in text.lines().enumerate() {
        match (block, line) {
            (None, "```console") => block = Some((true, all.len())),
            (None, "```console,numbers") => block = Some((false, all.len())),
            (None, _) => {
                if let Some(path) = line.strip_prefix("```toml,") {
                    all.push(Example {
                        line: n + 1,
                        command: format!("{FILE}{path}"),
                        output: Vec::new(),
                        exact: true,
                    });
                    block = Some((true, all.len() - 1));
                }
            }
            (Some(_), "```") => block = None,
            (Some((exact, _)), _) if line.starts_with(TERMINAL) || line.starts_with(PROMPT) => {
                all.push(Example { line: n + 1, command: line.into(), output: Vec::new(), exact });
            }
            (Some((_, before)), _) => {
                ensure!(all.len() > before, "line {}: {line:?} follows no command", n + 1);
                all.last_mut().context("a command")?.output.push(line.into());
            }
        }
    }
    Ok(all)
}

/// A line as it is compared: without differences of spaces, and of numbers if they do not count.
fn normal(line: &str, exact: bool) -> String {
    let words = line.split_whitespace().collect::<Vec<_>>().join(" ");
    if exact {
        return words;
    }
    // What has a digit in it and otherwise only hexadecimal ones is a number.
    let boundary = |c: char| !c.is_ascii_alphanumeric() && c != '.';
    let mut out = String::new();
    for piece in words.split_inclusive(boundary) {
        let word = piece.trim_end_matches(boundary);
        let digits = word.trim_start_matches("0x");
        let number = digits.contains(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_hexdigit() || c == '.');
        // One page more may be what turns kilobytes into megabytes.
        let unit = out.ends_with("# ") && matches!(word, "K" | "M");
        out += if number {
            "#"
        } else if unit {
            "bytes"
        } else {
            word
        };
        out += &piece[word.len()..];
    }
    out
}

/// The first line that was not printed, if there is one.
fn missing<'a>(wanted: &'a [String], printed: &[&str], exact: bool) -> Option<&'a str> {
    let Some((first, rest)) = wanted.split_first() else {
        return (!printed.is_empty()).then_some("(nothing more)");
    };
    if first == "..." {
        let last = missing(rest, &[], exact);
        return (0..=printed.len())
            .map(|skip| missing(rest, &printed[skip..], exact))
            .find(Option::is_none)
            .unwrap_or(last.or(Some("(nothing more)")));
    }
    match printed.split_first() {
        Some((line, others)) if normal(line, exact) == normal(first, exact) => missing(rest, others, exact),
        _ => Some(first),
    }
}

impl Example {
    fn check(&self, printed: &str) -> Result<()> {
        let printed: Vec<&str> = printed.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
        let wanted: Vec<String> = self.output.iter().filter(|line| !line.is_empty()).cloned().collect();
        match missing(&wanted, &printed, self.exact) {
            Some(line) => bail!("did not print {line:?}, but:\n{}", printed.join("\n")),
            None => Ok(()),
        }
    }
}

/// Without the editor's colours and movements, and without the echo, which is the first line.
fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut pieces = text.split("\x1b[");
    let mut plain = String::from(pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece.find(|c: char| c.is_ascii_alphabetic()).map_or(piece.len(), |end| end + 1);
        plain += &piece[end..];
    }
    let plain = plain.replace('\r', "");
    let plain = plain.strip_suffix(PROMPT).unwrap_or(&plain);
    plain.split_once('\n').map_or(String::new(), |(_, output)| output.into())
}

/// The program in C that the README makes.
const MADE: &str = "my-filter";

/// A copy of the tree, in which the documents' commands run.
struct Place<'a> {
    tools: &'a Tools,
    root: PathBuf,
    guest: Option<Guest>,
}

impl<'a> Place<'a> {
    fn new(tools: &'a Tools) -> Result<Self> {
        let root = tools.target().join("documents");
        // What was built there the last time is kept.
        for entry in fs::read_dir(&root).into_iter().flatten().flatten() {
            match entry.path() {
                path if path.ends_with("target") => {}
                path if path.is_dir() => fs::remove_dir_all(&path)?,
                path => fs::remove_file(&path)?,
            }
        }
        // But for what the documents make themselves, and show being built.
        for system in fs::read_dir(root.join("target/c/systems")).into_iter().flatten().flatten() {
            let made = system.path().join("bin").join(MADE);
            if made.exists() {
                fs::remove_dir_all(made)?;
            }
        }
        copy(&tools.root, &root)?;
        let tool = root.join("target/debug/pebble-cli");
        fs::create_dir_all(tool.parent().context("no directory")?)?;
        fs::copy(std::env::current_exe()?, tool)?;
        Ok(Place { tools, root, guest: None })
    }

    fn terminal(&self, command: &str) -> Result<String> {
        // One stream, in the order in which a reader sees it.
        let output = Command::new("sh")
            .arg("-c")
            .arg(format!("exec 2>&1; {command}"))
            .current_dir(&self.root)
            .env("PEBBLE_ROOT", &self.root)
            .stdin(Stdio::null())
            .output()
            .with_context(|| command.to_string())?;
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// What `command` prints.
    fn run(&mut self, command: &str) -> Result<String> {
        if let Some(line) = command.strip_prefix(PROMPT) {
            let guest = self.guest.as_mut().context("no guest has been started")?;
            guest.send(format!("{line}\n").as_bytes());
            return Ok(shown(&guest.expect(PROMPT, LIMIT * 2)?));
        }
        let command = command.strip_prefix(TERMINAL).unwrap_or(command);
        let system = match command.split_whitespace().collect::<Vec<_>>()[..] {
            ["./pebble", "run"] => crate::DEFAULT_SYSTEM,
            ["./pebble", "run", system] => system,
            _ => return self.terminal(command),
        };
        let said = self.terminal(&format!("./pebble build {system}"))?;
        let image = self.root.join("target/image").join(system).with_extension("elf");
        ensure!(image.exists(), "./pebble build {system}: {said}");
        let mut guest = self.tools.machine()?.start(&image)?;
        let boot = guest.expect(PROMPT, BOOT_LIMIT)?;
        self.guest = Some(guest);
        Ok(format!("{said}\n{}", String::from_utf8_lossy(&boot).replace(PROMPT, "")))
    }
}

/// All but what is built and what git keeps.
fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let (path, name) = (entry.path(), entry.file_name());
        if name == "target" || name == ".git" {
            continue;
        }
        if path.is_dir() { copy(&path, &to.join(name))? } else { fs::copy(&path, to.join(name)).map(drop)? }
    }
    Ok(())
}

pub fn say_what_is_printed(context: &mut Context) -> Result<()> {
    let tools = context.tools();
    let mut place = Place::new(tools)?;
    let mut wrong = Vec::new();
    for document in DOCUMENTS {
        let text = fs::read_to_string(tools.root.join(document)).context(document)?;
        let examples = examples(&text).context(document)?;
        ensure!(!examples.is_empty(), "{document} has no example");
        for example in &examples {
            if let Some(path) = example.command.strip_prefix(FILE) {
                fs::write(place.root.join(path), example.output.join("\n"))
                    .context(example.command.clone())?;
                continue;
            }
            let checked = place.run(&example.command).and_then(|printed| example.check(&printed));
            let at = || format!("{document}:{}: {:?}", example.line, example.command);
            wrong.extend(checked.with_context(at).err().map(|error| format!("{error:#}")));
        }
    }
    ensure!(wrong.is_empty(), "{}", wrong.join("\n"));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_found() {
        let text =
            "a\n```console\n$ x\n1\n...\npebble> y\n```\n```text\n$ z\n```\n```console,numbers\n$ q\n```\n";
        let all = examples(text).unwrap();
        assert_eq!(all.len(), 3);
        assert_eq!((all[0].line, all[0].command.as_str(), all[0].output.len()), (3, "$ x", 2));
        assert_eq!((all[1].command.as_str(), all[1].exact, all[2].exact), ("pebble> y", true, false));
        let file = examples("```toml,systems/a.toml\nname = 1\n```\n").unwrap();
        assert_eq!(
            (file[0].command.as_str(), &file[0].output),
            ("> systems/a.toml", &vec!["name = 1".into()])
        );
        assert!(examples("```console\nno command\n```\n").is_err());
    }

    #[test]
    fn only_what_may_differ_may_differ() {
        let wanted = |lines: &[&str]| lines.iter().map(|line| line.to_string()).collect::<Vec<_>>();
        let is = |lines: &[&str], printed: &[&str], exact| missing(&wanted(lines), printed, exact).is_none();
        assert!(is(&["a  1", "...", "z"], &["a 1", "b", "c", "z"], true));
        assert!(is(&["...", "z"], &["z"], true) && is(&["a", "..."], &["a"], true));
        assert!(!is(&["a", "z"], &["a", "b", "z"], true) && !is(&["a"], &["a", "b"], true));
        assert!(!is(&["...", "z"], &["a"], true) && !is(&["a"], &[], true));
        assert!(!is(&["domain 3"], &["domain 4"], true) && is(&["domain 3"], &["domain 4"], false));
        assert!(is(&["at f+0x2 (0x1f), 0.1 s"], &["at f+0x11 (0xa0), 22.5 s"], false));
        assert!(
            is(&["alive 920 K"], &["alive 1.2 M"], false) && !is(&["alive 920 K"], &["alive 1 L"], false)
        );
        assert!(!is(&["a K"], &["a M"], false) && !is(&["920 K"], &["1.2 M"], true));
        assert!(!is(&["abc 1"], &["abd 1"], false) && !is(&["no number"], &["no 7"], false));
    }

    #[test]
    fn the_echo_is_not_output() {
        assert_eq!(shown(b"\x1b[K\x1b[8Cls /\r\nbin/\r\netc/\r\npebble> "), "bin/\netc/\n");
        assert_eq!(shown(b"true\r\npebble> "), "");
    }
}
