//! The heap: a first-fit allocator that grows by `sbrk`.
//!
//! Its lock needs no semaphore, since servers allocate before, and while, semaphores are made: who finds it
//! taken sleeps a little.

use crate::link::More;
use crate::process::Lazy;
use crate::sync::section;
use crate::{api, portal};
use core::alloc::{GlobalAlloc, Layout};
use core::cell::UnsafeCell;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, Ordering};
use linked_list_allocator::Heap;

const PAGE: u64 = pebble_abi::map::PAGE;
const GROW: usize = 16 * 1024;

/// Ticks to sleep when the heap is in use.
const PATIENCE: u64 = portal::MILLISECOND / 20;

struct Allocator {
    taken: AtomicBool,
    heap: UnsafeCell<Counted>,
}

struct Counted {
    heap: Heap,
    /// Allocations that nobody has freed yet.
    live: u64,
}

#[global_allocator]
static ALLOCATOR: Allocator = Allocator {
    taken: AtomicBool::new(false),
    heap: UnsafeCell::new(Counted { heap: Heap::empty(), live: 0 }),
};

// SAFETY: the heap is reached only through `with`.
unsafe impl Sync for Allocator {}

impl Allocator {
    fn with<R>(&self, work: impl FnOnce(&mut Counted) -> R) -> R {
        section::enter();
        while self.taken.swap(true, Ordering::Acquire) {
            let _ = api::hrsleep(portal::time() + PATIENCE);
        }
        // SAFETY: `taken` was false, so no other thread is here.
        let result = work(unsafe { &mut *self.heap.get() });
        self.taken.store(false, Ordering::Release);
        section::leave();
        result
    }
}

/// Runs `work` with a fresh page above the heap, which is gone afterwards, if `work` has not moved it
/// elsewhere already. The heap does not grow meanwhile. The page's memory is not the heap's.
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

/// Allocations that nobody has freed yet, their bytes, and the bytes of the heap, which does not shrink: a
/// leak shows in the first, a peak that has passed only in the last.
pub fn usage() -> [u64; 3] {
    ALLOCATOR.with(|counted| [counted.live, counted.heap.used() as u64, counted.heap.size() as u64])
}

static TOLD: [(&str, Lazy); 6] = [
    ("portal-manager", Lazy::new("heap.portal-manager")),
    ("name", Lazy::new("heap.name")),
    ("file", Lazy::new("heap.file")),
    ("pipe", Lazy::new("heap.pipe")),
    ("process", Lazy::new("heap.process")),
    ("capability", Lazy::new("heap.capability")),
];

/// What servers tell of their heaps, by name; those that are not in this system are left out.
pub fn told() -> impl Iterator<Item = (&'static str, [u64; 3])> {
    TOLD.iter().filter_map(|(name, service)| match portal::call_wide(service.index().ok()?, [0; 5]) {
        Ok((0, [live, bytes, size, _])) => Some((*name, [live, bytes, size])),
        _ => None,
    })
}

/// Of all servers that tell: allocations that nobody has freed yet, and the pages of their heaps.
pub fn told_in_all() -> [u64; 2] {
    told().fold([0; 2], |[all, pages], (_, [live, _, size])| [all + live, pages + size.div_ceil(PAGE)])
}

/// The entry `heap.X` of a server whose description says that it has a heap: [`usage`], for `mem --live`.
#[doc(hidden)]
#[inline]
pub extern "C" fn heap_usage(_: u64, _: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    let [live, bytes, size] = usage();
    *more = [live, bytes, size, 0];
    0
}

/// A block that has a page or more begins with one, so that it can be lent without what lies beside it.
#[inline(never)]
fn placed(layout: Layout) -> Layout {
    match PAGE as usize {
        page if layout.size() >= page => layout.align_to(page).unwrap_or(layout),
        _ => layout,
    }
}

// SAFETY: all state is behind `with`; memory comes from `sbrk`, which never hands out a byte twice.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let layout = placed(layout);
        self.with(|Counted { heap, live }| {
            loop {
                if let Ok(block) = heap.allocate_first_fit(layout) {
                    *live += 1;
                    return block.as_ptr();
                }
                let grow = (layout.size() + layout.align() + 64).next_multiple_of(GROW);
                let Ok(start) = api::sbrk(grow as i64) else { return null_mut() };
                // SAFETY: `sbrk` returned `grow` fresh bytes that follow what the heap has; the first are its
                // beginning.
                unsafe {
                    if heap.size() == 0 { heap.init(start as *mut u8, grow) } else { heap.extend(grow) }
                }
            }
        })
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some(block) = NonNull::new(block) {
            self.with(|Counted { heap, live }| {
                *live -= 1;
                // SAFETY: the caller got `block` from `alloc` with this layout.
                unsafe { heap.deallocate(block, placed(layout)) }
            });
        }
    }
}
