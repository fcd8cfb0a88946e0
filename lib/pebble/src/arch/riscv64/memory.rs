//! Copies of whole words.

use core::arch::asm;

/// Words in a turn of the loop.
const TURN: usize = 16;

/// Copies so many words up, as instructions that no compiler sees: somebody else may change both meanwhile.
///
/// # Safety
/// Both addresses are multiples of 8. What is written is nothing that a reference is to.
pub unsafe fn copy(from: u64, to: u64, words: usize) {
    let (mut at, mut there) = (from, to);
    let end = from + (words / TURN * TURN * 8) as u64;
    if at != end {
        // SAFETY: as the caller promises; the loop ends at the last whole turn.
        unsafe {
            asm!(
                "1:",
                "ld {a}, 0({at})", "ld {b}, 8({at})", "ld {c}, 16({at})", "ld {d}, 24({at})",
                "ld {e}, 32({at})", "ld {f}, 40({at})", "ld {g}, 48({at})", "ld {h}, 56({at})",
                "sd {a}, 0({to})", "sd {b}, 8({to})", "sd {c}, 16({to})", "sd {d}, 24({to})",
                "sd {e}, 32({to})", "sd {f}, 40({to})", "sd {g}, 48({to})", "sd {h}, 56({to})",
                "ld {a}, 64({at})", "ld {b}, 72({at})", "ld {c}, 80({at})", "ld {d}, 88({at})",
                "ld {e}, 96({at})", "ld {f}, 104({at})", "ld {g}, 112({at})", "ld {h}, 120({at})",
                "sd {a}, 64({to})", "sd {b}, 72({to})", "sd {c}, 80({to})", "sd {d}, 88({to})",
                "sd {e}, 96({to})", "sd {f}, 104({to})", "sd {g}, 112({to})", "sd {h}, 120({to})",
                "addi {at}, {at}, 128",
                "addi {to}, {to}, 128",
                "bne {at}, {end}, 1b",
                at = inout(reg) at, to = inout(reg) there, end = in(reg) end,
                a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _,
                e = out(reg) _, f = out(reg) _, g = out(reg) _, h = out(reg) _,
                options(nostack)
            );
        }
    }
    for word in 0..words as u64 % TURN as u64 {
        // SAFETY: as above.
        unsafe {
            ((there + word * 8) as *mut u64).write_volatile(((at + word * 8) as *const u64).read_volatile())
        };
    }
}
