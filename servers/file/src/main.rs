//! The file server's component: entries around [`Files`], one lock. The archive is parsed at the first
//! request.
#![no_std]
#![no_main]
#![forbid(unsafe_code)]

extern crate alloc;

use alloc::vec::Vec;
use pebble::abi::{capability, errno, map, sys};
use pebble::api::Errno;
use pebble::buffer::Window;
use pebble::handover::Handover;
use pebble::io::FilePortals;
use pebble::link::More;
use pebble::portal::Broken;
use pebble::sync::Lock;
use pebble::words::{Asid, VirtAddr};
use pebble::{policy, region};
use pebble_boot::Policy;
use pebble_boot::rules::{Patterns, RuleSet};
use pebble_file::{Archive, Client, FORMAT, Files, length};

pebble::import! {
    WHOSE = "pm.whose";
    FAMILY: pm::Family;
    RIGHTS = "name.rights";
    FIRST = "name.first";
    CALL_SITE: pm::CallSite;
    SHOW: vm::Show;
}
// The portals of an open file, in the order of `sys::FILE_READ` and its fellows.
pebble::interfaces!();
pebble::replaceable!(FILES: Served, Vec::new());
pebble::component!(main);

/// No thread of its own.
fn main() -> i64 {
    0
}

/// Addresses that the archive may take.
const ARCHIVE_MAX: usize = (map::PHYS_VA - map::ARCHIVE_VA) as usize;

static FILES: Lock<Served> = Lock::new(Served(None));

/// `None`: nobody has asked yet, or there is no sound archive, or no telling which rules there are.
struct Served(Option<Files<'static>>);

impl Served {
    fn files(&mut self) -> Result<&mut Files<'static>, Errno> {
        if self.0.is_none() {
            self.0 = load();
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
fn load() -> Option<Files<'static>> {
    let len = length(region::archive, ARCHIVE_MAX).ok()?;
    let Policy { rules, .. } = pebble_boot::beginning(region::boot_info()).ok()?;
    let files = Files::new(Archive::parse(region::archive(len)).ok()?);
    Some(files.under(Patterns::of(&rules, capability::FILE)))
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
    if let Some(made) = PORTALS.page(control, whence) {
        return answer(made.map(|index| index as i64));
    }
    if whence == sys::SEEK_SHOW {
        return answer(show(control, offset));
    }
    answer(request(|files| files.seek(control, offset, whence)))
}

/// The client sees the file from there on: where, and how many bytes that are.
#[cold]
fn show(control: u64, offset: u64) -> Result<i64, Errno> {
    let bytes = request(|files| files.pages(control, offset))??;
    // A controller that passes the call on is not the client.
    let site = Errno::answer(CALL_SITE.call().map_err(Broken::errno)?)?;
    let (at, pages) = (bytes.as_ptr() as u64, (bytes.len() as u64).div_ceil(map::PAGE));
    let shown = SHOW.call(Asid(site >> 16 & 0xffff), VirtAddr(at), pages).map_err(Broken::errno)?;
    Errno::answer(shown).map(|_| (at + bytes.len() as u64 * sys::SHOWN_SIZE) as i64)
}

extern "C" fn close(control: u64) -> i64 {
    answer(request(|files| files.close(control)))
}

/// Into the page that the client lends, from that byte on.
extern "C" fn read_page(control: u64, at: VirtAddr, count: u64) -> i64 {
    let copied = Window::page(at.get()).and_then(|window| {
        request(|files| {
            let bytes = files.read_on(control, count.min(window.len() as u64))?;
            window.write(0, bytes).map(|()| bytes.len() as i64)
        })?
    });
    answer(copied)
}

/// Out of it.
extern "C" fn write_page(control: u64, at: VirtAddr, count: u64) -> i64 {
    let copied = Window::page(at.get()).and_then(|window| {
        request(|files| files.write_on(control, count, window.len(), |place| window.read(0, place)))?
    });
    answer(copied.map(|count| count as i64))
}

static PORTALS: FilePortals = FilePortals::new("file.read");

type Words = [u64; 5];
type Opening = fn(&mut Files<'static>, Client, Words, u16) -> Result<u64, Errno>;

/// A request about a path, with the rights that whoever makes it has there. Most paths no rule is about; of
/// the others the name server is asked, without the lock: what a rule says of a path does not change.
fn with_rights(path: Words, work: impl Fn(&mut Files<'static>, u16) -> Result<u64, Errno>) -> i64 {
    let mut sets = Vec::new();
    let outcome = request(|files| {
        sets = files.guarded(path);
        if sets.is_empty() { work(files, capability::ALL) } else { Ok(0) }
    });
    let outcome = if sets.is_empty() {
        outcome
    } else {
        rights(&sets).and_then(|rights| request(|files| work(files, rights)))
    };
    answer(outcome.flatten().map(|value| value as i64))
}

/// At the last of these places, if there are some at each.
fn rights(sets: &[RuleSet]) -> Result<u16, Errno> {
    let (who, mut rights) = (policy::whose(&WHOSE)?, capability::ALL);
    for set in sets {
        rights = match set {
            0 => capability::ALL,
            _ => policy::rights(&RIGHTS, who, capability::FILE, *set)?,
        };
        if rights == 0 {
            return Err(errno::EACCES);
        }
    }
    Ok(rights)
}

/// Portals to what `how` opens, in the client's table.
fn portals(how: Opening, client: Asid, path: Words) -> i64 {
    FILES.prepare();
    let Ok(family @ 0..) = FAMILY.call(client) else { return -errno::ESRCH };
    let client = Client { asid: client, family: family as u16 };
    let control = with_rights(path, |files, rights| how(files, client, path, rights));
    if control < 0 {
        return control;
    }
    PORTALS.create(control as u64).map_or_else(
        |error| {
            close(control as u64);
            -error
        },
        |index| index as i64,
    )
}

extern "C" fn open(client: Asid, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    portals(Files::open, client, [a, b, c, d, e])
}

extern "C" fn create(client: Asid, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    portals(Files::create, client, [a, b, c, d, e])
}

extern "C" fn make(client: Asid, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    portals(Files::make, client, [a, b, c, d, e])
}

extern "C" fn rename(client: Asid, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    with_rights([a, b, c, d, e], |files, rights| files.rename(client, [a, b, c, d, e], rights).map(|()| 0))
}

extern "C" fn rename_to(client: Asid, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    with_rights([a, b, c, d, e], |files, rights| files.rename_to(client, [a, b, c, d, e], rights).map(|()| 0))
}

extern "C" fn remove(_: u64, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    let path = [a, b, c, d, e];
    with_rights(path, |files, rights| files.remove(path, rights).map(|()| 0))
}

extern "C" fn fixed(_: Asid, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    let path = [a, b, c, d, e];
    with_rights(path, |files, rights| files.fixed(path, rights))
}

/// For first holders: a capability for the file there, and whatever else its rule is about. Their name for
/// it.
extern "C" fn capability(client: Asid, a: u64, b: u64, c: u64, d: u64, e: u64) -> i64 {
    let about = request(|files| files.guarded([a, b, c, d, e]).pop().filter(|set| *set != 0));
    let about = about.and_then(|about| about.ok_or(errno::ENOENT));
    answer(
        about
            .and_then(|about| policy::first(&FIRST, client, capability::FILE, about))
            .map(|name| name as i64),
    )
}

/// The domain is dead.
extern "C" fn gone(asid: Asid) -> i64 {
    answer(request(|files| {
        files.gone(asid);
        0
    }))
}
