//! Components that die, and what the supervisor does about it.

use crate::{Judge, MILLISECOND, pause, rest};
use alloc::format;
use pebble::abi::status;
use pebble::link::Import;
use pebble::portal::Broken;

pebble::import! {
    WORK = "fragile.work";
    FALL = "fragile.fall";
    FEW_WORK = "fragile-few.work";
    FEW_FALL = "fragile-few.fall";
    NEVER_WORK = "fragile-never.work";
    NEVER_FALL = "fragile-never.fall";
}

/// Milliseconds until a new instance answers.
const PATIENCE: u64 = 2000;

fn works(work: &Import) -> bool {
    work.call([1]) == Ok(2)
}

/// How long until it works; nothing if it does not.
fn revived(work: &Import, patience: u64) -> Option<u64> {
    (0..patience * 5).find(|_| {
        let works = works(work);
        if !works {
            pause(MILLISECOND / 5);
        }
        works
    })
}

/// Makes the component fault; the number of the domain that died.
fn kill(judge: &mut Judge, fall: &Import) -> u16 {
    let answer = fall.call([]);
    match answer {
        Err(Broken(status)) if status::code(status) == status::DEAD => status::domain(status),
        _ => {
            judge.check(false, || format!("the call that killed it returned {answer:?}"));
            0
        }
    }
}

fn deaths(judge: &mut Judge, times: u64) -> u64 {
    let mut back = 0;
    for n in 0..times {
        // The clients get to call.
        pause(2 * MILLISECOND);
        kill(judge, &FALL);
        if revived(&WORK, PATIENCE).is_none() {
            judge.check(false, || format!("death {n}: it did not come back"));
            break;
        }
        back += 1;
    }
    back
}

/// One component dies so many times under its clients.
pub fn restart(judge: &mut Judge, times: u64) {
    let clients = judge.start(Some("restart"));
    // What servers keep for good is grown by then.
    deaths(judge, 50);
    judge.stop(&clients);
    let before = rest();
    let clients = judge.start(Some("restart"));
    let back = deaths(judge, times);
    let told = judge.stop(&clients);
    judge.compare(before);
    let (calls, seen) = told.iter().fold((0, 0), |(a, b), [calls, dead]| (a + calls, b + dead));
    let failed = judge.failures;
    judge.say(&format!("\nrestarted: {back} times, {calls} calls, {seen} named the dead, {failed} failed"));
}

/// Three restarts with growing pauses, then none; and one that is never restarted.
pub fn policy(judge: &mut Judge) {
    let mut before = 0;
    for n in 0..3 {
        kill(judge, &FEW_FALL);
        let took = revived(&FEW_WORK, PATIENCE);
        judge.check(took > Some(before), || {
            format!("restart {n} after {took:?}, the one before after {before}")
        });
        before = took.unwrap_or(0);
    }
    for (work, fall) in [(&FEW_WORK, &FEW_FALL), (&NEVER_WORK, &NEVER_FALL)] {
        let dead = kill(judge, fall);
        pause(500 * MILLISECOND);
        let answer = work.call([1]);
        let closed = matches!(answer, Err(Broken(s)) if s == status::CLOSED | u64::from(dead) << 16);
        judge.check(closed, || format!("given up, domain {dead} answers {answer:?}"));
    }
    let failed = judge.failures;
    judge.say(&format!("\npolicy: {failed} failed"));
}
