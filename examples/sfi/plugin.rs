//! The plugin of `plugin.c` in Rust, with a bug that Rust finds: it panics, and the host survives that too.
#![no_std]

use core::arch::{asm, global_asm};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

// What is exported, with the portals' specifications. `--export NAME=SPEC` does the same.
global_asm!(
    ".pushsection .pbl.export,\"\",@progbits",
    ".asciz \"sum_of_squares=smi\"",
    ".asciz \"brighten=smwii\"",
    ".asciz \"crash=smi\"",
    ".asciz \"hang=sm\"",
    ".popsection",
);

static CALLS: AtomicU64 = AtomicU64::new(0);
static TABLE: [u64; 4] = [2, 3, 5, 7];

#[unsafe(no_mangle)]
pub extern "C" fn sum_of_squares(n: u64) -> u64 {
    CALLS.fetch_add(1, Relaxed);
    (1..=n).map(|i| i * i).sum()
}

/// Brightens pixels that the host lends it.
///
/// # Safety
/// So many pixels are lent.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn brighten(pixels: *mut u8, count: usize, by: u64) -> usize {
    // SAFETY: as said above; were it wrong, the module's own memory would be all that it costs.
    let pixels = unsafe { core::slice::from_raw_parts_mut(pixels, count) };
    pixels.iter_mut().for_each(|p| *p = (*p as u64 + by).min(255) as u8);
    count
}

/// The bug: `which` less one, and not checked.
#[unsafe(no_mangle)]
pub extern "C" fn crash(which: usize) -> u64 {
    TABLE[which.wrapping_sub(1)]
}

/// And it hangs.
#[unsafe(no_mangle)]
pub extern "C" fn hang() -> u64 {
    loop {
        CALLS.fetch_add(1, Relaxed);
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    // SAFETY: it ends the call with a fault.
    unsafe { asm!("ud2", options(noreturn)) }
}
