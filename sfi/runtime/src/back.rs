//! The way back of a fault: from the call that it has ended to the caller that can go on.
//!
//! Problem: a call that is to end may have a thousand callers between domains, all of them poisoned, and a
//! signal for each takes longer than the call may. Strategy: the portal of a call comes back to the word that
//! its caller has pushed. The signal handler puts a few instructions of ours there if the caller is poisoned,
//! and somebody further out is, too: they leave the poisoned domain's frames as a fault would, and go back
//! into the portal through which it was called. So portals do all that there is to do at the end of each
//! call, and the handler knows nothing of it.
//!
//! Invariants: a domain's code runs after a fault as it would if every caller had been told singly, and
//! nowhere does a fault read as a result. Words are changed in frames of calls between domains alone, of
//! which a thread has at most [`pebble_portal::fault::MOST_NESTED`]; and each once, since its call is over
//! then.

use crate::arena;
use crate::error::Error;
use crate::instance::lock;
use crate::portal;
use crate::record::Mark;
use pebble_portal::fault::{STACK_BYTES, STATUS_BYTES, published_to_return, record};
use std::arch::global_asm;
use std::sync::{Mutex, OnceLock};

// Copied to where portal code lies. On the return stack of a domain that another one has called; `rax` and
// `rdx` say what has become of the call. Every portal back into a domain writes `rcx` anew.
global_asm!(
    ".pushsection .rodata.pebble_sfi,\"a\",@progbits",
    "pebble_sfi_further:",
    "movq %rsp, %rcx",
    "orq ${mask}, %rcx",
    "movq {top}(%rcx), %rcx",
    "leaq -16(%rcx), %rsp",
    "movq -24(%rcx), %rcx",
    "addq ${status}, %rcx",
    "jmpq *%rcx",
    "pebble_sfi_further_end:",
    ".popsection",
    mask = const STACK_BYTES - 1,
    top = const record::from_mark(record::TOP),
    status = const STATUS_BYTES,
    options(att_syntax),
);

unsafe extern "C" {
    static pebble_sfi_further: u8;
    static pebble_sfi_further_end: u8;
}

static FURTHER: OnceLock<u64> = OnceLock::new();

/// Before the first portal between domains.
pub fn prepare() -> Result<(), Error> {
    static MAKING: Mutex<()> = Mutex::new(());
    let _one = lock(&MAKING);
    if FURTHER.get().is_none() {
        let begin = &raw const pebble_sfi_further;
        let bytes = &raw const pebble_sfi_further_end as usize - begin as usize;
        // SAFETY: the labels of the section above, in this order.
        let made = arena::fixed(unsafe { std::slice::from_raw_parts(begin, bytes) })?;
        let _ = FURTHER.set(made);
    }
    Ok(())
}

/// In the signal handler: the call into this stack comes back with a fault. Callers that would only fault in
/// their turn are passed over, but for the outermost: that is where the next fault is, which is told if this
/// one is not. `cut`: this fault is told whatever follows.
///
/// A function that ends in a jump to a portal has left: what that portal says is its caller's, whose portal
/// must not take it for the function's result.
pub fn tell_callers(mut mark: Mark, cut: bool) {
    let Some(further) = FURTHER.get() else { return };
    let mut top = mark.get(record::TOP);
    let mut poisoned: Option<(Mark, u64)> = None;
    while let Some((caller, published, next)) = mark.caller(top) {
        let control = portal::keeps_controls(caller.instance(), mark.instance());
        let at = published + published_to_return(control);
        let Some(word) = caller.peek(at) else { return };
        if arena::contains(word) {
            // Perhaps once more.
            let Some((_, site)) = caller.frame(next) else { return };
            caller.poke(at, site + STATUS_BYTES);
        } else if let Some(cause) = caller.instance().poisoned() {
            if let Some((inner, at)) = poisoned.replace((caller, at)) {
                inner.poke(at, *further);
            }
            if cause.cuts() && !cut {
                return;
            }
        } else {
            return;
        }
        (mark, top) = (caller, next);
    }
}
