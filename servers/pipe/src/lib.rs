//! The pipe server: bytes from writers to readers in other domains, up to 32 a call in registers, up to a page
//! by a window, up to 64 pages that change places ([`Page`]).
//!
//! Strategy: everything is in [`Pipes`], under the one lock of the component. An operation never waits: it
//! says [`Block`](Read::Block) and counts the caller among the waiters of a [`Queue`]; the component gives up
//! the lock, does P on the semaphore of that queue, and tries again. An operation that lets waiters go on
//! hands out a [`Wake`]: so many V on the semaphore of that queue.
//!
//! A thread that sleeps here holds a stack of the component, so no more than [`SLEEPERS`] do, which is what
//! makes a pipe quick; all others are [parked](Pipes::park): they wait in the scheduler, hold nothing, and
//! call again.
//!
//! ```text
//! read(control, max):  loop { lock; r = pipes.read(control, max);
//!                             Data { wake, .. } => unlock; V(wake.queue) wake.count times; return
//!                             Block(queue), few sleep => unlock; P(queue); cut short: lock; pipes.give_up(queue); unlock; EINTR
//!                             Block(queue), or else   => pipes.park(queue); unlock; status WAIT }
//! ```
//!
//! Reads and writes of a few bytes, which latency is measured by, are tried by [`Pipes::read_word`] and
//! [`Pipes::write_word`] first.
//!
//! A semaphore a queue ([`QUEUES`] of them, initially 0, interruptible) is the component's to create, before
//! anybody knows the token of a pipe that needs it ([`Queue::of`]); one V too many wakes a waiter for
//! nothing, which tries again.
//!
//! | interface | operation |
//! |---|---|
//! | `pipe.create` (caller, time) | [`Pipes::create`]; returns the token |
//! | `pipe.open` (caller, path) | [`parse_path`], [`Pipes::open`]; the control word goes into `pm.create`; when that fails: [`Pipes::close`] |
//! | `pipe.abandon` (caller, token, sides: 1 read, 2 write) | [`Pipes::abandon`] |
//! | `pipe.gone` (process server: domain) | [`Pipes::gone`] |
//! | the portals of an open end | [`Pipes::read`], [`Pipes::write`], `EINVAL` (a pipe has no place to seek), [`Pipes::close`], [`Pipes::read_page`], [`Pipes::write_page`], [`Pipes::flip`] |
//!
//! Life of a pipe: its creator makes it, and hands the two paths `/pipe/<token>/r` and `/pipe/<token>/w` to
//! whom it likes; the token is the right to open. A side has *ended* when nobody has it open, and somebody
//! had or nobody can any more: its creator has abandoned the side, or died. When the writing side has ended,
//! readers see the end of the data; when the reading side has, writers get `EPIPE`; when both have, the pipe
//! is gone. A write is whole or waits: lines of up to 32 bytes never mix.
#![no_std]
#![forbid(unsafe_code)]

/// So many threads sleep in the component at once: fewer than it has stacks by what must always get through.
pub const SLEEPERS: isize = 8;

mod pages;
mod pipes;
mod ring;
mod token;

pub use pages::{Lent, Offer, Offers, Page, Pages};
pub use pipes::state::FORMAT;
pub use pipes::{
    BLOCK, Error, PARKED, PIPES, PIPES_PER_DOMAIN, Pipes, QUEUES, Queue, Read, Side, Wake, Write,
};
pub use ring::{RING_BYTES, Ring};
pub use token::{PATH_BYTES, Tokens, parse_path, path};
