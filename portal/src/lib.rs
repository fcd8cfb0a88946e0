//! The portal compiler: pure functions from specification, connection and processor to code, and their
//! verifiers.
//!
//! [`spec`] parses the specification string, which is the same for both walls. [`hardware`] has the portals
//! between domains that the MMU keeps apart, [`fault`] those of fault domains in a process; each with an
//! intermediate representation, emitters and verifiers. [`isa`] has what both need of an instruction set: an
//! encoder and, apart from it, a decoder; [`asm`] is what emitters put code together with. The [`Processor`]
//! is a value: every host builds and tests every back end.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod asm;
pub mod fault;
pub mod hardware;
pub mod isa;
pub mod spec;

pub use pebble_arch::Processor;
pub use spec::{Spec, SpecError};
