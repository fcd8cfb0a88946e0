//! One small manifest for each rule, accepted or refused with its sentence.

use pebble_image::manifest::ManifestError;
use pebble_image::{Board, Manifest};

fn board() -> Board {
    Board::parse(include_str!("../../../boards/virt.toml")).expect("a good board")
}

fn parse(text: &str) -> Result<Manifest, ManifestError> {
    Manifest::parse(text, &board())
}

fn refused(text: &str, sentence: &str) {
    let error = parse(text).expect_err(text).to_string();
    assert!(error.contains(sentence), "{text}\ngave: {error}");
}

const ONE: &str = "name = \"x\"\n[[component]]\nname = \"a\"\npackage = \"p\"\n";

#[test]
fn the_smallest_manifests() {
    assert!(parse("name = \"x\"").is_ok());
    let manifest = parse(ONE).expect("one component");
    assert_eq!((manifest.component[0].stack_pages, manifest.component[0].priority), (1, 0));
}

#[test]
fn a_name_is_needed_and_used_once() {
    refused("", "missing field `name`");
    refused(
        &format!("{ONE}[[component]]\nname = \"a\"\npackage = \"q\"\n"),
        "component 'a': the name is used twice",
    );
}

#[test]
fn two_files_cannot_have_one_path() {
    let file = "[[file]]\npath = \"bin/hello\"\nlines = 1\n";
    refused(&format!("{ONE}{file}{file}"), "file 'bin/hello': the path is used twice");
}

#[test]
fn unknown_words_are_named() {
    refused(&format!("{ONE}colour = 1\n"), "unknown field `colour`");
    refused(&format!("{ONE}grants = [\"everything\"]\n"), "unknown variant `everything`");
}

#[test]
fn numbers_have_bounds() {
    refused(&format!("{ONE}priority = 32\n"), "priority must be 0 to 31");
    refused(&format!("{ONE}stack_pages = 0\n"), "stack_pages must be 1 to 15");
    refused(&format!("{ONE}stack_pages = 16\n"), "stack_pages must be 1 to 15");
    refused(&format!("{ONE}stacks = 33\n"), "too many stacks");
}

#[test]
fn a_letter_is_one_components() {
    assert!(parse(&format!("{ONE}templates = [\"T\", \"Z\"]\n")).is_ok());
    refused(
        &format!(
            "{ONE}templates = [\"T\"]\n[[component]]\nname = \"b\"\npackage = \"p\"\ntemplates = [\"T\"]\n"
        ),
        "another component has that letter",
    );
    for letter in ["k", "t", "é", "1"] {
        refused(&format!("{ONE}templates = [\"{letter}\"]\n"), "templates are for the letters A to Z");
    }
    refused(&format!("{ONE}grants = [{{ template = 84 }}]\n"), "letters are given by templates");
}

#[test]
fn exclusive_components_have_no_thread() {
    refused(
        &format!("{ONE}exclusive = true\nthread = true\n"),
        "an exclusive component cannot have a thread",
    );
}

#[test]
fn includes_come_first_and_never_in_circles() {
    let dir = std::env::temp_dir().join(format!("pebble-manifest-{}", std::process::id()));
    std::fs::create_dir_all(&dir).expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect(name);
    write("base.toml", ONE);
    write(
        "top.toml",
        "name = \"top\"\ninclude = \"base.toml\"\n[[component]]\nname = \"b\"\npackage = \"q\"\n",
    );
    write("circle.toml", "name = \"c\"\ninclude = \"circle.toml\"\n");
    write("lost.toml", "name = \"l\"\ninclude = \"nowhere.toml\"\n");
    let top = Manifest::load(&dir.join("top.toml"), &board()).expect("both");
    assert_eq!(top.component.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(top.name, "top");
    let circle = Manifest::load(&dir.join("circle.toml"), &board()).expect_err("a circle").to_string();
    assert!(circle.contains("includes itself"), "{circle}");
    let lost = Manifest::load(&dir.join("lost.toml"), &board()).expect_err("lost").to_string();
    assert!(lost.contains("cannot read") && lost.contains("nowhere.toml"), "{lost}");
    std::fs::remove_dir_all(&dir).expect("removed");
}

/// A rule at line 9.
fn rule(words: &str) -> String {
    format!("{ONE}grants = [\"capabilities\"]\n\n# A comment.\n[[rule]]\nclient = \"*\"\n{words}\n")
}

#[test]
fn a_rule_is_about_one_thing() {
    for words in
        ["interface = \"a.*\"\nallow = true", "file = \"/etc/*\"\nallow = \"capability\"\nholders = \"a*\""]
    {
        parse(&rule(words)).expect(words);
    }
    refused(&rule("allow = true"), "a rule is about one thing");
    refused(&rule("interface = \"a\"\nfile = \"/b\"\nallow = true"), "a rule is about one thing");
    refused(&rule("file = \"/b\"\nallow = \"perhaps\""), "must be true, false or \"capability\"");
    refused(&rule("file = \"/b\"\nallow = true\nholders = \"a\""), "only with allow = \"capability\"");
    refused(&rule("file = \"/b\"\nallow = true\ncolour = 1"), "unknown field `colour`");
}

#[test]
fn paths_in_rules_are_spelled_as_rules_see_them() {
    for path in ["/", "/*", "/etc/secret*", "/vault/*", "/vault/", "/etc/.*", "/a..b/..c"] {
        parse(&rule(&format!("file = \"{path}\"\nallow = false"))).expect(path);
    }
    for path in ["//etc", "/etc//x", "/etc/./x", "/etc/../x", "/etc/..", "/.", "/x//*"] {
        refused(&rule(&format!("file = \"{path}\"\nallow = false")), "no empty part, and no . or ..");
    }
    for path in ["", "*", "etc/x", "./etc"] {
        refused(&rule(&format!("file = \"{path}\"\nallow = false")), "must start with /");
    }
    let star = "file = \"/e*c\"\nallow = false";
    refused(&rule(star), "a * stands for any rest");
    refused(&rule(star), "line 10, column 8");
    refused(&rule(&format!("file = \"/{}\"\nallow = false", "x".repeat(41))), "longer than any path");
}

/// What only the whole manifest tells is told with the place all the same, also from an included file.
#[test]
fn rules_want_what_there_is() {
    let wants = "\n[[rule]]\nclient = \"*\"\nfile = \"/x\"\nallow = \"capability\"\n";
    refused(
        &format!("{ONE}{wants}"),
        "line 6, column 1: allow = \"capability\": the system has no capability manager",
    );
    let many = "[[rule]]\nclient = \"*\"\nfile = \"/x\"\nallow = true\n".repeat(129);
    refused(&format!("name = \"x\"\n{many}"), "line 514, column 1: a system has at most 128 rules");
}

#[test]
fn devices_are_given_by_rules() {
    let rule = "\n[[rule]]\nclient = \"*\"\ndevice = \"rtc\"\nallow = false\n";
    let device = format!("{ONE}\n[[device]]\nname = \"rtc\"\n{rule}");
    let manifest = parse(&device).expect("a device");
    let found = manifest.device[0].get_ref();
    assert_eq!((found.at, found.len, found.irq), (0x10_1000, 0x1000, 11));
    let lone = device.replace(rule, "");
    refused(&lone, "line 6, column 1: device 'rtc': no rule with client = \"*\" says who can have it");
    refused(&format!("{ONE}{rule}"), "line 6, column 1: device = \"rtc\": the system has no such [[device]]");
    refused(&device.replace("[[device]]", "[[device]]\nat = 1"), "unknown field `at`");
    let driven = "\n[[semaphore]]\nname = \"alarm\"\ndevice = \"rtc\"\n";
    refused(&format!("{device}{driven}"), "a component has its interrupt");
    refused(&format!("{device}\n[[device]]\nname = \"rtc\"\n"), "the name is used twice");
    refused(
        &device.replace("rtc", "interrupts"),
        "device 'interrupts': programs can have devices whose registers are in one",
    );
}

#[test]
fn devices_are_the_boards() {
    let manifest = parse(&format!("{ONE}devices = [\"power\", \"interrupts\"]\n")).expect("two devices");
    let at: Vec<u64> = manifest.component[0].registers.iter().map(|r| r.at).collect();
    assert_eq!(at, [0x10_0000, 0xc00_0000, 0xc00_2000, 0xc20_1000]);
    let none =
        "device 'disk': the board has none of that name, but interrupts, power, rtc, uart (boards/virt.toml)";
    refused(&format!("{ONE}devices = [\"disk\"]\n"), none);
    refused("name = \"x\"\n[[semaphore]]\nname = \"s\"\ndevice = \"disk\"\n", none);
    refused("name = \"x\"\n[[semaphore]]\nname = \"s\"\ndevice = \"power\"\n", "it has no interrupt");
}
