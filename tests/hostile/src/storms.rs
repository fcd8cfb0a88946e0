//! Families that do cheaply what costs others much: `hostile storm WHAT N`.
//!
//! `exits`: N servers without threads, and threads that end as fast as they can be made. `faults`: N children
//! at once, of a large file, that fault.

use alloc::format;
use alloc::vec::Vec;
use pebble::api;
use pebble::process::Child;

extern "C" fn nothing(_: u64) {}

extern "C" fn ends(_: u64) {
    loop {
        let _ = api::thread_create(nothing, 0, 0);
    }
}

/// A server whose only thread has ended.
pub fn linger() -> i64 {
    let name = format!("idle{}", api::get_asid());
    let made = api::portal_register(&name, "sm", nothing as *const () as u64, 0);
    if made.is_ok() {
        crate::kinds::thread_exit();
    }
    98
}

pub fn storm(what: &str, count: u64) -> i64 {
    match what {
        "exits" => {
            let servers =
                (0..count).filter_map(|_| Child::run("/bin/hostile", &["hostile", "linger"]).ok()).count();
            pebble::println!("storm: {servers} servers");
            let _ = api::thread_create(ends, 0, 0);
            ends(0);
            0
        }
        "faults" => loop {
            let family: Vec<_> = (0..count).filter_map(|_| Child::load("/bin/bloated").ok()).collect();
            pebble::println!("storm: {} children", family.len());
            for child in &family {
                let _ = child.start();
            }
            for child in &family {
                let _ = child.wait();
            }
        },
        _ => 2,
    }
}
