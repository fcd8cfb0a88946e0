//! Policies, and programs that run under them.

use super::call::CLimit;
use super::{fail, free, guarded, number, text};
use crate::deadline::Limit;
use crate::error::Error;
use crate::policy::Policy;
use crate::run::run;
use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

#[unsafe(no_mangle)]
pub extern "C" fn pbl_policy_new() -> *mut Arc<Policy> {
    guarded(|| Box::into_raw(Box::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_policy_free(policy: *mut Arc<Policy>) {
    guarded(|| {
        // SAFETY: the header's contract.
        unsafe { free(policy) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_policy_fence(policy: &mut Arc<Policy>) {
    guarded(|| {
        change(policy, |p| Ok(p.fence()));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_policy_variable(policy: &mut Arc<Policy>, variable: *const c_char) -> c_int {
    guarded(|| {
        // SAFETY: the header's contract.
        let variable = unsafe { text(variable) };
        change(policy, |p| Ok(p.variable(variable)))
    })
}

/// The pointers are as the header says.
unsafe fn run_program(
    file: *const c_char,
    arguments: *const *const c_char,
    policy: &Arc<Policy>,
    limit: Limit,
) -> c_int {
    let mut words = Vec::new();
    // SAFETY: the header's contract: texts, and NULL behind the last.
    let file = unsafe {
        while !(*arguments.add(words.len())).is_null() {
            words.push(text(*arguments.add(words.len())).to_string());
        }
        text(file)
    };
    run(Path::new(file), &words, policy.clone(), limit).unwrap_or_else(|error| {
        fail(error);
        -1
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_run(
    file: *const c_char,
    arguments: *const *const c_char,
    policy: &Arc<Policy>,
    us: u64,
) -> c_int {
    guarded(|| {
        let time = (us != 0).then(|| Duration::from_micros(us));
        // SAFETY: the header's contract.
        unsafe { run_program(file, arguments, policy, time.into()) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_run_limited(
    file: *const c_char,
    arguments: *const *const c_char,
    policy: &Arc<Policy>,
    limit: CLimit,
) -> c_int {
    guarded(|| {
        // SAFETY: the header's contract.
        unsafe { run_program(file, arguments, policy, limit.into()) }
    })
}

/// Changes a policy that no instance has yet.
fn change(policy: &mut Arc<Policy>, with: impl FnOnce(Policy) -> Result<Policy, std::io::Error>) -> c_int {
    let Some(own) = Arc::get_mut(policy) else {
        fail(Error::Busy);
        return -1;
    };
    number(with(std::mem::take(own)).map(|changed| *own = changed))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_policy_directory(
    policy: &mut Arc<Policy>,
    name: *const c_char,
    path: *const c_char,
    writable: c_int,
) -> c_int {
    guarded(|| {
        // SAFETY: the header's contract.
        let (name, path) = unsafe { (text(name), text(path)) };
        change(policy, |p| p.directory(name, Path::new(path), writable != 0))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_policy_standard_files(policy: &mut Arc<Policy>) {
    guarded(|| {
        change(policy, |p| Ok(Policy { standard: [true; 3], ..p }));
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_policy_memory(policy: &mut Arc<Policy>, bytes: u64) {
    guarded(|| {
        change(policy, |p| Ok(p.memory(bytes)));
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_policy_allow(policy: &mut Arc<Policy>, what: *const c_char) -> c_int {
    guarded(|| {
        // SAFETY: the header's contract.
        let what = unsafe { text(what) };
        change(policy, |p| p.allow(what))
    })
}
