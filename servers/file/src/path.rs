//! Paths without what means nothing in them: what the archive is searched by, and what the rules of the
//! system are about.
//!
//! Invariant: whatever the spelling, where a path leads has one normal path (no `/` at either end, none
//! doubled, no `.` or `..`), and a rule sees that. There are no links, so `..` is the way back.

use pebble_abi::link::PATHLEN;

/// A normal path under construction, no longer than a call can carry.
pub struct Path {
    bytes: [u8; PATHLEN],
    len: usize,
}

impl Path {
    pub const ROOT: Path = Path { bytes: [0; PATHLEN], len: 0 };

    pub fn as_str(&self) -> &str {
        core::str::from_utf8(&self.bytes[..self.len]).unwrap_or("")
    }

    pub fn enter(&mut self, name: &str) -> Option<()> {
        let start = self.len + usize::from(self.len != 0);
        let end = start + name.len();
        self.bytes.get_mut(start..end)?.copy_from_slice(name.as_bytes());
        if start != 0 {
            self.bytes[start - 1] = b'/';
        }
        self.len = end;
        Some(())
    }

    pub fn leave(&mut self) {
        self.len = self.as_str().rfind('/').unwrap_or(0);
    }
}

/// Calls `visit` with each place that the path leaves by `..`, and last with where it leads: normal paths.
/// Who may not know what is at a place may not learn it on the way through, either.
pub fn places(path: &str, mut visit: impl FnMut(&str)) {
    let end = walk(path, &mut visit);
    visit(end.as_str());
}

/// Where the path leads.
pub fn normal(path: &str) -> Path {
    walk(path, |_| {})
}

fn walk(path: &str, mut leaves: impl FnMut(&str)) -> Path {
    let mut place = Path::ROOT;
    for component in path.split('/') {
        match component {
            "" | "." => {}
            ".." => {
                leaves(place.as_str());
                place.leave();
            }
            // No part of a path that fits is too long.
            name => {
                let _ = place.enter(name);
            }
        }
    }
    place
}
