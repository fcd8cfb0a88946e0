//! The heap: a first-fit allocator that grows by `sbrk`.
//!
//! Its lock needs no semaphore, since servers allocate before, and while, semaphores are made: who finds it taken sleeps a little.

use crate::{api, portal};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, Ordering};
use linked_list_allocator::Heap;

const PAGE: u64 = pebble_abi::map::PAGE;
const GROW: usize = 16 * 1024;

/// Ticks to sleep when the heap is in use.
const PATIENCE: u64 = 500;

struct Allocator {
    taken: AtomicBool,
    heap: UnsafeCell<Heap>,
}

#[global_allocator]
static ALLOCATOR: Allocator =
    Allocator { taken: AtomicBool::new(false), heap: UnsafeCell::new(Heap::empty()) };

// SAFETY: the heap is reached only through `with`.
unsafe impl Sync for Allocator {}

impl Allocator {
    fn with<R>(&self, work: impl FnOnce(&mut Heap) -> R) -> R {
        while self.taken.swap(true, Ordering::Acquire) {
            let _ = api::hrsleep(portal::time() + PATIENCE);
        }
        // SAFETY: `taken` was false, so no other thread is here.
        let result = work(unsafe { &mut *self.heap.get() });
        self.taken.store(false, Ordering::Release);
        result
    }
}

/// Runs `work` with a fresh page above the heap, which is gone afterwards, if `work` has not moved it elsewhere already. The heap does not
/// grow meanwhile. The page's memory is not the heap's.
pub(crate) fn with_page<R>(work: impl FnOnce(u64) -> Result<R, api::Errno>) -> Result<R, api::Errno> {
    ALLOCATOR.with(|_| {
        let end = api::sbrk(0)?;
        let page = end.next_multiple_of(PAGE);
        let more = (page + PAGE - end) as i64;
        api::sbrk(more)?;
        let result = work(page);
        api::sbrk(-more)?;
        result
    })
}

// SAFETY: all state is behind `with`; memory comes from `sbrk`, which never hands out a byte twice.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        self.with(|heap| {
            loop {
                if let Ok(block) = heap.allocate_first_fit(layout) {
                    return block.as_ptr();
                }
                let grow = (layout.size() + layout.align() + 64).next_multiple_of(GROW);
                let Ok(start) = api::sbrk(grow as i64) else { return null_mut() };
                // SAFETY: `sbrk` returned `grow` fresh bytes that follow what the heap has; the first are its beginning.
                unsafe {
                    if heap.size() == 0 { heap.init(start as *mut u8, grow) } else { heap.extend(grow) }
                }
            }
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some(block) = NonNull::new(block) {
            // SAFETY: the caller got `block` from `alloc` with this layout.
            self.with(|heap| unsafe { heap.deallocate(block, layout) });
        }
    }
}
