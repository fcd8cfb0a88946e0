//! What it costs to call into a module, to be called back, and to make an instance.

use std::hint::black_box;
use std::time::Instant;

use wasmtime::{Engine, Instance, Linker, Module, Result, Store};

/// So few that a sample is rarely interrupted by another program.
const CALLS: u32 = 50_000;
const INSTANCES: u32 = 100;
const SAMPLES: u32 = 41;

/// Prints nanoseconds of one of `n` operations, sample by sample.
fn sample(name: &str, n: u32, mut act: impl FnMut() -> Result<()>) -> Result<()> {
    act()?;
    print!("{name}");
    for _ in 0..SAMPLES {
        let start = Instant::now();
        act()?;
        print!(" {:.3}", start.elapsed().as_secs_f64() * 1e9 / f64::from(n));
    }
    println!();
    Ok(())
}

/// In `bytes`: `null` does nothing, `add` takes and returns words, `back` calls the host so often.
pub fn measure(engine: &Engine, bytes: &[u8]) -> Result<()> {
    let module = Module::new(engine, bytes)?;
    let mut linker = Linker::new(engine);
    linker.func_wrap("host", "null", || {})?;
    let mut store = Store::new(engine, ());
    let instance = linker.instantiate(&mut store, &module)?;
    let null = instance.get_typed_func::<(), ()>(&mut store, "null")?;
    let add = instance.get_typed_func::<(i64, i64, i64, i64, i64, i64), i64>(&mut store, "add")?;
    let back = instance.get_typed_func::<i32, ()>(&mut store, "back")?;
    sample("wasmtime.null", CALLS, || {
        for _ in 0..CALLS {
            null.call(&mut store, ())?;
        }
        Ok(())
    })?;
    sample("wasmtime.6", CALLS, || {
        for i in 0..CALLS {
            black_box(add.call(&mut store, (i.into(), 1, 2, 3, 4, 5))?);
        }
        Ok(())
    })?;
    sample("wasmtime.back", CALLS, || back.call(&mut store, CALLS as i32))?;
    sample("wasmtime.instance", INSTANCES, || {
        for _ in 0..INSTANCES {
            let mut store = Store::new(engine, ());
            black_box::<Instance>(linker.instantiate(&mut store, &module)?);
        }
        Ok(())
    })
}
