//! The numbers of the board that components are compiled for, from its file in `boards/`: memory, clock,
//! devices.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// What concerns components of a board's file; the whole of it is read by the image builder, which checks it.
#[derive(Deserialize)]
struct Board {
    time_hz: u64,
    memory: Memory,
    device: BTreeMap<String, Device>,
}

#[derive(Deserialize)]
struct Memory {
    at: u64,
    bytes: u64,
    load: u64,
}

#[derive(Deserialize)]
struct Device {
    kind: String,
    registers: Vec<Registers>,
    #[serde(default)]
    interrupt: u32,
}

#[derive(Deserialize)]
struct Registers {
    at: u64,
    bytes: u64,
}

const PAGE: u64 = 4096;

/// By this the build is told the board.
const VARIABLE: &str = "PEBBLE_BOARD";
/// The one for which host code is compiled, and whatever is built without being told.
const DEFAULT: &str = "virt";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-env-changed={VARIABLE}");
    let name = std::env::var(VARIABLE).unwrap_or_else(|_| DEFAULT.into());
    let path = Path::new(&std::env::var("CARGO_MANIFEST_DIR")?).join(format!("../boards/{name}.toml"));
    println!("cargo::rerun-if-changed={}", path.display());
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let board: Board = toml::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let Memory { at, bytes, load } = board.memory;
    let about = "The board that all this is of: its file in `boards/`.";
    let mut out = format!("/// {about}\npub const BOARD: &str = \"{name}\";\n");
    for (name, value, about) in [
        ("RAM_PA", at, "Where memory begins."),
        ("RAM_BYTES", bytes, "Bytes of memory."),
        ("LOAD_PA", load, "First physical address after the firmware; the image is loaded here."),
        ("TIME_HZ", board.time_hz, "Ticks of the `time` counter, and so of `hrtime`, per second."),
    ] {
        writeln!(out, "/// {about}\npub const {name}: u64 = {value:#x};")?;
    }
    for (name, device) in &board.device {
        let (constant, Device { kind, interrupt, .. }) = (name.to_uppercase(), device);
        writeln!(out, "/// The device `{name}`.\npub const DEVICE_{constant}: Device = Device {{")?;
        writeln!(out, "kind: {kind:?}, interrupt: {interrupt}, registers: &[")?;
        let mut page = 0;
        for Registers { at, bytes } in &device.registers {
            let offset = at % PAGE;
            writeln!(out, "Registers {{ page: {page}, offset: {offset:#x}, bytes: {bytes:#x} }},")?;
            page += (offset + bytes).div_ceil(PAGE);
        }
        writeln!(out, "] }};")?;
    }
    std::fs::write(Path::new(&std::env::var("OUT_DIR")?).join("board.rs"), out)?;
    Ok(())
}
