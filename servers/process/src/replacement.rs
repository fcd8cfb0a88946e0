//! Replacing a component while it is called, and putting a new one in the place of one that died.
//!
//! **Problem.** The file comes from somebody who may have erred, the component may be needed to load it, and
//! its clients go on calling. **Strategy.** Everything that can fail is done before anybody notices: load,
//! connect, compile the clients' portals. Then the old instance hands its state over
//! ([`pebble::abi::handover`]); from that instant its calls are repeated by their callers' libraries until
//! the commit, one step later. A successor that refuses the state is buried, and the old one resumes.
//!
//! **Invariants:**
//! * at every moment at most one instance answers; between hand-over and commit none does, and nothing of the
//!   component is used here;
//! * the old domain is buried only when no thread is in a call that it has not answered, or after
//!   [`LAST_CALLS`].

use crate::components::{self, Part};
use crate::kept::Contents;
use crate::loader::{self, Why};
use crate::{TABLE, services};
use alloc::vec::Vec;
use pebble::abi::handover as ask;
use pebble::abi::link;
use pebble::abi::map::{HEAP_END, TIME_HZ};
use pebble::abi::{errno, sys};
use pebble::api::{self, Errno, PortalError};
use pebble::portal;
use pebble::sync::Lock;
use pebble::wait::{self, Parking};
use pebble::words::{Asid, VirtAddr};
use pebble_arch::Native;
use pebble_process::elf::Image;
use pebble_process::startup::{self, Path};

/// Pages that a component may have, at first.
const PAGES: u64 = 4096;
/// Looks, a millisecond apart, at a successor that is to get ready, and at an old instance that has calls to
/// finish.
const PATIENCE: u32 = 2000;
const LAST_CALLS: u32 = 2000;

/// Components whose names are kept when they die, by role; those that have died and wait for somebody to
/// care.
static KEPT: Lock<Vec<u16>> = Lock::new(Vec::new());
static DEATHS: Lock<Vec<(u16, Asid)>> = Lock::new(Vec::new());
/// Those that care.
static CARE: Parking<1> = Parking::new(&services::WILL_WAKE, &services::WAKE);

pub fn prepare() {
    KEPT.prepare();
    DEATHS.prepare();
    CARE.prepare();
}

/// Whether the component's clients wait for another one when it dies.
pub fn keep(name: Path, keep: bool) -> Result<(), Errno> {
    let role = components::role(&name)?;
    services::keep_role(role, keep)?;
    let mut kept = KEPT.lock();
    kept.retain(|r| *r != role);
    if keep {
        kept.push(role);
    }
    Ok(())
}

/// A component has died, and its portals lead nowhere.
pub fn has_died(domain: Asid, name: &Path) {
    let Some(role) = components::role(name).ok().filter(|role| KEPT.lock().contains(role)) else { return };
    DEATHS.lock().push((role, domain));
    CARE.wake(0);
}

/// The next component that has died, once there is one: its domain, and its name.
pub fn next_death() -> Result<(Asid, Path), Errno> {
    let mut deaths = DEATHS.lock();
    if deaths.is_empty() {
        CARE.enter(0);
        drop(deaths);
        wait::leave();
    }
    let (role, domain) = deaths.remove(0);
    drop(deaths);
    components::part(role).map(|part| (domain, part.name))
}

/// The component with this name gets a new instance from this file. Returns the new domain, or `ENOSYS` when
/// the old one hands nothing over.
pub fn replace(name: Path, path: Path) -> Result<Asid, Errno> {
    let _loading = loader::turn();
    let part = components::part(components::role(&name)?)?;
    let old = services::holder(part.role)?;
    let old = old.map(|old| leaving(&part).map(|door| (old, door))).transpose()?;
    let data = loader::read(&path)?;
    let image =
        Image::parse::<Native>(&data, PAGES).map_err(|problem| loader::refuse(&path, Why::File(problem)))?;
    let new = services::create_component(image.float, part.priority)?;
    TABLE.lock().boot(new, part.name);
    let made = build(new, &part, &path, (&data, &image)).and_then(|()| match &old {
        Some((old, from)) => hand_over(*old, from, new, &part, &path, VirtAddr(image.entry)),
        None => revive(new, &part, VirtAddr(image.entry)),
    });
    match made {
        Ok(()) => {
            if let Some((old, from)) = old {
                drop(from);
                retire(old);
            }
            Ok(new)
        }
        Err(error) => {
            services::abandon(new);
            end(new);
            Err(error)
        }
    }
}

/// Loads and connects; nobody but the portal manager knows of it yet.
fn build(new: Asid, part: &Part, path: &Path, (file, image): (&Contents, &Image)) -> Result<(), Errno> {
    services::name(new, startup::name(&part.name))?;
    for segment in &image.segments {
        loader::load(new, file, segment)?;
    }
    services::heap(new, VirtAddr(image.end().max(HEAP_START)))?;
    components::grant(part.role, new)?;
    services::adopt(part.role, new)?;
    loader::import(new, path, image, services::import)?;
    for export in &image.exports {
        let offered = own_name(&part.name, export.name)
            .map_err(PortalError::Errno)
            .and_then(|name| services::offer(new, name, export.spec, export.entry));
        offered.map_err(|error| loader::refuse(path, Why::Export(export.name.into(), error)))?;
    }
    services::prepare(new).map_err(|error| loader::refuse(path, Why::Incomplete(error)))?;
    Ok(())
}

/// Behind the pages where a component of the image may have devices.
const HEAP_START: u64 = 0x20_0000;
const _: () = assert!(HEAP_START < HEAP_END);

/// `self.method` is `NAME.method`; the interrupt dispatcher's own name would be too long.
fn own_name(component: &Path, name: &str) -> Result<[u64; 3], Errno> {
    let Some(method) = name.strip_prefix("self.") else {
        return link::pack::<3>(name).ok_or(errno::ENAMETOOLONG);
    };
    let [a, b] = startup::name(component);
    let mut bytes = [0; link::NAMELEN];
    let len = link::unpack(&[a, b], &mut bytes);
    let own = core::str::from_utf8(&bytes[..len]).unwrap_or_default();
    let own = if own.starts_with("interrupt-") { "irq" } else { own };
    link::pack::<3>(&alloc::format!("{own}.{method}")).ok_or(errno::ENAMETOOLONG)
}

/// Its role had nobody: it begins as at boot.
fn revive(new: Asid, part: &Part, entry: VirtAddr) -> Result<(), Errno> {
    services::commit(new)?;
    if part.thread { services::spawn_thread(new, entry).map(|_| ()) } else { Ok(()) }
}

/// An entry of one of the two instances.
struct Door(usize);

impl Door {
    fn ask(&self, words: [u64; 5]) -> Result<u64, Errno> {
        api::answer(portal::call(self.0, words))
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        let _ = api::portal_close(self.0, 1);
    }
}

/// The old instance's side of the hand-over.
fn leaving(part: &Part) -> Result<Door, Errno> {
    let door = own_name(&part.name, "self.handover").and_then(|name| services::open_own(&name));
    door.map(Door).map_err(|_| errno::ENOSYS)
}

fn hand_over(
    old: Asid,
    from: &Door,
    new: Asid,
    part: &Part,
    path: &Path,
    entry: VirtAddr,
) -> Result<(), Errno> {
    let into = Door(services::reach(new, &own_name(&part.name, "self.takeover")?)?);
    into.ask([ask::PREPARE, 0, 0, 0, 0])?;
    if part.thread {
        services::spawn_thread(new, entry)?;
        (0..PATIENCE).find(|_| into.ask([ask::WAITS, 0, 0, 0, 0]) == Ok(1) || !nap()).ok_or(errno::EAGAIN)?;
    }
    services::let_leave(old)?;
    let (format, length) = leave(from)?;
    let taken = pour(from, &into, length).and_then(|()| into.ask([ask::FINISH, format, length, 0, 0]));
    let taken = taken.map_err(|error| loader::refuse(path, Why::State(error)));
    if let Err(error) = taken.and_then(|_| services::commit(new)) {
        let _ = from.ask([ask::RESUME, 0, 0, 0, 0]);
        return Err(error);
    }
    Ok(())
}

/// The old instance answers nobody from here on. Its format, and how long its state is.
fn leave(from: &Door) -> Result<(u64, u64), Errno> {
    match portal::call_wide(from.0, [ask::LEAVE, u64::MAX, sys::LEAVE_MOVED as u64]) {
        Ok((format, [length, ..])) => Ok((Errno::answer(format)?, length)),
        Err(_) => Err(errno::EIO),
    }
}

/// The state, chunk by chunk.
fn pour(from: &Door, into: &Door, length: u64) -> Result<(), Errno> {
    let mut done = 0;
    while done < length {
        match portal::call_wide(from.0, [ask::READ, done]) {
            Ok((count @ 1.., [a, b, c, d])) => {
                into.ask([ask::append(count as usize), a, b, c, d])?;
                done += count as u64;
            }
            _ => return Err(errno::EIO),
        }
    }
    Ok(())
}

/// Sleeps a millisecond; true unless that was cut short.
fn nap() -> bool {
    api::hrsleep(portal::time() + TIME_HZ / 1000).is_ok()
}

/// The old instance ends, once its last calls are answered.
fn retire(old: Asid) {
    for _ in 0..LAST_CALLS {
        if !services::busy(old) || !nap() {
            break;
        }
    }
    services::discharge(old);
    end(old);
}

fn end(domain: Asid) {
    TABLE.lock().succeeded(domain);
    services::signal();
}
