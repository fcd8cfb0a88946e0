//! The heap of C components: Doug Lea's allocator, as the Rust project keeps it, over `sbrk`.
//!
//! The C library's own is a list of free blocks that is searched from its beginning: with many of them, each
//! call costs thousands of instructions. Here a call's cost does not depend on their number, and a block at
//! the end of the heap grows where it is.
//!
//! `malloc.c` calls this with its lock held, and gives what comes back its C face: `errno`, null pointers,
//! overflowing products. Memory is never given back to the system.
#![cfg_attr(not(test), no_std)]

use core::cell::UnsafeCell;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use dlmalloc::{Allocator, Dlmalloc};
#[cfg(test)]
use tests::sbrk;

/// The heap grows by multiples of so many bytes, and by a part of what it is: so a large one asks seldom.
const GROW: usize = 16 * 1024;
const PART: usize = 8;
const PAGE: usize = 4096;
/// Alignment of every block.
const ALIGN: usize = 16;
/// What the allocator keeps behind the last block of the heap, at most.
const FOOT: usize = 256;
/// In the word below a block: its size is the rest, this word among it.
const FLAGS: usize = 7;
const IN_USE: usize = 2;

#[cfg(not(test))]
unsafe extern "C" {
    fn sbrk(bytes: isize) -> *mut u8;
    fn abort() -> !;
}

/// Fresh memory, which is zero.
struct Sbrk;

/// Where the heap ends, as long as nobody else has called `sbrk`.
static END: AtomicUsize = AtomicUsize::new(0);
/// What it has got so far.
static HELD: AtomicUsize = AtomicUsize::new(0);
/// If it is not 0, at least so much is granted, whatever is asked for.
static GRANT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: `sbrk` never hands out a byte twice, and nothing is given back.
unsafe impl Allocator for Sbrk {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        let grant = GRANT.swap(0, Relaxed);
        let least = if grant == 0 { size } else { grant };
        let held = HELD.load(Relaxed);
        for size in [least.max((held / PART).next_multiple_of(GROW)), least] {
            // SAFETY: any number of bytes is a question that has an answer.
            let start = unsafe { sbrk(size as isize) };
            if start as isize != -1 {
                END.store(start as usize + size, Relaxed);
                HELD.store(held + size, Relaxed);
                return (start, size, 0);
            }
        }
        (null_mut(), 0, 0)
    }

    fn remap(&self, _: *mut u8, _: usize, _: usize, _: bool) -> *mut u8 {
        null_mut()
    }

    fn free_part(&self, _: *mut u8, _: usize, _: usize) -> bool {
        false
    }

    fn free(&self, _: *mut u8, _: usize) -> bool {
        false
    }

    fn can_release_part(&self, _: u32) -> bool {
        false
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        4096
    }
}

struct Heap(UnsafeCell<Dlmalloc<Sbrk>>);

// SAFETY: `malloc.c` calls the functions below with its lock held.
unsafe impl Sync for Heap {}

static HEAP: Heap = Heap(UnsafeCell::new(
    const {
        let mut heap = Dlmalloc::new_with_allocator(Sbrk);
        assert!(heap.set_granularity(GROW));
        // There is nothing to release.
        heap.set_max_release_check_rate(0);
        heap
    },
));

/// A block of `size` bytes, or null.
///
/// # Safety
/// Here and below: the caller holds the heap's lock, and a block is what one of these functions returned and
/// nobody has freed since.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __heap_malloc(size: usize) -> *mut u8 {
    // Whole pages are lent as they are: a buffer of some begins with one.
    let align = if size != 0 && size.is_multiple_of(PAGE) { PAGE } else { ALIGN };
    // SAFETY: alone, by the lock.
    unsafe { (*HEAP.0.get()).c_memalign(align, size) }
}

/// The same, zeroed.
///
/// # Safety
/// [`__heap_malloc`]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __heap_calloc(size: usize) -> *mut u8 {
    // SAFETY: alone, by the lock.
    unsafe { (*HEAP.0.get()).calloc(size, ALIGN) }
}

/// The same, at a multiple of `align`, a power of two.
///
/// # Safety
/// [`__heap_malloc`]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __heap_memalign(align: usize, size: usize) -> *mut u8 {
    // SAFETY: alone, by the lock.
    unsafe { (*HEAP.0.get()).c_memalign(align, size) }
}

/// The block with another size, perhaps elsewhere; null, and the block as it was.
///
/// # Safety
/// [`__heap_malloc`]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __heap_realloc(block: *mut u8, size: usize) -> *mut u8 {
    // SAFETY: alone, by the lock; a block's room is followed by the next one's head.
    unsafe {
        let room = __heap_size(block);
        if size > room {
            extend(block.add(room).cast(), size - room);
        }
        (*HEAP.0.get()).c_realloc(block, size)
    }
}

/// If behind a block there is but the unused end of the heap, which begins with this head, sees to it that it
/// has `more` bytes: so the block grows where it is. The allocator would take fresh memory for all of it, and
/// copy. A request that nothing can satisfy makes it ask for memory, adds to the end what it gets (elsewhere,
/// if somebody else has called `sbrk`), and comes to nothing.
///
/// # Safety
/// The caller holds the heap's lock; `head` is that of a block, used or not.
unsafe fn extend(head: *const usize, more: usize) {
    const TOO_MUCH: usize = 1 << 40;
    // SAFETY: the caller's.
    let (start, head) = (head as usize - size_of::<usize>(), unsafe { *head });
    let rest = head & !FLAGS;
    let is_end = head & IN_USE == 0 && END.load(Relaxed).wrapping_sub(start + rest) < FOOT;
    if is_end && rest <= more + FOOT && more < TOO_MUCH {
        GRANT.store((more + FOOT).next_multiple_of(GROW), Relaxed);
        // SAFETY: alone, by the lock.
        unsafe { (*HEAP.0.get()).c_malloc(TOO_MUCH) };
        GRANT.store(0, Relaxed);
    }
}

/// # Safety
/// [`__heap_malloc`]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __heap_free(block: *mut u8) {
    // SAFETY: alone, by the lock.
    unsafe { (*HEAP.0.get()).c_free(block) }
}

/// Bytes that the block has room for; 0 for what is plainly no block in use: an address that no block has, or
/// one that is marked as free.
///
/// # Safety
/// The word below `block` can be read.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __heap_size(block: *const u8) -> usize {
    if !(block as usize).is_multiple_of(ALIGN) {
        return 0;
    }
    // SAFETY: the caller's.
    let head = unsafe { *block.cast::<usize>().sub(1) };
    if head & IN_USE == 0 { 0 } else { (head & !FLAGS) - size_of::<usize>() }
}

#[cfg(not(test))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: ends the program.
    unsafe { abort() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::{Layout, alloc_zeroed};
    use std::collections::BTreeMap;

    const MEMORY: usize = 64 << 20;
    static START: AtomicUsize = AtomicUsize::new(0);
    static USED: AtomicUsize = AtomicUsize::new(0);
    static CALLS: AtomicUsize = AtomicUsize::new(0);

    /// Out of one large piece, whose start is on no page.
    pub unsafe fn sbrk(bytes: isize) -> *mut u8 {
        if START.load(Relaxed) == 0 {
            // SAFETY: not empty.
            let start = unsafe { alloc_zeroed(Layout::from_size_align(MEMORY + 64, 64).unwrap()) };
            START.store(start as usize + 8, Relaxed);
        }
        CALLS.fetch_add(1, Relaxed);
        let used = USED.load(Relaxed);
        if used + bytes as usize > MEMORY {
            return usize::MAX as *mut u8;
        }
        USED.store(used + bytes as usize, Relaxed);
        (START.load(Relaxed) + used) as *mut u8
    }

    /// Blocks do not overlap, keep what is in them, have the room that they say, and are known as free when
    /// they are.
    #[test]
    fn blocks_keep_to_themselves() {
        let mut live = BTreeMap::<usize, (usize, u8)>::new();
        let mut random = 1u64;
        let mut next = |below: u64| {
            random = random.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (random >> 33) % below
        };
        for round in 0..20_000 {
            let size = if next(50) == 0 { next(200_000) } else { next(600) } as usize;
            let pick = live.keys().nth(next(live.len().max(1) as u64) as usize % live.len().max(1)).copied();
            // SAFETY: one thread; blocks are those in `live`.
            unsafe {
                let (block, fill) = match (next(5), pick) {
                    (0 | 1, Some(old)) if live.len() > 300 || round > 15_000 => {
                        let (size, fill) = live.remove(&old).unwrap();
                        assert!((0..size).all(|i| *((old + i) as *const u8) == fill));
                        __heap_free(old as *mut u8);
                        continue;
                    }
                    (2, Some(old)) => {
                        let (before, fill) = live.remove(&old).unwrap();
                        let block = __heap_realloc(old as *mut u8, size);
                        assert!((0..before.min(size)).all(|i| *block.add(i) == fill));
                        (block, fill)
                    }
                    (3, _) => (__heap_memalign(1 << next(10), size), round as u8),
                    (4, _) => {
                        let block = __heap_calloc(size);
                        assert!((0..size).all(|i| *block.add(i) == 0));
                        (block, round as u8)
                    }
                    _ => (__heap_malloc(size), round as u8),
                };
                let room = __heap_size(block);
                assert!(!block.is_null() && room >= size, "{size}, but room for {room}");
                let (address, end) = (block as usize, block as usize + room);
                assert!(
                    live.range(..end).next_back().is_none_or(|(other, (size, _))| other + size <= address)
                );
                block.write_bytes(fill, room);
                live.insert(address, (room, fill));
            }
        }
        // SAFETY: as above.
        unsafe {
            // One that is the last grows where it is, stays within what it takes, and asks seldom.
            let (mut block, mut moves, used) = (__heap_malloc(300_000), 0, USED.load(Relaxed));
            CALLS.store(0, Relaxed);
            for size in (300_000..8 << 20).step_by(4096) {
                let grown = __heap_realloc(block, size);
                moves += usize::from(grown != block);
                block = grown;
                *block.add(size - 1) = 1;
            }
            assert!(moves <= 1 && USED.load(Relaxed) - used < 9 << 20, "{moves}");
            assert!(CALLS.load(Relaxed) < 40, "{CALLS:?}");
            // Not where somebody else has got what follows.
            let theirs = sbrk(100);
            theirs.write_bytes(0x77, 100);
            let room = __heap_size(block);
            block.write_bytes(0x55, room);
            block = __heap_realloc(block, 10 << 20);
            assert!((0..room).all(|i| *block.add(i) == 0x55));
            block.write_bytes(0x66, 10 << 20);
            assert!((0..100).all(|i| *theirs.add(i) == 0x77));
            __heap_free(block);
            let (first, _) = (__heap_malloc(5000), __heap_malloc(16));
            __heap_free(first);
            assert_eq!((__heap_size(first), __heap_size(first.add(8))), (0, 0));
            assert!(__heap_malloc(MEMORY).is_null(), "more than there is");
            // The last of it too, when an eighth more is not there.
            while !__heap_malloc(40_000).is_null() {}
            assert!(USED.load(Relaxed) > MEMORY - 60_000);
        }
    }
}
