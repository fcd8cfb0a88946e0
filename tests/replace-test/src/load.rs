//! Servers are replaced while clients call them, or keep their places because their successors are refused.

use crate::{COUNT, Judge, MILLISECOND, replace, rest};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use pebble::abi::errno::{self, Errno};
use pebble::portal::time;

/// Who is replaced, and by what, in even rounds and in odd ones.
const SERVERS: [(&str, [&str; 2]); 8] = [
    ("counter", ["components/counter-2"; 2]),
    ("console", ["components/console"; 2]),
    ("clock", ["components/clock"; 2]),
    ("file", ["components/file"; 2]),
    ("pipe", ["components/pipe"; 2]),
    ("name", ["components/name"; 2]),
    ("irq", ["components/irq"; 2]),
    ("scheduler", ["components/scheduler-edf", "components/scheduler"]),
];

/// Calls of several kinds that every client makes between two replacements, at least.
const TURNS: u64 = 3;

/// All of them, so many times, under clients; how often that succeeded, and what the clients tell.
fn rounds(judge: &mut Judge, rounds: u64) -> (u64, Vec<[u64; 2]>) {
    let clients = judge.start(None);
    let mut done = 0;
    for round in 0..rounds {
        for (server, files) in SERVERS {
            let made = replace(server, files[round as usize % 2]);
            judge.check(made.is_ok(), || format!("round {round}, {server}: {made:?}"));
            done += u64::from(made.is_ok());
            judge.let_call(TURNS);
        }
    }
    let told = judge.stop(&clients);
    for (n, (client, [calls, _])) in clients.iter().zip(&told).enumerate() {
        let counted = COUNT.call([client.0.into()]);
        judge.check(counted == Ok(*calls as i64), || {
            format!("client {n} has called {calls} times, the counter says {counted:?}")
        });
    }
    (done, told)
}

/// Every server is replaced so many times.
pub fn load(judge: &mut Judge, times: u64) {
    // What servers keep for good after a first use (heap, stacks, tables) is not a leak; and the counter gets
    // its newer format.
    let (_, first) = rounds(judge, 2);
    let mut before = rest();
    let (done, told) = rounds(judge, times);
    // What servers keep for good after a peak they keep once: a leak comes again.
    let (mut more, mut all) = (0, alloc::vec![first, told.clone()]);
    while more < 60.min(3 * times) && !judge.settles(before) {
        before = rest();
        more += times.min(20);
        all.push(rounds(judge, times.min(20)).1);
    }
    if (times + more) % 2 == 1 {
        let back = replace("scheduler", "components/scheduler");
        judge.check(back.is_ok(), || format!("scheduler: {back:?}"));
    }
    judge.compare(before);
    let calls: u64 = told.iter().map(|[calls, _]| calls).sum();
    let mut line = String::new();
    for n in 0..told.len() {
        let marks = all.iter().filter_map(|told| told.get(n)).map(|[_, marks]| marks);
        let _ = write!(line, " {}", marks.sum::<u64>());
    }
    let failed = judge.failures;
    judge.say(&format!("\nreplaced: {done} times, {calls} calls counted, {failed} failed; marks{line}"));
}

/// The scheduler makes room for the other one and comes back, so many times, with nobody else to wake whom
/// waits: of neither anything stays, that of the image not excepted.
pub fn schedulers(judge: &mut Judge, times: u64) {
    let (mut before, mut done, mut longest) = ([0; 8], 0, 0);
    for round in 0..=times {
        for file in ["components/scheduler-edf", "components/scheduler"] {
            let begun = time();
            let made = replace("scheduler", file);
            judge.check(made.is_ok(), || format!("round {round}, {file}: {made:?}"));
            (done, longest) = (done + 1, longest.max(time() - begun));
        }
        if round == 0 {
            // That of the image is gone; what servers keep for good after a first use is not a leak.
            before = rest();
        }
    }
    judge.compare(before);
    // One that waited for the old one to be left would take as long as it is waited for, 2 seconds.
    judge.check(longest < 1000 * MILLISECOND, || format!("a replacement took {longest} ticks"));
    let failed = judge.failures;
    judge.say(&format!("\nschedulers: {done} replaced, {failed} failed"));
}

/// Successors that must not come into office, and what is answered. The second needs the counter to be of the
/// second version.
const REFUSED: [(&str, &str, Errno); 6] = [
    ("counter", "components/counter-bad", errno::EINVAL),
    ("counter", "components/counter", errno::EINVAL),
    ("counter", "components/counter-less", errno::ENOENT),
    ("counter", "components/console", errno::ENOENT),
    ("console", "share/lines", errno::ENOEXEC),
    ("file", "components/none", errno::ENOENT),
];

fn refusals(judge: &mut Judge) {
    for (server, file, error) in REFUSED {
        let made = replace(server, file);
        judge.check(made == Err(error), || format!("{server} by {file}: {made:?}"));
    }
}

/// The old instance goes on.
pub fn refused(judge: &mut Judge, times: u64) {
    rounds(judge, 2);
    refusals(judge);
    // What servers keep for good after a peak they keep once: a leak comes again.
    let mut before = rest();
    under_load(judge, times);
    for _ in 0..2 {
        if judge.settles(before) {
            break;
        }
        before = rest();
        under_load(judge, times);
    }
    judge.compare(before);
    let failed = judge.failures;
    judge.say(&format!("\nrefused: {} successors, {failed} failed", times as usize * REFUSED.len()));
}

fn under_load(judge: &mut Judge, times: u64) {
    let clients = judge.start(None);
    judge.let_call(TURNS);
    (0..times).for_each(|_| refusals(judge));
    let told = judge.stop(&clients);
    for (client, [calls, _]) in clients.iter().zip(&told) {
        let counted = COUNT.call([client.0.into()]);
        judge.check(counted == Ok(*calls as i64), || format!("{calls} calls, the counter says {counted:?}"));
    }
}
