//! Tests that a program makes of itself.
//!
//! ```ignore
//! pebble::tests!(sums, names);
//!
//! fn sums() {
//!     pebble::expect!(1 + 1 == 2);
//!     pebble::expect_eq!(sum(2, 2), 4);
//! }
//! ```
//!
//! The program runs all of them in this order, or those that its arguments name. It prints a line for each,
//! which `./pebble test` understands, and ends with 1 if one failed. Logic that needs no portal is better
//! tested on the host, by `#[test]`.

use alloc::string::String;
use core::fmt::Write;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::sync::Lock;
use crate::{io, println};

/// Its name, and what it does.
pub type Test = (&'static str, fn());

/// The test that runs, if one does, and how often it has failed.
static RUNNING: Lock<&'static str> = Lock::new("");
static FAILURES: AtomicUsize = AtomicUsize::new(0);

/// The first failure of a test is told, in one line; it counts, whatever comes then.
pub fn failed(file: &str, line: u32, why: core::fmt::Arguments) {
    if FAILURES.fetch_add(1, Relaxed) == 0 {
        let mut text = String::new();
        let _ = write!(text, "{why}");
        println!("@test FAILED {}: {file}:{line}: {}", *RUNNING.lock(), text.replace(['\n', '\r'], " "));
    }
}

/// The program's exit status.
pub fn run(tests: &[Test]) -> i64 {
    let (mut count, mut bad) = (0, 0);
    for (name, test) in tests {
        if io::args().count() > 1 && !io::args().skip(1).any(|wanted| wanted == *name) {
            continue;
        }
        *RUNNING.lock() = name;
        FAILURES.store(0, Relaxed);
        test();
        count += 1;
        match FAILURES.load(Relaxed) {
            0 => println!("@test ok {name}"),
            _ => bad += 1,
        }
    }
    println!("@test end {count}");
    i64::from(bad > 0 || count == 0)
}

/// The program is these tests: functions without arguments.
#[macro_export]
macro_rules! tests {
    ($($test:ident),+ $(,)?) => {
        fn pebble_tests() -> i64 {
            $crate::test::run(&[$((stringify!($test), $test)),+])
        }
        $crate::program!(pebble_tests);
    };
}

/// In a test: says whether that holds.
#[macro_export]
macro_rules! expect {
    ($condition:expr) => {{
        let holds: bool = $condition;
        if !holds {
            $crate::test::failed(file!(), line!(), format_args!("{}", stringify!($condition)));
        }
        holds
    }};
}

/// In a test: says whether both are equal.
#[macro_export]
macro_rules! expect_eq {
    ($found:expr, $wanted:expr) => {{
        let (found, wanted) = (&$found, &$wanted);
        let same = *found == *wanted;
        if !same {
            let what = stringify!($found);
            $crate::test::failed(file!(), line!(), format_args!("{what} is {found:?}, not {wanted:?}"));
        }
        same
    }};
}
