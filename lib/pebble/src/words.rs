//! What a word of a call means: the types of [`pebble_abi::words`], and which of them a function behind an
//! interface takes.
//!
//! A description of an interface (`interface.toml`) says what each word is. Callers pass these types; a
//! function behind an interface takes them, or a plain `u64`, but never another one of them.

use crate::link::More;
pub use pebble_abi::words::{Asid, PhysAddr, PortalIndex, ThreadId, Ticks, VirtAddr, Word};

/// The function takes this for what the description calls `W`.
#[diagnostic::on_unimplemented(
    message = "the function takes `{Self}` where `interface.toml` says `{W}`",
    label = "a word of another type"
)]
pub trait Takes<W>: Word {}

impl Takes<u64> for u64 {}

macro_rules! takes {
    ($($name:ident)*) => {$(
        impl Takes<$name> for $name {}
        impl Takes<$name> for u64 {}
    )*};
}

takes!(Asid ThreadId Ticks VirtAddr PortalIndex);

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
