//! Software fault isolation's wall: portals between a process and the fault domains in it, and between two
//! fault domains.
//!
//! Problem: the same specification language, but no address space to switch and no privileged code: a portal
//! runs in the process, on stacks that the callee cannot reach. Strategy: [`Door`] is the specification as
//! these portals read it, [`Crossing`] is what is known when it is opened; [`ir`] lowers both to neutral
//! steps, [`emit`] makes machine code of them, [`verify`] judges the bytes.
//!
//! What the code relies on, and keeps:
//! * A return stack ends at a multiple of [`STACK_BYTES`]; its [`record`] is the last thing in it. The
//!   address of the last byte, called its *mark*, names it: `stack pointer | STACK_BYTES-1`.
//! * A thread's *current* mark, thread-local at [`Crossing::current`], is that of the stack it keeps in the
//!   instance whose base is in `gs`. So one comparison finds the thread's stack and proves `gs`.
//! * `record::TOP` is where the innermost call into the stack pushed its frame. Frame, downwards: the host's
//!   stack pointer; across, the caller's return stack pointer too; the address behind the call, in portal
//!   code, whose upper half is zero when no call is outstanding.
//! * A thread's *inside* word, thread-local behind the current mark, is 0 while portals may be called: not in
//!   portal code, nor in a domain, nor in the runtime. A portal in takes it first, so a signal handler that
//!   has interrupted any of these is refused with [`REENTERED`]; and what the portal then does with the
//!   current mark, `gs` and the stacks is its own. While the word is taken, the current mark says which
//!   instance the thread is in or about to enter, before the portal asks whether its stack there is alive:
//!   who ends stacks looks at both.
//! * Behind the call comes [`STATUS_BYTES`] of code that zero the status: a fault's way back begins after it,
//!   with a status.

pub mod emit;
pub mod ir;
pub mod record;
pub mod verify;

pub use ir::*;
