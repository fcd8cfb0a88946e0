//! Copies of whole words.

use core::arch::asm;

/// Bytes of a turn of the loop.
pub const TURN: u64 = 128;

/// Copies whole turns up, as instructions that no compiler sees: somebody else may change both meanwhile. Where
/// both sides have got to.
///
/// # Safety
/// The addresses are multiples of 8, and `end` is whole turns above `at`, at least one. What is written is
/// nothing that a reference is to.
pub unsafe fn copy_turns(mut at: u64, mut to: u64, end: u64) -> (u64, u64) {
    // SAFETY: as the caller promises; the loop ends at `end`.
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
            at = inout(reg) at, to = inout(reg) to, end = in(reg) end,
            a = out(reg) _, b = out(reg) _, c = out(reg) _, d = out(reg) _,
            e = out(reg) _, f = out(reg) _, g = out(reg) _, h = out(reg) _,
            options(nostack)
        );
    }
    (at, to)
}
