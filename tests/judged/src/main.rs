//! Tests of a program in Rust, as `./pebble test` finds them in the system `tested`.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::abi::errno;
use pebble::{api, expect, expect_eq, io};

pebble::tests!(files, semaphores);

fn files() {
    let Ok(file) = io::open("/share/block") else {
        expect!(false);
        return;
    };
    let mut bytes = [0; 20];
    expect_eq!(file.read(&mut bytes), Ok(20));
    expect_eq!(bytes, *b"this is line 000001\n");
    expect_eq!(file.shown().map(|bytes| bytes.len()), Ok(20 * 1000));
    file.close();
    expect_eq!(io::open("/share/none").err(), Some(errno::ENOENT));
}

fn semaphores() {
    let Ok(semaphore) = api::sem_create(1) else {
        expect!(false);
        return;
    };
    expect!(api::sem_wait(semaphore).is_ok());
    expect!(api::sem_post(semaphore).is_ok());
}
