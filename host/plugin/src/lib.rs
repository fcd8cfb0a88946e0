//! The plug-in that QEMU loads into a guest's emulator, to count where its instructions go.
//!
//! Problem: QEMU calls a plug-in in C, with pointers into itself. Strategy: [`qemu`] makes of that a few safe
//! calls, and is the only module with `unsafe` in it; this one joins them to the [`Recorder`], which does all
//! the work and is tested on the host.
//!
//! Arguments: `processor=NAME`, `out=FILE`, and perhaps `start=on`, `events=NUMBER`. The recording is in the
//! file when the emulator has ended.
#![deny(unsafe_code)]

mod qemu;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use pebble_profile::{BlockId, Code, Meaning, Processor, Recorder, Region, Scope};
use qemu::Block;

struct Session {
    recorder: Recorder,
    out: PathBuf,
}

static SESSION: Mutex<Option<Session>> = Mutex::new(None);

fn session() -> MutexGuard<'static, Option<Session>> {
    SESSION.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with(what: impl FnOnce(&mut Recorder)) {
    if let Some(session) = session().as_mut() {
        what(&mut session.recorder);
    }
}

/// The emulator starts. An error says what is wrong with the arguments.
fn install(arguments: &[String]) -> Result<(), String> {
    let (mut processor, mut out, mut scope) = (None, None, Scope { start: false, events: 0 });
    for argument in arguments {
        let (name, value) = argument.split_once('=').unwrap_or((argument, ""));
        let wrong =
            || format!("{argument}: no such argument; processor=NAME, out=FILE, start=on|off, events=N");
        match name {
            "processor" => processor = Some(Processor::named(value).ok_or_else(wrong)?),
            "out" => out = Some(PathBuf::from(value)),
            "start" => scope.start = value == "on",
            "events" => scope.events = value.parse().map_err(|_| wrong())?,
            _ => return Err(wrong()),
        }
    }
    let processor = processor.ok_or("which processor? processor=NAME")?;
    let out = out.ok_or("where to? out=FILE")?;
    *session() = Some(Session { recorder: Recorder::new(processor, scope), out });
    Ok(())
}

/// The emulator translates a block.
fn translate(block: &Block) {
    let Some(first) = block.instructions().next() else { return };
    let mut session = session();
    let Some(Session { recorder, .. }) = session.as_mut() else { return };
    let bytes: Vec<u8> = block.instructions().flat_map(|instruction| instruction.bytes()).collect();
    let length = block.instructions().count() as u64;
    let region = recorder.processor().region(first.address());
    let page = if region == Region::User { first.page() } else { Vec::new() };
    let id = recorder.find(&Code { address: first.address(), bytes: &bytes, length, page: &page });
    block.on_begin(id.index());
    for instruction in block.instructions() {
        let meaning = recorder.processor().meaning(region, instruction.word());
        match meaning {
            Some(Meaning::Count) => instruction.on_execution(None),
            Some(Meaning::Enter(register)) => instruction.on_execution(Some(register)),
            Some(Meaning::Load(_)) | None => {}
        }
        if matches!(region, Region::Nucleus | Region::Portal) {
            let register = match meaning {
                Some(Meaning::Load(register)) => Some(register),
                _ => None,
            };
            instruction.on_access(register);
        }
        instruction.count();
    }
}

/// A block begins.
fn begin(block: usize, counter: u64) {
    with(|recorder| recorder.begin(BlockId::new(block), counter));
}

/// Privileged code enters the address space in this register; or user mode reads the counter.
fn executed(register: Option<u8>, counter: u64) {
    with(|recorder| match register {
        Some(register) => recorder.enter(register),
        None => recorder.reading(counter),
    });
}

/// Privileged code has touched memory, and has perhaps loaded this into a register.
fn touched(address: u64, store: bool, loaded: Option<(u8, u64)>) {
    with(|recorder| {
        recorder.touch(address, store);
        if let Some((register, value)) = loaded {
            recorder.load(register, value);
        }
    });
}

/// The emulator ends.
fn finish(counter: u64) {
    let Some(Session { recorder, out }) = session().take() else { return };
    let written = recorder
        .finish(counter)
        .write()
        .and_then(|bytes| std::fs::write(&out, bytes).map_err(|error| format!("{}: {error}", out.display())));
    if let Err(error) = written {
        eprintln!("pebble profile: the recording is lost: {error}");
    }
}
