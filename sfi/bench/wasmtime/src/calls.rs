//! What it costs to call into a module, to be called back, and to make an instance.

use std::hint::black_box;
use std::time::Instant;

use wasmtime::{Engine, Instance, Linker, Module, Result, Store};

const CALLS: u32 = 2_000_000;
const INSTANCES: u32 = 2_000;
/// Every figure is the least of so many repetitions: what disturbs only adds.
const REPETITIONS: u32 = 7;

/// Nanoseconds of one of `n` operations, at best.
fn least(n: u32, mut act: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = f64::MAX;
    for _ in 0..REPETITIONS {
        let start = Instant::now();
        act()?;
        best = best.min(start.elapsed().as_secs_f64() * 1e9 / f64::from(n));
    }
    Ok(best)
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
    let nothing = least(CALLS, || {
        for _ in 0..CALLS {
            null.call(&mut store, ())?;
        }
        Ok(())
    })?;
    println!("null {nothing:.3}");
    let six = least(CALLS, || {
        for i in 0..CALLS {
            black_box(add.call(&mut store, (i.into(), 1, 2, 3, 4, 5))?);
        }
        Ok(())
    })?;
    println!("six {six:.3}");
    let outward = least(CALLS, || back.call(&mut store, CALLS as i32))?;
    println!("back {outward:.3}");
    let fresh = least(INSTANCES, || {
        for _ in 0..INSTANCES {
            let mut store = Store::new(engine, ());
            black_box::<Instance>(linker.instantiate(&mut store, &module)?);
        }
        Ok(())
    })?;
    println!("instance {fresh:.0}");
    Ok(())
}
