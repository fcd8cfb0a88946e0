//! Command lines and tables.

use pebble_shell::*;
use proptest::prelude::*;

/// Jobs, written `a b|c;d&`.
fn show(line: &str) -> String {
    match parse(line) {
        Err(error) => error.to_string(),
        Ok(jobs) => jobs
            .iter()
            .map(|job| {
                let commands: Vec<String> = job.commands.iter().map(|c| c.join("·")).collect();
                commands.join("|") + if job.background { "&" } else { ";" }
            })
            .collect(),
    }
}

#[test]
fn lines_become_jobs() {
    for (line, jobs) in [
        ("", ""),
        ("  # nothing", ""),
        ("ls", "ls;"),
        ("cat a  b|wc ", "cat·a·b|wc;"),
        ("a | b | c & d; e;", "a|b|c&d;e;"),
        ("sleep 1 &", "sleep·1&"),
        ("echo 'a  b' \"c|d\" e\\ f", "echo·a  b·c|d·e f;"),
        (r#"echo "a\"b\\c\n" '\' "#, r#"echo·a"b\c\n·\;"#),
        ("echo a'b'\"c\"d ''", "echo·abcd·;"),
        ("echo a#b # c", "echo·a#b;"),
        ("echo \\# \\|", "echo·#·|;"),
    ] {
        assert_eq!(show(line), jobs, "{line}");
    }
}

#[test]
fn errors_name_the_column() {
    for (line, error) in [
        ("| a", "column 1: a command is missing here"),
        ("a | ", "column 5: a command is missing here"),
        ("a | | b", "column 5: a command is missing here"),
        ("a ;; b", "column 4: a command is missing here"),
        ("&", "column 1: a command is missing here"),
        ("a | # b", "column 5: a command is missing here"),
        ("é 'b", "column 3: the quote ' that starts here is not closed"),
        ("a \"b\\", "column 3: the quote \" that starts here is not closed"),
        ("ab\\", "column 3: nothing follows the backslash"),
        ("a > b", "column 3: redirection is not supported; quote the sign to use it as text"),
        ("a&&b", "column 2: && and || are not supported; use ;"),
        ("a || b", "column 3: && and || are not supported; use ;"),
    ] {
        assert_eq!(show(line), error, "{line}");
    }
}

#[test]
fn tables_line_up() {
    let processes = [
        format::Process {
            asid: 3,
            name: "scheduler",
            priority: 200,
            state: "ready",
            ticks: 15_300_000,
            pages: 9,
            thread: None,
        },
        format::Process {
            asid: 12,
            name: "shell",
            thread: Some(7),
            priority: 9,
            state: "waiting",
            ..Default::default()
        },
    ];
    let expect = "\
DOMAIN  THREAD  PRIORITY  STATE    TIME  MEMORY  NAME
     3               200  ready    1.53    36 K  scheduler
    12       7         9  waiting  0.00          shell
";
    assert_eq!(format::ps(processes), expect);
    let portals = [
        format::Portal { index: 3, name: "nucleus.get_asid", spec: "", target: None, code: 40, calls: None },
        format::Portal {
            index: 32,
            name: "file.read",
            spec: "npci>4",
            target: Some("file"),
            code: 412,
            calls: Some(12),
        },
    ];
    let expect = "\
INDEX  NAME              SPEC    TARGET  BYTES  CALLS
    3  nucleus.get_asid          -          40      -
   32  file.read         npci>4  file      412     12
";
    assert_eq!(format::portals(portals), expect);
    let names = [format::Interface { name: "vm.sbrk", owner: 5, owner_name: "vm" }];
    assert_eq!(format::names(names), "NAME     DOMAIN\nvm.sbrk       5  vm\n");
    let loads = [format::Load { asid: 1, thread: 2, priority: 3, ticks: 1, switches: 4, name: "x" }];
    assert!(format::top(loads, 8).ends_with("12.5 %         4  x\n"));
    assert_eq!(format::top([], 0).lines().count(), 1);
    assert_eq!([1023, 1024, 1 << 20, 0x18_0000].map(format::bytes), ["1023", "1 K", "1.0 M", "1.5 M"]);
    assert_eq!(format::percent(u64::MAX, u64::MAX), "100.0 %");
}

proptest! {
    #[test]
    fn quoted_words_come_back(jobs in prop::collection::vec(
        (prop::collection::vec(prop::collection::vec(".{0,6}", 1..4), 1..4), any::<bool>()), 0..4
    )) {
        let quote = |word: &String| format!("'{}'", word.replace('\'', "'\\''"));
        let mut line = String::new();
        for (commands, background) in &jobs {
            let commands: Vec<String> =
                commands.iter().map(|c| c.iter().map(quote).collect::<Vec<_>>().join(" ")).collect();
            line += &commands.join(" | ");
            line += if *background { " & " } else { " ; " };
        }
        let expect: Vec<Job> =
            jobs.into_iter().map(|(commands, background)| Job { commands, background }).collect();
        prop_assert_eq!(parse(&line), Ok(expect));
    }

    #[test]
    fn any_line_is_safe(line in r#"[ab '"\\|&;<>#é]{0,30}"#) {
        match parse(&line) {
            Ok(jobs) => prop_assert!(jobs.iter().all(|j| !j.commands.is_empty() && j.commands.iter().all(|c| !c.is_empty()))),
            Err(error) => prop_assert!((1..=line.chars().count() + 1).contains(&error.column)),
        }
    }
}
