//! The entries of the component, by what callers want.

pub mod info;
pub mod interposition;
pub mod open;
pub mod replacement;
