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
    use super::matches;

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
