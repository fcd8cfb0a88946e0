//! Prints `pebble-interfaces.h`.

use pebble_interface::{all, c, root};
use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = root(Path::new(env!("CARGO_MANIFEST_DIR"))).ok_or("not in the project")?;
    print!("{}", c::header(&all(root)?));
    Ok(())
}
