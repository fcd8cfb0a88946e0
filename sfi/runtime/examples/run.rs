//! Runs a program in a fault domain: `run FILE ARGUMENTS`, with the files of the directory `data` below this
//! one as `/data`.

use pebble_sfi_runtime::{Policy, run};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let file = arguments.first().cloned().unwrap_or_default();
    let policy = match Policy::program().directory("/data", "data".as_ref(), true) {
        Ok(policy) => policy,
        Err(_) => Policy::program(),
    };
    match run(file.as_ref(), &arguments, policy, None) {
        Ok(code) => std::process::exit(code),
        Err(error) => {
            eprintln!("{error}");
            std::process::exit(125);
        }
    }
}
