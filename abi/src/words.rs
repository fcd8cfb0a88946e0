//! What a word means: types for domains, threads, times, addresses and portals, which cost nothing.
//!
//! A call passes plain words, and all of them look alike. These types keep a domain from being taken for a
//! thread, or an address of a domain's for one of the memory's. They say what a word is meant to be, not that
//! it is good: a number that came in a call may be larger than any domain's. Whoever needs the plain word
//! asks for it, by [`get`](Asid::get).

use core::fmt;

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
    ($($(#[$doc:meta])* $name:ident, $format:literal;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u64);

        impl $name {
            /// The plain word.
            #[inline(always)]
            pub const fn get(self) -> u64 {
                self.0
            }
        }

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

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }
    )*};
}

words! {
    /// A domain.
    Asid, "{}";
    /// A thread.
    ThreadId, "{}";
    /// Time, in ticks of `hrtime`.
    Ticks, "{}";
    /// An address in the caller's domain, or in one that another word names.
    VirtAddr, "{:#x}";
    /// An address of the memory itself.
    PhysAddr, "{:#x}";
    /// An index in a portal table.
    PortalIndex, "{}";
}

/// Numbers that their owners keep in 16 bits.
macro_rules! small {
    ($($name:ident)*) => {$(
        impl $name {
            /// In 16 bits, for numbers that have been looked up.
            #[inline(always)]
            pub const fn number(self) -> u16 {
                self.0 as u16
            }

            /// As an index of a table that has so many: `None` if it has none for it.
            #[inline(always)]
            pub fn below(self, count: usize) -> Option<usize> {
                usize::try_from(self.0).ok().filter(|n| *n < count)
            }
        }

        impl From<u16> for $name {
            #[inline(always)]
            fn from(number: u16) -> Self {
                $name(number.into())
            }
        }
    )*};
}

small!(Asid ThreadId Ticks PortalIndex VirtAddr);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_cost_nothing_and_read_as_what_they_are() {
        assert_eq!((size_of::<Asid>(), size_of::<Option<PhysAddr>>()), (8, 16));
        assert_eq!(Asid::from(7), Asid::of(7));
        extern crate std;
        assert_eq!(std::format!("{} {}", Asid(7), PhysAddr(0x8000_0000)), "7 0x80000000");
    }
}
