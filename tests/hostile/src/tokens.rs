//! Capabilities of the judge's own.

use pebble::api::Errno;
use pebble::portal::call_wide;
use pebble::process::Lazy;

static DERIVE: Lazy = Lazy::new("cap.derive");
static REVOKE: Lazy = Lazy::new("cap.revoke");
static DROP: Lazy = Lazy::new("cap.drop");
static COUNT: Lazy = Lazy::new("cap.count");

pub fn word(result: Result<u64, Errno>) -> i64 {
    result.map_or_else(|error| -error, |value| value as i64)
}

/// A weaker one, transferable.
pub fn derive(own: u64, rights: u16) -> u64 {
    const TRANSFER: u64 = 1 << 16;
    DERIVE.call([own, u64::from(rights) | TRANSFER, 0, 0, 0]).unwrap_or(0)
}

/// From whomever it was passed to; it goes, too.
pub fn take_back(name: u64) -> i64 {
    word(REVOKE.call([name, 0, 0, 0, 0]).and_then(|_| DROP.call([name, 0, 0, 0, 0])))
}

/// Nodes of the table that are in use.
pub fn used() -> u64 {
    COUNT.index().ok().and_then(|count| call_wide(count, [0; 5]).ok()).map_or(0, |(_, [used, ..])| used)
}
