//! For servers of what the system's rules are about, files and devices: asking the name server, which knows
//! of whom the rules speak.
//!
//! A server imports `pm.whose`, `name.rights` and `name.first`, and asks without its own lock.

use crate::api::{Errno, answer};
use crate::link::Import;
use crate::words::Asid;
use pebble_abi::errno;

fn ask(question: &Import, who: u64, kind: u16, about: u128) -> Result<u64, Errno> {
    answer(question.call([who | u64::from(kind) << 32, about as u64, (about >> 64) as u64]))
}

/// Whom the call is for that the server was given, and who made it.
#[derive(Clone, Copy)]
pub struct Who {
    pub subject: Asid,
    pub caller: Asid,
}

pub fn whose(whose: &Import) -> Result<Who, Errno> {
    match whose.call([]) {
        Ok(who @ 1..) => Ok(Who { subject: Asid(who as u64 & 0xffff), caller: Asid(who as u64 >> 16) }),
        _ => Err(errno::EIO),
    }
}

/// The rights at what this set of rules is about.
pub fn rights(rights: &Import, who: Who, kind: u16, about: u128) -> Result<u16, Errno> {
    ask(rights, who.caller.get() | who.subject.get() << 16, kind, about).map(|rights| rights as u16)
}

/// A first capability for a domain: its name for it. -ENOENT: no rule wants one.
pub fn first(first: &Import, client: Asid, kind: u16, about: u128) -> Result<u64, Errno> {
    ask(first, client.get() << 16, kind, about)
}
