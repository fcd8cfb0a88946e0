//! The VM manager over a fake machine.

mod claim;
mod dumps;
mod fixed;
mod flips;
mod forks;
mod fresh;
mod heap;
mod model;
mod portals;
mod ranges;
mod scenes;
mod shown;
mod stacks;
mod windows;
mod world;
