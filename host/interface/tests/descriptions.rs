//! The project's own descriptions, and such as are refused.

use pebble_interface::{Error, Kind, Server, all, c, glue, manual, parse, root, rust};
use proptest::prelude::*;
use std::path::Path;

fn servers() -> Vec<Server> {
    let root = root(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap();
    all(root).unwrap()
}

fn described(text: &str) -> Result<Server, Error> {
    parse::server("servers/x/interface.toml", "x", text)
}

const GOOD: &str = r#"about = "An example."
heap = true
replaceable = true

[[interface]]
name = "x.look"
spec = "npadi>4"
from = "all"
arguments = ["(client: domain, who asks)", "(thread)", "until: ticks"]
result = "0"
more = ["name", "portal, its index"]
errors = ["ENOENT", "EPERM, nobody may"]
meaning = """
looks
at it"""
"#;

#[test]
fn every_server_is_described_once() {
    let servers = servers();
    assert!(servers.len() >= 13, "{}", servers.len());
    assert!(servers.iter().map(|server| server.interfaces.len()).sum::<usize>() > 180);
}

#[test]
fn all_of_a_description_is_read() {
    let server = described(GOOD).unwrap();
    let names: Vec<_> = server.interfaces.iter().map(|interface| interface.name.as_str()).collect();
    assert_eq!(names, ["x.look", "x.handover", "x.takeover", "heap.x"]);
    let look = &server.interfaces[0];
    assert_eq!((look.at.line, look.entry.as_str()), (6, "look"));
    assert_eq!(look.passed().map(|word| word.kind).collect::<Vec<_>>(), [Kind::Ticks]);
    assert_eq!(
        manual::cell(look),
        "(client: who asks), (thread), until → 0; name, portal (its index). Looks at it. -ENOENT; -EPERM \
         (nobody may)"
    );
    let lines = glue::exports(&server);
    let [first, second] = [1, 2].map(|n| lines.lines().nth(n).unwrap());
    assert_eq!(first, "pebble::interface!(0, \"x.look\", \"npadi>4\", wide,");
    let words = "pebble::words::Asid, pebble::words::ThreadId, pebble::words::Ticks";
    assert_eq!(second, format!("    /* servers/x/interface.toml:6 */ look({words}));"));
}

#[test]
fn callers_have_stubs_with_the_words_that_are_theirs() {
    let servers = [described(GOOD).unwrap()];
    let rust = rust::stubs(&servers);
    for part in [
        "pub mod x {",
        "pub struct Look<H = crate::link::Import>(pub H);",
        "pub const NAME: &'static str = \"x.look\";",
        "pub fn call(&self, until: crate::words::Ticks) -> H::Wide {",
        "self.0.invoke_wide([crate::words::Word::word(until)])",
        "pub fn call(&self, what: u64, words: [u64; 4]) -> H::Answer {",
        "self.0.invoke([crate::words::Word::word(what), words[0], words[1], words[2], words[3]])",
        "pub mod heap {",
    ] {
        assert!(rust.contains(part), "{part}: {rust}");
    }
    let c = c::header(&servers);
    for part in [
        "#define X_LOOK_NAME \"x.look\"\n",
        "portal_result x_look(long results[PEBBLE_WORDS(MAX_RESULTS)], int portal, unsigned long until) {\n    return \
         portal_call_results(results, portal, until);",
        "portal_result x_takeover(int portal, unsigned long what, const unsigned long words[PEBBLE_WORDS(4)]) {\n    \
         return portal_call(portal, what, words[0], words[1], words[2], words[3]);",
    ] {
        assert!(c.contains(part), "{part}: {c}");
    }
    assert_eq!(rust::type_name("thread_abort"), "ThreadAbort");
}

/// What is changed in the good one, and what must be said of it.
const BAD: [(&str, &str, &str); 29] = [
    ("until: ticks", "while: ticks", "choose another name"),
    ("until: ticks", "ref: ticks", "choose another name"),
    ("until: ticks", "register: ticks", "choose another name"),
    ("until: ticks", "results: ticks", "choose another name"),
    ("until: ticks", "thread: ticks", "\"thread\" is there twice"),
    ("x.look", "x.match", "cannot be a function's name: say it with `entry`"),
    ("npadi>4", "nqadi>4", "column 2: 'q' is no state letter"),
    ("npadi>4", "npadi>9", "column 7: '>' needs one digit from 1 to 6"),
    ("npadi>4", "npadi>44444444444", "more than 16 characters"),
    ("npadi>4", "npad>4", "has 2 argument letters (\"ad\"), `arguments` has 3 words"),
    ("npadi>4", "npadii>4", "has 4 argument letters"),
    ("npadi>4", "npdai>4", "argument `client` is a domain, but letter 'd' is a thread"),
    ("npadi>4", "npaii>4", "argument `thread` is the caller's (letter 'i'): no brackets"),
    ("npadi>4", "npadh>4", "supplied by the portal (letter 'h'): write it in brackets"),
    ("npadi>4", "npadw>4", "argument `until` is a ticks, but letter 'w' is an address"),
    ("npadi>4", "npadi", "`more` has 4 words: let them through with \">4\""),
    ("npadi>4", "npadi>3", "lets 3 through"),
    ("until: ticks", "until: tics", "no type \"tics\": use one of word, domain"),
    ("until: ticks", "name", "`arguments` has 5 words"),
    ("until: ticks", "", "write \"name: type\""),
    ("x.look", "look", "one dot"),
    ("x.look", "x.Look", "lower-case"),
    ("x.look", "x.a_name_that_is_far_too_long", "more than 24 characters"),
    ("x.look", "x.takeover", "is described at servers/x/interface.toml:6 already"),
    ("from = \"all\"", "from = \" \"", "say who may open it"),
    ("from = \"all\"", "", "missing field `from`"),
    ("from = \"all\"", "from = \"all\"\nform = 1", "unknown field `form`"),
    ("\"ENOENT\"", "\"ENOWHERE\"", "no error \"ENOWHERE\""),
    ("from = \"all\"", "from = \"all\"\nentry = \"a-b\"", "cannot be a function's name"),
];

#[test]
fn what_does_not_fit_is_refused_with_its_place() {
    for (old, new, said) in BAD {
        let error = described(&GOOD.replace(old, new)).map(|_| ()).expect_err(new).to_string();
        assert!(error.contains(said), "{new:?}: {error}");
        assert!(error.contains("interface.toml:"), "{new:?}: {error}");
    }
}

#[test]
fn the_line_is_that_of_the_mistake() {
    let mistakes = [
        ("x.look", "look", 6),
        ("npadi>4", "nqadi>4", 7),
        ("until: ticks", "until: tics", 9),
        ("portal, its", "name, its", 11),
        ("\"ENOENT\"", "\"ENOWHERE\"", 12),
    ];
    for (old, new, line) in mistakes {
        let error = described(&GOOD.replacen(old, new, 1)).map(|_| ()).expect_err(new).to_string();
        assert!(error.contains(&format!("interface.toml:{line}: ")), "{new:?}: {error}");
    }
}

#[test]
fn names_of_a_server_begin_alike() {
    let other = "\n[[interface]]\nname = \"y.b\"\nspec = \"np\"\nfrom = \"all\"\n";
    let error = described(&(GOOD.to_string() + other)).map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "servers/x/interface.toml:18: y.b: the names of a server begin alike: write x.b"
    );
}

#[test]
fn a_page_gets_its_tables_and_nothing_else_changes() {
    let servers = [described(GOOD).unwrap()];
    let page = "a\n<!-- interfaces of x -->\nold\n<!-- end -->\nz\n";
    let new = manual::refreshed(page, &servers).unwrap();
    assert!(
        new.starts_with("a\n<!-- interfaces of x -->\n| interface |") && new.ends_with("<!-- end -->\nz\n")
    );
    assert!(new.contains("| `x.look` | `npadi>4` | all | (client: who asks)") && !new.contains("old"));
    assert_eq!(manual::refreshed(&new, &servers).unwrap(), new);
    for (page, said) in [
        ("<!-- interfaces of x -->\n", "line 1: no line"),
        ("<!-- interfaces of y -->\n<!-- end -->\n", "no server \"y\""),
    ] {
        assert!(manual::refreshed(page, &servers).unwrap_err().contains(said), "{page}");
    }
}

proptest! {
    /// Whatever the text is.
    #[test]
    fn bad_input_never_panics(at in 0..GOOD.len(), len in 0..40_usize, new in ".{0,12}") {
        let end = (at + len).min(GOOD.len());
        let _ = described(&format!("{}{new}{}", &GOOD[..at], &GOOD[end..]));
    }
}
