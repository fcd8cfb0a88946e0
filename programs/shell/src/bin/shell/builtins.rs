//! The commands that the shell does itself.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use pebble::abi::{errno, sys};
use pebble::api;
use pebble::io::{self, File};
use pebble::portal::{COUNTED, counter, timed_call};
use pebble_shell::is_name;

use crate::{Shell, jobs, look, servers};

/// Prints to the file. An error is what to complain of.
type Run = fn(&mut Shell, &[String], File) -> Result<i64, String>;

pub struct Builtin {
    pub name: &'static str,
    usage: &'static str,
    help: &'static str,
    run: Run,
}

const fn builtin(name: &'static str, usage: &'static str, help: &'static str, run: Run) -> Builtin {
    Builtin { name, usage, help, run }
}

static ALL: [Builtin; 15] = [
    builtin("bench", "", "what a few operations cost, in instructions", bench),
    builtin("boot", "", "instructions from reset to the first prompt", boot),
    builtin(
        "exit",
        "[STATUS]",
        "ends the shell, with 0 or a status up to 127; the first shell takes the system with it",
        exit,
    ),
    builtin(
        "export",
        "[NAME=VALUE...]",
        "variables, which all programs inherit; as NAME=VALUE without a command; before one it is for that alone",
        export,
    ),
    builtin("help", "", "this list", help),
    builtin("kill", "DOMAIN", "ends a program, by number or name", kill),
    builtin(
        "log",
        "[DOMAIN]",
        "what programs have written to the console, also those that are gone",
        look::log,
    ),
    builtin("mem", "[--live]", "memory and portals in use; what servers hold in their heaps", look::mem),
    builtin("names", "", "interfaces and the domains that export them", look::names),
    builtin(
        "portals",
        "[DOMAIN] [--count|--no-count]",
        "portal table of a domain, with counters in its portals, or without",
        look::portals,
    ),
    builtin("ps", "", "domains and threads", look::ps),
    builtin(
        "replace",
        "SERVER FILE",
        "puts a new version in the place of a server while it is called; FILE is a path, or X for \
         /components/SERVER-X",
        replace,
    ),
    builtin("status", "", "exit status of the last command", status),
    builtin("top", "", "who uses the processor, every second until a key is pressed", look::top),
    builtin("unset", "NAME...", "forgets variables", unset),
];

pub fn find(name: &str) -> Option<&'static Builtin> {
    ALL.iter().find(|builtin| builtin.name == name)
}

pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|builtin| builtin.name)
}

/// Runs it; its status. It prints to the first file, and what is wrong is said on the second.
pub fn run(shell: &mut Shell, builtin: &Builtin, arguments: &[String], [out, err]: [File; 2]) -> i64 {
    let fits = !builtin.usage.is_empty() || arguments.is_empty();
    let outcome = if fits { (builtin.run)(shell, arguments, out) } else { usage() };
    outcome.unwrap_or_else(|reason| {
        let line = match reason.as_str() {
            "" if builtin.usage.is_empty() => format!("shell: usage: {}\n", builtin.name),
            "" => format!("shell: usage: {} {}\n", builtin.name, builtin.usage),
            _ => format!("shell: {}: {reason}\n", builtin.name),
        };
        let _ = err.write(line.as_bytes());
        if reason.is_empty() { 2 } else { 1 }
    })
}

/// The complaint that the arguments are not what they should be.
pub fn usage<T>() -> Result<T, String> {
    Err(String::new())
}

/// Prints; who does not want to read it need not.
pub fn print(out: File, text: &str) -> Result<i64, String> {
    let _ = out.write(text.as_bytes());
    Ok(0)
}

/// The domain that an argument names, by number or by name: of several of a name one that is alive, if any
/// is.
pub fn domain(argument: &str) -> Result<u16, String> {
    let domains = servers::domains().map_err(|failure| format!("{failure}"))?;
    let number = argument.parse().unwrap_or(0);
    let named = domains.iter().filter(|d| d.asid == number || d.name == argument);
    let found = named.min_by_key(|d| (d.asid != number, ["dying", "dead"].contains(&d.state)));
    found.map(|d| d.asid).ok_or_else(|| format!("{argument}: no such domain"))
}

fn exit(shell: &mut Shell, arguments: &[String], _: File) -> Result<i64, String> {
    let status = match arguments {
        [] => 0,
        [status] => status.parse().ok().filter(|s| (0..128).contains(s)).ok_or_else(String::new)?,
        _ => return usage(),
    };
    shell.exit = Some(status);
    Ok(status)
}

fn export(shell: &mut Shell, arguments: &[String], out: File) -> Result<i64, String> {
    let mut pairs = Vec::new();
    for argument in arguments {
        let (name, value) = argument.split_once('=').map_or((&argument[..], None), |(n, v)| (n, Some(v)));
        if !is_name(name) {
            return Err(format!("{name}: no name of a variable"));
        }
        pairs.extend(value.map(|value| (name, value)));
    }
    pairs.into_iter().for_each(|(name, value)| shell.set(name, value));
    if arguments.is_empty() {
        let mut lines: Vec<String> = shell.environment(&[]).iter().map(|line| format!("{line}\n")).collect();
        lines.sort();
        return print(out, &lines.concat());
    }
    Ok(0)
}

fn unset(shell: &mut Shell, arguments: &[String], _: File) -> Result<i64, String> {
    shell.variables.retain(|(name, _)| !arguments.contains(name));
    if arguments.is_empty() { usage() } else { Ok(0) }
}

fn help(_: &mut Shell, _: &[String], out: File) -> Result<i64, String> {
    let mut text = String::from("Commands of the shell:\n");
    for Builtin { name, usage, help, .. } in &ALL {
        text.push_str(format!("  {name} {usage}").trim_end());
        text.push_str(&format!("\n      {help}\n"));
    }
    text.push_str("Programs in /bin:\n ");
    for name in programs() {
        text.push(' ');
        text.push_str(&name);
    }
    text.push_str(
        "\nCOMMAND | COMMAND connects programs, COMMAND & runs in the background, ; separates commands.\n\
         < FILE, > FILE, >> FILE, 2> FILE and 2>&1 redirect; files are made in /ram. $? is the last status,\n\
         NAME=VALUE sets $NAME, time COMMAND says how long it took.\n\
         Tab completes, the arrows edit and recall, Ctrl-C ends what runs. Ctrl-A X leaves the emulator.\n",
    );
    print(out, &text)
}

/// What is in /bin.
pub fn programs() -> Vec<String> {
    let listing = jobs::read_all("/bin").unwrap_or_default();
    listing.lines().filter(|name| !name.ends_with('/')).map(String::from).collect()
}

fn kill(_: &mut Shell, arguments: &[String], _: File) -> Result<i64, String> {
    let [argument] = arguments else { return usage() };
    let domain = domain(argument)?;
    servers::kill(domain).map_err(|failure| format!("{argument}: {failure}"))?;
    Ok(0)
}

fn replace(_: &mut Shell, arguments: &[String], out: File) -> Result<i64, String> {
    let [server, file] = arguments else { return usage() };
    let path = successor(server, file)?;
    let domain = servers::replace(server, &path).map_err(|failure| refusal(server, &path, &failure))?;
    print(out, &format!("{server} is domain {domain} now\n"))
}

/// The file that is meant, if it can be one.
fn successor(server: &str, file: &str) -> Result<String, String> {
    if server.is_empty() {
        return Err("the server's name is empty; 'ps' lists those that there are".into());
    }
    // It has the longest name, and its files a short one.
    let server = if is_dispatcher(server) { "irq" } else { server };
    let path = match file.trim_matches('/') {
        "" => return Err(format!("{file:?} is no file; 'ls /components' lists what comes with the system")),
        _ if file.contains('/') => String::from(file.trim_start_matches('/')),
        "default" => format!("components/{server}"),
        version => format!("components/{server}-{version}"),
    };
    if path.len() > servers::REPLACEMENT_PATH {
        let most = servers::REPLACEMENT_PATH;
        return Err(format!("{path} is too long a path: {most} characters at most, without the first slash"));
    }
    // Only directories have a path that ends in a slash.
    match io::open(&format!("{}/", path.trim_end_matches('/'))) {
        Ok(directory) => {
            directory.close();
            Err(format!("{path} is a directory, not a component's file"))
        }
        Err(_) => Ok(path),
    }
}

/// Whole, or as much of it as `ps` shows.
fn is_dispatcher(server: &str) -> bool {
    server.len() >= 16 && "interrupt-dispatcher".starts_with(server)
}

/// Why a server has not been replaced. What is wrong with a file the process server says on the console.
fn refusal(server: &str, path: &str, failure: &servers::Failure) -> String {
    let missing = || io::open(path).map(File::close).is_err();
    match failure.error {
        errno::ESRCH if server.parse::<u16>().is_ok() => {
            format!("{server}: components go by their names, which 'ps' shows")
        }
        errno::ESRCH if domain(server).is_ok() => {
            format!("{server} is a program, which has no hand-over; end it with 'kill', and start the other")
        }
        errno::ESRCH => format!("{server}: no such component; 'ps' lists those that there are"),
        errno::EPERM => {
            "only the shell that the system has started may: not one that a program has, or another shell"
                .into()
        }
        errno::ENOSYS => format!("{server} has no hand-over: it cannot be replaced while it runs"),
        errno::ENOENT if missing() => {
            format!("{path}: no such file; 'ls /components' lists what comes with the system")
        }
        errno::ENOENT | errno::EACCES | errno::EINVAL | errno::ENOEXEC | errno::EEXIST => {
            format!(
                "{path} is refused, as 'process: {path}: ...' says on the console; {server} goes on as it was"
            )
        }
        _ => format!("{server}: {failure}"),
    }
}

/// The counter counts instructions only if the emulator was told to. Otherwise it follows the host's clock,
/// which does not stand still between two reads: they are a few instructions apart, the same at each time but
/// for an interrupt.
fn must_count() -> Result<(), String> {
    const NEAR: u64 = 8;
    let near = |_: &i32| {
        let start = counter();
        counter() - start <= NEAR
    };
    match (0..16).filter(near).count() {
        8.. => Ok(()),
        _ => Err("instructions are counted only with --count: ./pebble run --count".into()),
    }
}

/// The least of a thousand runs each; `./pebble bench` measures more, and in a system of its own.
fn bench(_: &mut Shell, _: &[String], out: File) -> Result<i64, String> {
    const RUNS: usize = 1000;
    must_count()?;
    let base = (0..RUNS)
        .map(|_| {
            let start = counter();
            counter() - start
        })
        .min()
        .unwrap_or(0);
    let semaphore = api::sem_create(0).map_err(|error| String::from(error.text()))?;
    let rows = [
        ("short-circuit portal (get_asid)", sys::SYS_GET_ASID),
        ("V that wakes nobody", semaphore + 1),
        ("P that need not wait", semaphore),
        ("yield, nobody else ready", sys::SYS_YIELD),
        ("call to a server and back (vm.sbrk of 0)", sys::SYS_SBRK),
    ];
    let mut text = String::new();
    for (what, index) in rows {
        let least = (0..RUNS).map(|_| timed_call(index, [0; 5])).min().unwrap_or(0);
        text += &format!("{:>8}  {what}\n", least.saturating_sub(base));
    }
    let _ = api::portal_close(semaphore, 2);
    print(out, &text)
}

fn boot(shell: &mut Shell, _: &[String], out: File) -> Result<i64, String> {
    must_count()?;
    print(out, &format!("prompt after {} {COUNTED}\n", shell.booted))
}

fn status(shell: &mut Shell, _: &[String], out: File) -> Result<i64, String> {
    print(out, &format!("{}\n", shell.status))
}
