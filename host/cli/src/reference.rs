//! The manual's page of manifests (`docs/src/manifest.md`), held against what is accepted.
//!
//! **Strategy.** A table with a field that cannot be is refused by naming all that could. So the page is
//! compared with what the readers know, and with no list of its own.

use std::collections::BTreeSet;

use pebble_image::manifest::Manifest;

use crate::sources::description::Description;

/// Section of the page, and the error for a wrong field, or a wrong value, of what it describes.
fn sections() -> Vec<(&'static str, String)> {
    let system = |text: &str| match toml::from_str::<Manifest>(&format!("name = \"x\"\n{text}")) {
        Err(error) => error.message().to_string(),
        Ok(_) => String::new(),
    };
    let component = |text: &str| match Description::parse("component.toml".into(), text.into()) {
        Err(error) => error.to_string(),
        Ok(_) => String::new(),
    };
    vec![
        ("The system", system("zzz = 1")),
        ("component", system("[[component]]\nzzz = 1")),
        ("grants", system("[[component]]\nname = \"x\"\npackage = \"x\"\ngrants = [\"zzz\"]")),
        ("semaphore", system("[[semaphore]]\nzzz = 1")),
        ("rule", system("[[rule]]\nzzz = 1")),
        ("file", system("[[file]]\nzzz = 1")),
        ("device", system("[[device]]\nzzz = 1")),
        ("test", system("[[test]]\nzzz = 1")),
        ("component.toml", component("zzz = 1")),
        ("debian", component("[debian]\nzzz = 1")),
        ("crate and pypi", component("[crate]\nzzz = 1")),
        ("crate and pypi", component("[pypi]\nzzz = 1")),
    ]
}

/// What stands between backticks.
fn quoted(text: &str) -> BTreeSet<&str> {
    text.split('`').skip(1).step_by(2).collect()
}

/// First cells of the tables in a section, which has no other section in it.
fn described<'a>(page: &'a str, section: &str) -> BTreeSet<&'a str> {
    let heading = format!("## {section}");
    let lines = page.lines().skip_while(|line| *line != heading).skip(1);
    let rows = lines.take_while(|line| !line.starts_with("## ")).filter(|line| line.starts_with("| `"));
    rows.filter_map(|row| row.split('`').nth(1)).collect()
}

#[test]
fn a_test_types_something() {
    let parsed = toml::from_str::<Manifest>("name = \"x\"\n[[test]]\nname = \"y\"\nrun = []\n");
    assert!(parsed.unwrap_err().message().contains("a test types a line at least"));
}

#[test]
fn every_field_is_described_and_no_other() {
    let page = include_str!("../../../docs/src/manifest.md");
    for (section, error) in sections() {
        let (_, expected) = error.split_once("expected").unwrap_or_else(|| panic!("{section}: {error:?}"));
        let mut accepted = quoted(expected);
        // A letter's own data is granted by `templates`.
        accepted.remove("template");
        assert_eq!(described(page, section), accepted, "{section}: {error}");
    }
    let headings = page.lines().filter(|line| line.starts_with("## ")).count();
    assert_eq!(headings, sections().iter().map(|(section, _)| section).collect::<BTreeSet<_>>().len());
}
