//! A program with `alloc`, on the C library's memory: formats, sorts and grows, divides in 128 bits.
#![no_std]
#![no_main]
extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use alloc::{format, vec};
use core::alloc::{GlobalAlloc, Layout};

unsafe extern "C" {
    fn aligned_alloc(align: usize, size: usize) -> *mut u8;
    fn free(at: *mut u8);
    fn write(file: i32, from: *const u8, bytes: usize) -> isize;
    fn abort() -> !;
}

struct Memory;

unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        unsafe { aligned_alloc(layout.align().max(16), layout.size()) }
    }
    unsafe fn dealloc(&self, at: *mut u8, _: Layout) {
        unsafe { free(at) }
    }
}

#[global_allocator]
static MEMORY: Memory = Memory;

fn say(text: &str) {
    unsafe { write(1, text.as_ptr(), text.len()) };
}

#[panic_handler]
fn panic(why: &core::panic::PanicInfo) -> ! {
    say(&format!("{why}\n"));
    unsafe { abort() }
}

#[unsafe(no_mangle)]
pub extern "C" fn main(count: i32, _arguments: *const *const u8) -> i32 {
    let mut words: Vec<String> = "the quick brown fox".split(' ').map(String::from).collect();
    words.sort();
    let lengths: BTreeMap<&str, usize> = words.iter().map(|w| (w.as_str(), w.len())).collect();
    say(&format!("{words:?} {lengths:?} {:.3}\n", 22.0 / 7.0));
    say(&format!("{}\n", u128::MAX / (count as u128 + 6)));
    let table = vec![1, 2, 3];
    table[count as usize + 6]
}
