//! Start of the first thread, and what happens on a panic.

unsafe extern "Rust" {
    safe fn pebble_main() -> i64;
}

pub(crate) extern "C" fn main() {
    let status = pebble_main();
    crate::io::flush();
    if crate::io::is_program() {
        crate::api::exit(status);
    }
}

#[panic_handler]
fn panic(info: &core::panic::PanicInfo) -> ! {
    crate::io::panic_message(info);
    crate::arch::entry::abort()
}
