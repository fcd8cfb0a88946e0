//! Interposition: what a controlling domain asks the portal manager ([`crate::sys::SYS_CONTROL`]), and its
//! portals on behalf of children.

use crate::sys;

/// Operations, in the low 16 bits of `p1`.
///
/// `p2`: where the caller resumes after a call that changed its table, before it goes on as if that had just
/// returned; 0: nowhere.
pub const NOTIFY: u64 = 0;
/// → 1 and index, two words of specification (none: removed), own domain: a change; or 0 and the address at
/// which to go on.
pub const NOTICE: u64 = 1;
/// `p1`: child in bits 16 and up, index in bits 32 and up; `p2`: first 8 letters (0: remove the stub); `p3`:
/// constant; `p4`: handler, further results in bits 32 and up, letters 9 to 11 in bits 40 and up.
pub const CREATE_CHILD: u64 = 2;
/// `p2`: where the caller's own portals shall begin, 0: behind these → index of the caller's first portal on
/// behalf; made at the first time.
pub const BEHALF_INDEX: u64 = 3;
/// For `p2`: behind all that children which are controllers themselves can have.
pub const APART: u64 = 2560;

/// `p2`: index of P on a semaphore that gets a V whenever a thread is unwound in the caller, its call's time
/// being over; 0: none.
pub const WATCH: u64 = 4;
/// → the next such thread, or -ENOENT.
pub const UNWOUND: u64 = 5;

/// `p2`: address, `p3`: pages, `p4`: index of a portal. Page faults there call it with domain, address and
/// cause. No pages: no longer.
pub const FAULT_RANGE: u64 = 6;

/// Who may open the caller's own interface `p2`, the name server's rules apart; `p1`: one of [`guard`] in
/// bits 16 and up, `p3`: its word.
pub const GUARD: u64 = 7;

/// The template of an argument letter is registered, in the steps of [`crate::template`]; → 0, or an error,
/// and then what is wrong with the code ([`crate::template::TemplateError::word`]) or 0. -EACCES: the
/// system's manifest gives the letter to somebody else.
pub const TEMPLATE: u64 = 8;
/// `p2`: index of a portal of the caller's own → 0; the name of the interface behind it in three words,
/// whoever stands in between.
pub const NAME: u64 = 9;

/// In the answer of `pm.call_site`: a controller has passed the call on, and may have changed its words.
pub const PASSED_ON: u64 = 1 << 48;

/// Ways to guard an interface.
pub mod guard {
    /// Whoever the rules allow.
    pub const NAMES: u64 = 0;
    /// Nobody who has not been admitted since.
    pub const LIST: u64 = 1;
    /// This domain is admitted.
    pub const ADMIT: u64 = 2;
    /// Whomever the portal at this index answers 1 for: domain, interface.
    pub const ASK: u64 = 3;
}

/// System portals that act on who calls them. A controller has for each of them, consecutively and in this
/// order, a portal that acts on the child that it serves; each gets the index here as constant.
pub const BEHALF: [usize; 16] = [
    sys::SYS_GET_ASID,
    sys::SYS_THREAD_CREATE,
    sys::SYS_SBRK,
    sys::SYS_PORTAL_OPEN,
    sys::SYS_PORTAL_REGISTER,
    sys::SYS_SEM_CREATE,
    sys::SYS_PORTAL_CREATE,
    sys::SYS_PORTAL_REMOVE,
    sys::SYS_PORTAL_CLOSE,
    sys::SYS_SEM_OPEN,
    sys::SYS_SEM_PUBLISH,
    sys::SYS_THREAD_EXIT,
    sys::SYS_INTERFACE,
    sys::SYS_CONTROL,
    sys::SYS_EXIT,
    sys::SYS_PROCESS,
];
/// So many of them are the portal manager's, the rest the process server's.
pub const BEHALF_PM: usize = 14;

/// For each system portal its place in [`BEHALF`], plus one; 0: none.
pub const PLACE: [u8; sys::FIRST_FREE] = {
    let mut place = [0; sys::FIRST_FREE];
    let mut n = 0;
    while n < BEHALF.len() {
        place[BEHALF[n]] = n as u8 + 1;
        n += 1;
    }
    place
};
