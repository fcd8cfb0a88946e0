//! Tests of whole systems in the emulator: the registry.
//!
//! A test is a function that gets a [`Context`]; add it to [`ALL`].

use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use pebble_qemu::{Exit, PROMPT};

use super::blockers;
use super::context::{Context, LIMIT, output};
use super::crash;
use super::documents;
use super::hog;
use super::hostile;
use super::interpose;
use super::libc;
use super::ports;
use super::profile;
use super::replace;
use super::shell;
use super::stack;
use crate::bench;
use crate::tools::Tools;

pub struct SystemTest {
    name: &'static str,
    /// Left out by `--quick`.
    pub slow: bool,
    needs: Option<Need>,
    run: fn(&mut Context) -> Result<()>,
}

/// What a board, or the test for it, must have; and whether it has.
type Need = (&'static str, fn(&Tools) -> bool);

/// Drivers of the real-time clock wait for its alarm.
const ALARM: Need =
    ("a clock with an alarm in nanoseconds", |tools| tools.board.device["rtc"].kind == "goldfish");
/// What documents show was printed on that board.
const DOCUMENTED: Need = ("the board of the documents", |tools| tools.is_default());

impl SystemTest {
    const fn new(name: &'static str, run: fn(&mut Context) -> Result<()>) -> Self {
        SystemTest { name, slow: false, needs: None, run }
    }

    const fn slow(name: &'static str, run: fn(&mut Context) -> Result<()>) -> Self {
        SystemTest { name, slow: true, needs: None, run }
    }

    const fn needs(self, need: Need) -> Self {
        SystemTest { needs: Some(need), ..self }
    }

    pub fn group(&self) -> String {
        format!("system.{}", self.name)
    }

    /// What the board lacks for it.
    pub fn missing(&self, tools: &Tools) -> Option<&'static str> {
        self.needs.filter(|(_, has)| !has(tools)).map(|(what, _)| what)
    }

    pub fn run(&self, context: &mut Context) -> Result<()> {
        (self.run)(context)
    }
}

/// Every system test, in the order in which they run.
pub const ALL: &[SystemTest] = &[
    SystemTest::new("boot.prompt", boots_to_a_prompt),
    SystemTest::new("profile.totals", profile::totals_agree_with_the_counter),
    SystemTest::new("profile.interrupted", profile::an_interrupted_script_has_a_profile),
    SystemTest::new("boot.files", a_hundred_files_in_no_order),
    SystemTest::new("boot.fast", the_prompt_comes_within_ten_seconds),
    SystemTest::slow("boot.count", twenty_starts_with_a_clock_that_counts),
    SystemTest::new("image.audit", no_image_has_a_hole_in_its_walls),
    SystemTest::new("image.stacks", stack::no_essential_stack_overflows).needs(stack::READER),
    SystemTest::new("pipe.three-programs", a_pipeline_of_three_programs),
    SystemTest::new("pipe.100k", a_hundred_thousand_bytes_through_three_domains),
    SystemTest::new("console.paste", a_paste_of_64_kib_loses_nothing),
    SystemTest::slow("console.lines", lines_of_several_writers_are_whole),
    SystemTest::new("console.receive", a_file_comes_over_the_console),
    SystemTest::new("shell.tour", the_shell_shows_the_system),
    SystemTest::new("shell.dies", a_script_outlives_its_shell),
    SystemTest::new("shell.errors", errors_say_what_is_wrong),
    SystemTest::new("shell.files", shell::redirections),
    SystemTest::new("shell.files.refused", shell::refused),
    SystemTest::new("shell.files.rights", shell::rights),
    SystemTest::new("shell.variables", shell::variables),
    SystemTest::new("fault.report", a_fault_is_reported_and_contained),
    SystemTest::new("stack.queue", stacks_come_in_turn),
    SystemTest::slow("cpu.share", a_share_of_the_processor_holds),
    SystemTest::new("vm.alone", the_vm_manager_serves_a_component_directly),
    SystemTest::slow("capability.model", a_million_steps_agree_with_the_model),
    SystemTest::new("interpose.tools", interpose::the_tools_show_and_change_calls),
    SystemTest::new("interpose.transparent", interpose::a_program_cannot_tell),
    SystemTest::new("interpose.deep", interpose::eight_controllers_within_each_other),
    SystemTest::slow("interpose.bad-calls", interpose::bad_calls_answer_the_same_under_tools),
    SystemTest::new("interpose.notices", interpose::every_controller_is_told_of_each_change),
    SystemTest::new("interpose.limits", interpose::limits_are_the_same_under_tools),
    SystemTest::slow("interpose.windows", interpose::windows_pass_through),
    SystemTest::new("interpose.c", interpose::a_sandbox_in_c),
    SystemTest::slow("interpose.burrow", interpose::burrows_and_many_tools_have_an_end),
    SystemTest::new("interpose.threads", interpose::a_hundred_threads_in_a_row),
    SystemTest::slow("interpose.forks", interpose::a_hundred_forks_in_a_row),
    SystemTest::slow("interpose.escape", interpose::nobody_escapes_and_nothing_leaks),
    SystemTest::slow("hostile.stuck", hostile::a_dead_clients_thread_in_a_server_that_keeps_it),
    SystemTest::new("hostile.blockers.console", blockers::console),
    SystemTest::new("hostile.blockers.pipe", blockers::pipe),
    SystemTest::new("hostile.blockers.process", blockers::process),
    SystemTest::new("hostile.blockers.tools", blockers::tools),
    SystemTest::new("hostile.blockers.inversion", blockers::inversion),
    SystemTest::new("hostile.blockers.idle", blockers::idle),
    SystemTest::new("hostile.blockers.gone", blockers::gone),
    SystemTest::new("hostile.blockers.replaced", blockers::replaced),
    SystemTest::new("shell.jobs", blockers::jobs),
    SystemTest::slow("hostile.front", blockers::foreground),
    SystemTest::slow("hostile.crash", crash::crashes_tell_nothing_else),
    SystemTest::slow("hostile.once", |context| hostile::each_kind(context, 1)),
    SystemTest::slow("hostile.thousand", |context| hostile::each_kind(context, 16)),
    SystemTest::slow("hostile.depth", hostile::full_invocation_stacks),
    SystemTest::slow("hostile.consent", hostile::openers_give_what_they_say),
    SystemTest::new("hostile.streams", hostile::pages_lent_to_files_and_pipes),
    SystemTest::new("hostile.flips", hostile::pages_that_go_through_pipes),
    SystemTest::new("hostile.gifts", hostile::tables_that_others_fill),
    SystemTest::slow("hostile.hog", hog::others_go_on),
    SystemTest::slow("hostile.glut", hog::no_memory_is_left),
    SystemTest::new("hostile.spread", hog::tables_far_apart),
    SystemTest::slow("hostile.storm", hog::what_costs_others_much),
    SystemTest::new("window.lent", |context| hostile::windows(context, "lent")),
    SystemTest::slow("window.hostile", |context| hostile::windows(context, "hostile")),
    SystemTest::slow("timeout.calls", hostile::calls_whose_time_is_over),
    SystemTest::slow("timeout.recursion", interpose::a_server_that_calls_itself),
    SystemTest::slow("replace.quick", |context| replace::load(context, 5, 180)),
    SystemTest::slow("replace.load", |context| replace::load(context, 100, 1800)),
    SystemTest::slow("fault.ranges", hostile::pages_come_from_their_handlers),
    SystemTest::slow("guard.open", hostile::exporters_decide_who_opens),
    SystemTest::new("call.refused", refused_calls_say_why),
    SystemTest::new("load.limits", manifests_limit_programs),
    SystemTest::new("template.letters", hostile::components_register_letters),
    SystemTest::new("load.hostile", hostile::files_that_are_no_programs),
    SystemTest::slow("load.full", hostile::files_that_take_all_memory),
    SystemTest::slow("capability.names", hostile::names_are_opened_by_capability),
    SystemTest::slow("capability.files", hostile::files_are_opened_by_capability),
    SystemTest::slow("capability.devices", hostile::devices_are_driven_by_capability).needs(ALARM),
    SystemTest::new("c.streams", libc::streams),
    SystemTest::new("c.files", |context| libc::group(context, "files")),
    SystemTest::new("c.time", |context| libc::group(context, "time")),
    SystemTest::new("c.memory", libc::memory),
    SystemTest::new("c.memory.cost", libc::memory_cost),
    SystemTest::new("c.memory.fresh", libc::memory_of_others),
    SystemTest::new("c.formats", |context| libc::group(context, "formats")),
    SystemTest::new("c.threads", libc::threads),
    SystemTest::new("c.posix", libc::posix),
    SystemTest::new("c.pages", libc::pages),
    SystemTest::slow("c.wild", libc::wild_pointers),
    SystemTest::new("c.large", libc::large_programs),
    SystemTest::new("c.errors", |context| libc::group(context, "errors")),
    SystemTest::slow("ports.sqlite", ports::sqlite),
    SystemTest::slow("ports.zlib", ports::zlib),
    SystemTest::slow("ports.coremark", ports::coremark),
    SystemTest::slow("ports.lua", ports::lua),
    SystemTest::slow("ports.mbedtls", ports::mbedtls),
    SystemTest::slow("ports.cxx", ports::cxx),
    SystemTest::slow("ports.tools", ports::tools),
    SystemTest::slow("replace.schedulers", replace::schedulers),
    SystemTest::slow("replace.c", replace::c_client),
    SystemTest::slow("replace.refused", replace::refused),
    SystemTest::new("restart.quick", |context| replace::restart(context, 50, 120)),
    SystemTest::slow("restart.load", |context| replace::restart(context, 1000, 1200)),
    SystemTest::new("restart.policy", replace::policy),
    SystemTest::slow("documents", documents::say_what_is_printed).needs(DOCUMENTED),
    SystemTest::slow("bench.repeatable", two_measurements_are_the_same),
];

fn boots_to_a_prompt(context: &mut Context) -> Result<()> {
    let mut guest = context.prompt("default")?;
    guest.send(b"exit\n");
    let exit = guest.wait_exit(LIMIT)?;
    ensure!(exit == Exit::PoweredOff, "{exit}");
    Ok(())
}

fn a_hundred_files_in_no_order(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("files")?;
    let counted = output(&mut guest, "ls /share | wc -l")?;
    ensure!(counted.trim() == "100", "{counted}");
    Ok(())
}

/// The limit is generous for a busy machine; an emulator that hangs fails it.
fn the_prompt_comes_within_ten_seconds(context: &mut Context) -> Result<()> {
    let mut guest = context.start("default")?;
    guest.expect(PROMPT, Duration::from_secs(10))?;
    Ok(())
}

/// Time stands still while nobody runs: a timer interrupt that comes for a time long replaced, and is not set
/// anew, would come for ever.
fn twenty_starts_with_a_clock_that_counts(context: &mut Context) -> Result<()> {
    for start in 0..20 {
        let mut guest = context.shell_counting("test")?;
        // Each time the system is idle for another while before the next line.
        for pause in [0, start * 5] {
            std::thread::sleep(Duration::from_millis(pause));
            output(&mut guest, "echo still here").with_context(|| format!("start {start}"))?;
        }
    }
    Ok(())
}

fn no_image_has_a_hole_in_its_walls(context: &mut Context) -> Result<()> {
    for system in ["core", "default", "bench", "template"] {
        let image = std::fs::read(context.image(system)?)?;
        let report = pebble_image::read_report(&image).context("no report")?;
        let wrong = pebble_image::audit::audit(&image, &report, &context.tools().board);
        ensure!(wrong.is_empty(), "{system}: {}", wrong.join("; "));
    }
    Ok(())
}

fn a_hundred_thousand_bytes_through_three_domains(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    let printed = output(&mut guest, "cat share/lines | cat | wc")?;
    let counts: Vec<&str> = printed.split_whitespace().collect();
    ensure!(counts == ["5000", "20000", "100000"], "wc printed {printed:?}");
    Ok(())
}

/// As fast as the emulator takes it, with echo, in cooked mode.
fn a_paste_of_64_kib_loses_nothing(context: &mut Context) -> Result<()> {
    let mut guest = context.prompt("default")?;
    let text: String = (0..4096).map(|n| format!("paste {n:09}\n")).collect();
    ensure!(text.len() == 65536, "the paste has {} bytes", text.len());
    guest.send(b"cat | wc\n");
    guest.send(text.as_bytes());
    guest.send(b"\x04");
    let shown = String::from_utf8_lossy(&guest.expect(PROMPT, LIMIT * 2)?).into_owned();
    let last = shown.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let counts: Vec<&str> = last.split_whitespace().collect();
    ensure!(counts == ["4096", "8192", "65536"], "wc printed {last:?}");
    Ok(())
}

/// Each writes all it has as fast as it can: alone, each below tools of its own, and all below the same
/// eight.
fn lines_of_several_writers_are_whole(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    let deep = format!("{}chorus", "count sandbox --allow * ".repeat(4));
    for line in ["chorus", "chorus count sandbox --allow * count", &deep] {
        let reply = guest.run_line(line, LIMIT * 2)?;
        for voice in ["a", "b", "c", "r"] {
            let wanted = voice.repeat(99);
            let whole = reply.output.lines().filter(|line| *line == wanted).count();
            ensure!(whole == 100, "{line}: {whole} whole lines of {voice}: {}", reply.output);
        }
    }
    // Two copies of a text: whoever was torn has a line that is not in it.
    let text = output(&mut guest, "cat share/long")?;
    let both = output(&mut guest, "cat share/long & cat share/long ; sleep 2")?;
    let strange =
        both.lines().find(|line| !line.starts_with("[1] ") && !text.lines().any(|own| own == *line));
    ensure!(strange.is_none(), "{strange:?} is not in the text");
    ensure!(both.lines().count() == 2 * text.lines().count() + 1, "{} lines", both.lines().count());
    Ok(())
}

/// A program sent over the console runs; a damaged one is refused, with the line.
fn a_file_comes_over_the_console(context: &mut Context) -> Result<()> {
    let mut guest = context.prompt("default")?;
    let text: String = (0..300).map(|n| format!("line {n} of a file\n")).collect();
    let mut lines = String::new();
    pebble_tools::transfer::encode(text.as_bytes(), |line| lines += &format!("{line}\n"));
    guest.send(b"receive /ram/text\n");
    guest.send(lines.as_bytes());
    guest.expect(&format!("/ram/text: {} bytes", text.len()), LIMIT)?;
    guest.expect(PROMPT, LIMIT)?;
    guest.send(b"cat /ram/text | wc\n");
    let shown = String::from_utf8_lossy(&guest.expect(PROMPT, LIMIT)?).into_owned();
    let last = shown.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or_default();
    let counts: Vec<&str> = last.split_whitespace().collect();
    ensure!(counts == ["300", "1500", &text.len().to_string()], "wc printed {last:?}");
    let damaged = lines.replacen('b', "c", 1);
    guest.send(b"receive /ram/text\n");
    guest.send(damaged.as_bytes());
    guest.expect("the checksum is", LIMIT)?;
    guest.expect(PROMPT, LIMIT)?;
    // Nothing of an upload with a bad line is taken for commands, and nothing of it stays.
    guest.send(b"receive /ram/text\n");
    guest.send(lines.replacen('b', "!", 1).as_bytes());
    guest.send(b"ls /ram\n");
    guest.expect("no base64 character", LIMIT)?;
    let shown = guest.expect(PROMPT, LIMIT)?;
    let listed = guest.expect(PROMPT, LIMIT)?;
    let after = String::from_utf8_lossy(&[shown, listed].concat()).into_owned();
    ensure!(!after.contains("no such command") && !after.contains("text\r"), "{after:?}");
    // Where no file can be made, nothing is waited for.
    guest.send(b"receive /etc/text\n");
    guest.expect("receive: /etc/text: read-only", LIMIT)?;
    Ok(())
}

fn the_shell_shows_the_system(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("default")?;
    for (line, wanted) in [
        ("help", "ps"),
        ("ls", "bin/"),
        ("ls bin", "shell"),
        ("ps", "scheduler"),
        ("names", "file.open"),
        ("portals shell", "scheduler.yield"),
        ("mem", "portals"),
        ("top", "console"),
        ("echo 'one  two' \"three\"", "one  two three"),
        ("hello", "Hello"),
    ] {
        let printed = output(&mut guest, line)?;
        ensure!(printed.contains(wanted), "{line:?} printed no {wanted:?}: {printed:?}");
    }
    // Counted portals count: the shell's own, recompiled while it uses them.
    output(&mut guest, "portals --count shell")?;
    let printed = output(&mut guest, "portals shell")?;
    let calls = |line: &str| line.split_whitespace().last().and_then(|n| n.parse::<u64>().ok());
    let writes = printed.lines().filter(|l| l.contains("console.write")).filter_map(calls).max();
    ensure!(writes > Some(10), "console.write was called {writes:?} times: {printed}");
    output(&mut guest, "portals --no-count shell")?;
    Ok(())
}

/// Its line has the status with which it died; the next is for the shell that takes its place.
fn a_script_outlives_its_shell(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    for line in ["kill shell", "hostile do loop | kill shell"] {
        let reply = guest.run_line(line, LIMIT)?;
        let told = "init: the shell died with status 137; starting another\n";
        ensure!(reply.status == 137 && reply.output.ends_with(told), "{line}: {reply:?}");
        ensure!(output(&mut guest, "echo still here")? == "still here\n", "the next shell is another");
    }
    Ok(())
}

fn errors_say_what_is_wrong(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("default")?;
    for (line, status, wanted) in [
        ("nothing-of-the-kind", 127, "no such command"),
        ("cat /nowhere", 1, "nowhere"),
        ("echo 'open", 2, "column"),
        ("'' x", 127, "shell: a command's name cannot be empty"),
        ("ps x", 2, "usage: ps\n"),
        ("names x", 2, "usage: names\n"),
        ("kill 250", 1, ""),
        ("replace interrupt-dispatcher default", 0, "interrupt-dispatcher is domain"),
        ("replace interrupt-dispat components/irq", 0, "interrupt-dispat is domain"),
        ("replace irq default", 0, "irq is domain"),
        ("echo replace clock default | shell", 1, "replace: only the shell that the system has started may"),
        ("replace shell bin/shell", 1, "shell is a program, which has no hand-over"),
        ("replace process default", 1, "process has no hand-over: it cannot be replaced"),
        ("replace vm components/console", 1, "vm has no hand-over: it cannot be replaced"),
        ("replace 7 components/console", 1, "7: components go by their names"),
        (
            "replace no-component-of-this-name components/console",
            1,
            "no-component-of-this-name: no such component",
        ),
        ("replace '' components/console", 1, "the server's name is empty"),
        ("replace console ''", 1, "\"\" is no file"),
        ("replace console //", 1, "\"//\" is no file"),
        ("replace console /components/", 1, "components/ is a directory"),
        ("replace console ./etc", 1, "./etc is a directory"),
        ("replace console 1234567890123456", 1, "components/console-1234567890123456 is too long a path: 24"),
        ("replace console none", 1, "components/console-none: no such file"),
        ("replace console", 2, "usage: replace SERVER FILE"),
    ] {
        let reply = guest.run_line(line, LIMIT)?;
        ensure!(
            reply.status == status && reply.output.contains(wanted),
            "{line:?} ended with {} and printed {:?}",
            reply.status,
            reply.output
        );
    }
    Ok(())
}

/// A program that never pauses gets what it may, though nobody else wants to run.
fn a_share_of_the_processor_holds(context: &mut Context) -> Result<()> {
    // Time that the machine gives to others must not count as the guest's.
    let mut guest = context.shell_counting("test")?;
    // By who starts it, by its manifest, by both: the lesser counts.
    for (line, most) in [
        ("share 20 hog", 25),
        ("share 60 hog", 65),
        ("lazy", 35),
        ("share 60 lazy", 35),
        ("share 10 lazy", 15),
    ] {
        let reply = guest.run_line(line, LIMIT * 10)?;
        let ran = reply.output.split_whitespace().rev().nth(1).and_then(|n| n.parse::<u32>().ok());
        ensure!(ran.is_some_and(|ran| (1..=most).contains(&ran)), "{line}: {reply:?}");
    }
    // Nobody may set another's, or its own.
    let reply = guest.run_line("share 101 hog", LIMIT)?;
    ensure!(reply.status == 2, "{:?}", reply.output);
    Ok(())
}

/// More callers than stacks: by turns, and nobody is left behind when the callee dies.
fn stacks_come_in_turn(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    let reply = guest.run_line("queue", LIMIT)?;
    let wanted = |late| format!("queue: 200 passes, 0 failed, {late} out of turn; 8 told of the end");
    // Whom the emulator's host keeps from calling again for too long loses a turn.
    let in_turn = (0..5).any(|late| reply.output.contains(&wanted(late)));
    ensure!(reply.status == 0 && in_turn, "{:?}", reply.output);
    Ok(())
}

fn a_fault_is_reported_and_contained(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    for (kind, wanted) in [
        ("null", "load from 0x0"),
        ("privileged", "illegal or privileged instruction"),
        ("bad-index", "invokes portal 999, which it does not hold"),
        ("stack", "stack overflow"),
        ("invocations", "invocation stack"),
        ("portal-code", "jump to 0xffffffff88200000"),
    ] {
        let reply = guest.run_line(&format!("hostile do {kind}"), LIMIT)?;
        let line = reply.output.lines().find(|l| l.starts_with("fault: ")).unwrap_or_default();
        ensure!(reply.status > 128, "{kind} ended with {}", reply.status);
        ensure!(line.contains(wanted) && line.contains("(hostile)"), "{kind}: {:?}", reply.output);
    }
    output(&mut guest, "echo still here")?;
    Ok(())
}

/// A thousand domains made, faulting and freed, without portal tables or files; the component counts pages
/// itself.
fn the_vm_manager_serves_a_component_directly(context: &mut Context) -> Result<()> {
    let mut guest = context.start("vm-test")?;
    guest.expect("vm-test: passed", LIMIT * 2)?;
    Ok(())
}

/// What a C program is told of calls that are refused.
fn refused_calls_say_why(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    let reply = guest.run_line("refused", LIMIT)?;
    let domain = reply.output.split_whitespace().nth(2).unwrap_or_default();
    let wanted = format!(
        "window: domain {domain} may not lend this memory, or did not give it back\n\
         results: specification of domain {domain}, column 5: '>' needs one digit from 1 to 6\n\
         letter: specification of domain {domain}, column 5: 'z' is no argument letter: \
         use i c = a b d h, a window (w r o t g), k, or A to Z\n\
         template: specification of domain {domain}, column 4: 'Q' has no template: \
         start the server that registers it first\n\
         fork: Invalid argument\ncontrol: Invalid argument\n"
    );
    ensure!(reply.status == 0 && reply.output == wanted, "{reply:?}");
    Ok(())
}

/// Manifests in the file and beside it; a wrong one is refused with its line.
fn manifests_limit_programs(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("test")?;
    for (line, wanted) in [("limited limits 700 5 30", ""), ("modest", " 4 threads, ")] {
        let reply = guest.run_line(line, LIMIT)?;
        ensure!(reply.status == 0 && reply.output.contains(wanted), "{}: {}", reply.status, reply.output);
    }
    // Threads of a program without a portal left still get past each other at the libraries' locks.
    let crowd = guest.run_line("crowd | wc", LIMIT)?;
    let words: Vec<&str> = crowd.output.split_whitespace().collect();
    ensure!(words.first() == Some(&"1202"), "{}", crowd.output);
    let crowd = guest.run_line("hostile crowd", LIMIT)?;
    ensure!(crowd.status == 0, "{}: {}", crowd.status, crowd.output);
    let reply = guest.run_line("mistaken policy", LIMIT)?;
    let wanted = "bin/mistaken: manifest, line 2: threads is a number from 1 to 32";
    ensure!(reply.status != 0 && reply.output.contains(wanted), "{}", reply.output);
    let reply = guest.run_line("tiny ; sleep 1", LIMIT)?;
    let wanted = "bin/tiny: manifest: pages = 3 is not enough to start it";
    ensure!(reply.output.contains(wanted), "{}", reply.output);
    // What a program says and nobody hears is told in its place, and is no success.
    for (line, status) in
        [("mute hello", 1), ("mute", 1), ("dumb", 2), ("dumb want handlers", 24), ("count mute hello", 1)]
    {
        let reply = guest.run_line(line, LIMIT)?;
        // What the process server has to say it may say a moment later.
        let heard = reply.output + &output(&mut guest, "sleep 0.1")?;
        let name = line.trim_start_matches("count ").split(' ').next().unwrap_or_default();
        let wanted = format!("bin/{name}: output lost: too many open files or portals");
        ensure!(reply.status == status && heard.contains(&wanted), "{line}: {}, {heard}", reply.status);
    }
    Ok(())
}

/// The history that the host test runs, with a domain for each actor and portal code that passes.
fn a_million_steps_agree_with_the_model(context: &mut Context) -> Result<()> {
    let mut guest = context.start("capability")?;
    guest.expect("capability: ", LIMIT * 10)?;
    let line = String::from_utf8_lossy(&guest.expect("\n", LIMIT)?).into_owned();
    ensure!(line.starts_with("1000000 steps agree"), "{line}");
    Ok(())
}

fn two_measurements_are_the_same(context: &mut Context) -> Result<()> {
    let [first, second] = [context.measure()?, context.measure()?];
    // A single sample of a clock is exact to a tick.
    let tick = if context.tools().is_default() { 0.0 } else { bench::tick(context.tools()) };
    for (a, b) in first.iter().zip(&second) {
        // What is typed at a prompt comes when the host lets it come, and finds the servers' tables in one
        // state or another.
        let near = (a.p50 - b.p50).abs() <= (a.p50 / 100.0).max(bench::grain(&first, a, tick));
        let same = if bench::is_typed(&a.id) { near } else { a == b };
        ensure!(same, "{}: {a:?}, then {b:?}", a.id);
    }
    ensure!(first.len() == second.len() && first.len() > 40, "{} rows, then {}", first.len(), second.len());
    Ok(())
}

fn a_pipeline_of_three_programs(context: &mut Context) -> Result<()> {
    let mut guest = context.shell("default")?;
    let printed = output(&mut guest, "echo one two three | cat | wc")?;
    let counts: Vec<&str> = printed.split_whitespace().take(3).collect();
    ensure!(counts == ["1", "3", "14"], "wc printed {printed:?}");
    // What nobody reads, the shell's own commands do not write for ever.
    for line in ["names | hello", "echo x | names | hello", "names | hello | cat"] {
        let printed = output(&mut guest, line)?;
        ensure!(printed.contains("Hello from "), "{line}: {printed}");
    }
    Ok(())
}
