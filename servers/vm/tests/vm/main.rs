//! The VM manager over a fake machine.

mod model;
mod scenes;
mod world;
