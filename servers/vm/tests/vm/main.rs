//! The VM manager over a fake machine.

mod claim;
mod model;
mod portals;
mod scenes;
mod windows;
mod world;
