//! Programs that misbehave, and the one that watches them.
//!
//! `hostile do KIND` misbehaves as a program; `hostile serve KIND` as a server, inside a client's call;
//! `hostile judge [ROUNDS]` starts each kind both ways, checks that the system answers as it must, and that
//! nothing is lost: pages, portals, code, semaphores and domains are counted before and after; `hostile
//! windows` does so for memory that is lent, `hostile late` for calls with a time limit, `hostile pages` for
//! faults that others answer, `hostile depth` for full invocation stacks, `hostile files` for broken and
//! hostile program files, `hostile fill` for files that take all memory, `hostile block WHAT THREADS` waits
//! for what never comes, `hostile block-and-die` does so again and again, `hostile storm WHAT N` does what is
//! cheap for it and costs others much, `hostile crowd` is of threads at locks without portals left, `hostile
//! hog` of families that take all that is scarce, `hostile consent` for exporters that ask for what nobody
//! gave them, `hostile streams` for pages lent to servers of files and pipes, `hostile flips` for pages that
//! go through pipes, `hostile gifts` for servers that fill their clients' tables, `hostile guards` for
//! exporters that decide who opens them, `hostile secrets` for names, `hostile paths` for files and `hostile
//! devices` for devices that are had by capability, `hostile templates` for argument letters. Its last line is
//! `hostile: N passed, N failed`.
#![no_std]
#![no_main]
#![cfg_attr(not(feature = "component"), forbid(unsafe_code))]

extern crate alloc;

mod blockers;
mod consent;
mod crowd;
mod depth;
mod devices;
mod files;
mod fill;
mod flips;
mod gifts;
mod guards;
mod hog;
mod judge;
mod kinds;
mod late;
mod limits;
mod pages;
mod paths;
mod secrets;
mod storms;
mod streams;
mod templates;
mod tokens;
mod windows;

use alloc::string::String;
use alloc::vec::Vec;
use pebble::eprintln;

pebble::program!(main);

fn main() -> i64 {
    let arguments: Vec<String> = pebble::io::args().collect();
    let word = |n: usize| arguments.get(n).map_or("", String::as_str);
    match word(1) {
        "do" => match kinds::find(word(2)) {
            Some(kind) => kinds::misbehave(kind),
            None => usage(),
        },
        "serve" => match kinds::find(word(2)) {
            Some(kind) => kinds::serve(kind, word(3)),
            None => usage(),
        },
        "mirror" => kinds::mirror(word(2)),
        "windows" => judge::windows(word(2), word(3).parse().unwrap_or(1)),
        "borrow" => windows::borrow(word(2)),
        "lend" => windows::lend(word(2), word(3)),
        "pages" => judge::pages(word(2).parse().unwrap_or(1)),
        "depth" => judge::depth(word(2).parse().unwrap_or(1)),
        "pager" => pages::serve(word(2), word(3), word(4)),
        "touch" => pages::touch(word(2), [word(3), word(4)]),
        "files" => judge::files(word(2).parse().unwrap_or(1)),
        "fill" => judge::fill(word(2).parse().unwrap_or(0), word(3) == "keep"),
        "files-write" => files::leave(word(2).parse().unwrap_or(0)),
        "files-remove" => files::take_away(word(2).parse().unwrap_or(0)),
        "guards" => judge::guards(word(2).parse().unwrap_or(1)),
        "count" => judge::count(),
        "gifts" => judge::gifts(word(2).parse().unwrap_or(1)),
        "give" => gifts::give(word(2)),
        "gifted" => gifts::take(word(2)),
        "keeper" => guards::keep(word(2), word(3), word(4)),
        "policy" => guards::decide(word(2), word(3)),
        "open" => guards::open(word(2)),
        "consent" => judge::consent(word(2).parse().unwrap_or(1)),
        "ask" => consent::ask(word(2)),
        "lead" => consent::lead(word(2), word(3)),
        "accomplice" => consent::conspire(word(2), word(3)),
        "secrets" => judge::secrets(word(2).parse().unwrap_or(1)),
        "templates" => judge::templates(word(2).parse().unwrap_or(1)),
        "peek" => templates::peek(word(2)),
        "token" => templates::spend(word(2), word(3).parse().unwrap_or(0)),
        "paths" => judge::paths(word(2).parse().unwrap_or(1)),
        "wait-paths" => paths::wait(word(2)),
        "devices" => judge::devices(word(2).parse().unwrap_or(1)),
        "drive" => devices::wait(word(2)),
        "wait" => secrets::wait(word(2)),
        "limits" => {
            let number = |n| word(n).parse().unwrap_or(0);
            limits::all(number(2), number(3), number(4))
        }
        "block" => blockers::block(word(2), word(3).parse().unwrap_or(0)),
        "block-and-die" => blockers::block_and_die(word(2), word(3).parse().unwrap_or(0)),
        "idle" => blockers::idle(word(2).parse().unwrap_or(1)),
        "front" => blockers::front(),
        "crowd" => crowd::meet(),
        "streams" => judge::streams(word(2).parse().unwrap_or(1)),
        "offer" => streams::offer(word(2)),
        "flips" => judge::flips(word(2).parse().unwrap_or(1)),
        "spied" => flips::spied(),
        "offer-pages" => flips::offer(word(2)),
        "linger" => storms::linger(),
        "storm" => storms::storm(word(2), word(3).parse().unwrap_or(1)),
        "hog" => hog::hog(word(2), word(3).parse().unwrap_or(0)),
        "sweep" => hog::sweep(),
        "want" => hog::want(word(2)),
        "late" => judge::late(word(2).parse().unwrap_or(1)),
        "slow" => late::serve(word(2)),
        "deep" => late::serve_deep(word(2)),
        "dive" => judge::dive(word(2), [3, 4, 5].map(|n| word(n).parse().unwrap_or(0))),
        "relay" => late::serve_through(word(2), word(3)),
        "judge" => judge::all(word(2).parse().unwrap_or(1)),
        _ => usage(),
    }
}

fn usage() -> i64 {
    eprintln!(
        "usage: hostile do KIND | hostile serve KIND NAME | hostile judge [ROUNDS] | hostile windows \
         hostile|lent [ROUNDS] | hostile late [ROUNDS] | hostile pages [ROUNDS] | hostile depth [ROUNDS] | \
         hostile consent [ROUNDS] | hostile gifts [ROUNDS] | hostile guards [ROUNDS] | hostile files \
         [ROUNDS] | hostile fill | hostile secrets [ROUNDS] | hostile paths [ROUNDS] | hostile devices \
         [ROUNDS] | hostile templates [ROUNDS] | hostile streams [ROUNDS] | hostile \
         flips [ROUNDS]"
    );
    for kind in kinds::ALL {
        eprintln!("  {:<16} {}", kind.name, kind.what);
    }
    2
}
