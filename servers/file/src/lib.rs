//! The file server: the read-only archive of the image, and files in memory under `ram/`, up to 32 bytes a call
//! in registers, up to a page by a window.
//!
//! Strategy: the archive (`cpio`, format `newc`) is parsed once, into a sorted list of paths that borrow from
//! it; a look-up is a binary search. An open file is an entry of a table with the place up to which it has
//! been read; nothing blocks, so the component runs each operation under its one lock and returns.
//!
//! | interface | operation |
//! |---|---|
//! | `file.open` (caller, path) | [`Files::open`]; the control word goes into `pm.create`; when that fails: [`Files::close`] |
//! | `file.create`, `file.make`, `file.remove` (caller, path) | [`Files::create`], [`Files::make`], [`Files::remove`]: under `ram/` |
//! | `file.rename`, then `file.rename_to` (caller, path) | [`Files::rename`], [`Files::rename_to`]: two paths are more than a call carries |
//! | `file.capability` (caller, path) | a first capability, from the name server |
//! | `file.gone` (process server: domain) | [`Files::gone`] |
//! | the portals of an open file | [`Files::read`], [`Files::write`], [`Files::seek`], [`Files::close`], [`Files::read_on`], [`Files::write_on`], [`Files::pages`] |
//!
//! What the rules of the system say about files is asked of the name server where [`Files::guarded`] says
//! that a path may be theirs: before it is looked up, so that a refusal says nothing of what is there.
//!
//! A successor takes over with [`Files::save`] and [`Files::load`].
//!
//! Files of the archive never change. Those with pages of their own clients may see as they lie there: the VM
//! manager shows them (`vm.show`).
//!
//! Where the archive ends is found by [`length`], since only its start is known.
//!
//! Results are the value of the call, or a negative error number of `pebble_abi::errno`, as they go back to
//! the client.
//!
//! A directory reads as text: the names in it, sorted, one a line, `/` after those of directories.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod archive;
mod files;
mod newc;
mod path;
mod ram;

pub use archive::{Archive, ArchiveError, Contents, Problem};
pub use files::{Client, FILES, FILES_PER_DOMAIN, FORMAT, Files, SEEK_CUR, SEEK_END, SEEK_SET};
pub use newc::length;
pub use ram::{RAM_FILE_MAX, RAM_FILES, RAM_MAX};
