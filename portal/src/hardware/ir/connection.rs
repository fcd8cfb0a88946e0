//! What is known when a portal is made: between whom, and of which kind it is.

use crate::hardware::template::Template;

/// What portal code must know of a domain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Domain {
    pub asid: u16,
    /// What the processor is told to change to this address space.
    pub space: u64,
    /// Its code may use floating point.
    pub float: bool,
    /// Runs with interrupts off, on one fixed stack.
    pub exclusive: bool,
    /// Initial stack pointer, if exclusive.
    pub fixed_stack: u64,
    /// Of the image: its calls may use the reserve of the invocation stack, so that a program that has filled
    /// its own part cannot make a server fail; and what does not fit there either is refused, so that none
    /// dies of it. Never together with `float`, whose frames are too long for it.
    pub trusted: bool,
    /// Direct address (`map::direct`) of its level-1 page table: for portals by which it lends pages.
    pub l1: u64,
    /// Direct address of its window control page: for portals by which it receives pages. 0: it has none.
    pub windows: u64,
}

/// One connection: who calls whom, with what compiled in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Connection<'a> {
    pub caller: Domain,
    pub callee: Domain,
    /// Entry point in the callee.
    pub entry: u64,
    /// Index in the caller's table.
    pub index: u16,
    /// For `c` arguments.
    pub constant: u64,
    /// Count calls in this counter (`map::counter_va`).
    pub counter: Option<u16>,
    /// The callee answers for another portal: the status is what it leaves in `a1`, not 0. For stubs, which
    /// lead into a controller.
    pub keeps_status: bool,
    /// The domain for which the caller calls, and which `a` tells; 0: for itself.
    pub subject: u16,
    /// All registered templates; the letters of the specification choose among them.
    pub templates: &'a [Template],
}

impl Connection<'_> {
    /// What `a` tells the callee.
    pub const fn told(&self) -> u16 {
        if self.subject != 0 { self.subject } else { self.caller.asid }
    }
}

/// The kinds of portal. All but `Call`, `Wait`, `Signal` and `Tail` ignore the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Call leg and return leg.
    Call,
    /// Hybrid P on the semaphore: finishes here when the word is positive, else a call.
    Wait(u16),
    /// Hybrid V on the semaphore: finishes here when the word is not negative, else a call.
    Signal(u16),
    /// A call without a frame: the callee returns to whoever called the caller.
    Tail,
    /// Short-circuit portals.
    Short(Short),
    /// The scheduler's: in the registers of results, where its entry has left them, the thread to run and the
    /// result of its pending call.
    Switch,
    /// Table entry 0: runs the return code of the top frame.
    Dispatch,
    /// An index that is not held: the domain's exception entry.
    None,
    /// Every entry of a dead domain's table: error return, with `DEAD`, to whoever called the domain.
    Bounce,
    /// The same with this code: the domain says so itself. With `TIMEOUT`, behind the gate's second stub, if
    /// the top frame is that of a late call (`Arch::LATE`); if not, the domain's exception.
    Leave(u16),
    /// Bottom of the invocation stack: goes on through the table entry `THREAD_END` of the thread's domain.
    ThreadEnd,
    /// That entry: enters the callee (the scheduler's `thread_exit`) for good. It begins behind a jump: who
    /// names the index in a call, be it in the midst of somebody else's, raises the domain's exception.
    ThreadExit,
    /// Full save, then the callee: the cause.
    Interrupt,
    /// Full save, then the callee: cause, value, address, domain, thread, the register of the index.
    Exception,
    /// Full save, then the callee: the domain that has no stack, or place for a window; afterwards the call
    /// is repeated.
    NoStack,
}

/// What a short-circuit portal does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Short {
    /// Returns these two words (value, status).
    Constant {
        value: i64,
        status: u64,
    },
    ThreadId,
    /// Address of the invocation stack's top word: for the portal manager, which reads thread blocks.
    Top,
    Time,
    /// `p1`: absolute time of the next timer interrupt.
    SetTimer,
    /// `p1`: domain whose translations are dropped.
    Flush,
    /// `p1`: domain, modulo their number. Returns whether it has moved a stack.
    Stacks(Stacks),
    /// Waits for an interrupt. Only for a caller that runs with interrupts on: with `sie` clear nothing ends
    /// the wait.
    Idle,
}

/// What the scheduler may have done to the stack queue of a domain. It names no stack and no address: each
/// stays in the queue of its domain, or among those kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stacks {
    /// The first in the queue is kept. A queue that is empty then gets the end that makes callers wait
    /// (`map::STACKS_WANTED`).
    Keep,
    /// The first of those kept is in the queue, for whoever calls next: behind it comes the plain end, unless
    /// there are others.
    Offer,
    /// If the queue is empty, and callers wait: it gets all that are kept, and the plain end.
    Release,
}
