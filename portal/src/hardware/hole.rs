//! What differs between portals of one form: the words that are filled in when a connection is made.
//!
//! Problem: portals of one specification between domains of one kind are the same instructions. To compile
//! and to verify each of them anew costs thirty times what it costs to copy one.
//! Strategy: emitter and verifier know only what shapes the code ([`Facts`]). Whatever else a connection has
//! is a double word of the pool, in which the *form* of the portal holds a [symbol](Hole::symbol). The
//! verifier proves the form with symbols in place, whatever they stand for; an instance is the form with each
//! symbol replaced by what it stands for ([`Values`]), and nothing else.
//!
//! * A symbol is no instruction on any processor, no address and no error number: what looks like one is one.
//! * Its lower half takes an offset: a word a little behind an address, a status with a domain's number.
//! * What two symbols stand for may be the same; the verifier, to whom they differ, relies on neither. Where it
//!   would make a difference, of the books of moved pages, it is a fact.

use super::ir::{Connection, Shape};
use super::template::Template;
use crate::Processor;
use core::fmt;
use pebble_abi::map;

/// Which word of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Hole {
    /// Names of the address spaces.
    CallerSpace,
    CalleeSpace,
    /// Entry point in the callee.
    Entry,
    /// For `c`, `=`, `a`.
    Constant,
    Index,
    Told,
    /// Numbers of the domains.
    Caller,
    Callee,
    /// Of an exclusive callee.
    FixedStack,
    /// The caller's level-1 table, and the root of its tables.
    Table,
    Root,
    /// Control pages of windows.
    CallerWindows,
    CalleeWindows,
    /// Addresses of words: the callee's stack queue, the counter, the semaphore.
    Queue,
    Counter,
    Semaphore,
    /// Statuses that name the caller, the callee; without their code.
    Refused,
    Blamed,
    /// Whose the frame is: caller, callee, index, above a number of words.
    Description,
}

impl Hole {
    /// By their numbers.
    pub const ALL: [Hole; 19] = [
        Hole::CallerSpace,
        Hole::CalleeSpace,
        Hole::Entry,
        Hole::Constant,
        Hole::Index,
        Hole::Told,
        Hole::Caller,
        Hole::Callee,
        Hole::FixedStack,
        Hole::Table,
        Hole::Root,
        Hole::CallerWindows,
        Hole::CalleeWindows,
        Hole::Queue,
        Hole::Counter,
        Hole::Semaphore,
        Hole::Refused,
        Hole::Blamed,
        Hole::Description,
    ];

    /// Whether the caller decides what it stands for, besides others perhaps.
    pub const fn is_callers(self) -> bool {
        use Hole::*;
        matches!(
            self,
            CallerSpace | Told | Caller | Table | Root | CallerWindows | Counter | Refused | Description
        )
    }

    /// What stands for it in a form.
    pub const fn symbol(self) -> u64 {
        (MARK | (self as u64) << 2) << 32
    }

    /// Which hole a double word stands for.
    #[inline]
    pub const fn of(double: u64) -> Option<Hole> {
        let n = ((double >> 32) ^ MARK) as usize;
        if n < 4 * Hole::ALL.len() && n.is_multiple_of(4) { Some(Hole::ALL[n / 4]) } else { None }
    }
}

/// Upper half of the symbols: no instruction of any processor. Its lower two bits are clear, which one of them
/// never has; and its operation is one that the other has reserved.
const MARK: u64 = 0xec5b_0000;
// Templates' data lie above: no template has a constant that looks like a symbol.
const _: () = assert!((MARK + 0x1_0000) << 32 <= map::KERNEL_VA);

/// A double word as a reader sees it.
pub struct Named(pub u64);

impl fmt::Display for Named {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (Hole::of(self.0), self.0 as u32) {
            (Some(hole), 0) => write!(f, "{hole:?}"),
            (Some(hole), offset) => write!(f, "{hole:?} + {offset:#x}"),
            (None, _) => write!(f, "{:#x}", self.0),
        }
    }
}

/// Of one of the two domains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Side {
    pub float: bool,
    pub exclusive: bool,
    pub trusted: bool,
    /// Its level-1 table is known: it can lend.
    pub lends: bool,
    /// It has a control page: windows can be opened in it.
    pub receives: bool,
}

/// All of a connection that shapes its code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Facts<'a> {
    pub caller: Side,
    pub callee: Side,
    pub counted: bool,
    pub keeps_status: bool,
    /// Caller and callee are one domain: there is one control page.
    pub alone: bool,
    pub templates: &'a [Template],
}

impl<'a> Facts<'a> {
    #[inline]
    pub fn of(c: &Connection<'a>) -> Self {
        let side = |d: &super::Domain| Side {
            float: d.float,
            exclusive: d.exclusive,
            trusted: d.trusted,
            lends: d.l1 != 0,
            receives: d.windows != 0,
        };
        Facts {
            caller: side(&c.caller),
            callee: side(&c.callee),
            counted: c.counter.is_some(),
            keeps_status: c.keeps_status,
            alone: c.caller.windows == c.callee.windows,
            templates: c.templates,
        }
    }

    /// How many bits [`Facts::bits`] takes.
    pub const BITS: u32 = 16;

    /// All of it but the templates.
    // With what it is made of in registers, as the portal manager has it, it is half as dear.
    #[inline(always)]
    pub fn bits(&self) -> u32 {
        let side = |d: Side| {
            d.float as u32
                | (d.exclusive as u32) << 1
                | (d.trusted as u32) << 2
                | (d.lends as u32) << 3
                | (d.receives as u32) << 4
        };
        side(self.caller)
            | side(self.callee) << 5
            | (self.counted as u32) << 10
            | (self.keeps_status as u32) << 11
            | (self.alone as u32) << 12
    }

    /// The caller's control page.
    pub const fn caller_windows(&self) -> u64 {
        if self.alone { Hole::CalleeWindows.symbol() } else { Hole::CallerWindows.symbol() }
    }
}

/// What the symbols of a form stand for in one connection.
#[derive(Clone, Copy, Debug)]
pub struct Values([u64; Hole::ALL.len()]);

impl Values {
    #[inline(always)]
    pub fn of(c: &Connection, shape: Shape, processor: Processor) -> Self {
        let (caller, callee) = (u64::from(c.caller.asid), u64::from(c.callee.asid));
        let semaphore = match shape {
            Shape::Wait(id) | Shape::Signal(id) => map::semaphore_va(id.into()),
            _ => 0,
        };
        Values([
            c.caller.space,
            c.callee.space,
            c.entry,
            c.constant,
            c.index.into(),
            c.told().into(),
            caller,
            callee,
            c.callee.fixed_stack,
            c.caller.l1,
            processor.root_va(c.caller.space),
            c.caller.windows,
            c.callee.windows,
            map::stack_queue_va(c.callee.asid),
            c.counter.map_or(0, |id| map::counter_va(id.into())),
            semaphore,
            caller << 16,
            callee << 16,
            description(caller, callee, c.index),
        ])
    }

    /// What replaces the double word, if that is a symbol.
    #[inline]
    pub fn fill(&self, double: u64) -> Option<u64> {
        Some(self.stands_for(Hole::of(double)?, double))
    }

    /// What replaces this symbol of a hole.
    #[inline]
    pub fn stands_for(&self, hole: Hole, symbol: u64) -> u64 {
        self.0[hole as usize].wrapping_add(symbol & 0xffff_ffff)
    }

    /// The frame is of another portal of the same caller.
    pub(super) fn describe(&mut self, caller: u16, callee: u16, index: u16) {
        self.0[Hole::Description as usize] = description(caller.into(), callee.into(), index);
    }
}

const fn description(caller: u64, callee: u64, index: u16) -> u64 {
    caller << 16 | callee << 32 | (index as u64) << 48
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{mips64, riscv64};

    #[test]
    fn a_symbol_is_found_again() {
        for (n, hole) in Hole::ALL.into_iter().enumerate() {
            assert_eq!(hole as usize, n);
            assert_eq!(Hole::of(hole.symbol() + 8), Some(hole));
        }
        assert_eq!(Hole::of((MARK + 4 * Hole::ALL.len() as u64) << 32), None);
        assert_eq!(Hole::of((MARK + 1) << 32), None);
        assert_eq!(Hole::of((MARK - 4) << 32), None);
    }

    #[test]
    fn a_symbol_is_no_instruction() {
        for hole in Hole::ALL {
            let high = (hole.symbol() >> 32) as u32;
            assert!(mips64::decode::decode(high).is_none() && riscv64::decode::decode(high).is_none());
        }
    }
}
