//! Which steps a call's windows need, and when.
//!
//! All checks come before anything is taken: windows, then free slots, then (elsewhere) a free stack. Only
//! then slots are taken and what is lent is shown in them. The return leg takes back what `w` and `r` have
//! lent and moves what `g` was promised; `o` and `t` leave nothing to do, but that what a stub has opened to
//! a controller, which opens it to others, ends with the call.

use super::{Facts, Op};
use crate::spec::{MAX_WINDOWS, Spec, WindowKind};
use arrayvec::ArrayVec;

/// One window of a specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lent {
    /// First or second window.
    pub n: u8,
    /// Caller's word with the address.
    pub from: u8,
    pub window: WindowKind,
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
        matches!(self.window, WindowKind::Get) || self.stub && matches!(self.window, WindowKind::Open)
    }

    /// What the callee gets by it is lent until the call returns, and to be lent on by the calling thread
    /// alone.
    pub const fn is_borrowed(self) -> bool {
        matches!(self.window, WindowKind::Write | WindowKind::Read)
    }

    /// The slot's descriptor, where the return leg needs it; for `g` also where the pages go.
    pub const fn frame_words(self) -> u8 {
        match self.window {
            WindowKind::Write | WindowKind::Read => 1,
            WindowKind::Open => self.stub as u8,
            WindowKind::Tear => 0,
            WindowKind::Get => 2,
        }
    }
}

/// The windows of a call. Asked for once: each look goes through all arguments.
pub fn lent(spec: &Spec, c: &Facts) -> ArrayVec<Lent, MAX_WINDOWS> {
    let stub = c.keeps_status;
    // Most have none: nothing is copied then.
    if spec.windows().next().is_none() {
        return ArrayVec::new();
    }
    let mut all = ArrayVec::new();
    for (n, (from, window, pages)) in (0..).zip(spec.windows()) {
        all.push(Lent { n, from, window, pages, stub, apart: false });
    }
    // It keeps its slot when the call returns, until the callee gives it up.
    let stays =
        |l: &Lent| matches!(l.window, WindowKind::Tear) || !stub && matches!(l.window, WindowKind::Open);
    let apart = all.iter().any(stays);
    all.iter_mut().for_each(|l| l.apart = apart);
    all
}

/// Windows, each with the first word of the frame that is its own.
pub(super) type Placed = ArrayVec<(Lent, u8), MAX_WINDOWS>;

/// Two of them are so: what they have in common, the first leaves to the second.
fn twice(windows: &Placed, so: impl Fn(&Lent) -> bool) -> bool {
    windows.iter().filter(|(lent, _)| so(lent)).count() == 2
}

pub(super) fn check(windows: &Placed, put: &mut impl FnMut(Op)) {
    for (lent, word) in windows {
        put(Op::CheckWindow { lent: *lent, keep: *word + 1 });
    }
    if let Some((first, _)) = windows.first() {
        let second = windows.get(1).map(|(lent, _)| lent.is_long());
        put(Op::CheckSlots { first: first.is_long(), second, apart: first.apart });
    }
}

pub(super) fn open(windows: &Placed, translates: bool, put: &mut impl FnMut(Op)) {
    for (lent, word) in windows {
        let fence = !(lent.n == 0 && twice(windows, |l| l.is_long() && l.window == WindowKind::Tear));
        put(Op::OpenWindow { lent: *lent, word: *word, found: lent.n == 0 && !translates, fence });
    }
}

pub(super) fn close(windows: &Placed, put: &mut impl FnMut(Op)) {
    for (lent, word) in windows.iter().filter(|(lent, _)| lent.frame_words() > 0) {
        // For buffers all translations of the domain go, so once is enough.
        let fence = !(lent.n == 0 && twice(windows, |l| l.is_long() && l.frame_words() == 1));
        put(Op::CloseWindow { lent: *lent, word: *word, fence });
    }
}
