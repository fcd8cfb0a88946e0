//! The portal verifier: accepts or refuses the words of one portal before they are installed.
//!
//! Problem: portal code runs with every privilege, so a mistake in the compiler must not become a hole.
//! Strategy: an allow-list. One pass of abstract interpretation over what the decoder says, against what
//! specification, shape and connection prescribe; whatever it does not recognize is refused. It knows neither
//! emitter nor encoder.
//!
//! What acceptance means (each property is a function in the processor's module):
//! * the code ends: every branch is forward, to an instruction of the same leg, never into the pool;
//! * memory: only the frame being pushed or popped, the words named by shape and connection, the own pool;
//! * control registers get only the values that the connection prescribes;
//! * at every exit each register holds what the specification says, the other side's only where it lets it
//!   pass, or zero;
//! * the return leg restores what the call leg saved, and takes down exactly what it built.
//!
//! No allocation, no formatting: the portal manager runs it on every form that it makes, and a part of it
//! ([`instance`]) on every portal.

mod exit;
mod instance;
mod leg;
mod machine;
mod memory;
mod mips64;
mod riscv64;
mod slot;
mod state;
mod value;
mod way;
mod window;

use crate::hardware::hole::{Facts, Hole};
use crate::hardware::{Connection, Shape};
use crate::{Processor, Spec};
use core::fmt;
pub use instance::{Standing, instance};
use pebble_arch::{Mips64, Riscv64};

/// Why a portal is refused, at which byte of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub at: usize,
    pub reason: Reason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    NotAllowed,
    Branch,
    Unreachable,
    Endless,
    Load,
    Store,
    ControlRegister,
    Float,
    Jump,
    AddressSpace,
    ProgramCounter,
    InvocationStack,
    Interrupts,
    Register(u8),
    Beside,
    Count,
    Semaphore,
    UserStack,
    Frame,
    Description,
    Pool,
    Effect,
    SavedThread,
    FirstOfReturn,
    Window,
    Template,
    Hazard,
    Delayed,
    /// Where a portal lies there is another word than its form has.
    Unlike,
    Hole(Hole),
}

impl Reason {
    pub const fn text(self) -> &'static str {
        match self {
            Reason::NotAllowed => "this instruction has no place in portal code",
            Reason::Branch => "this branch is not one of the known tests, or does not go forward",
            Reason::Unreachable => "no way leads to the code behind this exit, though branches are open",
            Reason::Endless => "the code runs past its end",
            Reason::Load => "this load is not from the frame, the pool, or a word of this connection",
            Reason::Store => {
                "this store is not to the frame or a word of this connection, or not of its value"
            }
            Reason::ControlRegister => "this control register may not be read or written so",
            Reason::Float => "floating point is used while it is off, or not as saving and hiding need it",
            Reason::Jump => "this jump leads to no known place, or leaves with state half changed",
            Reason::AddressSpace => "the address space is not the one that the connection leads to",
            Reason::ProgramCounter => "user mode is not entered where the connection says",
            Reason::InvocationStack => "the invocation stack's top is not where it must be",
            Reason::Interrupts => "interrupts are not on or off as the domains need it",
            Reason::Register(_) => "a register holds what the specification does not let pass",
            Reason::Beside => "registers beside the general ones are not kept, hidden or restored",
            Reason::Count => "the call is not counted as the connection says",
            Reason::Semaphore => "the semaphore is not changed exactly on the way that ends here",
            Reason::UserStack => "the callee's stack is not taken from its queue, kept, and given back",
            Reason::Frame => "the frame has a gap, a wrong size, or no return code on top",
            Reason::Description => "the word before the return code does not describe the frame",
            Reason::Pool => "a constant is not in the pool, or the pool has a wrong size",
            Reason::Effect => "the short-circuit portal does not do what it is for",
            Reason::SavedThread => "the switch does not save the old thread or load the new one",
            Reason::FirstOfReturn => {
                "the return code does not begin with clearing the status, or keeping it where it must"
            }
            Reason::Window => "a window is not opened, or not closed, as its letter says",
            Reason::Template => {
                "a template is missing, is not the registered one, or does what templates may not"
            }
            Reason::Hazard => "a control register is relied upon before what was written to it is there",
            Reason::Delayed => "this may not be executed in the shadow of a branch",
            Reason::Unlike => "this differs from the form that was verified",
            Reason::Hole(_) => "this is not what the connection has for it",
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "offset {:#x}: {}", self.at, self.reason.text())?;
        match self.reason {
            Reason::Register(x) => write!(f, " (register {x})"),
            Reason::Hole(hole) => write!(f, " ({hole:?})"),
            _ => Ok(()),
        }
    }
}

impl core::error::Error for Refusal {}

/// Accepts `words` as the form of portals of this specification and shape between such domains, or says why
/// not: each hole is a symbol there, and any portal is right that is [an instance](instance) of it.
pub fn form(
    words: &[u32],
    spec: &Spec,
    shape: Shape,
    connection: &Connection,
    processor: Processor,
) -> Result<(), Refusal> {
    form_in(&mut Room::default(), words, spec, shape, connection, processor)
}

/// The same for whoever has little stack: what the verifier needs much of is in `room`, whatever was there.
#[inline(never)]
pub fn form_in(
    room: &mut Room,
    words: &[u32],
    spec: &Spec,
    shape: Shape,
    connection: &Connection,
    processor: Processor,
) -> Result<(), Refusal> {
    let facts = &Facts::of(connection);
    match processor {
        Processor::Riscv64 => leg::verify::<Riscv64>(words, spec, shape, facts, &mut room.0),
        Processor::Mips64 => leg::verify::<Mips64>(words, spec, shape, facts, &mut room.0),
        Processor::X86_64 => Err(Refusal { at: 0, reason: Reason::NotAllowed }),
    }
}

/// What is known while portal code is being read.
pub struct Room(leg::Room);

impl Default for Room {
    fn default() -> Self {
        Room(leg::Room::new())
    }
}
