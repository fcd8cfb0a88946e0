//! The words at the end of a return stack, as offsets from the start of its last [`BYTES`].

pub const BYTES: i32 = 128;
/// Segment base shifted right by 32 (4 bytes), then the thread's number (4 bytes).
pub const SLOT: i32 = 0;
pub const THREAD_ID: i32 = 4;
/// Where a call into this stack pushes its frame.
pub const TOP: i32 = 8;
/// Data stack pointer of a call into this stack.
pub const DATA: i32 = 16;
/// Mark of the stack that the thread keeps in this instance.
pub const HOME: i32 = 24;
/// At home: first unused stack of the thread's part of the queue. Elsewhere: the next one.
pub const QUEUE: i32 = 32;
/// At home: table of the thread's homes in the instances that this one calls.
pub const LINKS: i32 = 40;
/// Identity of the instance, for functions of the process.
pub const DOMAIN: i32 = 48;
/// For the runtime: the thread's block and the instance.
pub const THREAD: i32 = 56;
pub const INSTANCE: i32 = 64;
/// Where the stack's first frame goes: `TOP` while nobody is in it.
pub const BOTTOM: i32 = 72;
/// Data stack's top while nobody is in it, and its lowest byte.
pub const DATA_BOTTOM: i32 = 80;
pub const DATA_LIMIT: i32 = 88;
/// For the runtime: address of the thread's current mark and inside word.
pub const WORDS: i32 = 96;
/// Of the thread's own stack.
pub const STACK_LIMIT: i32 = 104;
/// For the runtime, at home: the last stack that was made for the thread's part of the queue; elsewhere the
/// one before it.
pub const SIBLING: i32 = 112;

/// Distance of a field from the mark.
pub const fn from_mark(field: i32) -> i32 {
    field - (BYTES - 1)
}
