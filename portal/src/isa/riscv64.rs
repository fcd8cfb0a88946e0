//! rv64: the uncompressed instructions that portal code is made of.
pub mod decode;
pub mod encode;
