//! The little of WASI that the programs need: arguments, standard output, the end.

use std::io::Write;

use wasmtime::{Caller, Error, Extern, Linker, Memory, Result};

const MODULE: &str = "wasi_snapshot_preview1";
const OK: u32 = 0;
const BAD_FILE: u32 = 8;
const NOT_SUPPORTED: u32 = 58;
const PIPE: u32 = 70;

pub struct Host {
    arguments: Vec<String>,
    /// What the program has ended with.
    pub status: Option<u32>,
}

impl Host {
    pub fn new(arguments: Vec<String>) -> Self {
        Host { arguments, status: None }
    }
}

type Access<'a> = Caller<'a, Host>;

fn memory(caller: &mut Access) -> Result<Memory> {
    let memory = caller.get_export("memory").and_then(Extern::into_memory);
    memory.ok_or_else(|| Error::msg("the module has no memory"))
}

fn put(caller: &mut Access, at: u32, bytes: &[u8]) -> Result<()> {
    Ok(memory(caller)?.write(caller, at as usize, bytes)?)
}

fn word(caller: &mut Access, at: u32) -> Result<u32> {
    let mut bytes = [0; 4];
    memory(caller)?.read(caller, at as usize, &mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

fn sizes(mut caller: Access, count: u32, bytes: u32) -> Result<u32> {
    let arguments = &caller.data().arguments;
    let (n, total) = (arguments.len() as u32, arguments.iter().map(|a| a.len() as u32 + 1).sum::<u32>());
    put(&mut caller, count, &n.to_le_bytes())?;
    put(&mut caller, bytes, &total.to_le_bytes())?;
    Ok(OK)
}

fn arguments(mut caller: Access, pointers: u32, mut text: u32) -> Result<u32> {
    for (i, argument) in caller.data().arguments.clone().into_iter().enumerate() {
        put(&mut caller, pointers + 4 * i as u32, &text.to_le_bytes())?;
        put(&mut caller, text, argument.as_bytes())?;
        put(&mut caller, text + argument.len() as u32, &[0])?;
        text += argument.len() as u32 + 1;
    }
    Ok(OK)
}

fn write(mut caller: Access, file: u32, vectors: u32, count: u32, written: u32) -> Result<u32> {
    if file != 1 && file != 2 {
        return Ok(BAD_FILE);
    }
    let mut total = 0;
    for i in 0..count {
        let (at, length) = (word(&mut caller, vectors + 8 * i)?, word(&mut caller, vectors + 8 * i + 4)?);
        let mut bytes = vec![0; length as usize];
        memory(&mut caller)?.read(&caller, at as usize, &mut bytes)?;
        let done = if file == 1 {
            std::io::stdout().write_all(&bytes).and_then(|()| std::io::stdout().flush())
        } else {
            std::io::stderr().write_all(&bytes)
        };
        if done.is_err() {
            return Ok(PIPE);
        }
        total += length;
    }
    put(&mut caller, written, &total.to_le_bytes())?;
    Ok(OK)
}

/// A character device, which may do nothing but what it can.
fn describe(mut caller: Access, file: u32, out: u32) -> Result<u32> {
    if file > 2 {
        return Ok(BAD_FILE);
    }
    let mut state = [0; 24];
    state[0] = 2;
    state[8..16].copy_from_slice(&0x1FFF_FFFFu64.to_le_bytes());
    put(&mut caller, out, &state)?;
    Ok(OK)
}

fn time(mut caller: Access, _clock: u32, _precision: u64, out: u32) -> Result<u32> {
    put(&mut caller, out, &0u64.to_le_bytes())?;
    Ok(OK)
}

fn exit(mut caller: Access, status: u32) -> Result<()> {
    caller.data_mut().status = Some(status);
    Err(Error::msg("the program has ended"))
}

pub fn define(linker: &mut Linker<Host>) -> Result<()> {
    linker.func_wrap(MODULE, "args_sizes_get", |c: Access<'_>, n: u32, b: u32| sizes(c, n, b))?;
    linker.func_wrap(MODULE, "args_get", |c: Access<'_>, p: u32, t: u32| arguments(c, p, t))?;
    linker.func_wrap(MODULE, "environ_sizes_get", |mut c: Access<'_>, n: u32, b: u32| {
        put(&mut c, n, &[0; 4])?;
        put(&mut c, b, &[0; 4])?;
        Ok(OK)
    })?;
    linker.func_wrap(MODULE, "environ_get", |_: u32, _: u32| OK)?;
    linker.func_wrap(MODULE, "fd_write", |c: Access<'_>, f: u32, v: u32, n: u32, w: u32| {
        write(c, f, v, n, w)
    })?;
    linker.func_wrap(MODULE, "fd_fdstat_get", |c: Access<'_>, f: u32, o: u32| describe(c, f, o))?;
    linker.func_wrap(MODULE, "fd_close", |_: u32| OK)?;
    linker.func_wrap(MODULE, "fd_seek", |_: u32, _: u64, _: u32, _: u32| PIPE)?;
    linker.func_wrap(MODULE, "fd_read", |_: u32, _: u32, _: u32, _: u32| NOT_SUPPORTED)?;
    // No file can be opened; the C library asks all the same.
    linker.func_wrap(MODULE, "fd_prestat_get", |_: u32, _: u32| BAD_FILE)?;
    linker.func_wrap(MODULE, "fd_prestat_dir_name", |_: u32, _: u32, _: u32| BAD_FILE)?;
    linker.func_wrap(MODULE, "fd_fdstat_set_flags", |_: u32, _: u32| NOT_SUPPORTED)?;
    linker.func_wrap(MODULE, "fd_renumber", |_: u32, _: u32| NOT_SUPPORTED)?;
    linker.func_wrap(
        MODULE,
        "path_open",
        |_: u32, _: u32, _: u32, _: u32, _: u32, _: u64, _: u64, _: u32, _: u32| NOT_SUPPORTED,
    )?;
    linker.func_wrap(MODULE, "clock_time_get", |c: Access<'_>, i: u32, p: u64, o: u32| time(c, i, p, o))?;
    linker.func_wrap(MODULE, "proc_exit", |c: Access<'_>, s: u32| exit(c, s))?;
    Ok(())
}
