//! `pebble bench sfi`: what confinement costs real programs, beside the paper's figures and today's
//! alternatives.
//!
//! * [`manifest`] which programs, [`source`] where their sources come from, [`real`] projects built as they
//!   are
//! * [`compile`], [`libc`], [`wasm`] and [`side`] what is made of them
//! * [`measure`] time, [`count`] instructions, [`size`] code, [`crossing`] calls, as rows of `pebble-rows`
//! * [`report`], [`table`] and [`figure`] what is told of it, [`paper`] what it is compared with
#![forbid(unsafe_code)]

mod command;
pub mod compile;
mod count;
mod crossing;
mod figure;
mod libc;
mod manifest;
mod measure;
mod paper;
pub mod place;
mod real;
mod report;
mod side;
mod size;
mod source;
mod table;
mod wasm;

pub use command::{Options, bench};
