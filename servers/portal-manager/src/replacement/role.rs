//! Roles, and domains on their way into one.

use crate::manager::{Goal, Slot};
use alloc::string::String;
use alloc::vec::Vec;
use core::num::NonZeroU16;
use pebble_portal::Spec;

/// Who has which role, and who is on the way to one.
#[derive(Default)]
pub(crate) struct Replacement {
    pub roles: Vec<Role>,
    pub successors: Vec<Successor>,
}

/// What outlives the domain that has a role.
pub struct Role {
    pub number: NonZeroU16,
    pub(super) trusted: bool,
    pub(super) exclusive: bool,
    /// Its names stay reserved when its domain dies.
    pub(super) kept: bool,
    /// Entries of the system part of its table, and their words.
    pub(super) system: Vec<(u16, Goal, u64)>,
    /// What else it held.
    pub(super) may: Vec<Goal>,
    /// It imports `nucleus.top`.
    pub(super) top: bool,
    /// Stacks in its queue: so many calls may wait in it at once, in every instance.
    pub(super) stacks: u16,
}

pub(super) struct Offer {
    pub(super) name: String,
    pub(super) spec: Spec,
    pub(super) entry: u64,
}

/// A domain on its way into a role.
pub struct Successor {
    pub(crate) role: NonZeroU16,
    pub(crate) asid: u16,
    pub(super) offers: Vec<Offer>,
    /// Interfaces with their entries in the new domain; clients' slots with their new code. Both empty until
    /// prepared.
    pub(crate) entries: Vec<(u16, u64)>,
    pub(super) portals: Vec<(u16, u16, Slot)>,
    /// Unlisted interfaces, for those who help it into its role.
    pub(super) reached: Vec<u16>,
}
