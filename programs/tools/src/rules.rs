//! What the tools' arguments say: which interfaces are allowed, where paths lead, which call fails.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use pebble_abi::errno::{self, Errno};
use pebble_abi::link;

/// Interfaces by which a program ends: refusing them would keep alive what has nothing more to do.
pub const ENDS: [&str; 2] = ["process.exit", "scheduler.thread_exit"];

/// What a program waits by for an answer of what it may call: refusing it would make a busy loop of a wait.
pub const WAITS: &str = "scheduler.park";

/// Names with commas between them; `*` at the end of one stands for any rest.
pub fn allows(list: &str, name: &str) -> bool {
    patterns(list).any(|pattern| matches(pattern, name))
}

pub fn patterns(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim)
}

pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    }
}

/// What is wrong with the first pattern that can match nothing, whatever interfaces there will be.
pub fn mistake(list: &str) -> Option<String> {
    patterns(list).find_map(|pattern| {
        let start = pattern.strip_suffix('*').unwrap_or(pattern);
        let known = |c: &char| matches!(c, 'a'..='z' | '0'..='9' | '.' | '-' | '_');
        let what = match start.chars().find(|c| !known(c)) {
            _ if pattern.is_empty() => {
                "a name is missing; process.exit alone allows nothing but the end".into()
            }
            Some('*') => "* stands at the end of a name, for any rest, and nowhere else".into(),
            Some(c) => format!("{c:?} is in no interface's name: those have a-z, 0-9, '.', '-' and '_'"),
            None if start.len() > link::NAMELEN => {
                format!("longer than any name: {} characters", link::NAMELEN)
            }
            None => return None,
        };
        Some(format!("--allow {pattern:?}: {what}"))
    })
}

/// Where a path leads within a directory: `.` and `..` are gone, and nothing is above it. `None`: too long
/// for a call.
pub fn inside(directory: &str, path: &str) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    let mut whole = String::from(directory.trim_end_matches('/'));
    for part in parts {
        whole.push('/');
        whole.push_str(part);
    }
    if whole.is_empty() {
        whole.push('/');
    }
    (whole.len() <= link::PATHLEN).then_some(whole)
}

/// `N` or `N:ERROR`: which call fails, and how. The error is a name or a number; without one it is EIO.
pub fn fault(text: &str) -> Option<(u64, Errno)> {
    let (number, error) = text.split_once(':').unwrap_or((text, "EIO"));
    let named = errno::ALL.iter().copied().find(|known| known.name() == Some(error));
    let numbered = || error.parse().ok().filter(|n| (1..4096).contains(n)).map(Errno::new);
    Some((number.parse().ok().filter(|n| *n > 0)?, named.or_else(numbered)?))
}
