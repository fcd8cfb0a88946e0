//! The conversation with a guest, over a shell script that plays the guest.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use pebble_qemu::{Error, Exit, Guest, Machine};

const SOON: Duration = Duration::from_secs(10);

/// A program that takes QEMU's arguments and runs `body` with the console on its standard streams.
fn guest(name: &str, body: &str) -> Guest {
    guest_of(name, body, |machine| machine)
}

fn guest_of(name: &str, body: &str, counts: fn(Machine) -> Machine) -> Guest {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("guest-{name}"));
    // Written by a process of its own: one that another test forks meanwhile would hold the file open for
    // writing.
    let mut writer = Command::new("sh")
        .args(["-c", "cat > \"$0\" && chmod +x \"$0\""])
        .arg(&path)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    writeln!(writer.stdin.take().unwrap(), "#!/bin/sh\n{body}").unwrap();
    assert!(writer.wait().unwrap().success());
    counts(Machine::new(path, "-M board")).start(Path::new("image")).unwrap()
}

/// A shell in script mode: `say WORD`, `false`, `exit`; `boom` is a nucleus panic, `hang` never answers.
const SHELL: &str = r#"
printf 'firmware\r\npebble> '
read -r enter
printf '%s\r\n\036ready\036\r\n' "$enter"
while read -r command word; do
    case $command in
        say) printf '%s\r\n\0360\036\r\n' "$word" ;;
        false) printf '\0361\036\r\n' ;;
        boom) printf 'nucleus: no such luck\r\n'; exec sleep 60 ;;
        hang) exec sleep 60 ;;
        exit) exit ${word:-0} ;;
    esac
done
"#;

#[test]
fn a_script_gets_output_and_status_of_each_line() {
    let mut guest = guest("script", SHELL);
    assert_eq!(guest.enter_script(SOON).unwrap(), b"firmware\r\n");
    let replies = guest.run_script(&["say hello", "false"], SOON).unwrap();
    assert_eq!((replies[0].output.as_str(), replies[0].status), ("hello\n", 0));
    assert_eq!((replies[1].output.as_str(), replies[1].status), ("", 1));
    guest.send(b"exit\n");
    assert_eq!(guest.wait_exit(SOON).unwrap(), Exit::PoweredOff);
}

#[test]
fn a_stream_ends_with_the_last_status() {
    let mut guest = guest("stream", SHELL);
    guest.enter_script(SOON).unwrap();
    let lines = ["say a", "say b", "false"].map(|l| Ok::<_, Error>(l.to_string()));
    let mut out = Vec::new();
    let end = guest.run_stream(lines.into_iter(), None, &mut out).unwrap();
    assert_eq!((out.as_slice(), end), (b"a\nb\n".as_slice(), (Exit::PoweredOff, 1)));
}

#[test]
fn a_script_may_end_the_system_itself() {
    let mut guest = guest("exit", SHELL);
    guest.enter_script(SOON).unwrap();
    let lines = ["say a", "exit 3", "say b"].map(|l| Ok::<_, Error>(l.to_string()));
    let end = guest.run_stream(lines.into_iter(), None, &mut Vec::new()).unwrap();
    assert_eq!(end, (Exit::Failed(3), 0));
}

#[test]
fn an_emulator_that_stands_still_is_nudged() {
    const STILL: &str = "trap 'kill $!; echo awake; exit' ALRM; echo begun; sleep 60 & wait";
    let mut still = guest_of("still", STILL, Machine::counting_with_input);
    still.expect("awake", SOON).unwrap();
    // The signal would have ended this one: it must not be sent before a word is spoken.
    let mut silent = guest_of("silent", "sleep 3; echo begun", Machine::counting_with_input);
    silent.expect("begun", SOON).unwrap();
    assert_eq!(silent.wait_exit(SOON).unwrap(), Exit::PoweredOff);
}

#[test]
fn last_words_of_the_nucleus_end_the_wait() {
    let mut guest = guest("panic", SHELL);
    guest.enter_script(SOON).unwrap();
    let error = guest.run_line("boom", Duration::from_secs(30)).unwrap_err();
    assert!(
        matches!(&error, Error::Ended { exit: Exit::Panicked(line), .. } if line == "no such luck"),
        "{error}"
    );
}

#[test]
fn silence_is_an_error() {
    let mut guest = guest("silence", SHELL);
    guest.enter_script(SOON).unwrap();
    let error = guest.run_line("hang", Duration::from_millis(300)).unwrap_err();
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    assert!(error.to_string().contains("ready"), "the message quotes the console");
}

#[test]
fn a_guest_can_be_watched_to_its_end() {
    let mut guest = guest("watch", "printf 'one\\r\\n'; sleep 0.2; printf 'two\\r\\n'; exit 2");
    let mut out = Vec::new();
    assert_eq!(guest.run_to_end(SOON, &mut out).unwrap(), Exit::Failed(2));
    assert_eq!(out, b"one\ntwo\n");
}

#[test]
fn what_is_sent_arrives_whole() {
    let mut guest = guest("paste", "head -c 300000 | wc -c; exec sleep 60");
    guest.send(&vec![b'x'; 300_000]);
    let seen = guest.expect("300000", SOON).unwrap();
    assert!(seen.iter().all(u8::is_ascii_whitespace));
}

/// Set for the copy of this test program that starts a guest and is killed.
const DOOMED: &str = "PEBBLE_QEMU_DOOMED";

#[test]
fn a_guest_does_not_outlive_who_started_it() {
    let pid_file = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guest-pid");
    if std::env::var_os(DOOMED).is_some() {
        // Ignores what it can ignore.
        let body = format!(
            "trap '' TERM INT HUP\necho $$ >{0}.new; mv {0}.new {0}\nwhile sleep 0.1; do :; done",
            pid_file.display()
        );
        let _guest = guest("orphan", &body);
        std::thread::sleep(Duration::from_secs(60));
        return;
    }
    let _ = std::fs::remove_file(&pid_file);
    let mut doomed = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_guest_does_not_outlive_who_started_it"])
        .env(DOOMED, "1")
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let until = std::time::Instant::now() + Duration::from_secs(50);
    let soon = |what: &dyn Fn() -> bool| {
        while !what() && std::time::Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        what()
    };
    assert!(soon(&|| pid_file.exists()));
    let process = PathBuf::from("/proc").join(std::fs::read_to_string(&pid_file).unwrap().trim());
    assert!(process.exists());
    doomed.kill().unwrap();
    doomed.wait().unwrap();
    let gone = || std::fs::read_to_string(process.join("stat")).map_or(true, |stat| stat.contains(") Z "));
    assert!(soon(&gone), "the guest is still there");
}

/// What a plug-in of the emulator has to write, it writes at the emulator's end.
#[test]
fn an_emulator_that_is_stopped_may_finish_its_work() {
    let left = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("guest-stopped.left");
    let _ = std::fs::remove_file(&left);
    let body = format!("trap 'echo done > {}; exit 0' TERM\n{SHELL}", left.display());
    let mut guest = guest("stopped", &body.replace("exec sleep 60", "while :; do sleep 0.01; done"));
    guest.enter_script(SOON).unwrap();
    let limit = Duration::from_millis(50);
    assert!(matches!(guest.run_line("hang", limit), Err(Error::TimedOut { .. })));
    assert_eq!(guest.stop().unwrap(), Exit::PoweredOff);
    assert_eq!(std::fs::read_to_string(left).unwrap(), "done\n");
    assert_eq!(guest.stop().unwrap(), Exit::PoweredOff);
}

#[test]
fn who_does_not_want_to_wait_any_more_does_not() {
    let mut guest = guest("unwanted", SHELL);
    let unwanted = Arc::new(AtomicBool::new(false));
    guest.give_up_when(unwanted.clone());
    guest.enter_script(SOON).unwrap();
    assert_eq!(guest.run_line("say hello", SOON).unwrap().output, "hello\n");
    let later = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(50));
        unwanted.store(true, Ordering::Relaxed);
    });
    let given_up = guest.run_line("hang", Duration::from_secs(3600));
    assert!(matches!(given_up, Err(Error::Interrupted)));
    later.join().unwrap();
}
