//! What the tools' arguments say: which interfaces are allowed, where paths lead, which call fails.

use alloc::string::String;
use alloc::vec::Vec;
use pebble_abi::{errno, link};

/// Interfaces by which a program ends: refusing them would keep alive what has nothing more to do.
pub const ENDS: [&str; 2] = ["process.exit", "scheduler.thread_exit"];

/// Names with commas between them; `*` at the end of one stands for any rest.
pub fn allows(list: &str, name: &str) -> bool {
    list.split(',').map(str::trim).any(|pattern| match pattern.strip_suffix('*') {
        Some(start) => name.starts_with(start),
        None => pattern == name,
    })
}

/// Where a path leads within a directory: `.` and `..` are gone, and nothing is above it. `None`: too long for a call.
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
pub fn fault(text: &str) -> Option<(u64, i64)> {
    let (number, error) = text.split_once(':').unwrap_or((text, "EIO"));
    let named = errno::ALL.iter().find(|(name, ..)| *name == error).map(|(_, n, _)| *n);
    let error = named.or_else(|| error.parse().ok()).filter(|n| (1..4096).contains(n))?;
    Some((number.parse().ok().filter(|n| *n > 0)?, error))
}
