//! Transport status of a portal call (register `a1`): `code | domain << 16`; 0 when the call took place.

/// The named domain died, or was killed, while it had the call.
pub const DEAD: u64 = 1;
/// The portal was closed, or its interface withdrawn; the named domain is the one that the portal led to.
pub const CLOSED: u64 = 2;
/// A wait for the named domain was cut short: the caller's domain is being removed, or its call's time is
/// over.
pub const INTERRUPTED: u64 = 3;
/// The server is being replaced: the call did not take place and is to be repeated (libraries do it by
/// themselves).
pub const MOVED: u64 = 4;
/// A window over memory that the caller (the named domain) may not lend, or that the named callee did not
/// give back as it must.
pub const WINDOW: u64 = 5;
/// The caller's time limit passed while the named domain had the call.
pub const TIMEOUT: u64 = 6;
/// A capability that the caller (the named domain) does not have, or may not pass.
pub const CAPABILITY: u64 = 7;
/// The call was not made: the family of the caller (the named domain) has as many time limits as it may have
/// ([`crate::share`]). Said by libraries.
pub const LIMITS: u64 = 10;

/// The thread's invocation stack had no room for the call, which the named domain, a server of the image, has
/// tried to make.
pub const FULL: u64 = 8;
/// Not of a call: a portal has not been opened, since the named domain asks for a letter that the opener does
/// not give. Bits 32 to 47: who does not give it, 48 and up: the letter.
pub const CONSENT: u64 = 9;

/// What was called for is not there yet; the server (the named domain) will wake the calling thread.
/// Libraries park the thread ([`crate::sys::SYS_PARK`]) and call again.
pub const WAIT: u64 = 11;

/// Not of a call: an interface or a portal has not been made, since something is wrong with the
/// specification, which is the named domain's ([`crate::specification`]). Bits 32 to 39: the character's
/// index, 40 to 47: the reason, 48 to 55: the character.
pub const SPECIFICATION: u64 = 12;

/// All codes: name in `pebble.h`, number, meaning.
pub const ALL: [(&str, u64, &str); 12] = [
    ("PORTAL_DEAD", DEAD, "the domain died while it had the call"),
    ("PORTAL_CLOSED", CLOSED, "closed, or the interface withdrawn; the domain is the one it led to"),
    ("PORTAL_INTERRUPTED", INTERRUPTED, "the caller's domain is being removed"),
    ("PORTAL_MOVED", MOVED, "the server is being replaced; the call did not take place"),
    ("PORTAL_WINDOW", WINDOW, "the caller may not lend this memory, or the callee did not give it back"),
    ("PORTAL_TIMEOUT", TIMEOUT, "the call's time was over while the domain had it"),
    ("PORTAL_CAPABILITY", CAPABILITY, "the caller does not have this capability, or may not pass it"),
    ("PORTAL_FULL", FULL, "the thread has too many calls in progress for a server to make another"),
    ("PORTAL_CONSENT", CONSENT, "not opened: the domain asks for a letter that the opener does not give"),
    ("PORTAL_LIMITS", LIMITS, "not made: the caller has as many time limits as it may have"),
    ("PORTAL_SPECIFICATION", SPECIFICATION, "not made: something is wrong with the domain's specification"),
    ("PORTAL_WAIT", WAIT, "not yet: invoke SYS_PARK, which returns when the server says so, and call again"),
];

/// The template of that letter has refused the caller's word; the domain is the caller. From `A` to `Z`.
pub const fn letter(letter: u8) -> u64 {
    letter as u64
}

/// Why a portal has not been opened.
pub const fn refused(letter: u8, exporter: u16, opener: u16) -> u64 {
    CONSENT | (exporter as u64) << 16 | (opener as u64) << 32 | (letter as u64) << 48
}

/// Of [`CONSENT`]: the letter, and who does not give it.
pub const fn missing(status: u64) -> (char, u16) {
    ((status >> 48) as u8 as char, (status >> 32) as u16)
}

/// The status of a portal that led to a dead domain.
pub const fn dead(asid: u16) -> u64 {
    DEAD | (asid as u64) << 16
}
pub const fn code(status: u64) -> u64 {
    status & 0xffff
}
pub const fn domain(status: u64) -> u16 {
    (status >> 16) as u16
}
