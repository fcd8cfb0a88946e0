//! Portals, the calls through them, and what they say when they have no value; memory that is lent with a
//! call.

use super::{boxed, fail, free, guarded, number, pbl_error, text};
use crate::deadline::Limit;
use crate::fault::{self, CallError};
use crate::instance::Instance;
use crate::portal::{Entry, Outcome, Portal};
use crate::region::Region;
use crate::stage::Lent;
use crate::thread::status;
use crate::window::Extent;
use std::ffi::{CString, c_char, c_int, c_void};
use std::time::Duration;

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

impl From<CLimit> for Limit {
    fn from(limit: CLimit) -> Limit {
        let time = |us: u64| (us != 0).then(|| Duration::from_micros(us));
        Limit { clock: time(limit.clock), processor: time(limit.processor) }
    }
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
        portal.pass_within(limit.into(), words)
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

// The header's numbers are the crate's.
const _: () = assert!(
    status::FAULT == 1
        && status::NO_STACK == 2
        && status::NOT_LENT == 3
        && status::REENTERED == 4
        && status::NO_CLOCK == 5
);
const _: () = assert!(size_of::<CFault>() == 40 + 128 + 128 + 256 + 512 + 8);
