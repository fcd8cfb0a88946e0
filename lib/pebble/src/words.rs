//! What a word means: types for domains, threads, times, addresses and portals, which cost nothing.
//!
//! A description of an interface (`interface.toml`) says what each word is. Callers pass these types; a function behind an interface takes them,
//! or a plain `u64`, but never another one of them.

use crate::link::More;

/// A word of a call, as one side of it sees it.
pub trait Word: Copy {
    fn of(word: u64) -> Self;
    fn word(self) -> u64;
}

impl Word for u64 {
    #[inline(always)]
    fn of(word: u64) -> Self {
        word
    }

    #[inline(always)]
    fn word(self) -> u64 {
        self
    }
}

macro_rules! words {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub struct $name(pub u64);

        impl Word for $name {
            #[inline(always)]
            fn of(word: u64) -> Self {
                $name(word)
            }

            #[inline(always)]
            fn word(self) -> u64 {
                self.0
            }
        }

        impl From<u16> for $name {
            #[inline(always)]
            fn from(word: u16) -> Self {
                $name(word.into())
            }
        }

        impl Takes<$name> for $name {}
        impl Takes<$name> for u64 {}
    )*};
}

words! {
    /// A domain.
    Asid;
    /// A thread.
    ThreadId;
    /// Time, in ticks of `hrtime`.
    Ticks;
    /// An address in the caller's domain, or in one that another word names.
    VirtAddr;
    /// An index in a portal table.
    PortalIndex;
}

/// The function takes this for what the description calls `W`.
#[diagnostic::on_unimplemented(
    message = "the function takes `{Self}` where `interface.toml` says `{W}`",
    label = "a word of another type"
)]
pub trait Takes<W>: Word {}

impl Takes<u64> for u64 {}

/// A function whose parameters are these words.
#[doc(hidden)]
pub trait Entry<Words> {}

/// The same with further results: six parameters, of which those without a letter are plain words.
#[doc(hidden)]
pub trait WideEntry<Words> {}

/// A function of the scheduler: what it returns are two words.
#[doc(hidden)]
pub trait Decides<Words> {
    const WORDS: usize;
}

macro_rules! entries {
    ($(($($word:ident $own:ident),*) $($rest:ty),*;)*) => {$(
        impl<$($own: Takes<$word>, $word),*> Entry<($($word,)*)> for extern "C" fn($($own),*) -> i64 {}
        impl<$($own: Takes<$word>, $word),*> WideEntry<($($word,)*)>
            for extern "C" fn($($own,)* $($rest,)* &mut More) -> i64 {}
        impl<$($own: Takes<$word>, $word,)* R> Decides<($($word,)*)> for extern "C" fn($($own),*) -> R {
            const WORDS: usize = size_of::<R>() / 8;
        }
    )*};
}

entries! {
    () u64, u64, u64, u64, u64, u64;
    (A OwnA) u64, u64, u64, u64, u64;
    (A OwnA, B OwnB) u64, u64, u64, u64;
    (A OwnA, B OwnB, C OwnC) u64, u64, u64;
    (A OwnA, B OwnB, C OwnC, D OwnD) u64, u64;
    (A OwnA, B OwnB, C OwnC, D OwnD, E OwnE) u64;
    (A OwnA, B OwnB, C OwnC, D OwnD, E OwnE, F OwnF);
}

#[doc(hidden)]
pub const fn fits<Words, F: Entry<Words>>(_: &F) {}

#[doc(hidden)]
pub const fn fits_wide<Words, F: WideEntry<Words>>(_: &F) {}

#[doc(hidden)]
pub const fn decides<Words, F: Decides<Words>>(_: &F) {
    assert!(F::WORDS == 2, "an entry of the scheduler returns its decision");
}
