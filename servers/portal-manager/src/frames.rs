//! Reading invocation stacks: which portals and domains do suspended threads still depend on?
//!
//! Each frame's top word is the address of its return code; the word before that code says how long the frame
//! is and which domains it connects. So a stack is walked from the top down, without knowing any portal.

use crate::Machine;
use pebble_abi::{map, thread};
use pebble_arch::Arch;
use pebble_portal::hardware::instance::Site;

/// One frame of a suspended thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Offset of its return code in the arena.
    pub code: u64,
    /// Offset in the thread block of its lowest word: of a call, the address at which the caller goes on.
    pub base: u64,
    /// Offset of its highest word, the address of the return code.
    pub top: u64,
    pub caller: u16,
    pub callee: u16,
    /// Of the portal in the caller's table.
    pub index: u16,
}

/// The thread that asks, and the top of its invocation stack, which its block does not hold while it runs.
#[derive(Clone, Copy, Debug)]
pub struct Current {
    pub tid: u16,
    pub top: u64,
}

/// Offset of the word at this address in the thread's block, if it may be a frame's top word, and the word.
#[inline(always)]
fn word(machine: &impl Machine, tid: u16, top: u64) -> Option<(u64, u64)> {
    let offset = top.wrapping_sub(map::thread_va(tid));
    let fits = (thread::FRAMES..map::PAGE).contains(&offset) && offset.is_multiple_of(8);
    fits.then(|| (offset, machine.thread_word(tid, offset)))
}

/// Offset in the arena of the return code at this address, be it a late call's.
const fn offset<A: Arch>(ret: u64) -> u64 {
    (ret & !A::LATE).wrapping_sub(map::CODE_VA)
}

/// The word before the return code at this address: words of the frame, caller, callee, index in the caller's
/// table, 16 bits each.
pub fn description<A: Arch>(machine: &impl Machine, ret: u64) -> Option<u64> {
    let code = offset::<A>(ret);
    let fits = (8..map::CODE_BYTES).contains(&code) && code.is_multiple_of(8);
    fits.then(|| machine.code_word(code - 8))
}

/// The frame with this top word; `None` if it does not look like one.
#[inline(always)]
fn frame<A: Arch>(machine: &impl Machine, (top, ret): (u64, u64)) -> Option<Frame> {
    let word = description::<A>(machine, ret)?;
    let code = offset::<A>(ret);
    let size = (word & 0xffff) * 8;
    let base = (top + 8).wrapping_sub(size);
    let (caller, callee, index) = ((word >> 16) as u16, (word >> 32) as u16, (word >> 48) as u16);
    (size != 0).then_some(Frame { code, base, top, caller, callee, index })
}

/// From now on the call that has pushed the frame may end with `TIMEOUT`, and no other: the mark goes with
/// the frame. False: it has it already.
pub fn make_late<A: Arch>(machine: &mut impl Machine, tid: u16, frame: Frame) -> bool {
    let ret = (map::CODE_VA | A::LATE) + frame.code;
    let fresh = machine.thread_word(tid, frame.top) != ret;
    machine.set_thread_word(tid, frame.top, ret);
    fresh
}

/// Calls `visit` for every frame of a thread, the bottom (the thread's end) not included, until it returns
/// true. Returns whether it did. Anything that does not look like a frame ends the walk as if it had: nothing
/// is freed on a doubt.
pub fn any<A: Arch>(
    machine: &impl Machine,
    tid: u16,
    current: Current,
    thread_end: u64,
    mut visit: impl FnMut(Frame) -> bool,
) -> bool {
    let block = map::thread_va(tid);
    let mut top = if tid == current.tid { current.top } else { machine.thread_word(tid, thread::SAVED_TOP) };
    loop {
        let Some(word) = word(machine, tid, top) else { return true };
        if word.1 == thread_end {
            return false;
        }
        match frame::<A>(machine, word) {
            Some(frame) if !visit(frame) => top = block.wrapping_add(frame.base).wrapping_sub(8),
            _ => return true,
        }
    }
}

/// Where a thread that does not run waits, or was interrupted: only exclusive domains switch threads, and
/// they call nobody, so theirs is the frame on top.
pub fn waits<A: Arch>(machine: &impl Machine, tid: u16) -> Option<Frame> {
    frame::<A>(machine, word(machine, tid, machine.thread_word(tid, thread::SAVED_TOP))?)
}

/// The portal behind the frame names another callee from now on, to whoever reads stacks: its return code
/// does not look at it.
pub fn rename(machine: &mut impl Machine, frame: Frame, callee: u16) {
    let description = machine.code_word(frame.code - 8) & !(0xffff << 32);
    machine.site(frame.code - 8, 1).set(0, description | u64::from(callee) << 32);
}
