//! Whether a product is what its inputs make today.
//!
//! **Problem.** The time of a file says little: a checkout, a copy or another system's component of the same
//! name is newer or older than the product for reasons of its own, and a changed flag has no time at all.
//! **Strategy.** Beside each product lies `PRODUCT.made`: a hash of the command that made it, of the program
//! that ran, and of the contents of all files that it read, whose names follow. Hash them again, and the
//! product is fresh if nothing differs. **Invariant.** The stamp goes before the product is made and comes
//! back after: a product that was interrupted has none.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

/// Whether `product` is there, made by this very command from files that still have the same contents.
pub fn is_fresh(product: &Path, command: &Command) -> bool {
    let Ok(stamp) = fs::read_to_string(stamp_of(product)) else { return false };
    let mut lines = stamp.lines();
    let Some(hash) = lines.next() else { return false };
    let inputs: Vec<_> = lines.map(PathBuf::from).collect();
    product.exists() && hash_of(command, &inputs).is_ok_and(|now| now == hash)
}

/// The product is about to be made.
pub fn withdraw(product: &Path) -> Result<()> {
    let stamp = stamp_of(product);
    match fs::remove_file(&stamp) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| stamp.display().to_string())
        }
        _ => Ok(()),
    }
}

/// The product has been made by this command from these files.
pub fn set(product: &Path, command: &Command, inputs: &[PathBuf]) -> Result<()> {
    let mut text = hash_of(command, inputs)? + "\n";
    for input in inputs {
        text.push_str(&input.to_string_lossy());
        text.push('\n');
    }
    let stamp = stamp_of(product);
    fs::write(&stamp, text).with_context(|| stamp.display().to_string())
}

/// The files that a rule of make depends on, as a compiler's `-MD` writes it: `TARGET: FILE FILE \`, blanks
/// in names behind a backslash.
pub fn dependencies(rule: &str) -> Vec<PathBuf> {
    let (mut files, mut name) = (Vec::new(), String::new());
    let mut characters = rule.split_once(": ").map_or("", |(_, files)| files).chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' if characters.peek() == Some(&'\n') => {}
            '\\' if characters.peek().is_some_and(|next| matches!(next, ' ' | '#')) => {
                name.extend(characters.next());
            }
            '$' if characters.peek() == Some(&'$') => name.extend(characters.next()),
            c if c.is_whitespace() => files.push(std::mem::take(&mut name)),
            c => name.push(c),
        }
    }
    files.push(name);
    files.retain(|name| !name.is_empty());
    files.into_iter().map(PathBuf::from).collect()
}

fn stamp_of(product: &Path) -> PathBuf {
    let mut name = product.as_os_str().to_os_string();
    name.push(".made");
    name.into()
}

fn hash_of(command: &Command, inputs: &[PathBuf]) -> Result<String> {
    let mut hasher = DefaultHasher::new();
    let program = Path::new(command.get_program());
    // Which compiler: its file changes with its version.
    if let Ok(it) = program.canonicalize().and_then(|program| Ok((program.metadata()?.modified()?, program)))
    {
        it.hash(&mut hasher);
    }
    program.hash(&mut hasher);
    command.get_args().for_each(|argument| argument.hash(&mut hasher));
    for input in inputs {
        input.hash(&mut hasher);
        fs::read(input).with_context(|| input.display().to_string())?.hash(&mut hasher);
    }
    Ok(format!("{:016x}", hasher.finish()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_names_its_files() {
        let rule = "a.o: a.c \\\n  /usr/include/b\\ c.h x$$.h\\\n";
        assert_eq!(dependencies(rule), ["a.c", "/usr/include/b c.h", "x$.h"].map(PathBuf::from));
        assert!(dependencies("nothing").is_empty());
    }

    #[test]
    fn a_product_is_fresh_until_an_input_or_the_command_differs() {
        let dir = std::env::temp_dir().join(format!("pebble-stamp-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let (input, product) = (dir.join("in"), dir.join("out"));
        let command = |flag: &str| {
            let mut command = Command::new("cc");
            command.arg(flag);
            command
        };
        fs::write(&input, "one").unwrap();
        assert!(!is_fresh(&product, &command("-O1")), "never made");
        fs::write(&product, "made").unwrap();
        set(&product, &command("-O1"), std::slice::from_ref(&input)).unwrap();
        assert!(is_fresh(&product, &command("-O1")));
        assert!(!is_fresh(&product, &command("-O2")), "another flag");
        // The same length, and the old time: only the contents differ.
        let then = input.metadata().unwrap().modified().unwrap();
        fs::write(&input, "two").unwrap();
        fs::File::options().append(true).open(&input).unwrap().set_modified(then).unwrap();
        assert!(!is_fresh(&product, &command("-O1")), "other contents");
        fs::write(&input, "one").unwrap();
        assert!(is_fresh(&product, &command("-O1")), "as it was");
        withdraw(&product).unwrap();
        assert!(!is_fresh(&product, &command("-O1")), "interrupted");
        fs::remove_dir_all(&dir).unwrap();
    }
}
