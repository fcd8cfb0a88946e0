//! Servers are replaced while clients call them, or keep their places because their successors are refused.

use crate::{COUNT, Judge, Slack, replace, resources};
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use pebble::abi::errno;

/// Who is replaced, and by what, in even rounds and in odd ones.
const SERVERS: [(&str, [&str; 2]); 7] = [
    ("counter", ["components/counter-2"; 2]),
    ("console", ["components/console"; 2]),
    ("clock", ["components/clock"; 2]),
    ("file", ["components/file"; 2]),
    ("name", ["components/name"; 2]),
    ("irq", ["components/irq"; 2]),
    ("scheduler", ["components/scheduler-edf", "components/scheduler"]),
];

/// All of them, so many times, under clients; how often that succeeded, and what the clients tell.
fn rounds(judge: &mut Judge, rounds: u64) -> (u64, Vec<[u64; 2]>) {
    let clients = judge.start(None);
    let mut done = 0;
    for round in 0..rounds {
        for (server, files) in SERVERS {
            let made = replace(server, files[round as usize % 2]);
            judge.check(made.is_ok(), || {
                format!("round {round}, {server}: {}", errno::text(made.err().unwrap_or(0)))
            });
            done += u64::from(made.is_ok());
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
    // What servers keep for good after a first use (heap, stacks, tables) is not a leak; and the counter gets its newer format.
    let (_, first) = rounds(judge, 2);
    let before = resources();
    let (done, told) = rounds(judge, times);
    if times % 2 == 1 {
        let back = replace("scheduler", "components/scheduler");
        judge.check(back.is_ok(), || format!("scheduler: {back:?}"));
    }
    judge.compare(before, Slack::Schedulers);
    let calls: u64 = told.iter().map(|[calls, _]| calls).sum();
    let mut marks = String::new();
    for ([_, early], [_, late]) in first.iter().zip(&told) {
        let _ = write!(marks, " {}", early + late);
    }
    let failed = judge.failures;
    judge.say(&format!("\nreplaced: {done} times, {calls} calls counted, {failed} failed; marks{marks}"));
}

/// Successors that must not come into office, and what is answered. The second needs the counter to be of the second version.
const REFUSED: [(&str, &str, i64); 6] = [
    ("counter", "components/counter-bad", errno::EINVAL),
    ("counter", "components/counter", errno::EINVAL),
    ("counter", "components/counter-less", errno::ENOENT),
    ("counter", "components/console", errno::EACCES),
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
    let before = resources();
    let clients = judge.start(None);
    (0..times).for_each(|_| refusals(judge));
    let told = judge.stop(&clients);
    for (client, [calls, _]) in clients.iter().zip(&told) {
        let counted = COUNT.call([client.0.into()]);
        judge.check(counted == Ok(*calls as i64), || format!("{calls} calls, the counter says {counted:?}"));
    }
    judge.compare(before, Slack::Schedulers);
    let failed = judge.failures;
    judge.say(&format!("\nrefused: {} successors, {failed} failed", times as usize * REFUSED.len()));
}
