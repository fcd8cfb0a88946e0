//! Tests of interposition: the tools that users run, and programs that try to notice them, or to be rid of
//! them.

use anyhow::{Result, ensure};
use pebble_qemu::Guest;

use super::context::{Context, LIMIT, output};

/// The system with the programs that these tests run.
const SYSTEM: &str = "nest";

pub fn the_tools_show_and_change_calls(context: &mut Context) -> Result<()> {
    let mut guest = context.shell(SYSTEM)?;
    for (line, status, wanted) in [
        ("count hello", 0, &["console.write", "process.exit", "Hello from domain"][..]),
        ("count cat /bin/hello | wc", 0, &["file.read", "pipe.write"]),
        ("count cat /nowhere", 1, &["file.open", "No such file"]),
        ("count count hello", 0, &["process.spawn", "process.wait", "pm.open"]),
        ("trace hello", 0, &["console.open(\"/dev/console\") = ", ", \"Hello", "process.exit(0)"]),
        ("trace --json /ram/trace echo hi", 0, &["3 calls in the file, 0 left out"]),
        ("cat /ram/trace", 0, &["[{\"name\":\"process_name\"", "\"ph\":\"X\"", "\"instructions\":"]),
        ("sandbox --allow console.*,nucleus.*,process.exit hello", 0, &["Hello from domain 1"]),
        ("sandbox --allow console.*,process.exit hello", 0, &["nucleus.get_asid is not allowed"]),
        (
            "sandbox --allow console.* cat /bin/hello",
            1,
            &["refused file.open(\"/bin/hello\")", "cat: /bin/hello"],
        ),
        ("chroot /bin ls", 0, &["hello", "chroot"]),
        ("chroot /bin cat /../bin/hello", 1, &["cat: /../bin/hello"]),
        ("faultinject 1:EACCES cat /bin/hello", 1, &["call 1, file.open(\"/bin/hello\"): EACCES", "cat: "]),
        ("faultinject 999 hello", 0, &["calls were made", "Hello"]),
        ("count escape fault", 139, &["fault: ", "console.write"]),
        ("count", 2, &["usage: count PROGRAM"]),
        ("trace --json hello", 2, &["usage: trace"]),
        ("sandbox hello", 2, &["usage: sandbox"]),
        ("sandbox --allow , hello", 2, &["sandbox: --allow \"\": a name is missing"]),
        ("sandbox --allow console.*,*x* hello", 2, &["sandbox: --allow \"*x*\": * stands at the end"]),
        (
            "sandbox --allow nosuch.thing,console.*,nucleus.* hello",
            0,
            &["sandbox: --allow nosuch.thing: there is no such interface now; 'names' lists", "Hello"],
        ),
        ("faultinject x hello", 2, &["usage: faultinject"]),
        ("count nothing", 127, &["count: /bin/nothing: no such program; 'ls /bin' lists"]),
        ("chroot /nowhere hello", 127, &["chroot: /nowhere: no such directory; 'ls /' lists"]),
        ("chroot /bin/hello hello", 126, &["chroot: /bin/hello: not a directory"]),
        ("trace --json /nowhere hello", 126, &["--json /nowhere: read-only; files can be made as /ram/NAME"]),
        ("replace nobody components/console", 1, &["nobody: no such component; 'ps' lists"]),
        ("replace console components/none", 1, &["components/none: no such file; 'ls /components' lists"]),
        (
            "replace console bin/cat",
            1,
            &["process: bin/cat: ", "bin/cat is refused", "console goes on as it was"],
        ),
        // What the loader has opened for a program has a name, too, and can be allowed by it.
        ("count nest-import", 0, &["vm.stats", "clock.nanoseconds"]),
        (
            "sandbox --allow vm.*,clock.*,console.* nest-import",
            0,
            &["vm.stats answers: true", "clock.nanoseconds answers: true"],
        ),
        (
            "sandbox --allow vm.*,console.* nest-import",
            1,
            &["refused clock.nanoseconds()", "clock.nanoseconds answers: false"],
        ),
        // Also where another program has left an index with a name.
        (
            "echo 'hello ; nest-import' | sandbox --allow \
             file.*,console.*,pipe.*,process.*,pm.open,pm.close,pm.sem_create,pm.interface,vm.sbrk,vm.thread_create,scheduler.*,nucleus.* shell",
            1,
            &["refused vm.stats()", "vm.stats answers: false", "clock.nanoseconds answers: false"],
        ),
    ] {
        let reply = guest.run_line(line, LIMIT)?;
        ensure!(reply.status == status, "{line:?} ended with {}: {}", reply.status, reply.output);
        for text in wanted {
            ensure!(reply.output.contains(text), "{line:?} printed no {text:?}: {}", reply.output);
        }
    }
    // Whichever call fails, ls says so.
    for call in 1..=12 {
        let line = format!("faultinject {call}:EIO ls /bin");
        let reply = guest.run_line(&line, LIMIT)?;
        ensure!(reply.status == 1 && reply.output.contains("ls: "), "{line:?}: {}", reply.output);
    }
    Ok(())
}

/// The papers' own example, in C: what it counts is what its child does.
pub fn a_sandbox_in_c(context: &mut Context) -> Result<()> {
    let mut guest = context.shell(SYSTEM)?;
    // Its main is void, as the papers': the exit status says nothing.
    let plain = guest.run_line("sandbox-c", LIMIT)?.output;
    let calls: Vec<u64> = plain
        .lines()
        .filter_map(|line| {
            line.strip_prefix("portal ")?.strip_suffix(" calls")?.split(": ").nth(1)?.parse().ok()
        })
        .collect();
    // P and V of two semaphores, a thousand times each; of the third once.
    let thousands = calls.iter().filter(|n| **n == 1000).count();
    ensure!(plain.contains(" ticks for 1000 rounds") && thousands == 4, "{plain}");
    // In a sandbox it counts the same.
    let under = guest.run_line("count sandbox-c", LIMIT)?.output;
    // Whether the other thread has ended by then is a matter of time.
    let lasting = |l: &&str| l.starts_with("portal ") && !l.starts_with("portal 22:");
    let lines = |text: &str| text.lines().filter(lasting).map(String::from).collect::<Vec<_>>();
    ensure!(lines(&plain).len() == lines(&under).len(), "{plain}\nunder count: {under}");
    let counted = |name: &str| under.lines().any(|l| l.split_whitespace().skip(1).eq([name, "1000"]));
    ensure!(counted("semaphore.p") && counted("semaphore.v"), "{under}");
    Ok(())
}

/// Pages and buffers that are lent, and pages that are given, reach the server through controllers with the
/// same content and rights, and come back when the call returns.
pub fn windows_pass_through(context: &mut Context) -> Result<()> {
    let mut guest = context.shell(SYSTEM)?;
    output(&mut guest, "hostile borrow lender &")?;
    let ready = |guest: &mut Guest| guest.run_line("hostile lend lent lender", LIMIT).map(|r| r.status == 0);
    for _ in 0..100 {
        if ready(&mut guest)? {
            break;
        }
    }
    for tools in ["", "count ", "count count ", &"chroot / ".repeat(8)] {
        for kind in [
            "lent",
            "long",
            "given",
            "moved",
            "large",
            "stingy",
            "open",
            "often",
            "read-only",
            "unmapped",
            "size",
        ] {
            let line = format!("{tools}hostile lend {kind} lender");
            let reply = guest.run_line(&line, LIMIT)?;
            ensure!(reply.status == 0, "{line:?} ended with {}: {}", reply.status, reply.output);
        }
    }
    Ok(())
}

/// What the probe prints, without what a tool adds on standard error.
fn probe(guest: &mut Guest, tools: &str) -> Result<String> {
    // It dies at the end of what it is asked; domain numbers are given anew in the same order.
    output(guest, "teller &")?;
    let reply = guest.run_line(&format!("{tools}probe"), LIMIT * 4)?;
    ensure!(reply.status == 7, "the probe under {tools:?} ended with {}: {}", reply.status, reply.output);
    let end = reply.output.find("children: ").unwrap_or_default();
    let line = reply.output[end..].find('\n').unwrap_or_default();
    ensure!(end > 0, "the probe under {tools:?} did not finish: {}", reply.output);
    // The teller's death is told by the process server, with its thread's number and its callers.
    let own = reply.output[..end + line].lines().filter(|line| !is_of_a_fault(line));
    Ok(own.collect::<Vec<_>>().join("\n"))
}

/// What a program prints of its limits, and that calls with a time limit end, under tools as without.
pub fn limits_are_the_same_under_tools(context: &mut Context) -> Result<()> {
    let mut guest = context.shell(SYSTEM)?;
    let eight = "chroot / ".repeat(8);
    let cases =
        [("late", &["count ", &eight][..]), ("modest", &["count ", &eight]), ("probe full", &["chroot / "])];
    for (program, tools) in cases {
        let plain = guest.run_line(program, LIMIT * 4)?;
        ensure!(plain.output.contains("0 failed") || program != "late", "{}", plain.output);
        for tools in tools {
            let line = format!("{tools}{program}");
            let under = guest.run_line(&line, LIMIT * 4)?;
            let same = under.status == plain.status && under.output.starts_with(plain.output.trim_end());
            ensure!(same, "{line:?} ended with {}: {}", under.status, under.output);
        }
    }
    // A tool that has a call ended says the same of it as ever.
    let counted = guest.run_line("count late", LIMIT * 4)?.output;
    ensure!(counted.contains("semaphore.p") && counted.contains(" all "), "{counted}");
    Ok(())
}

/// A server that calls itself until a stack is missing, its own or its controller's: calls with a limit end
/// all the same, at the bottom, and wherever else the limit ends them.
pub fn a_server_that_calls_itself(context: &mut Context) -> Result<()> {
    let mut guest = context.shell_counting(SYSTEM)?;
    for (n, tools) in ["", "count ", "count count ", &"chroot / ".repeat(8)].iter().enumerate() {
        output(&mut guest, &format!("{tools}hostile deep deep{n} &"))?;
        for limits in ["1000000 0 6", "50 3 300", "100 61 330"] {
            let reply = guest.run_line(&format!("hostile dive deep{n} {limits}"), LIMIT * 4)?;
            ensure!(reply.status == 0, "{tools:?}, {limits}: {}", reply.output);
        }
    }
    Ok(())
}

/// By no portal: what it prints under tools is what it prints without.
fn same(guest: &mut Guest, tools: &str) -> Result<()> {
    let [plain, under] = [probe(guest, "")?, probe(guest, tools)?];
    let differs = plain.lines().zip(under.lines()).find(|(a, b)| a != b);
    ensure!(plain == under, "under {tools:?}: {differs:?}");
    Ok(())
}

pub fn a_program_cannot_tell(context: &mut Context) -> Result<()> {
    let mut guest = context.shell(SYSTEM)?;
    for tools in ["count ", "sandbox --allow * ", "faultinject 1000000 ", "chroot / ", "count count "] {
        same(&mut guest, tools)?;
    }
    Ok(())
}

/// Calls with bad words, closed portals, limits; programs that are servers, controllers, parents: a section
/// of `differ` each.
pub fn bad_calls_answer_the_same_under_tools(context: &mut Context) -> Result<()> {
    let mut guest = context.shell(SYSTEM)?;
    // Where code is longer, the portals of eight tools reach a share before the program reaches one.
    let deep = "sandbox --allow * ".repeat(if context.tools().is_default() { 8 } else { 5 });
    let sections = output_of(&mut guest, "differ")?;
    let sections: Vec<&str> = sections.iter().skip(1).map(String::as_str).collect();
    ensure!(sections.len() > 8, "{sections:?}");
    for section in sections {
        let plain = output_of(&mut guest, &format!("differ {section}"))?;
        for tools in ["count ", "sandbox --allow * ", "faultinject 1000000 ", &deep] {
            let under = output_of(&mut guest, &format!("{tools}differ {section}"))?;
            // What the tool says stands below.
            let mut rest = under.iter();
            let lost = plain.iter().find(|line| !rest.any(|l| l == *line));
            ensure!(lost.is_none(), "{tools}differ {section}: {lost:?} is not among {under:#?}");
        }
    }
    Ok(())
}

/// Changes of the table that a child of a child makes are told at each level, the second opening of an index
/// as the first; what a controller changes while it is told, standard output for what it prints, it is told
/// afterwards.
pub fn every_controller_is_told_of_each_change(context: &mut Context) -> Result<()> {
    let mut guest = context.shell(SYSTEM)?;
    let plain = output_of(&mut guest, "notices")?;
    let own = ["+41", "+42", "+43", "+44", "+45"];
    let round = ["+46", "+47", "+48", "-46", "-47", "-48"];
    let file = ["+46", "+47", "+48", "+49", "-46", "-47", "-48", "-49"];
    let wanted = [&round.repeat(3)[..], &file].concat();
    for level in 0..3 {
        let at = |line: &&String| line.len() - line.trim_start().len() == 2 * level;
        let lines = plain.iter().filter(at).filter_map(|line| line.split_whitespace().next());
        // Portals on behalf lie far behind.
        let told: Vec<&str> = lines.filter(|word| word.len() == 3).collect();
        let wanted = if level == 0 { [&own[..], &wanted].concat() } else { wanted.clone() };
        ensure!(told == wanted, "level {level} was told {told:?} and not {wanted:?}");
    }
    for tools in ["count ", "sandbox --allow * ", "chroot / ", "count count "] {
        let under = output_of(&mut guest, &format!("{tools}notices"))?;
        ensure!(under.starts_with(&plain), "alone: {plain:#?}\nunder {tools}: {under:#?}");
    }
    Ok(())
}

/// What the process server tells of faults is no program's.
fn is_of_a_fault(line: &str) -> bool {
    line.starts_with("fault: ") || line.starts_with("crash ")
}

/// The lines of a program that ends with 3; faults are told with the threads' numbers.
fn output_of(guest: &mut Guest, line: &str) -> Result<Vec<String>> {
    let reply = guest.run_line(line, LIMIT * 4)?;
    ensure!(reply.status == 3, "{line:?} ended with {}: {}", reply.status, reply.output);
    Ok(reply.output.lines().filter(|line| !is_of_a_fault(line)).map(String::from).collect())
}

pub fn eight_controllers_within_each_other(context: &mut Context) -> Result<()> {
    let mut guest = context.shell(SYSTEM)?;
    let printed = output(&mut guest, "nest 8")?;
    ensure!(printed.contains("level 8") && printed.contains("all is well"), "{printed}");
    same(&mut guest, &"chroot / ".repeat(8))
}

pub fn a_hundred_forks_in_a_row(context: &mut Context) -> Result<()> {
    let mut guest = context.shell(SYSTEM)?;
    let forks = |guest: &mut Guest| -> Result<()> {
        // Alone, and where two controllers stand around whoever forks.
        for line in ["nest forks 100", "count count nest forks 100"] {
            let reply = guest.run_line(line, LIMIT * 4)?;
            ensure!(reply.status == 0, "{line:?} ended with {}: {}", reply.status, reply.output);
        }
        Ok(())
    };
    without_leak(&mut guest, forks)
}

/// However they end, their controllers' stacks serve the next ones.
pub fn a_hundred_threads_in_a_row(context: &mut Context) -> Result<()> {
    let mut guest = context.shell(SYSTEM)?;
    for tools in ["", "count ", &"chroot / ".repeat(8)] {
        let line = format!("{tools}nest threads 100");
        let reply = guest.run_line(&line, LIMIT * 4)?;
        ensure!(reply.status == 0, "{line:?} ended with {}: {}", reply.status, reply.output);
    }
    Ok(())
}

/// Who has the portal manager keep as much as he may is told when that is all; everybody else goes on.
pub fn burrows_and_many_tools_have_an_end(context: &mut Context) -> Result<()> {
    let mut guest = context.shell(SYSTEM)?;
    for n in 1..=14 {
        let said = guest.run_line("count sleep 1000 &", LIMIT)?.output;
        ensure!(said.contains("started"), "tool {n}: {said}");
    }
    let reply = guest.run_line("burrow", LIMIT * 4)?;
    ensure!(reply.output.contains(" deep: "), "{}", reply.output);
    let on = output(&mut guest, "echo on")?;
    ensure!(on == "on\n", "{on:?}");
    Ok(())
}

/// What must be the same before and after: pages, domains, threads, portals, bytes of code, semaphores,
/// interfaces; and each server's allocations.
fn resources(guest: &mut Guest) -> Result<String> {
    let live = output(guest, "mem --live")?;
    let words = |line: &str| line.split_whitespace().map(String::from).collect::<Vec<_>>();
    let live = live.lines().map(words).map(|words| match &words[..] {
        [live, .., name] => format!("{live} {name}\n"),
        _ => String::new(),
    });
    Ok(output(guest, "mem")? + &live.collect::<String>())
}

pub fn nobody_escapes_and_nothing_leaks(context: &mut Context) -> Result<()> {
    let mut guest = context.shell(SYSTEM)?;
    let kinds = [
        ("close", 7),
        ("forge", 7),
        ("children", 7),
        ("exhaust", 7),
        ("handler-exit", 7),
        ("handler-fault", 139),
        ("kill", 7),
        ("exit", 7),
        ("fault", 139),
    ];
    let round = |guest: &mut Guest| -> Result<()> {
        for (kind, status) in kinds {
            for tools in ["count ", "count count "] {
                let reply = guest.run_line(&format!("{tools}escape {kind}"), LIMIT * 4)?;
                ensure!(
                    reply.status == status,
                    "{tools}escape {kind} ended with {}: {}",
                    reply.status,
                    reply.output
                );
            }
        }
        Ok(())
    };
    without_leak(&mut guest, round)
}

/// What servers keep for good after a first use, or a peak, is not a leak; some of it settles late. A leak comes
/// again each time.
fn without_leak(guest: &mut Guest, round: impl Fn(&mut Guest) -> Result<()>) -> Result<()> {
    (0..4).try_for_each(|_| round(guest))?;
    // The shell opens what it looks through when it first looks.
    resources(guest)?;
    let mut last = Ok(());
    for _ in 0..3 {
        let before = resources(guest)?;
        round(guest)?;
        last = settled(guest, &before, resources);
        if last.is_ok() {
            break;
        }
    }
    last
}

/// Burials take a moment.
fn settled(guest: &mut Guest, before: &str, look: impl Fn(&mut Guest) -> Result<String>) -> Result<()> {
    let mut after = look(guest)?;
    for _ in 0..50 {
        if after == before {
            break;
        }
        output(guest, "nest 1")?;
        after = look(guest)?;
    }
    ensure!(after == before, "before: {before}\nafter: {after}");
    Ok(())
}
