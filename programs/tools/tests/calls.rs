//! What calls mean, and what the tools' arguments say.

use pebble_abi::errno::{EACCES, EIO, ENOSPC};
use pebble_abi::{link, sys};
use pebble_tools::calls::{Portals, answer, call};
use pebble_tools::rules::{allows, fault, inside, mistake};
use pebble_tools::timeline::{Event, MAX, Timeline};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

fn words(text: &str) -> [u64; 5] {
    link::pack::<5>(text).expect("a short text")
}

#[test]
fn names_are_learnt_from_the_calls_that_open() {
    let mut portals = Portals::new();
    portals.learn(sys::SYS_PORTAL_OPEN, &words("clock.wall"), 44);
    portals.learn(sys::SYS_FILE_OPEN, &words("/bin"), 50);
    portals.learn(sys::SYS_SEM_CREATE, &[1, 0, 0, 0, 0], 60);
    portals.learn(sys::SYS_PORTAL_OPEN, &words("clock.wall"), -13);
    let names = [3, 44, 50, 51, 53, 60, 61, 62].map(|index| portals.name(index).to_string());
    let wanted = [
        "nucleus.get_asid",
        "clock.wall",
        "file.read",
        "file.write",
        "file.close",
        "semaphore.p",
        "semaphore.v",
        "?",
    ];
    assert_eq!(names, wanted);
    portals.learn(sys::SYS_PORTAL_CLOSE, &[50, 4, 0, 0, 0], 0);
    assert_eq!(portals.name(51), "?");
    // A controller opens for its own child.
    portals.set_behalf(100);
    let place =
        pebble_abi::control::BEHALF.iter().position(|i| *i == sys::SYS_PORTAL_OPEN).expect("on behalf");
    portals.learn(100 + place, &words("vm.stats"), 51);
    assert_eq!(portals.name(51), "vm.stats");
}

/// A name that is left behind would be taken for that of the next.
#[test]
fn names_are_doubted_where_something_else_may_be() {
    let mut portals = Portals::new();
    let named = |portals: &mut Portals| {
        portals.learn(sys::SYS_FILE_OPEN, &words("/bin"), 50);
        portals.set(70, "shop.open".into());
    };
    let spawn = pebble_abi::sys::SYS_PROCESS;
    named(&mut portals);
    portals.learn(spawn, &[0; 5], 20);
    assert_eq!([50, 53, 70].map(|index| portals.name(index).to_string()), ["?"; 3]);
    assert_eq!(portals.name(sys::SYS_FILE_OPEN), "file.open");
    named(&mut portals);
    portals.learn(70, &[0; 5], 52);
    assert_eq!([50, 51].map(|index| portals.name(index).to_string()), ["file.read", "file.write"]);
    assert_eq!([52, 53].map(|index| portals.name(index).to_string()), ["?"; 2]);
    named(&mut portals);
    portals.learn(50, &[32, 0, 0, 0, 0], 51);
    assert_eq!(portals.name(51), "file.write", "so many bytes were read");
    // What was counted meanwhile is not lost.
    portals.learn(spawn, &[0; 5], 20);
    portals.count(50, 3);
    portals.set(50, "file.read".into());
    portals.count(50, 1);
    let table = portals.table();
    assert!(table.lines().any(|line| line.split_whitespace().eq(["50", "file.read", "4"])), "{table}");
}

#[test]
fn an_index_with_two_interfaces_has_two_lines() {
    let mut portals = Portals::new();
    for name in ["vm.stats", "pm.stats", "vm.stats"] {
        portals.learn(sys::SYS_PORTAL_OPEN, &words(name), 44);
        portals.count(44, 1);
        portals.learn(sys::SYS_PORTAL_CLOSE, &[44, 1, 0, 0, 0], 0);
    }
    let table = portals.table();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1..], [vec!["44", "pm.stats", "1"], vec!["44", "vm.stats", "2"], vec!["all", "3"]]);
}

#[test]
fn calls_that_were_counted_elsewhere_belong_to_the_interface_that_the_index_had() {
    static PLAIN: AtomicU64 = AtomicU64::new(0);
    let mut portals = Portals::new();
    portals.set_elsewhere(|index| if index == 44 { PLAIN.swap(0, Relaxed) } else { 0 });
    for calls in [3, 4] {
        portals.learn(sys::SYS_SEM_CREATE, &[0; 5], 44);
        PLAIN.store(calls, Relaxed);
    }
    // Nobody has closed it, but it is something else now.
    portals.learn(sys::SYS_PORTAL_OPEN, &words("vm.stats"), 44);
    PLAIN.store(5, Relaxed);
    portals.gather(44);
    let table = portals.table();
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines[1..], [vec!["44", "semaphore.p", "7"], vec!["44", "vm.stats", "5"], vec!["all", "12"]]);
}

#[test]
fn calls_and_answers_are_text() {
    assert_eq!(call("file.open", &words("/a \"b\"")), "file.open(\"/a \\\"b\\\"\")");
    assert_eq!(call("console.write", &[3, 0x0a_69_68, 0, 0, 0]), "console.write(3, \"hi\\n\")");
    assert_eq!(call("vm.sbrk", &[u64::MAX, 0, 0, 0, 0]), "vm.sbrk(-1)");
    assert_eq!(call("my.own", &[16, 0, 1, 0, 0]), "my.own(0x10, 0x0, 0x1)");
    assert_eq!(answer("file.open", -2, 0, &[]), "-2 (ENOENT)");
    assert_eq!(answer("file.read", 2, 0, &[0x6968, 0]), "2 \"hi\"");
    assert_eq!(answer("x.y", 0, 1 | 7 << 16, &[]), "broken: status 1, domain 7");
}

#[test]
fn rules_are_read() {
    assert!(allows("console.*,process.exit", "console.open"));
    assert!(!allows("console.*,process.exit", "process.exits"));
    assert!(!allows("", "vm.sbrk") && allows("*", "vm.sbrk"));
    for right in ["*", "console.*, process.exit", "no-such.thing_2", &"x".repeat(24)] {
        assert_eq!(mistake(right), None);
    }
    for (wrong, wanted) in [
        ("", "--allow \"\": a name is missing"),
        ("console.*,", "--allow \"\": a name is missing"),
        ("*x*", "--allow \"*x*\": * stands at the end"),
        ("file.*,vm.**", "--allow \"vm.**\": * stands at the end"),
        ("File.open", "'F' is in no interface's name"),
        ("a b", "' ' is in no interface's name"),
        (&"x".repeat(25), "longer than any name: 24 characters"),
    ] {
        let told = mistake(wrong).unwrap_or_default();
        assert!(told.contains(wanted), "{wrong}: {told}");
    }
    assert_eq!(fault("3"), Some((3, EIO)));
    assert_eq!(fault("3:EACCES"), Some((3, EACCES)));
    assert_eq!(fault("3:28"), Some((3, ENOSPC)));
    assert_eq!([fault("0"), fault("x"), fault("3:E"), fault("3:0")], [None; 4]);
    assert_eq!(inside("/share", "/../../x/./y").as_deref(), Some("/share/x/y"));
    assert_eq!(inside("", "share").as_deref(), Some("/share"));
    assert_eq!(inside("/share", &"x".repeat(40)), None);
}

proptest! {
    #[test]
    fn nothing_is_above_the_directory(path in "[a./]{0,30}") {
        let whole = inside("/root", &path).expect("short");
        prop_assert!(whole == "/root" || whole.starts_with("/root/"));
        prop_assert!(whole.split('/').all(|part| part != ".." && part != "."));
    }

    #[test]
    fn any_call_has_a_text(p: [u64; 5], n in 0..sys::ALL.len(), value: i64) {
        call(sys::ALL[n].1, &p);
        answer("file.read", value, 0, &p);
        Portals::new().learn(sys::ALL[n].0, &p, value);
    }
}

#[test]
fn a_timeline_is_json_and_has_an_end() {
    let mut timeline = Timeline::new();
    for n in 0..MAX as u64 + 2 {
        timeline.add(Event {
            name: "a.b".into(),
            call: "a.b(\"\n\")".into(),
            answer: "0".into(),
            thread: 8,
            start: n * 10 + 1,
            ticks: 25,
            instructions: 99,
        });
    }
    let json = timeline.json("hello", 14);
    let second = json.lines().nth(1).expect("an event");
    assert_eq!(
        second,
        "{\"name\":\"a.b\",\"cat\":\"portal\",\"ph\":\"X\",\"ts\":0.1,\"dur\":2.5,\"pid\":14,\"tid\":8,\
         \"args\":{\"call\":\"a.b(\\\"\\u000a\\\")\",\"result\":\"0\",\"instructions\":99}},"
    );
    assert_eq!((timeline.len(), timeline.lost), (MAX, 2));
}
