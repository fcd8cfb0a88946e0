//! Where a command's standard files lead.
//!
//! Problem: a standard file is a path, which the program opens itself when it first uses the file. So a
//! mistake in the path would be the program's, and found late. Strategy: the shell opens each path first, in
//! the order of the line; there `>` empties or makes the file, and whatever is wrong is said before the
//! program runs. Then it closes the file: the program opens it anew, and what it writes goes to the end, so
//! two files that lead to one place do not write over each other.
//!
//! Invariant: a redirection gives a program nothing. The shell must be allowed to open the file so, and the
//! program opens it with its own rights.

use alloc::format;
use alloc::string::String;
use pebble::abi::errno;
use pebble::abi::sys;
use pebble::api::Errno;
use pebble::io::{self, File};
use pebble::process::STDIO_PATH;
use pebble_shell::{Redirection, Target};

use crate::terminal::CONSOLE;

/// Paths of the files 0, 1 and 2.
pub type Files = [String; 3];

/// Does the redirections of a command; or says why not.
pub fn apply(redirections: &[Redirection<String>], files: &mut Files) -> Result<(), String> {
    for Redirection { file, to } in redirections {
        let path = match to {
            Target::Same(other) => files[*other].clone(),
            Target::Read(path) | Target::Write(path) | Target::Append(path) => {
                look(path, to).map_err(|error| reason(path, to, error))?;
                path.clone()
            }
        };
        files[*file] = path;
    }
    Ok(())
}

/// Opens the file as the program will, and closes it.
fn look(path: &str, to: &Target<String>) -> Result<(), Errno> {
    if path == CONSOLE {
        return Ok(());
    }
    if path.is_empty() || path.starts_with(CONSOLE) || path.starts_with("/pipe/") {
        return Err(errno::EINVAL);
    }
    if path.len() > STDIO_PATH {
        return Err(errno::ENAMETOOLONG);
    }
    let opened = match to {
        Target::Write(_) => io::create(path),
        Target::Append(_) => io::append(path),
        _ => io::open(path),
    };
    opened.map(File::close)
}

fn reason(path: &str, to: &Target<String>, error: Errno) -> String {
    let reads = matches!(to, Target::Read(_));
    match error {
        _ if path.is_empty() => "a file's name cannot be empty".into(),
        errno::ENAMETOOLONG => {
            format!("{path}: name too long: a redirection's has {STDIO_PATH} bytes at most")
        }
        _ if !reads && is_directory(path) => format!("{path}: {}", errno::EISDIR),
        errno::ENOENT if reads => format!("{path}: no such file"),
        errno::ENOENT => format!("{path}: no such directory; /ram has none in it"),
        errno::EROFS => format!("{path}: read-only; only files in /ram can be written"),
        errno::EINVAL => format!("{path}: no file"),
        _ => format!("{path}: {error}"),
    }
}

fn is_directory(path: &str) -> bool {
    io::open(path).is_ok_and(|file| {
        let about = file.seek(0, sys::SEEK_ABOUT);
        file.close();
        about.is_ok_and(|about| about & sys::ABOUT_DIRECTORY != 0)
    })
}
