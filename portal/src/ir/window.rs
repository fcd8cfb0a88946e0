//! Which steps a call's windows need, and when.
//!
//! All checks come before anything is taken: windows, then free slots, then (elsewhere) a free stack. Only then slots are taken and
//! what is lent is shown in them. The return leg takes back what `w` and `r` have lent and moves what `g` was promised;
//! `o` and `t` leave nothing to do, but that what a stub has opened to a controller, which opens it to others, ends with the call.

use super::Connection;
use super::Op;
use crate::spec::{MAX_WINDOWS, Spec, Window};

/// One window of a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// First or second window.
    pub n: u8,
    /// Caller's word with the address.
    pub from: u8,
    pub window: Window,
    pub pages: u16,
    /// In a stub: what is open ends with the call.
    pub stub: bool,
    /// Some window of the call stays: all have slots that are set apart for such calls.
    pub apart: bool,
}

impl Lent {
    /// A whole buffer.
    pub const fn is_long(self) -> bool {
        self.pages > 1
    }

    /// What moves with it counts as so many pages: a buffer's two page tables too.
    pub const fn charge(self) -> i32 {
        if self.is_long() { self.pages as i32 + 2 } else { 1 }
    }

    /// A call holds the slot, though what is there looks as if it were the callee's to close, or to fill.
    pub const fn holds(self) -> bool {
        matches!(self.window, Window::Get) || self.stub && matches!(self.window, Window::Open)
    }

    /// What the callee gets by it is lent until the call returns, and to be lent on by the calling thread alone.
    pub const fn is_borrowed(self) -> bool {
        matches!(self.window, Window::Write | Window::Read)
    }

    /// The slot's descriptor, where the return leg needs it; for `g` also where the pages go.
    pub const fn frame_words(self) -> u8 {
        match self.window {
            Window::Write | Window::Read => 1,
            Window::Open => self.stub as u8,
            Window::Tear => 0,
            Window::Get => 2,
        }
    }
}

pub fn lent(spec: &Spec, c: &Connection) -> impl Iterator<Item = Lent> {
    let stub = c.keeps_status;
    // It keeps its slot when the call returns, until the callee gives it up.
    let stays = |window: Window| matches!(window, Window::Tear) || !stub && matches!(window, Window::Open);
    let apart = spec.windows().any(|(_, window, _)| stays(window));
    (0..).zip(spec.windows()).map(move |(n, (from, window, pages))| Lent {
        n,
        from,
        window,
        pages,
        stub,
        apart,
    })
}

pub(super) fn check(spec: &Spec, c: &Connection, frame: &[u8; MAX_WINDOWS], put: &mut impl FnMut(Op)) {
    for (lent, word) in lent(spec, c).zip(frame) {
        put(Op::CheckWindow { lent, keep: *word + 1 });
    }
    let mut long = lent(spec, c).map(Lent::is_long);
    if let Some(first) = long.next() {
        let apart = lent(spec, c).any(|lent| lent.apart);
        put(Op::CheckSlots { first, second: long.next(), apart });
    }
}

pub(super) fn open(spec: &Spec, c: &Connection, frame: &[u8; MAX_WINDOWS], put: &mut impl FnMut(Op)) {
    let translates = spec.templates().count() > 0;
    for (lent, word) in lent(spec, c).zip(frame) {
        let tears = |l: &Lent| l.is_long() && l.window == Window::Tear;
        let fence = !(lent.n == 0 && super::lent(spec, c).filter(tears).count() == 2);
        put(Op::OpenWindow { lent, word: *word, found: lent.n == 0 && !translates, fence });
    }
}

pub(super) fn close(spec: &Spec, c: &Connection, frame: &[u8; MAX_WINDOWS], put: &mut impl FnMut(Op)) {
    for (lent, word) in lent(spec, c).zip(frame).filter(|(lent, _)| lent.frame_words() > 0) {
        // For buffers all translations of the domain go, so once is enough.
        let whole = |l: &Lent| l.is_long() && l.frame_words() == 1;
        let fence = !(lent.n == 0 && super::lent(spec, c).filter(whole).count() == 2);
        put(Op::CloseWindow { lent, word: *word, fence });
    }
}
