//! Memory of the process that is lent for one call, wherever it lies: what is in a region is lent itself, the
//! rest through a copy.
//!
//! Problem: a typed binding gets a slice or a pointer and cannot know where it came from. Strategy: [`Lent`]
//! gives the word for the portal; a copy lies in a region out of a pool, and goes back to its owner when the
//! loan ends. A copy shows nothing else: the rest of its last page is zero, and only the pages that it fills
//! are lent.

use crate::fault::CallError;
use crate::instance::lock;
use crate::layout::PAGE;
use crate::region::{self, Region};
use std::ffi::CStr;
use std::marker::PhantomData;
use std::sync::Mutex;

/// Regions that wait for the next copy, at most so many.
static POOL: Mutex<Vec<Region>> = Mutex::new(Vec::new());
const MOST: usize = 32;

/// Numbers without padding, of which every bit pattern is one.
pub trait Plain: Copy + private::Sealed {}

mod private {
    pub trait Sealed {}
}

macro_rules! plain {
    ($($number:ty)*) => { $(impl private::Sealed for $number {} impl Plain for $number {})* };
}

plain!(u8 i8 u16 i16 u32 i32 u64 i64 usize isize f32 f64);

/// A loan, until it is dropped.
pub struct Lent<'a> {
    word: u64,
    copy: Option<Copied>,
    memory: PhantomData<&'a mut [u8]>,
}

struct Copied {
    region: Region,
    /// What was copied, and whether it comes back.
    own: *mut u8,
    bytes: usize,
    back: bool,
}

impl<'a> Lent<'a> {
    /// For an `r` window.
    pub fn read<T: Plain>(memory: &'a [T]) -> Result<Lent<'a>, CallError> {
        // SAFETY: the slice stays borrowed for the loan, and is only read.
        unsafe { Lent::raw(memory.as_ptr().cast_mut().cast(), size_of_val(memory), false) }
    }

    /// For a `w` window.
    pub fn write<T: Plain>(memory: &'a mut [T]) -> Result<Lent<'a>, CallError> {
        // SAFETY: the slice stays borrowed for the loan, alone; whatever bytes come back are numbers.
        unsafe { Lent::raw(memory.as_mut_ptr().cast(), size_of_val(memory), true) }
    }

    /// For an `r` window that ends with a text's NUL.
    pub fn text(text: &'a CStr) -> Result<Lent<'a>, CallError> {
        Lent::read(text.to_bytes_with_nul())
    }

    /// # Safety
    /// So many bytes may be read (and with `back` written) while the loan lasts.
    pub unsafe fn raw(own: *mut u8, bytes: usize, back: bool) -> Result<Lent<'a>, CallError> {
        let address = own as u64;
        let inside =
            region::find(address).is_some_and(|pages| bytes as u64 <= pages.at + pages.bytes - address);
        if inside {
            return Ok(Lent { word: address, copy: None, memory: PhantomData });
        }
        if own.is_null() && bytes > 0 {
            return Err(CallError::NotLent);
        }
        let region = take(bytes)?;
        let room = bytes.max(1).next_multiple_of(PAGE as usize);
        let to = region.address() as *mut u8;
        // SAFETY: the region has `room` bytes, and is nobody else's now; the source is as the caller says.
        unsafe {
            if bytes > 0 {
                std::ptr::copy_nonoverlapping(own, to, bytes);
            }
            std::ptr::write_bytes(to.add(bytes), 0, room - bytes);
        }
        let copy = Some(Copied { region, own, bytes, back });
        Ok(Lent { word: to as u64, copy, memory: PhantomData })
    }

    /// What the portal takes.
    pub fn word(&self) -> u64 {
        self.word
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        let Some(Copied { region, own, bytes, back }) = self.copy.take() else { return };
        if back && bytes > 0 {
            // SAFETY: the owner's bytes, by `raw`'s contract, and the copy's, which no call has any more.
            unsafe { std::ptr::copy_nonoverlapping(region.address() as *const u8, own, bytes) };
        }
        let mut pool = lock(&POOL);
        if pool.len() < MOST {
            pool.push(region);
        }
    }
}

/// The smallest region that will do, or a new one.
fn take(bytes: usize) -> Result<Region, CallError> {
    let mut pool = lock(&POOL);
    let fits = pool.iter().enumerate().filter(|(_, region)| region.len() >= bytes);
    let place = fits.min_by_key(|(_, region)| region.len()).map(|(place, _)| place);
    match place {
        Some(place) => Ok(pool.swap_remove(place)),
        None => {
            drop(pool);
            let room = bytes.max(1).checked_next_power_of_two().ok_or(CallError::NotLent)?;
            Region::new(room).map_err(|_| CallError::NotLent)
        }
    }
}
