//! The C library: `include/pebble_host.h` over the crate.
//!
//! Every function takes pointers that this library gave out (or NULL where the header says so) and NUL-terminated texts; none unwinds.
#![allow(clippy::missing_safety_doc)]

use crate::deadline::Limit;
use crate::error::{Error, LoadError};
use crate::fault::{self, CallError};
use crate::guard::{Failed, PANICKED, guard};
use crate::imports::{Imports, Linked};
use crate::instance::{Instance, Shared};
use crate::module::Module;
use crate::policy::Policy;
use crate::portal::{Entry, Outcome, Portal};
use crate::region::Region;
use crate::run::run;
use crate::slots;
use crate::stage::Lent;
use crate::thread::status;
use crate::window::Extent;
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

#[unsafe(no_mangle)]
pub extern "C" fn pbl_instance_reset(instance: &Instance) -> c_int {
    guarded(|| number(instance.reset()))
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
pub unsafe extern "C" fn pbl_portal_open(
    i: &Instance,
    name: *const c_char,
    spec: *const c_char,
) -> *mut Portal {
    guarded(|| {
        // SAFETY: the header's contract.
        boxed(unsafe { i.portal(text(name), text(spec)) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_portal_open_with(
    i: &Instance,
    name: *const c_char,
    spec: *const c_char,
    constant: u64,
) -> *mut Portal {
    guarded(|| {
        // SAFETY: the header's contract.
        boxed(unsafe { i.portal_with(text(name), text(spec), constant) })
    })
}

/// `pbl_extent`.
#[repr(C)]
pub struct CExtent {
    argument: u32,
    count: u32,
    size: u64,
}

const BYTES: u32 = u32::MAX;
const TEXT: u32 = u32::MAX - 1;

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_portal_open_over(
    i: &Instance,
    name: *const c_char,
    spec: *const c_char,
    extents: *const CExtent,
    count: usize,
) -> *mut Portal {
    guarded(|| {
        // SAFETY: the header's contract: so many extents.
        let extents = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(extents, count) } };
        let extent = |e: &CExtent| match e.count {
            BYTES => Extent::bytes(e.argument as usize, e.size),
            TEXT => Extent::text(e.argument as usize),
            by => Extent::counted(e.argument as usize, by as usize, e.size),
        };
        let extents: Vec<Extent> = extents.iter().map(extent).collect();
        // SAFETY: the header's contract.
        boxed(unsafe { i.portal_over(text(name), text(spec), &extents) })
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_lend(memory: *mut u8, bytes: usize, writable: c_int) -> *mut Lent<'static> {
    guarded(|| {
        // SAFETY: the header's contract: so many bytes until `pbl_lent_end`.
        boxed(unsafe { Lent::raw(memory, bytes, writable != 0) })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_lent_word(lent: Option<&Lent>) -> u64 {
    guarded(|| lent.map_or(0, Lent::word))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_lent_end(lent: *mut Lent<'static>) {
    guarded(|| {
        // SAFETY: the header's contract.
        unsafe { free(lent) }
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_instance_text(i: &Instance, at: u64, to: *mut u8, room: usize) -> c_int {
    guarded(|| {
        let copy = |found: CString| {
            let bytes = found.as_bytes_with_nul();
            // SAFETY: the header's contract: `room` bytes, and the text is found within so many.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        };
        number(i.text(at, room).map(copy))
    })
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_portal_free(portal: *mut Portal) {
    guarded(|| {
        // SAFETY: the header's contract.
        unsafe { free(portal) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_portal_entry(portal: &Portal) -> Entry {
    guarded(|| portal.entry())
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_call_within(
    portal: &Portal,
    us: u64,
    words: *const u64,
    count: usize,
) -> Outcome {
    guarded(|| {
        // SAFETY: the header's contract: so many words.
        let words = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(words, count) } };
        portal.pass_within(Limit::clock(Duration::from_micros(us)), words)
    })
}

/// `pbl_limit`: microseconds, 0 for none.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct CLimit {
    clock: u64,
    processor: u64,
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_call_limited(
    portal: &Portal,
    limit: CLimit,
    words: *const u64,
    count: usize,
) -> Outcome {
    guarded(|| {
        // SAFETY: the header's contract: so many words.
        let words = if count == 0 { &[] } else { unsafe { std::slice::from_raw_parts(words, count) } };
        let time = |us: u64| (us != 0).then(|| Duration::from_micros(us));
        portal.pass_within(Limit { clock: time(limit.clock), processor: time(limit.processor) }, words)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_why(outcome: Outcome) -> *const c_char {
    guarded(|| {
        match outcome.status {
            status::OK => fail("the call has its value"),
            status::NO_STACK => fail(CallError::no_stack()),
            status::NOT_LENT => fail(CallError::NotLent),
            status::REENTERED => fail(CallError::Reentered),
            status::NO_CLOCK => fail(CallError::NoClock),
            _ => {
                fault::with_fault(|fault| fail(fault)).unwrap_or_else(|| fail("a fault that has been taken"))
            }
        }
        pbl_error()
    })
}

/// `pbl_fault`.
#[repr(C)]
pub struct CFault {
    cause: u32,
    signal: i32,
    instance: u32,
    line: u32,
    at: u64,
    address: u64,
    module: [u8; 128],
    function: [u8; 128],
    offset: u64,
    file: [u8; 256],
    text: [u8; 512],
    status: i32,
    _rest: u32,
}

/// As much as fits, with a NUL.
fn copied<const N: usize>(text: &str) -> [u8; N] {
    let mut out = [0; N];
    let bytes = text.as_bytes();
    let length = bytes.len().min(N - 1);
    out[..length].copy_from_slice(&bytes[..length]);
    out
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_fault_take(to: *mut CFault) -> c_int {
    guarded(|| {
        let Some(fault) = fault::take_fault() else { return 0 };
        let (file, line) = fault.line().unwrap_or_default();
        let (function, offset) = fault.function.clone().unwrap_or_default();
        let text = CallError::Fault(Box::new(fault.clone())).to_string();
        fail(&text);
        let made = CFault {
            cause: fault.cause as u32,
            signal: fault.signal,
            instance: fault.instance,
            line,
            at: fault.at,
            address: fault.address,
            module: copied(&fault.module.name),
            function: copied(&function),
            offset: offset.into(),
            file: copied(&file),
            text: copied(&text),
            status: fault.status.unwrap_or(0),
            _rest: 0,
        };
        // SAFETY: the header's contract: room for one, or NULL.
        if let Some(to) = unsafe { to.as_mut() } {
            *to = made;
        }
        1
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_region_new(bytes: usize) -> *mut Region {
    guarded(|| boxed(Region::new(bytes)))
}

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_region_free(region: *mut Region) {
    guarded(|| {
        // SAFETY: the header's contract.
        unsafe { free(region) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_region_address(region: &Region) -> *mut c_void {
    guarded(|| region.address() as *mut c_void)
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_region_share(region: &Region, instance: &Instance, writable: c_int) -> u64 {
    guarded(|| {
        region.share(instance, writable != 0).unwrap_or_else(|error| {
            fail(error);
            0
        })
    })
}

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

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_run(
    file: *const c_char,
    arguments: *const *const c_char,
    policy: &Arc<Policy>,
    us: u64,
) -> c_int {
    guarded(|| {
        let mut words = Vec::new();
        // SAFETY: the header's contract: texts, and NULL behind the last.
        let file = unsafe {
            while !(*arguments.add(words.len())).is_null() {
                words.push(text(*arguments.add(words.len())).to_string());
            }
            text(file)
        };
        let time = (us != 0).then(|| Duration::from_micros(us));
        run(Path::new(file), &words, policy.clone(), time).unwrap_or_else(|error| {
            fail(error);
            -1
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_name_instances() {
    guarded(|| {
        crate::debugger::name_instances();
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

#[unsafe(no_mangle)]
pub unsafe extern "C" fn pbl_handle_signal(signal: c_int, info: *mut c_void, context: *mut c_void) -> c_int {
    // SAFETY: the header's contract: the arguments of a signal handler.
    unsafe { fault::handle(signal, info.cast(), context) }.into()
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_leave_handlers_alone() {
    guarded(|| {
        fault::leave_handlers_alone();
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn pbl_segment_at_zero() {
    guarded(|| {
        slots::segment_at_zero();
    })
}

// The header's numbers are the crate's.
const _: () = assert!(
    status::FAULT == 1
        && status::NO_STACK == 2
        && status::NOT_LENT == 3
        && status::REENTERED == 4
        && status::NO_CLOCK == 5
);
const _: () = assert!(size_of::<CFault>() == 40 + 128 + 128 + 256 + 512 + 8);
