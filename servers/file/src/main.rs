//! The file server's component: entries around [`Files`], one lock. The archive is parsed at the first request.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use pebble::abi::{errno, map};
use pebble::api::Errno;
use pebble::handover::Handover;
use pebble::io::FilePortals;
use pebble::link::More;
use pebble::sync::Lock;
use pebble::window;
use pebble_file::{Archive, ArchiveError, FORMAT, Files, length};

// The four portals of an open file, in the order of `sys::FILE_READ` and its fellows.
pebble::export_wide!("file.read", "npci>4", read);
pebble::export!("file.write", "npciiiii", write: fn(u64, u64, u64, u64, u64, u64));
pebble::export!("file.seek", "npcii", seek: fn(u64, u64, u64));
pebble::export!("file.close", "npc", close: fn(u64));
pebble::export!("file.open", "npaiiiii", open: fn(u64, u64, u64, u64, u64, u64));
pebble::export!("file.create", "npaiiiii", create: fn(u64, u64, u64, u64, u64, u64));
pebble::export!("file.remove", "npiiiii", remove: fn(u64, u64, u64, u64, u64));
pebble::export!("file.gone", "npi", gone: fn(u64));
pebble::replaceable!(FILES: Served, Vec::new(), "file.handover", "file.takeover");
pebble::tell_heap!("heap.file");
pebble::component!(main);

/// No thread of its own.
fn main() -> i64 {
    0
}

/// Addresses that the archive may take.
const ARCHIVE_MAX: usize = (map::PHYS_VA - map::ARCHIVE_VA) as usize;

static FILES: Lock<Served> = Lock::new(Served(None));

/// `None`: nobody has asked yet, or there is no sound archive.
struct Served(Option<Files<'static>>);

impl Served {
    fn files(&mut self) -> Result<&mut Files<'static>, Errno> {
        if self.0.is_none() {
            self.0 = load().ok();
        }
        self.0.as_mut().ok_or(errno::EIO)
    }
}

impl Handover for Served {
    type Bytes = Vec<u8>;

    fn save(&self, _: u64, bytes: &mut Vec<u8>) -> Result<u64, Errno> {
        if let Some(files) = &self.0 {
            *bytes = files.save()?;
        }
        Ok(FORMAT)
    }

    fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), Errno> {
        if bytes.is_empty() { Ok(()) } else { self.files()?.load(format, bytes) }
    }
}

/// One request; without a sound archive all fail with `EIO`.
#[inline]
fn request<R>(work: impl FnOnce(&mut Files<'static>) -> R) -> Result<R, Errno> {
    FILES.lock().files().map(work)
}

#[cold]
fn load() -> Result<Files<'static>, ArchiveError> {
    let len = length(window::archive, ARCHIVE_MAX)?;
    Ok(Files::new(Archive::parse(window::archive(len))?))
}

/// The word that goes back.
fn answer(outcome: Result<i64, Errno>) -> i64 {
    outcome.unwrap_or_else(|error| -error)
}

extern "C" fn read(control: u64, max: u64, _: u64, _: u64, _: u64, _: u64, more: &mut More) -> i64 {
    answer(request(|files| {
        let (count, words) = files.read(control, max);
        *more = words;
        count
    }))
}

extern "C" fn write(control: u64, count: u64, a: u64, b: u64, c: u64, d: u64) -> i64 {
    answer(request(|files| files.write(control, count, [a, b, c, d])))
}

extern "C" fn seek(control: u64, offset: u64, whence: u64) -> i64 {
    answer(request(|files| files.seek(control, offset, whence)))
}

extern "C" fn close(control: u64) -> i64 {
    answer(request(|files| files.close(control)))
}

static PORTALS: FilePortals = FilePortals::new("file.read");

type Opening = fn(&mut Files<'static>, u16, [u64; 5]) -> Result<u64, Errno>;

/// Four portals to what `how` opens, in the client's table.
fn portals(how: Opening, client: u64, path: [u64; 5]) -> i64 {
    FILES.prepare();
    let control = match request(|files| how(files, client as u16, path)) {
        Ok(Ok(control)) => control,
        Ok(Err(error)) => return error,
        Err(error) => return -error,
    };
    PORTALS.create(control).map_or_else(
        |error| {
            close(control);
            -error
        },
        |index| index as i64,
    )
}

extern "C" fn open(client: u64, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    portals(Files::open, client, [a, b, c, d, e])
}

extern "C" fn create(client: u64, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    portals(Files::create, client, [a, b, c, d, e])
}

extern "C" fn remove(a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    let removed = request(|files| files.remove([a, b, c, d, e]));
    answer(removed.map(|done| done.map_or_else(|error| error, |()| 0)))
}

/// The domain is dead.
extern "C" fn gone(asid: u64) -> i64 {
    answer(request(|files| {
        files.gone(asid as u16);
        0
    }))
}
