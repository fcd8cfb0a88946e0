//! Machine code under construction: what all emitters need of it, whatever their instructions look like.
//!
//! Problem: branches and constants lie before what they lead to, and nobody should count distances by hand.
//! Strategy: a branch, or the load of a constant, is put down without its distance, and its place, a
//! [`Label`], is filled in once what it leads to is there. Constants gather in a [`Pool`], each value once.
//!
//! * Every branch is forward: a label is the place of the branch, and is joined once.
//! * What does not fit is dropped, and that it did not fit is kept: whoever emits asks once, at the end.
//! * Portals are compiled on the board, so all of this is inlined and nothing is looked up.

use arrayvec::ArrayVec;

/// `U`: a byte, or the word that is an instruction.
#[derive(Debug)]
pub struct Asm<'a, U, const N: usize> {
    code: &'a mut ArrayVec<U, N>,
    full: bool,
}

/// The place of an instruction that leads to what is not there yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct Label(u16);

impl<'a, U: Copy, const N: usize> Asm<'a, U, N> {
    /// Whatever `code` held is gone.
    pub fn new(code: &'a mut ArrayVec<U, N>) -> Self {
        code.clear();
        Asm { code, full: false }
    }

    #[inline]
    pub fn put(&mut self, unit: U) {
        self.full |= self.code.try_push(unit).is_err();
    }

    pub fn put_all(&mut self, units: &[U]) {
        self.full |= self.code.try_extend_from_slice(units).is_err();
    }

    /// Units so far.
    #[inline]
    pub fn here(&self) -> usize {
        self.code.len()
    }

    /// Of the next unit.
    #[inline]
    pub fn label(&self) -> Label {
        Label(self.here() as u16)
    }

    /// From the label to here, in units.
    #[inline]
    pub fn distance(&self, label: Label) -> i32 {
        self.here().wrapping_sub(label.0.into()) as i32
    }

    pub fn before(&self, label: Label) -> &[U] {
        self.code.get(..label.0.into()).unwrap_or_default()
    }

    /// What is there from the label on.
    #[inline]
    pub fn from(&mut self, label: Label) -> &mut [U] {
        self.code.get_mut(usize::from(label.0)..).unwrap_or_default()
    }

    /// Notes what fits nowhere.
    #[inline]
    pub fn demand(&mut self, fits: bool) {
        self.full |= !fits;
    }

    pub fn is_full(&self) -> bool {
        self.full
    }
}

/// Constants that lie behind the code, and the instructions that reach for them.
#[derive(Debug, Default)]
pub struct Pool<const VALUES: usize, const USES: usize> {
    values: ArrayVec<u64, VALUES>,
    uses: ArrayVec<(Label, u8), USES>,
}

impl<const VALUES: usize, const USES: usize> Pool<VALUES, USES> {
    /// The instruction there will reach for this value. Whether there is room for that.
    pub fn keep(&mut self, value: u64, user: Label) -> bool {
        let slot = self.values.iter().position(|v| *v == value).unwrap_or(self.values.len());
        let room = slot < self.values.len() || self.values.try_push(value).is_ok();
        room && self.uses.try_push((user, slot as u8)).is_ok()
    }

    pub fn values(&self) -> &[u64] {
        &self.values
    }

    /// Each with the offset of what it reaches for from the pool's start, in bytes.
    pub fn uses(&self) -> impl Iterator<Item = (Label, usize)> {
        self.uses.iter().map(|(user, slot)| (*user, usize::from(*slot) * 8))
    }
}

/// Branches to places that lie behind the leg, by what is to be done there.
#[derive(Debug, Default)]
pub struct Ways<const N: usize>(ArrayVec<(Label, u16), N>);

impl<const N: usize> Ways<N> {
    /// Whether there is room for one more.
    #[inline]
    pub fn add(&mut self, branch: Label, what: u16) -> bool {
        self.0.try_push((branch, what)).is_ok()
    }

    /// What the first of them is for, and each of those that are for the same to `join`; they are gone then.
    pub fn take(&mut self, mut join: impl FnMut(Label)) -> Option<u16> {
        let (_, what) = *self.0.first()?;
        self.0.retain(|(branch, other)| {
            let same = *other == what;
            if same {
                join(*branch);
            }
            !same
        });
        Some(what)
    }
}
