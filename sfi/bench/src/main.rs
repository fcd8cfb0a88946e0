//! `pebble bench sfi`, by itself: the same commands without the host tool around them.
#![forbid(unsafe_code)]

use std::process::ExitCode;

use clap::Parser;

#[derive(Parser)]
#[command(
    name = "pebble-sfi-bench",
    version,
    about = "Measures fault domains against native code and other sandboxes"
)]
struct Arguments {
    #[command(flatten)]
    options: pebble_sfi_bench::Options,
}

fn main() -> ExitCode {
    match pebble_sfi_bench::bench(&Arguments::parse().options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
