//! `nest-import`: calls portals that the loader has opened for it.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

use pebble::println;

pebble::import! {
    STATS = "vm.stats";
    CLOCK = "clock.nanoseconds";
}
pebble::program!(main);

fn main() -> i64 {
    let answers =
        [("vm.stats", STATS.call([])), ("clock.nanoseconds", CLOCK.call([]))].map(|(name, answer)| {
            let good = matches!(answer, Ok(0..));
            println!("{name} answers: {good}");
            good
        });
    i64::from(answers != [true; 2])
}
