//! x86-64: the instructions that portals between fault domains are made of.
pub mod decode;
pub mod encode;
