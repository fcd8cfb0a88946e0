//! Forked children: they may call the instances that they have inherited, and nothing that the parent does
//! with its own changes theirs.
//!
//! Problem: portal code and context pages are shared mappings, so the child would see the parent make and end
//! portals; and of the process's threads only one is left, without the clock of deadlines. Strategy: handlers
//! around `fork` hold the locks that the child needs, and copy those pages while nobody changes them; the
//! child puts the copies in their places, and has a clock that has not begun. Memory for more is not the
//! child's to give: it makes no instances.

use crate::instance::lock;
use crate::{arena, deadline, os, slots, thread, wait};
use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard};

struct Held {
    _arena: arena::Held,
    calls: deadline::Held,
    _locks: [MutexGuard<'static, ()>; 2],
    pieces: Vec<os::Piece>,
    /// Nowhere if there is no memory. A child that is to become another program needs none: then all stays as
    /// it was.
    copies: Option<u64>,
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

fn put(held: Option<Held>) -> Option<Held> {
    HELD.try_with(|here| here.replace(held)).ok().flatten()
}

extern "C" fn before() {
    let (arena, calls, locks) = (arena::hold(), deadline::hold(), [wait::hold(), slots::pin()]);
    let code = arena.as_ref().and_then(|arena| arena.piece());
    let pieces: Vec<_> =
        code.into_iter().chain(slots::existing().into_iter().flat_map(|s| s.pieces())).collect();
    let copies = Some(&pieces).filter(|pieces| !pieces.is_empty()).and_then(|pieces| os::copies(pieces).ok());
    put(Some(Held { _arena: arena, calls, _locks: locks, pieces, copies }));
}

extern "C" fn in_parent() {
    let Some(Held { pieces, copies: Some(copies), .. }) = put(None) else { return };
    os::unmap(copies, pieces.iter().map(|piece| piece.bytes).sum());
}

extern "C" fn in_child() {
    let Some(mut held) = put(None) else { return };
    held.calls.forget();
    thread::in_child();
    if let Some(copies) = held.copies {
        os::replace(&held.pieces, copies);
    }
}

/// Before the first instance; once, however often that is tried.
pub fn prepare() -> std::io::Result<()> {
    static DONE: Mutex<bool> = Mutex::new(false);
    let mut done = lock(&DONE);
    if *done {
        return Ok(());
    }
    // SAFETY: three functions that neither unwind nor want arguments.
    match unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) } {
        0 => *done = true,
        error => return Err(std::io::Error::from_raw_os_error(error)),
    }
    Ok(())
}
