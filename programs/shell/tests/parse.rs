//! Command lines and tables.

use pebble_shell::*;
use proptest::prelude::*;

/// What the variables are in these tests.
fn value(name: &str) -> String {
    match name {
        "?" => "7".into(),
        "a" => "a  b | c".into(),
        _ => String::new(),
    }
}

/// Jobs, written `a·b|c;d&`, with `<` and `>` of files behind the words.
fn show(line: &str) -> String {
    let command = |c: &Command<String>| {
        let set = c.assignments.iter().map(|(name, value)| format!("{name}={value}·"));
        let files = c.redirections.iter().map(|Redirection { file, to }| match to {
            Target::Read(path) => format!(" {file}<{path}"),
            Target::Write(path) => format!(" {file}>{path}"),
            Target::Append(path) => format!(" {file}>>{path}"),
            Target::Same(other) => format!(" {file}>&{other}"),
        });
        set.chain([c.words.join("·")]).chain(files).collect::<String>()
    };
    match parse(line) {
        Err(error) => error.to_string(),
        Ok(jobs) => jobs
            .iter()
            .map(|job| {
                let Job { commands, background, timed } = job.expand(&value);
                let commands: Vec<String> = commands.iter().map(command).collect();
                let time = if timed { "time " } else { "" };
                format!("{time}{}{}", commands.join("|"), if background { "&" } else { ";" })
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
        // Files.
        ("a < b", "a 0<b;"),
        ("a<b>c", "a 0<b 1>c;"),
        ("> c a b >>d e", "a·b·e 1>c 1>>d;"),
        ("a 2>b 2>>c 1>d 1>>e 0<f", "a 2>b 2>>c 1>d 1>>e 0<f;"),
        ("a >b 2>&1 | c 2>&1 >&2 &", "a 1>b 2>&1|c 2>&1 1>&2&"),
        ("a 2 >b c2>d 23>e", "a·2·c2·23 1>b 1>d 1>e;"),
        ("a '<' \\> \"2>\" > '|x y'", "a·<·>·2> 1>|x y;"),
        ("a > $a >b=c", "a 1>a  b | c 1>b=c;"),
        ("a > ''", "a 1>;"),
        // Variables.
        ("echo $? \"$?\" '$?' \\$? \"\\$?\"", "echo·7·7·$?·$?·$?;"),
        ("echo $a$? x${a}y $none- $ $1 a$", "echo·a  b | c7·xa  b | cy·-·$·$1·a$;"),
        ("a=1", "a=1·;"),
        ("a=$? _b2='x y'", "a=7·_b2=x y·;"),
        ("a=1 b c=2", "a=1·b·c=2;"),
        ("a= b==c d", "a=·b==c·d;"),
        ("'a'=1; a\\b=1; 1a=2; =3; $a=4", "a=1;ab=1;1a=2;=3;a  b | c=4;"),
        // Time.
        ("time a | b; time a &", "time a|b;time a&"),
        ("time a=1 b", "time a=1·b;"),
        ("'time' a; a time; a | time b; time time", "time·a;a·time;a|time·b;time time;"),
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
        ("a >", "column 4: a file's name is missing here"),
        ("a < | b", "column 5: a file's name is missing here"),
        ("a > > b", "column 5: a file's name is missing here"),
        ("a >| b", "column 4: a file's name is missing here"),
        ("a <> b", "column 4: a file's name is missing here"),
        ("a << b", "column 3: << is not supported; use echo and |"),
        ("a 3> b", "column 3: only 0<, 1> and 2> are files of a command"),
        ("a 2< b", "column 3: only 0<, 1> and 2> are files of a command"),
        ("a 0>> b", "column 3: only 0<, 1> and 2> are files of a command"),
        ("a 2>&", "column 6: 1 or 2 is missing here"),
        ("a 2>&3", "column 6: 1 or 2 is missing here"),
        ("a >&$a", "column 5: 1 or 2 is missing here"),
        ("> b", "column 4: a command is missing here"),
        ("a | > b", "column 8: a command is missing here"),
        ("a=1 | b", "column 5: a command is missing here"),
        ("a | b=1", "column 8: a command is missing here"),
        ("a=1 &", "column 5: a command is missing here"),
        ("a=1 > b", "column 8: a command is missing here"),
        ("time", "column 5: a command is missing here"),
        ("time a=1", "column 9: a command is missing here"),
        ("a ${b", "column 3: a variable's name and } should follow ${; write \\$ for the sign itself"),
        ("a \"${}\"", "column 4: a variable's name and } should follow ${; write \\$ for the sign itself"),
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

/// Words as [`Command`]s of a test have them, and as they are typed.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

fn file() -> impl Strategy<Value = Redirection> {
    let word = || ".{0,6}".prop_map(|text| Word::from(&text[..]));
    prop_oneof![
        word().prop_map(|word| Redirection { file: 0, to: Target::Read(word) }),
        (1..3_usize, word()).prop_map(|(file, word)| Redirection { file, to: Target::Write(word) }),
        (1..3_usize, word()).prop_map(|(file, word)| Redirection { file, to: Target::Append(word) }),
        (1..3_usize, 1..3_usize).prop_map(|(file, other)| Redirection { file, to: Target::Same(other) }),
    ]
}

fn command() -> impl Strategy<Value = Command> {
    let word = || ".{0,6}".prop_map(|text| Word::from(&text[..]));
    let set = ("[A-Za-z_][A-Za-z_0-9]{0,3}", word());
    let parts = (
        prop::collection::vec(set, 0..2),
        prop::collection::vec(word(), 1..4),
        prop::collection::vec(file(), 0..3),
    );
    parts.prop_map(|(assignments, words, redirections)| Command { assignments, words, redirections })
}

fn typed(command: &Command) -> String {
    let text = |word: &Word| quoted(&word.expand(&|_| unreachable!()));
    let mut line = String::new();
    for (name, value) in &command.assignments {
        line += &format!("{name}={} ", text(value));
    }
    let (before, behind) = command.redirections.split_at(command.redirections.len() / 2);
    let file = |Redirection { file, to }: &Redirection| match to {
        Target::Read(word) => format!(" <{}", text(word)),
        Target::Write(word) => format!(" {file}> {}", text(word)),
        Target::Append(word) => format!(" {file}>>{}", text(word)),
        Target::Same(other) => format!(" {file}>&{other}"),
    };
    line.extend(before.iter().map(file));
    line.extend(command.words.iter().map(|word| format!(" {}", text(word))));
    line.extend(behind.iter().map(file));
    line
}

proptest! {
    #[test]
    fn what_is_quoted_comes_back(expect in prop::collection::vec(
        (prop::collection::vec(command(), 1..4), any::<bool>(), any::<bool>())
            .prop_map(|(commands, background, timed)| Job { commands, background, timed }),
        0..4
    )) {
        let mut line = String::new();
        for job in &expect {
            let commands: Vec<String> = job.commands.iter().map(typed).collect();
            line += if job.timed { "time " } else { "" };
            line += &commands.join(" | ");
            line += if job.background { " & " } else { " ; " };
        }
        prop_assert_eq!(parse(&line), Ok(expect));
    }

    /// A variable's value is one word, or part of one, whatever is in it.
    #[test]
    fn values_mean_nothing(value in ".{0,12}") {
        let jobs = parse("a $v \"$v\" x${v}y > $v | b").unwrap();
        prop_assert_eq!(jobs.len(), 1);
        let job = jobs[0].expand(&|_| value.clone());
        let inner = format!("x{value}y");
        prop_assert_eq!(&job.commands[0].words, &["a", &value, &value, &inner]);
        prop_assert_eq!(&job.commands[0].redirections, &[Redirection { file: 1, to: Target::Write(value) }]);
    }

    #[test]
    fn any_line_is_safe(line in r#"[ab=2 '"\\|&;<>#é${}?]{0,30}"#) {
        match parse(&line) {
            Ok(jobs) => for job in jobs {
                let set = job.commands.len() == 1 && !job.commands[0].assignments.is_empty();
                prop_assert!(!job.commands.is_empty());
                prop_assert!(set || job.commands.iter().all(|c| !c.words.is_empty()));
                prop_assert!(job.commands.iter().flat_map(|c| &c.redirections).all(|r| r.file < 3));
            },
            Err(error) => prop_assert!((1..=line.chars().count() + 1).contains(&error.column)),
        }
    }
}
