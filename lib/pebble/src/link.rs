//! Exports and imports: records in the component's ELF file, in the form of `pebble_abi::link`.

use crate::portal::{self, Broken, Wide};
use core::sync::atomic::{AtomicU64, Ordering};
use pebble_abi::link::{NAMELEN, SPECLEN};

/// One exported interface: entry `F` behind specification `spec`.
#[repr(C)]
pub struct Export<F> {
    name: [u8; NAMELEN],
    spec: [u8; SPECLEN],
    entry: F,
    order: u64,
}

impl<F> Export<F> {
    /// `order`: interfaces are numbered in this order, whatever the linker does.
    pub const fn new(name: &str, spec: &str, entry: F, order: u32) -> Self {
        Export { name: padded(name), spec: padded(spec), entry, order: order as u64 }
    }
}

/// One import: the portal's index, written by whoever loads the component.
pub struct Import(AtomicU64);

/// What the loader is told of it.
#[repr(C)]
pub struct ImportRecord {
    name: [u8; NAMELEN],
    slot: Option<&'static Import>,
    order: u64,
}

impl ImportRecord {
    /// `order`: the first index of the image builder goes to the first in this order.
    pub const fn new(name: &str, slot: Option<&'static Import>, order: u32) -> Self {
        ImportRecord { name: padded(name), slot, order: order as u64 }
    }
}

impl Import {
    pub const fn unbound() -> Self {
        Import(AtomicU64::new(0))
    }

    #[inline]
    pub fn index(&self) -> usize {
        self.0.load(Ordering::Relaxed) as usize
    }

    /// Whether the loader found the interface.
    pub fn bound(&self) -> bool {
        self.index() != 0
    }

    #[inline]
    pub fn call<const N: usize>(&self, p: [u64; N]) -> Result<i64, Broken> {
        portal::call(self.index(), p)
    }

    #[inline]
    pub fn call_wide<const N: usize>(&self, p: [u64; N]) -> Result<Wide, Broken> {
        portal::call_wide(self.index(), p)
    }
}

/// A portal that a stub of [`client`](crate::client) calls, and how its callee's answer is told.
pub trait Handle {
    type Answer;
    type Wide;
    fn invoke<const N: usize>(&self, p: [u64; N]) -> Self::Answer;
    fn invoke_wide<const N: usize>(&self, p: [u64; N]) -> Self::Wide;
}

/// The words of a call and zeroes, for handles that are opened by name: they save code, not instructions, by
/// having one function for all calls.
#[inline(always)]
pub fn five<const N: usize>(p: [u64; N]) -> [u64; 5] {
    const { assert!(N <= 5, "five words at most") };
    core::array::from_fn(|n| if n < N { p[n] } else { 0 })
}

/// An index of the caller's table.
impl Handle for usize {
    type Answer = Result<i64, Broken>;
    type Wide = Result<Wide, Broken>;

    #[inline]
    fn invoke<const N: usize>(&self, p: [u64; N]) -> Self::Answer {
        portal::call(*self, p)
    }

    #[inline]
    fn invoke_wide<const N: usize>(&self, p: [u64; N]) -> Self::Wide {
        portal::call_wide(*self, p)
    }
}

impl Handle for Import {
    type Answer = Result<i64, Broken>;
    type Wide = Result<Wide, Broken>;

    #[inline]
    fn invoke<const N: usize>(&self, p: [u64; N]) -> Self::Answer {
        self.call(p)
    }

    #[inline]
    fn invoke_wide<const N: usize>(&self, p: [u64; N]) -> Self::Wide {
        self.call_wide(p)
    }
}

const fn padded<const N: usize>(text: &str) -> [u8; N] {
    let bytes = text.as_bytes();
    assert!(bytes.len() <= N, "interface name or specification too long");
    let mut out = [0; N];
    let mut i = 0;
    while i < bytes.len() {
        out[i] = bytes[i];
        i += 1;
    }
    out
}

/// An entry of an [`interface!`](crate::interface), whose type has been checked.
#[doc(hidden)]
#[repr(transparent)]
pub struct Address(pub *const ());

// SAFETY: nobody reads through it; it is for the loader.
unsafe impl Sync for Address {}

/// Further result words of an entry, filled through the last parameter of a
/// [`export_wide!`](crate::export_wide) function.
pub type More = [u64; 4];

/// How many words a specification gives to the function behind it. What cannot be one does not compile; whether
/// it is one, and may be, the portal manager says when the program starts.
#[doc(hidden)]
pub const fn words(spec: &str) -> usize {
    let bytes = spec.as_bytes();
    assert!(
        bytes.len() >= 2,
        "a specification begins with a stack letter (n, s) and a state letter (m, p, f)"
    );
    assert!(matches!(bytes[0], b'n' | b's'), "the specification's first letter is none for stacks: n or s");
    assert!(
        matches!(bytes[1], b'm' | b'p' | b'f'),
        "the specification's second letter is no state: m, p or f"
    );
    let (mut words, mut at) = (0, 2);
    while at < bytes.len() && bytes[at] != b'>' {
        match bytes[at] {
            b'0'..=b'9' => {}
            b'i' | b'c' | b'=' | b'a' | b'b' | b'd' | b'h' => words += 1,
            b'w' | b'r' | b'o' | b't' | b'g' | b'k' | b'A'..=b'Z' => words += 1,
            _ => panic!("the specification has a letter that stands for no argument"),
        }
        at += 1;
    }
    assert!(words <= 6, "the specification has more than six arguments");
    words
}

/// `export!("server.method", "npai", function: fn(u64, u64))`: function is `extern "C" fn(u64, u64) -> i64`, with
/// a word for each of the specification's letters. One that needs none of them is written without its type.
#[macro_export]
#[allow_internal_unsafe]
macro_rules! export {
    ($name:literal, $spec:literal, $entry:ident $(: fn($($t:ty),*))?) => {
        const _: () = {
            const GIVEN: usize = $crate::link::words($spec);
            const TAKEN: &[&str] = &[$($(stringify!($t)),*)?];
            assert!(
                TAKEN.is_empty() || TAKEN.len() == GIVEN,
                concat!("\"", $spec, "\" gives another number of words than the function takes"),
            );
        };
        $crate::export!(@record $name, $spec, $entry, $($($t),*)?);
    };
    (@record $name:literal, $spec:literal, $entry:ident, $($t:ty),*) => {
        const _: () = {
            #[used]
            #[unsafe(link_section = ".pebble.exports")]
            static EXPORT: $crate::link::Export<extern "C" fn($($t),*) -> i64> =
                $crate::link::Export::new($name, $spec, $entry as _, line!());
        };
    };
}

/// As [`export!`] for a specification that ends in `>1` to `>4`: the function's seventh parameter is `&mut
/// More`. All seven must be declared: `extern "C" fn(u64, u64, u64, u64, u64, u64, &mut More) -> i64`.
///
/// No C function can return the result words. An entry behind a `p` or `f` portal leaves through the return
/// portal at once, which restores what the caller must find unchanged; one behind an `m` portal returns.
#[macro_export]
#[allow_internal_unsafe]
macro_rules! export_wide {
    ($name:literal, $spec:literal, $entry:ident) => {
        const _: () = {
            type Entry = extern "C" fn(u64, u64, u64, u64, u64, u64) -> i64;
            const TRUSTED: bool = $spec.as_bytes()[1] == b'm';
            const WIDE: Entry = if TRUSTED { returns } else { leaves };

            extern "C" fn leaves(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64 {
                let mut more = [0; 4];
                let value = $entry(a, b, c, d, e, f, &mut more);
                // SAFETY: the specification is not `m`, and nothing is left to drop.
                unsafe { $crate::portal::leave(value, more) }
            }

            #[unsafe(naked)]
            extern "C" fn returns(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64) -> i64 {
                $crate::returns_wide!($entry)
            }
            // The type of the entry is checked here; assembly cannot.
            const _: extern "C" fn(u64, u64, u64, u64, u64, u64, &mut $crate::link::More) -> i64 = $entry;
            const _: usize = $crate::link::words($spec);
    $crate::export!(@record $name, $spec, WIDE, u64, u64, u64, u64, u64, u64);
        };
    };
}

/// One line of a component's description (`interface.toml`), as its build script writes it: order, name,
/// specification, way, and the function with the types of its words. The way is `plain` or `wide`, as
/// [`export!`] and [`export_wide!`], or `switching`.
///
/// A switching entry is one of the scheduler: its function returns a decision, which is two words: thread,
/// value. A thread that is negative means "the caller goes on": plain return. Otherwise the switch portal is
/// invoked, once the entry has returned and so the caller's preserved registers are back in place.
#[doc(hidden)]
#[macro_export]
#[allow_internal_unsafe]
macro_rules! interface {
    ($order:literal, $name:literal, $spec:literal, plain, $entry:ident($($t:ty),*)) => {
        const _: () = {
            let entry: extern "C" fn($($crate::interface!(@any $t)),*) -> i64 = $entry;
            $crate::words::fits::<($($t,)*), _>(&entry);
        };
        $crate::interface!(@record $order, $name, $spec, $entry);
    };
    ($order:literal, $name:literal, $spec:literal, switching, $entry:ident($($t:ty),*)) => {
        const _: () = {
            let entry: extern "C" fn($($crate::interface!(@any $t)),*) -> _ = $entry;
            $crate::words::decides::<($($t,)*), _>(&entry);

            #[unsafe(naked)]
            extern "C" fn __switching() -> i64 {
                $crate::switches!($entry)
            }
            $crate::interface!(@record $order, $name, $spec, __switching);
        };
    };
    ($order:literal, $name:literal, $spec:literal, wide, $entry:ident($($t:ty),*)) => {
        const _: () = {
            let entry: extern "C" fn(_, _, _, _, _, _, &mut $crate::link::More) -> i64 = $entry;
            $crate::words::fits_wide::<($($t,)*), _>(&entry);
        };
        const _: () = {
            use $crate::words::Word;
            type Entry = extern "C" fn(u64, u64, u64, u64, u64, u64) -> i64;
            const TRUSTED: bool = $spec.as_bytes()[1] == b'm';
            const WIDE: Entry = if TRUSTED { __returns } else { __leaves };

            extern "C" fn __leaves(a: u64, b: u64, c: u64, d: u64, e: u64, f: u64) -> i64 {
                let mut more = [0; 4];
                let value = $entry(
                    Word::of(a), Word::of(b), Word::of(c), Word::of(d), Word::of(e), Word::of(f), &mut more,
                );
                // SAFETY: the specification is not `m`, and nothing is left to drop.
                unsafe { $crate::portal::leave(value, more) }
            }

            #[unsafe(naked)]
            extern "C" fn __returns(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64) -> i64 {
                $crate::returns_wide!($entry)
            }
            $crate::interface!(@record $order, $name, $spec, WIDE);
        };
    };
    (@any $t:ty) => { _ };
    (@record $order:literal, $name:literal, $spec:literal, $entry:ident) => {
        const _: () = {
            #[used]
            #[unsafe(link_section = ".pebble.exports")]
            static EXPORT: $crate::link::Export<$crate::link::Address> =
                $crate::link::Export::new($name, $spec, $crate::link::Address($entry as *const ()), $order);
        };
    };
}

/// `interfaces!()`: exports what the component's `interface.toml` describes. The functions that it names are
/// in scope.
#[macro_export]
macro_rules! interfaces {
    () => {
        include!(concat!(env!("OUT_DIR"), "/interfaces.rs"));
    };
}

/// `import! { NAME: server::Method; }`: a static stub of [`client`](crate::client) that the loader binds;
/// `NAME = "server.method";` is a bare [`Import`], for interfaces without a description. `fixed
/// "nucleus.switch";` is one whose index is known (`pebble_abi::sys::FIXED`).
#[macro_export]
#[allow_internal_unsafe]
macro_rules! import {
    (@each $n:expr;) => {};
    (@each $n:expr; $vis:vis $ident:ident = $name:literal; $($rest:tt)*) => {
        // Or it would be one variable with others, at a distance that costs an instruction.
        #[used]
        $vis static $ident: $crate::link::Import = $crate::link::Import::unbound();
        $crate::import!(@record $name, Some(&$ident), $n);
        $crate::import!(@each $n + 1; $($rest)*);
    };
    (@each $n:expr; $vis:vis $ident:ident: $($stub:ident)::+; $($rest:tt)*) => {
        #[used]
        $vis static $ident: $crate::client::$($stub)::+ = <$crate::client::$($stub)::+>::unbound();
        $crate::import!(@record <$crate::client::$($stub)::+>::NAME, Some(&$ident.0), $n);
        $crate::import!(@each $n + 1; $($rest)*);
    };
    (@each $n:expr; fixed $name:literal; $($rest:tt)*) => {
        $crate::import!(@record $name, None, $n);
        $crate::import!(@each $n + 1; $($rest)*);
    };
    (@record $name:expr, $slot:expr, $n:expr) => {
        const _: () = {
            #[used]
            #[unsafe(link_section = ".pebble.imports")]
            static RECORD: $crate::link::ImportRecord = $crate::link::ImportRecord::new($name, $slot, $n);
        };
    };
    ($($all:tt)*) => { $crate::import!(@each 0; $($all)*); };
}

/// `component!(main)`: `fn main() -> i64` is where the component's first thread starts; its result ends the
/// domain of a program, or the thread of a server.
#[macro_export]
#[allow_internal_unsafe]
macro_rules! component {
    ($main:ident) => {
        #[unsafe(no_mangle)]
        fn pebble_main() -> i64 {
            $main()
        }
    };
}

/// `forward!(function, index)`: an entry that calls the portal at `index` and returns what it returns: the
/// tail call that a compiler makes of `return invoke_portal(index)`.
#[macro_export]
#[allow_internal_unsafe]
macro_rules! forward {
    ($name:ident, $index:expr) => {
        #[unsafe(naked)]
        extern "C" fn $name() -> i64 {
            $crate::goes_on!($index)
        }
    };
}
