//! Nothing: cargo demands a target.
