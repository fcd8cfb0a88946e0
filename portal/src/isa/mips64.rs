//! mips64 release 2, little-endian: the instructions that portal code is made of.
pub mod decode;
pub mod encode;
