//! The heap: a first-fit allocator that grows by `sbrk`, under a lock.

use crate::{api, sync::Lock};
use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{NonNull, null_mut};
use linked_list_allocator::Heap;

const GROW: usize = 16 * 1024;

struct Allocator(Lock<Heap>);

#[global_allocator]
static ALLOCATOR: Allocator = Allocator(Lock::new(Heap::empty()));

// SAFETY: all state is behind the lock; memory comes from `sbrk`, which never hands out a byte twice.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let mut heap = self.0.lock();
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
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some(block) = NonNull::new(block) {
            // SAFETY: the caller got `block` from `alloc` with this layout.
            unsafe { self.0.lock().deallocate(block, layout) }
        }
    }
}
