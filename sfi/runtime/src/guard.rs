//! Nothing unwinds out of this crate into code that cannot bear it: the host's in C, portal code, a domain's.
//!
//! Problem: a panic is a mistake of this crate's, but in a function of the C convention it ends the process.
//! Strategy: the body of each is run by [`guard`], and [`Failed`] says what the function answers then. It has
//! no effect in a process in which panics abort: so nothing that reads what is a module's may panic in the
//! first place, and tests change such bytes by the hundred thousand.

use crate::portal::{Entry, Outcome};
use crate::thread::status;
use std::ffi::{CStr, c_char, c_int};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;

/// None if it has panicked.
pub fn guard<T>(body: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(body)).ok()
}

/// What a function answers that has not come to its end.
pub trait Failed {
    fn failed() -> Self;
}

impl Failed for () {
    fn failed() {}
}

impl Failed for c_int {
    fn failed() -> c_int {
        -1
    }
}

impl Failed for u32 {
    fn failed() -> u32 {
        0
    }
}

impl Failed for u64 {
    fn failed() -> u64 {
        0
    }
}

impl<T> Failed for *mut T {
    fn failed() -> *mut T {
        null_mut()
    }
}

pub const PANICKED: &CStr =
    c"a mistake of this library's: it has panicked, and has said where on standard error";

impl Failed for *const c_char {
    fn failed() -> *const c_char {
        PANICKED.as_ptr()
    }
}

impl Failed for Outcome {
    fn failed() -> Outcome {
        Outcome { value: 0, status: status::NO_STACK }
    }
}

impl Failed for Entry {
    fn failed() -> Entry {
        extern "C" fn nowhere(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64) -> Outcome {
            Outcome::failed()
        }
        nowhere
    }
}
