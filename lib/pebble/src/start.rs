//! Start of the first thread, and what happens on a panic.

use core::arch::global_asm;

global_asm!(
    ".section .text.start, \"ax\"",
    ".global _start",
    "_start:",
    "    call {main}",
    // The first thread returns to the gate like any callee: the bottom of its invocation stack ends it.
    "    li   t0, 0",
    "    ecall",
    main = sym main,
);

unsafe extern "Rust" {
    safe fn pebble_main() -> i64;
}

extern "C" fn main() {
    let status = pebble_main();
    crate::io::flush();
    if crate::io::is_program() {
        crate::api::exit(status);
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    crate::io::panic_message(info);
    // SAFETY: an illegal instruction on purpose: the fault report names the place, and the domain ends.
    unsafe { core::arch::asm!(".word {}", const pebble_arch::riscv64::regs::ABORT, options(noreturn)) }
}
