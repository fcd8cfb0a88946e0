//! Calls an export of a module: `call FILE NAME [WORD...]`.

use pebble_sfi_runtime::{Imports, Instance, Module};

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let module = Module::open(args[0].as_ref()).unwrap_or_else(|e| panic!("{e}"));
    let mut imports = Imports::new();
    imports.lenient = true;
    let instance = Instance::new(&imports.link(&module).unwrap()).unwrap();
    let words: Vec<u64> = args[2..].iter().map(|w| w.parse().unwrap()).collect();
    match instance.portal(&args[1], &format!("sm{}", "i".repeat(words.len()))).unwrap().call(&words) {
        Ok(value) => println!("{}", value as i64),
        Err(error) => println!("{error}"),
    }
}
