//! `receive FILE`: a file over the console, into memory: lines of base64 and a last line `= BYTES CHECKSUM`, as `./pebble encode` prints them.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::string::String;
use alloc::vec::Vec;
use pebble::abi::errno;
use pebble::io::{self, File};
use pebble_tools::transfer::{Receiver, TransferError};

pebble::program!(main);

fn main() -> i64 {
    let arguments: Vec<String> = io::args().collect();
    let [_, path] = arguments.as_slice() else {
        pebble::eprintln!("usage: receive FILE, where FILE is /ram/NAME");
        return 2;
    };
    let bytes = match io::standard(0).map_err(|_| TransferError::Unfinished).and_then(|input| receive(&input))
    {
        Ok(bytes) => bytes,
        Err(error) => {
            pebble::eprintln!("receive: {error}");
            return 1;
        }
    };
    if let Err(error) = store(path, &bytes) {
        pebble::eprintln!("receive: {path}: {}", errno::text(error));
        return 1;
    }
    pebble::println!("{path}: {} bytes", bytes.len());
    0
}

fn receive(input: &File) -> Result<Vec<u8>, TransferError> {
    let mut receiver = Receiver::default();
    let mut line = Vec::new();
    let mut piece = [0; 32];
    loop {
        let count = match input.read(&mut piece) {
            Ok(0) | Err(_) => return Err(TransferError::Unfinished),
            Ok(count) => count,
        };
        for byte in &piece[..count] {
            if *byte != b'\n' {
                line.push(*byte);
                continue;
            }
            if receiver.line(&String::from_utf8_lossy(&line))? {
                return Ok(receiver.bytes);
            }
            line.clear();
        }
    }
}

fn store(path: &str, bytes: &[u8]) -> Result<(), i64> {
    let file = io::create(path)?;
    let written = file.write(bytes);
    file.close();
    written
}
