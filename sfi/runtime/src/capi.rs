//! The C library: `include/pebble_host.h` over the crate. Here are modules and instances, [`call`] has
//! portals and faults, [`policy`] what programs may do.
//!
//! Every function takes pointers that this library gave out (or NULL where the header says so) and
//! NUL-terminated texts; none unwinds.
#![allow(clippy::missing_safety_doc)]

mod call;
mod policy;

use crate::error::LoadError;
use crate::guard::{Failed, PANICKED, guard};
use crate::imports::{Imports, Linked};
use crate::instance::{Instance, Shared};
use crate::module::Module;
use crate::policy::Policy;
use crate::{slots, trap};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr::null_mut;
use std::sync::Arc;
use std::time::Duration;

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

fn fail(error: impl std::fmt::Display) {
    let text = error.to_string().replace('\0', " ");
    ERROR.with(|e| *e.borrow_mut() = CString::new(text).unwrap_or_default());
}

fn boxed<T>(made: Result<T, impl std::fmt::Display>) -> *mut T {
    made.map_or_else(
        |error| {
            fail(error);
            null_mut()
        },
        |made| Box::into_raw(Box::new(made)),
    )
}

fn number(done: Result<(), impl std::fmt::Display>) -> c_int {
    done.map_or_else(
        |error| {
            fail(error);
            -1
        },
        |()| 0,
    )
}

/// Every function's body, but for the signal handler's, which runs nothing that could panic.
fn guarded<T: Failed>(body: impl FnOnce() -> T) -> T {
    guard(body).unwrap_or_else(|| {
        let _ = guard(|| fail(PANICKED.to_string_lossy()));
        T::failed()
    })
}

/// A text of the caller's; NULL is empty.
unsafe fn text<'a>(text: *const c_char) -> &'a str {
    if text.is_null() {
        return "";
    }
    // SAFETY: by the header's contract, NUL-terminated.
    unsafe { CStr::from_ptr(text) }.to_str().unwrap_or("\u{fffd}")
}

/// Frees what [`boxed`] made.
unsafe fn free<T>(made: *mut T) {
    if !made.is_null() {
        // SAFETY: by the header's contract a pointer that `boxed` gave, once.
        drop(unsafe { Box::from_raw(made) });
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_error() -> *const c_char {
    guarded(|| ERROR.with(|e| e.borrow().as_ptr()))
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_imports_new() -> *mut Imports {
    guarded(|| Box::into_raw(Box::default()))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_imports_free(imports: *mut Imports) {
    guarded(|| {
        // SAFETY: as for every function here, the header's contract.
        unsafe { free(imports) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_imports_add(
    imports: &mut Imports,
    name: *const c_char,
    spec: *const c_char,
    function: *const c_void,
    constant: u64,
) -> c_int {
    guarded(|| {
        // SAFETY: the header's contract.
        number(unsafe { imports.function(text(name), text(spec), function.cast(), constant) })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_imports_add_system_calls(imports: &mut Imports) -> c_int {
    guarded(|| number(imports.system_calls()))
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_imports_be_lenient(imports: &mut Imports) {
    guarded(|| {
        imports.lenient = true;
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_imports_demand_full(imports: &mut Imports) {
    guarded(|| imports.full = true);
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_imports_demand_no_timer(imports: &mut Imports) {
    guarded(|| imports.no_timer = true);
}

fn link(module: Result<Arc<Module>, LoadError>, imports: Option<&Imports>) -> *mut Arc<Linked> {
    match module {
        Ok(module) => boxed(imports.unwrap_or(&Imports::new()).link(&module)),
        Err(error) => boxed::<Arc<Linked>>(Err(error)),
    }
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_module_open(path: *const c_char, imports: Option<&Imports>) -> *mut Arc<Linked> {
    guarded(|| {
        // SAFETY: the header's contract.
        link(Module::open(Path::new(unsafe { text(path) })), imports)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_module_load(
    name: *const c_char,
    bytes: *const u8,
    length: usize,
    imports: Option<&Imports>,
) -> *mut Arc<Linked> {
    guarded(|| {
        // SAFETY: the header's contract: `length` bytes.
        let (name, bytes) = unsafe { (text(name), std::slice::from_raw_parts(bytes, length)) };
        link(Module::load(name, bytes.to_vec()), imports)
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_module_free(module: *mut Arc<Linked>) {
    guarded(|| {
        // SAFETY: the header's contract.
        unsafe { free(module) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_instance_new(module: &Arc<Linked>) -> *mut Instance {
    guarded(|| boxed(Instance::new(module)))
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_instance_new_within(module: &Arc<Linked>, us: u64) -> *mut Instance {
    guarded(|| boxed(Instance::new_within(module, Duration::from_micros(us))))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_instance_free(instance: *mut Instance) {
    guarded(|| {
        // SAFETY: the header's contract.
        unsafe { free(instance) }
    })
}

/// Where its caller's frame begins says which calls that one has left.
#[unsafe(naked)]
#[unsafe(no_mangle)]
pub extern "C" fn pbl_instance_reset(instance: &Instance) -> c_int {
    std::arch::naked_asm!("lea rsi, [rsp + 8]", "jmp {reset}", reset = sym reset_from)
}

extern "C" fn reset_from(instance: &Instance, at: u64) -> c_int {
    guarded(|| number(instance.reset_from(at)))
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_instance_cancel(instance: &Instance) {
    guarded(|| {
        instance.cancel();
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_instance_poisoned(instance: &Instance) -> c_int {
    guarded(|| instance.poisoned().map_or(0, |cause| cause as c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_instance_number(instance: &Instance) -> u32 {
    guarded(|| instance.number())
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_caller_number(caller: &Shared) -> u32 {
    guarded(|| caller.number)
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_instance_base(instance: &Instance) -> u64 {
    guarded(|| instance.base())
}

unsafe fn read(shared: &Shared, at: u64, to: *mut u8, bytes: usize) -> c_int {
    // SAFETY: the header's contract: room for so many bytes.
    number(shared.read(at, unsafe { std::slice::from_raw_parts_mut(to, bytes) }))
}

unsafe fn write(shared: &Shared, at: u64, from: *const u8, bytes: usize) -> c_int {
    // SAFETY: the header's contract: so many bytes.
    number(shared.write(at, unsafe { std::slice::from_raw_parts(from, bytes) }))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_instance_read(i: &Instance, at: u64, to: *mut u8, bytes: usize) -> c_int {
    guarded(|| {
        // SAFETY: the header's contract.
        unsafe { read(&i.shared, at, to, bytes) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_instance_write(i: &Instance, at: u64, from: *const u8, bytes: usize) -> c_int {
    guarded(|| {
        // SAFETY: the header's contract.
        unsafe { write(&i.shared, at, from, bytes) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_caller_read(caller: &Shared, at: u64, to: *mut u8, bytes: usize) -> c_int {
    guarded(|| {
        // SAFETY: the header's contract.
        unsafe { read(caller, at, to, bytes) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_caller_write(caller: &Shared, at: u64, from: *const u8, bytes: usize) -> c_int {
    guarded(|| {
        // SAFETY: the header's contract.
        unsafe { write(caller, at, from, bytes) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_instance_grant(instance: &Instance, policy: &Arc<Policy>) -> c_int {
    guarded(|| number(instance.granted(policy, 0)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_instance_connect(
    instance: &Instance,
    import: *const c_char,
    to: &Instance,
    export: *const c_char,
    spec: *const c_char,
) -> c_int {
    guarded(|| {
        // SAFETY: the header's contract.
        unsafe { number(instance.connect(text(import), to, text(export), text(spec))) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_name_instances() {
    guarded(|| {
        crate::debugger::name_instances();
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_handle_signal(signal: c_int, info: *mut c_void, context: *mut c_void) -> c_int {
    // SAFETY: the header's contract: the arguments of a signal handler.
    unsafe { trap::handle(signal, info.cast(), context) }.into()
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_leave_handlers_alone() {
    guarded(|| {
        trap::leave_handlers_alone();
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_segment_at_zero() {
    guarded(|| {
        slots::segment_at_zero();
    })
}
