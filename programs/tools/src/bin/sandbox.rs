//! `sandbox --allow NAMES PROGRAM ARGUMENTS`: the program may call, and open, the interfaces that are named,
//! and no others. The first refusal of each is told on standard error; the program gets -EACCES.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use pebble::abi::errno;
use pebble::control::Answer;
use pebble::sync::Lock;
use pebble_tools::{calls, rules, under};

pebble::program!(main);
pebble::handler!(entry = check);

static ALLOWED: Lock<String> = Lock::new(String::new());
/// What has been refused, so that a program that tries again does not fill the console.
static REFUSED: Lock<Vec<String>> = Lock::new(Vec::new());
/// Refusals that are told one by one.
const TOLD: usize = 64;

fn check(index: usize, p: [u64; 5]) -> Answer {
    let name = under::name(index);
    // Opening an interface is as good as calling it. Semaphores belong to whoever may make them.
    let wanted = match name.as_str() {
        "pm.open" => calls::text(&p[..3]),
        "semaphore.p" | "semaphore.v" => "pm.sem_create".into(),
        _ => name.clone(),
    };
    let always = rules::ENDS.contains(&wanted.as_str()) || wanted == rules::WAITS;
    let allowed = always || rules::allows(&ALLOWED.lock(), &wanted);
    if allowed {
        return under::pass(index, &name, p);
    }
    let first = {
        let mut refused = REFUSED.lock();
        let first = refused.len() < TOLD && !refused.contains(&wanted);
        if first {
            refused.push(wanted.clone());
        }
        first
    };
    if first {
        under::say(&format!("sandbox: refused {}: {wanted} is not allowed\n", calls::call(&name, &p)));
    }
    (-errno::EACCES).into()
}

/// Says which names are nobody's, now: an interface may still come.
fn warn(allowed: &str) {
    let Ok(names) = under::interfaces() else { return };
    let nobody = |pattern: &&str| !names.iter().any(|name| rules::matches(pattern, name));
    for pattern in rules::patterns(allowed).filter(nobody) {
        under::say(&format!(
            "sandbox: --allow {pattern}: there is no such interface now; 'names' lists those that there are\n"
        ));
    }
}

fn main() -> i64 {
    let mut arguments: Vec<String> = pebble::io::args().skip(1).collect();
    if arguments.len() < 3 || arguments[0] != "--allow" {
        return under::usage(
            "sandbox --allow NAME[,NAME...] PROGRAM [ARGUMENT...], where file.* names all that begin so",
        );
    }
    let allowed = arguments.remove(1);
    if let Some(mistake) = rules::mistake(&allowed) {
        under::say(&format!("sandbox: {mistake}\n"));
        return 2;
    }
    *ALLOWED.lock() = allowed.clone();
    let prepared = under::prepare(|| {
        ALLOWED.prepare();
        REFUSED.prepare();
        warn(&allowed);
        Ok(())
    });
    let result = prepared.and_then(|()| under::run(&arguments[1..], entry, |_| ()));
    under::end("sandbox", result)
}
