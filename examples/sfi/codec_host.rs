//! A host in Rust that uses the codec by its bindings: codec_host MODULE

// Generated code.
#[rustfmt::skip]
mod codec_stubs;

use codec_stubs::Codec;
use pebble_sfi_runtime::{CallError, Cause, Imports, Instance, Limit, Module, Region};
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("which module?")?;
    let module = Module::open(path.as_ref())?;
    let instance = Instance::new(&Imports::new().link(&module)?)?;
    let mut codec = Codec::try_from(&instance)?;
    let counter = Region::new(8)?;
    codec.watch(&counter)?;

    // Any memory will do: what is in no region goes by a copy.
    let mut picture = vec![0; 100_000];
    picture[30_000..80_000].fill(7);
    let (mut packed, mut again) = (vec![0; 2000], vec![0; picture.len()]);
    let used = codec.pack(&picture, &mut packed)?;
    let length = codec.unpack(&packed[..used as usize], &mut again)?;
    let same = codec.checksum(&picture)? == codec.checksum(&again)?;
    println!("packed: {used}, unpacked: {length}, {}", if same { "the same" } else { "DIFFERENT" });

    let mut mean = [0.0];
    codec.mean(&[1.0, 2.0, 6.0], &mut mean)?;
    let (runs, waves) = (codec.knows(c"runs")?, codec.knows(c"waves")?);
    let text = codec.describe(9)?;
    println!(
        "mean: {}, knows runs: {}, waves: {}, describes itself: {}",
        mean[0],
        u8::from(runs),
        u8::from(waves),
        text.to_string_lossy()
    );
    // The bindings of C ask for texts that are too long for the caller; here there is one bad text, asked for
    // twice.
    if let (Err(_), Err(error @ CallError::NoText)) = (codec.describe(-1), codec.describe(-1)) {
        println!("no text: {error}");
    }
    // From here on each call has so much processor time, which a busy machine does not shorten.
    codec.limit = Limit::processor(Duration::from_millis(20));
    let halvings = codec.halvings(64)?;
    if let Err(CallError::Fault(fault)) = codec.halvings(3)
        && (fault.cause, fault.instance) == (Cause::Deadline, instance.number())
    {
        println!(
            "halvings: {halvings}, and one call was ended in {}",
            fault.function.map_or_else(String::new, |f| f.0)
        );
    }
    let mut calls = [0; 8];
    counter.read(0, &mut calls)?;
    println!("calls: {}", u64::from_le_bytes(calls));
    Ok(())
}
