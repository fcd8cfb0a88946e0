//! Module files with one bit changed in a header: each is refused with a reason, or makes an instance that
//! can be called as well or badly as any. The host of all this is this process, which must outlive it.

mod common;

use pebble_sfi_runtime::{Imports, Instance, LoadError, Module};
use std::ops::Range;
use std::time::Duration;

/// The file's header, program headers, section headers, and the sections of the linker, by name.
fn headers(file: &[u8]) -> Vec<Range<usize>> {
    let number = |at: usize, bytes: usize| {
        file[at..at + bytes].iter().rev().fold(0usize, |n, b| n << 8 | usize::from(*b))
    };
    let (programs, sections, names) = (number(32, 8), number(40, 8), number(62, 2));
    let (count, size) = (number(60, 2), 64);
    let names = number(sections + names * size + 24, 8);
    let mut all = vec![0..64, programs..programs + number(56, 2) * 56, sections..sections + count * size];
    for header in (0..count).map(|i| sections + i * size) {
        let name = names + number(header, 4);
        let name = file[name..].split(|b| *b == 0).next().unwrap_or_default();
        if [&b".pbl.module"[..], b".pbl.facts", b".rela.dyn", b".init_array"].contains(&name) {
            all.push(number(header + 24, 8)..number(header + 24, 8) + number(header + 32, 8));
        }
    }
    all
}

#[test]
fn a_flipped_bit_is_refused_or_harmless() {
    for (name, export) in [("basic", "add"), ("opening", "get")] {
        let file = common::build(name, 2);
        let (mut refused, mut made) = (0, 0);
        for at in headers(&file).into_iter().flatten() {
            for bit in 0..8 {
                let mut changed = file.clone();
                changed[at] ^= 1 << bit;
                let module = match Module::load("flipped", changed) {
                    Ok(module) => module,
                    Err(LoadError::System(e)) => panic!("byte {at:#x} bit {bit}: {e}"),
                    Err(error) => {
                        // Which byte or which rule, and why.
                        let said = error.to_string();
                        assert!(said.split_once(": ").is_some_and(|(_, why)| why.len() > 10), "{said}");
                        refused += 1;
                        continue;
                    }
                };
                let mut imports = Imports::new();
                imports.lenient = true;
                imports.closure("host", |_, _| 0);
                let linked = imports.link(&module).expect("linked");
                let Ok(instance) = Instance::new_within(&linked, Duration::from_millis(100)) else {
                    continue;
                };
                made += 1;
                if let Ok(portal) = instance.portal(export, "smii") {
                    let _ = portal.call_within(Duration::from_millis(100), &[1, 2]);
                }
            }
        }
        assert!(refused > 1000 && made > 1000, "{name}: {refused} refused, {made} made");
    }
}
