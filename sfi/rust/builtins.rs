//! Stands for `compiler_builtins`, which every crate names: the functions of that crate are in the C library
//! of fault domains. Here is only what the compiler would make when it links, if it did.
#![feature(compiler_builtins, rustc_attrs)]
#![compiler_builtins]
#![no_std]

#[rustc_std_internal_symbol]
fn __rust_no_alloc_shim_is_unstable_v2() {}

#[rustc_std_internal_symbol]
fn __rust_alloc_error_handler(size: usize, _align: usize) -> ! {
    panic!("memory allocation of {size} bytes failed")
}
