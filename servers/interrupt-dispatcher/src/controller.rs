//! The board's interrupt controller. There is a module for each kind; all have the same functions.

mod plic;
pub use plic::*;
