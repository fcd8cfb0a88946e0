//! `receive FILE`: a file over the console, into memory: lines of base64 and a last line `= BYTES CHECKSUM`,
//! as `./pebble encode` prints them. If what came is not what was sent there is no file afterwards.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use pebble::io::{self, File};
use pebble_tools::transfer::{Receiver, TransferError};

pebble::program!(main);

fn main() -> i64 {
    let arguments: Vec<String> = io::args().collect();
    let [_, path] = arguments.as_slice() else {
        pebble::eprintln!("usage: receive FILE, where FILE is /ram/NAME");
        return 2;
    };
    match receive(path) {
        Ok(bytes) => {
            pebble::println!("{path}: {bytes} bytes");
            0
        }
        Err(reason) => {
            pebble::eprintln!("receive: {reason}");
            1
        }
    }
}

/// Bytes of the file, which is made first: who may not make it should know before anything is sent.
fn receive(path: &str) -> Result<usize, String> {
    let refused = |error| format!("{path}: {error}");
    let file = io::create(path).map_err(refused)?;
    let came = io::standard(0).map_err(|_| TransferError::Unfinished).and_then(|input| upload(&input));
    let written = match &came {
        Ok(bytes) => file.write(bytes).map_err(refused),
        Err(error) => Err(format!("{error}")),
    };
    file.close();
    match (came, written) {
        (Ok(bytes), Ok(())) => Ok(bytes.len()),
        (_, written) => {
            let _ = io::remove(path);
            written.map(|()| 0)
        }
    }
}

/// What comes up to the last line, or to the end of the input.
fn upload(input: &File) -> Result<Vec<u8>, TransferError> {
    let mut receiver = Receiver::default();
    let mut line = Vec::new();
    let mut piece = [0; 32];
    loop {
        let count = match input.read(&mut piece) {
            Ok(0) | Err(_) => return receiver.finish(),
            Ok(count) => count,
        };
        for byte in &piece[..count] {
            if *byte != b'\n' {
                line.push(*byte);
                continue;
            }
            if receiver.line(&String::from_utf8_lossy(&line)) {
                return receiver.finish();
            }
            line.clear();
        }
    }
}
