//! Forked children: they may call the instances that they have inherited, and nothing that the parent does with its own changes theirs.
//!
//! Problem: portal code and context pages are shared mappings, so the child would see the parent make and end portals; and of the process's threads only
//! one is left, without the clock of deadlines. Strategy: handlers around `fork` hold the locks that the child needs, and give it copies in the same
//! places and a clock that has not begun. Memory for more is not the child's to give: it makes no instances.

use crate::instance::lock;
use crate::{arena, deadline, slots, thread, wait};
use std::cell::RefCell;
use std::sync::{Mutex, MutexGuard};

type Held = (arena::Held, deadline::Held, MutexGuard<'static, ()>, MutexGuard<'static, ()>);

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

fn put(held: Option<Held>) -> Option<Held> {
    HELD.try_with(|here| here.replace(held)).ok().flatten()
}

extern "C" fn before() {
    put(Some((arena::hold(), deadline::hold(), wait::hold(), slots::pin())));
}

extern "C" fn in_parent() {
    put(None);
}

extern "C" fn in_child() {
    let Some((mut arena, mut calls, _standard, _pinned)) = put(None) else { return };
    calls.forget();
    thread::in_child();
    // A child that is to become another program needs none of this: without memory all stays as it was.
    if let Some(arena) = &mut *arena {
        let _ = arena.own();
    }
    if let Some(slots) = slots::existing() {
        let _ = slots.own();
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
