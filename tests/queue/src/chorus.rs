//! `chorus [TOOL...]`: three times `TOOL... voice`, each with a letter of its own, while this program writes
//! such lines itself.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use pebble::process::Child;
use pebble::{eprintln, io, println};

pebble::program!(main);

fn main() -> i64 {
    let mut words: Vec<String> = io::args().skip(1).collect();
    words.push("voice".into());
    let voices = ["a", "b", "c"].map(|letter| {
        let words: Vec<&str> = words.iter().map(String::as_str).chain([letter]).collect();
        Child::run(&format!("/bin/{}", words[0]), &words)
    });
    for n in 0..100 {
        let line = "r".repeat(99);
        if n % 2 == 0 { println!("{line}") } else { eprintln!("{line}") }
    }
    let mut failed = 0;
    for voice in voices {
        if let Err(error) = voice.and_then(|voice| voice.wait()) {
            eprintln!("chorus: {}: {error}", words[0]);
            failed = 1;
        }
    }
    failed
}
