//! Files that an entry of `sources` means.
//!
//! **Problem.** Whoever lists a hundred files one by one forgets one. **Strategy.** An entry is a file, a
//! folder, or a pattern with `*` and `?` for its last part; `!` before it takes files out again. **Invariants.**
//! A file that two entries mean is there once, in the first one's place. An entry that means nothing is an
//! error, for it means a mistake.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use toml::Spanned;

use super::description::Description;
use super::language;

/// All files that the description's `sources` mean, below `root`.
pub fn files(description: &Description, root: &Path) -> Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in &description.sources {
        match entry.get_ref().strip_prefix('!') {
            Some(name) => {
                let out = meant(description, entry, name, root)?;
                files.retain(|file| !out.contains(file));
            }
            None => {
                let found = meant(description, entry, entry.get_ref(), root)?;
                files.extend(found.into_iter().filter(|file| !files.contains(file)).collect::<Vec<_>>());
            }
        }
    }
    Ok(files)
}

fn meant(
    description: &Description,
    entry: &Spanned<String>,
    name: &str,
    root: &Path,
) -> Result<Vec<PathBuf>> {
    let error = |what: String| description.error("sources", entry, what);
    let path = root.join(name);
    let pattern = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if path.is_dir() {
        let files = listed(&path).into_iter().filter(|file| language(file).is_some()).collect::<Vec<_>>();
        return match files.is_empty() {
            true => Err(error(format!("has no C or C++ source in it ({})", path.display()))),
            false => Ok(files),
        };
    }
    if pattern.contains(['*', '?']) {
        let folder = path.parent().unwrap_or(root);
        let fits =
            |file: &PathBuf| matches(&pattern, &file.file_name().unwrap_or_default().to_string_lossy());
        let files: Vec<_> = listed(folder).into_iter().filter(fits).collect();
        return match files.is_empty() {
            true => Err(error(format!("fits no file in {}: correct it", folder.display()))),
            false => Ok(files),
        };
    }
    match (path.is_file(), language(&path)) {
        (true, Some(_)) => Ok(vec![path]),
        (true, None) => {
            Err(error("is no source: its name ends in none of .c, .S, .cc, .cpp, .cxx and .C".into()))
        }
        (false, _) => Err(error(format!(
            "is not there: no such file in {}; correct the name, or make the file in `prepare`",
            root.display()
        ))),
    }
}

/// The files of a folder, in the order of their names.
pub fn listed(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    files
}

/// `*`: any characters; `?`: one.
fn matches(pattern: &str, name: &str) -> bool {
    let mut rest = name.chars();
    match (pattern.chars().next(), rest.next()) {
        (None, first) => first.is_none(),
        (Some('*'), first) => {
            matches(&pattern[1..], name) || first.is_some_and(|_| matches(pattern, rest.as_str()))
        }
        (Some('?'), Some(_)) => matches(&pattern[1..], rest.as_str()),
        (Some(wanted), Some(c)) => wanted == c && matches(&pattern[wanted.len_utf8()..], rest.as_str()),
        (Some(_), None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `sources` of such a text means in a folder with some files: their names, or the error.
    fn selected(name: &str, list: &str) -> Result<Vec<String>, String> {
        let root = std::env::temp_dir().join(format!("pebble-select-{}-{name}", std::process::id()));
        for file in ["a/x.c", "a/y.cpp", "a/y.h", "b/x.c", "b/z.S", "main.c", "empty/readme"] {
            let file = root.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, "").unwrap();
        }
        let text = format!("options = []\nsources = {list}\n");
        let description = Description::parse("component.toml".into(), text).unwrap();
        let found = files(&description, &root);
        let shown = |file: &PathBuf| file.strip_prefix(&root).unwrap().to_string_lossy().into_owned();
        let names = found.map(|files| files.iter().map(shown).collect()).map_err(|error| error.to_string());
        fs::remove_dir_all(&root).unwrap();
        names
    }

    #[test]
    fn files_folders_and_patterns_are_taken_once_and_out_again() {
        let names = selected("all", r#"["main.c", "a", "b/*.c", "a/x.c"]"#).unwrap();
        assert_eq!(names, ["main.c", "a/x.c", "a/y.cpp", "b/x.c"]);
        assert_eq!(selected("out", r#"["a", "b", "!a/x.c", "!b/z*"]"#).unwrap(), ["a/y.cpp", "b/x.c"]);
    }

    #[test]
    fn what_means_nothing_is_told_with_its_line() {
        for (name, list, wanted) in [
            ("none", r#"["c.c"]"#, "component.toml:2: sources: \"c.c\" is not there: no such file in "),
            ("pattern", r#"["*.cc"]"#, "component.toml:2: sources: \"*.cc\" fits no file in "),
            ("header", r#"["a/y.h"]"#, "component.toml:2: sources: \"a/y.h\" is no source: "),
            ("folder", r#"["empty"]"#, "component.toml:2: sources: \"empty\" has no C or C++ source in it "),
            ("gone", "[\n\"a\",\n\"!c.c\"]", "component.toml:4: sources: \"!c.c\" is not there: "),
        ] {
            let error = selected(name, list).unwrap_err();
            assert!(error.starts_with(wanted), "{error}");
        }
    }

    #[test]
    fn patterns_fit_names() {
        for (pattern, name) in
            [("*.c", "a.c"), ("*", ""), ("l?b*.c", "lob.c"), ("a*b*c", "aXbbYc"), ("ä?", "äö")]
        {
            assert!(matches(pattern, name), "{pattern} {name}");
        }
        for (pattern, name) in [("*.c", "a.cc"), ("?", ""), ("l?b.c", "lb.c"), ("a*b", "ac")] {
            assert!(!matches(pattern, name), "{pattern} {name}");
        }
    }
}
