//! Memory operands: where a load or store may reach.
//!
//! Problem: every access must stay in the segment or in its guard zones, for every value that the registers
//! may have. Strategy: the contract's ways of confinement, each a test of the operand's form and the facts;
//! all else is refused.
//!
//! Invariants kept: no accepted access reaches further than 4 GiB below or 6 GiB above the segment's base, so
//! that the return stacks, 8 GiB above, are out of reach, and an access outside the segment faults.

use crate::decode::{Insn, NONE, P_67, P_GS, RBP, RIP};
use crate::sequence::BASE_WORD;
use crate::state::{BASE, State, ZX};
use crate::table::{LD, ST, VSIB, class};
use crate::{Level, Module, Rule};

/// The farthest from the segment that facts may lead to.
const REACH: u64 = 1 << 31;
/// An access that begins just below the segment may end in it.
const ACCESS: u64 = 64;

/// Checks the memory operand of an instruction that loads or stores. `next` is the address behind it.
pub fn check(module: &Module<'_>, state: &mut State, insn: &Insn, next: u32) -> Result<(), Rule> {
    let store = insn.has(ST);
    let needed = store || module.level == Level::Full;
    let refusal = if store { Rule::Store } else { Rule::Load };
    match insn.prefix & (P_GS | P_67) {
        0 => {}
        P_GS => return context(insn),
        _ => return Ok(()), // both: decode has refused 67 alone, and `rip`
    }
    if insn.has(VSIB) {
        return if needed { Err(refusal) } else { Ok(()) };
    }
    let confined = if insn.base == RIP {
        image(module, next.wrapping_add(insn.disp as u32), store)
    } else if insn.base == NONE {
        false
    } else if insn.index == NONE {
        insn.base == RBP || near(state, insn)
    } else {
        base_and_index(state, insn) || !store && table(module, state, insn)
    };
    if confined || !needed { Ok(()) } else { Err(refusal) }
}

/// `%gs:0x10000` and `%gs:0x10008`: the segment's base and the data-stack top.
fn context(insn: &Insn) -> Result<(), Rule> {
    let word = insn.disp == BASE_WORD || insn.disp == BASE_WORD + 8;
    let ok = insn.gs_absolute() && word && !insn.has(ST | VSIB);
    if ok { Ok(()) } else { Err(Rule::Context) }
}

fn image(module: &Module<'_>, target: u32, store: bool) -> bool {
    module.data.contains(&target) || !store && (module.text_at..module.data.end).contains(&target)
}

/// `disp(%reg)`, in segment: and if it does not fault, the register is no further from the segment than
/// `disp`.
fn near(state: &mut State, insn: &Insn) -> bool {
    let Some(slack) = state.segment(insn.base) else { return false };
    let distance = insn.disp.unsigned_abs();
    if slack as u64 + distance as u64 > REACH {
        return false;
    }
    let proven = distance as u64 + ACCESS;
    if certain(insn) && proven < slack as u64 {
        state.set_segment(insn.base, proven);
    }
    true
}

/// `disp(%base,%index)`: one the base, the other less than 4 GiB.
pub fn base_and_index(state: &State, insn: &Insn) -> bool {
    let pair = |base: u8, offset: u8| state.knows(BASE, base) && state.knows(ZX, offset);
    insn.scale == 0 && (pair(insn.base, insn.index) || pair(insn.index, insn.base))
}

/// The load of a jump table's entry.
fn table(module: &Module<'_>, state: &State, insn: &Insn) -> bool {
    state.seq.entry_load(insn).is_some_and(|(at, count)| in_rodata(module, at, count).is_some())
}

/// The bytes of a jump table.
pub fn in_rodata<'a>(module: &Module<'a>, at: u32, count: u32) -> Option<&'a [u8]> {
    let from = at.checked_sub(module.rodata_at)? as usize;
    let size = (count as usize).checked_mul(4)?;
    module.rodata.get(from..from.checked_add(size)?)
}

/// Whether it accesses its operand whatever happens: of x87 no manual says so where an exception is unmasked.
fn certain(insn: &Insn) -> bool {
    !matches!(insn.class, class::PREFETCH | class::MASKED | class::X87 | class::FP_CONTROL)
}

/// `rbp` went down far: this instruction must fault if it left its stack.
pub fn touches(insn: &Insn) -> bool {
    certain(insn) && insn.has(LD | ST) && insn.plain_base() == Some(RBP) && insn.disp == 0
}
