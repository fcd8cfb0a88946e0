//! Measuring components.
#![no_std]
#![forbid(unsafe_code)]
