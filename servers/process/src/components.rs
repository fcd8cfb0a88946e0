//! What the image says of its components: what a replacement needs to be their like.

use crate::{CONSOLE, services};
use alloc::vec::Vec;
use pebble::abi::errno;
use pebble::api::Errno;
use pebble::region;
use pebble::sync::Lock;
use pebble::words::Asid;
use pebble_boot::{BootInfo, Grant};
use pebble_process::startup::{self, Path};

/// One component. Its role is the number of the domain that it had at boot.
pub struct Component {
    pub role: u16,
    pub name: Path,
    pub priority: u8,
    /// Has a thread of its own.
    pub thread: bool,
    /// Pages of devices and of the image.
    pub grants: Vec<Grant>,
}

static COMPONENTS: Lock<Vec<Component>> = Lock::new(Vec::new());

/// Reads the boot information; once, before anybody calls.
pub fn prepare() -> Vec<(Asid, Path)> {
    COMPONENTS.prepare();
    let Ok(info) = BootInfo::decode(region::boot_info()) else { return Vec::new() };
    let component = |d: &pebble_boot::Domain| Component {
        role: d.asid,
        name: startup::path(&d.name),
        priority: info.threads.iter().find(|t| t.asid == d.asid).map_or(d.priority, |t| t.priority),
        thread: info.threads.iter().any(|t| t.asid == d.asid),
        grants: info.grants.iter().filter(|g| g.asid == d.asid).copied().collect(),
    };
    let all: Vec<Component> = info.domains.iter().map(component).collect();
    let named = all.iter().map(|c| (c.role.into(), c.name)).collect();
    *COMPONENTS.lock() = all;
    named
}

/// Of a component, by its role.
#[derive(Clone)]
pub struct Part {
    pub role: u16,
    pub name: Path,
    pub priority: u8,
    pub thread: bool,
}

pub fn part(role: u16) -> Result<Part, Errno> {
    let components = COMPONENTS.lock();
    let c = components.iter().find(|c| c.role == role).ok_or(errno::ESRCH)?;
    Ok(Part { role, name: c.name, priority: c.priority, thread: c.thread })
}

/// The role of the component with this name; its first 16 letters are enough, or, for the interrupt
/// dispatcher, what its interfaces begin with.
pub fn role(name: &Path) -> Result<u16, Errno> {
    let dispatcher = startup::path("interrupt-dispatcher");
    let name = if *name == startup::path("irq") { &dispatcher } else { name };
    COMPONENTS.lock().iter().find(|c| c.name[..2] == name[..2]).map(|c| c.role).ok_or(errno::ESRCH)
}

/// Maps into a fresh domain what the role has from the image.
pub fn grant(role: u16, domain: Asid) -> Result<(), Errno> {
    let grants = COMPONENTS.lock().iter().find(|c| c.role == role).map(|c| c.grants.clone());
    grants.unwrap_or_default().iter().try_for_each(|g| services::map_foreign(domain, g).map(|_| ()))
}

/// The console's path, as calls carry it.
pub fn console() -> Path {
    startup::path(CONSOLE)
}
