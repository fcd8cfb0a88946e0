//! The Pebble nucleus: all code that runs privileged and is not generated.
//!
//! It boots, and it turns each trap into a jump through the running domain's portal table. It has no
//! scheduler, no allocator, no driver, no data: thread blocks, tables and portal code are laid out by the
//! image builder and kept by servers.
#![no_std]
#![no_main]

mod arch {
    #[cfg(target_arch = "mips64")]
    pub mod mips64;
    #[cfg(target_arch = "riscv64")]
    pub mod riscv64;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}
