//! The console: a serial line with a person, or a script, at its other end.
//!
//! Strategy: the driver thread moves bytes between the 16550 and two rings and does little more. What a byte
//! typed *means* is decided when it is read: in *cooked* mode the line discipline takes bytes from the input
//! ring while somebody waits for a line, echoes and edits; in *raw* mode the shell gets them as they came, up
//! to the end of a line. So what is typed or pasted ahead goes to the program that reads it, in that
//! program's mode. Only Ctrl-C is special on arrival, in cooked mode.
//!
//! Nothing is lost at any speed: when the input ring is full, the driver leaves bytes in the UART, whose flow
//! control holds the sender; when there is no room for an echo, the discipline takes no byte.
//!
//! What was shown last is kept, by writer, for whoever looks when the program is gone: [`Log`].
//!
//! What is written in one go comes out in one go, though it takes several calls: `gather`.
//!
//! All of it is [`Console`], under the one lock of the component. Operations never wait: they say `Block` and
//! note that somebody waits in a [`Queue`]; the component puts the thread into that queue, gives up the lock,
//! and ends the call with status `WAIT`, so that the client waits and calls again (`pebble::wait`). They call
//! `wake` with each queue whose waiters shall look again.
//!
//! ```text
//! read(control, max):  lock; r = console.read(control, max, wake); Block(queue) => the thread waits in the queue; unlock;
//!                      Data => return, Block => status WAIT
//! driver thread:       init; loop { P(device); lock; console.service(wake); unlock; interrupt-dispatcher.ack }
//! ```
//!
//! | interface | operation |
//! |---|---|
//! | `console.open` (caller, path) | [`Console::open`], with the family that the portal manager knows (`pm.family`); the control word goes into `pm.create` |
//! | `console.gone` (process server: domain, its name in two words) | [`Console::gone`] |
//! | `console.log` (process server: from which byte) | [`Log::read`] |
//! | the four portals of an open console | [`Console::read`], [`Console::write`], `EINVAL` (no place to seek), [`Console::close`] |
//!
//! `/dev/console` reads lines and writes text. `/dev/console/ctl` belongs to one domain at a time, the shell:
//! to write `rawon` or `rawoff` there sets the mode, `echooff` or `echoon` whether cooked mode echoes
//! (closing it sets `rawoff` and `echoon`), to read waits for a Ctrl-C. `front N` says that the job whose
//! first program is domain N is in the foreground, too, `front` that none is, which a Ctrl-C says as well. In
//! raw mode only that domain is served with input, in cooked mode that domain and what it has in the
//! foreground; all others wait. Among themselves readers that wait look for a line in order of their
//! priority, then in that in which they came.
#![no_std]
#![forbid(unsafe_code)]

mod console;
mod front;
mod gather;
mod line;
mod log;
mod ring;
mod state;
mod uart;

pub use console::{CONSOLE, CONTROL, Console, INPUT_BYTES, OUTPUT_BYTES, QUEUES, Queue, Read, Write};
pub use gather::{LINE_ROOM, MOST_SENT, PLACES};
pub use line::{ECHO_BYTES, Effect, LINE_BYTES, LineDiscipline};
pub use log::Log;
pub use ring::Ring;
pub use state::FORMAT;
pub use uart::{FIFO_BYTES, Registers, Uart16550};
