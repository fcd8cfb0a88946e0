//! The shell's own thinking, without a system around it: keys to lines, lines to jobs, numbers to tables.
//!
//! * [`Decoder`] turns the bytes of a terminal into [`Key`]s, whatever they are
//! * [`Editor`] edits a line on a terminal row: history, completion, the keys that fingers know
//! * [`parse`] turns a line into [`Job`]s: pipelines of commands of [`Word`]s, with what they read and write
//! * [`Table`] lays out columns; [`format`] has the tables of `ps`, `portals`, `names` and `top`
//! * [`log`] shows what programs have written, and which of them
//!
//! The component reads the console in raw mode, gives each byte to [`Editor::feed`], writes what that puts
//! out, and runs the line that it returns.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod decode;
mod editor;
pub mod format;
mod lexer;
pub mod log;
mod parse;
mod table;
mod word;

pub use decode::{Decoder, Key};
pub use editor::{Editor, Event, HISTORY};
pub use parse::{Command, Job, ParseError, Problem, Redirection, Target, parse};
pub use table::{Align, Table};
pub use word::{STATUS, Word, is_name};
