//! Controlled children: a copy of the caller, or a program that it has spawned and not started.
//!
//! To the table they are children like any other: waited for, killed, and taken along when their controller
//! dies. What they can reach is the portal manager's business; nothing of it is known here but the handler's
//! address.

use crate::TABLE;
use crate::components::console;
use crate::loader::{finish, import, let_go, read, turn};
use crate::services;
use pebble::abi::errno;
use pebble::api::Errno;
use pebble::words::{Asid, VirtAddr};
use pebble_arch::Native;
use pebble_process::PAGE_LIMIT;
use pebble_process::elf::Image;
use pebble_process::startup;
use pebble_process::table::State;

/// A copy of the caller's memory and of the stack in which `sp` points, without a thread.
pub fn fork(parent: Asid, handler: VirtAddr, sp: VirtAddr) -> Result<Asid, Errno> {
    let _loading = turn();
    let plan = {
        let mut table = TABLE.lock();
        if table.is_boot(parent) {
            return Err(errno::EPERM);
        }
        table.prepare(parent)?;
        table.gathered(parent).map(|(plan, _)| *plan).ok_or(errno::ESRCH)?
    };
    let (float, priority) = services::traits(parent)?;
    let child = services::create(float, priority, &plan.limits)?;
    TABLE.lock().create(parent, child, plan, console());
    let build = || {
        let family = TABLE.lock().family(child);
        services::family(child, family)?;
        services::name(child, startup::name_for_rules(&plan.path))?;
        services::keep_share(child, &plan.limits)?;
        services::copy_memory(parent, child, sp)?;
        services::control(child, parent, handler, true)?;
        services::limit(child, plan.limits.portals).map(|_| ())
    };
    finish(child, State::Suspended, build())
}

/// The copy's thread, on the copied stack. A call by itself, so that the parent can get ready for its child
/// before that runs.
pub fn start(parent: Asid, child: Asid, entry: VirtAddr, sp: VirtAddr) -> Result<Asid, Errno> {
    let _loading = turn();
    TABLE.lock().control(parent, child)?;
    match services::thread_fork(child, entry, sp) {
        Ok(_) => {
            let_go(child, State::Running);
            Ok(child)
        }
        Err(error) => finish(child, State::Running, Err(error)),
    }
}

/// All portals of a child that waits to be started lead to the handler; those that it imports, too.
pub fn control(parent: Asid, child: Asid, handler: VirtAddr) -> Result<Asid, Errno> {
    let _loading = turn();
    let plan = TABLE.lock().control(parent, child)?;
    let build = || {
        services::control(child, parent, handler, false)?;
        let data = read(&plan.path)?;
        let image = Image::parse::<Native>(&data, PAGE_LIMIT).map_err(|problem| problem.errno())?;
        import(child, &plan.path, &image, services::open_for)
    };
    finish(child, State::Suspended, build())
}
