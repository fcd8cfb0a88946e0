//! Portals into an instance and between two, and calls through them.

use crate::arena;
use crate::back;
use crate::deadline::{self, Limit};
use crate::elf::Level;
use crate::error::Error;
use crate::fault::{self, CallError, Cause, take_fault};
use crate::instance::{Code, Shared};
use crate::thread::{status, ways_in};
use crate::window::{self, Description, Extent};
use pebble_portal::fault::{Crossing, Door, Way};
use std::sync::Arc;

/// A door into an exported function. Any thread may call it; it keeps the instance.
pub struct Portal {
    // Before the instance: code goes first.
    code: Code,
    callee: Arc<Shared>,
    _description: Option<Box<Description>>,
    index: u16,
    words: usize,
}

/// What a portal returns in `rax` and `rdx`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outcome {
    pub value: u64,
    /// 0, or one of [`crate::status`].
    pub status: u64,
}

/// A portal as a function of the C convention.
pub type Entry = extern "C" fn(u64, u64, u64, u64, u64, u64) -> Outcome;

pub(crate) fn wide_vectors() -> bool {
    std::arch::is_x86_feature_detected!("avx")
}

/// Letters by which something of the caller's is lent, moved, named or told.
const GIVES: &str = "wrotgkadh";

/// A module's own specification, if its caller gives away nothing but words by it: a stranger only asks.
fn harmless<'a>(export: &str, spec: &'a str) -> Result<&'a str, Error> {
    let asks = spec.char_indices().skip(2).find(|(_, letter)| GIVES.contains(*letter));
    match asks {
        None => Ok(spec),
        Some((at, letter)) => Err(Error::Consent { export: export.into(), spec: spec.into(), letter, at }),
    }
}

/// How its caller rounds must not be seen there.
fn hides_rounding(callee: &Shared) -> bool {
    callee.module.level == Level::Full && callee.module.verdict.float
}

/// Whether portals from one instance to another keep the controls of floating point. Called in the signal
/// handler too.
pub(crate) fn keeps_controls(caller: &Shared, callee: &Shared) -> bool {
    let changes = |shared: &Shared| shared.module.verdict.control;
    changes(callee) || hides_rounding(callee) || changes(caller)
}

impl Portal {
    fn crossing(callee: &Shared, export: &str, spec: &str) -> Result<(Door, Crossing), Error> {
        let export = callee.module.export(export)?;
        let spec = match (spec, export.spec.as_str()) {
            ("", "") => "smiiiiii",
            ("", own) => harmless(&export.name, own)?,
            (given, _) => given,
        };
        Portal::crossing_to(callee, export.entry, spec)
    }

    fn crossing_to(callee: &Shared, entry: u32, spec: &str) -> Result<(Door, Crossing), Error> {
        crate::slots::slots()?;
        let (current, no_stack, _) = ways_in();
        let verdict = &callee.module.verdict;
        let crossing = Crossing {
            way: Way::In,
            caller_slot: 0,
            callee_slot: (callee.base >> 32) as u32,
            entry: callee.base + u64::from(entry),
            current,
            no_stack,
            lend: window::lend_in as *const () as u64,
            give_back: window::give_back_in as *const () as u64,
            description: 0,
            touched: verdict.touched_by(entry),
            control: verdict.control,
            x87: verdict.x87,
            caller_control: hides_rounding(callee),
            caller_x87: false,
            hide: callee.module.level == Level::Full,
            wide: wide_vectors(),
            link: 0,
            index: 0,
            constant: 0,
            caller: 0,
        };
        Ok((Door::parse(spec)?, crossing))
    }

    pub(crate) fn into_domain(
        callee: &Arc<Shared>,
        export: &str,
        spec: &str,
        constant: u64,
        extents: &[Extent],
    ) -> Result<Portal, Error> {
        let (door, mut crossing) = Portal::crossing(callee, export, spec)?;
        crossing.constant = constant;
        let words = door.args.iter().filter(|a| Door::is_word(**a)).count();
        let description = Description::new(callee, &door, extents)?;
        let description = door.lends().then(|| Box::new(description));
        crossing.description = description.as_deref().map_or(0, |d| std::ptr::from_ref(d) as u64);
        let code = Code(arena::portal(&door, &crossing)?);
        Ok(Portal { code, callee: callee.clone(), _description: description, index: 0, words })
    }

    /// To a slot of the module's table of functions, for a constructor: three words, as C libraries pass
    /// them.
    pub(crate) fn into_slot(callee: &Arc<Shared>, slot: u32) -> Result<Portal, Error> {
        let (door, crossing) = Portal::crossing_to(callee, slot, "smiii")?;
        let code = Code(arena::portal(&door, &crossing)?);
        Ok(Portal { code, callee: callee.clone(), _description: None, index: 0, words: 3 })
    }

    pub(crate) fn between(
        caller: &Arc<Shared>,
        callee: &Arc<Shared>,
        export: &str,
        spec: &str,
        link: u16,
        index: u16,
    ) -> Result<Portal, Error> {
        let (door, crossing) = Portal::crossing(callee, export, spec)?;
        back::prepare()?;
        let full = caller.module.level == Level::Full;
        let crossing = Crossing {
            way: Way::Across,
            caller_slot: (caller.base >> 32) as u32,
            no_stack: ways_in().2,
            caller: caller.number,
            hide: crossing.hide || full,
            caller_control: crossing.caller_control || caller.module.verdict.control,
            caller_x87: caller.module.verdict.x87,
            // Its stacks keep the caller's registers for the way back from a fault.
            link,
            index,
            ..crossing
        };
        debug_assert_eq!(crossing.keeps_controls(), keeps_controls(caller, callee));
        let words = door.args.iter().filter(|a| Door::is_word(**a)).count();
        let code = Code(arena::portal(&door, &crossing)?);
        Ok(Portal { code, callee: callee.clone(), _description: None, index, words })
    }

    /// Address of the code: a function of the C convention that returns an [`Outcome`].
    pub fn address(&self) -> u64 {
        self.code.0
    }

    pub(crate) fn index(&self) -> u16 {
        self.index
    }

    pub(crate) fn callee(&self) -> &Arc<Shared> {
        &self.callee
    }

    /// For callers that count cycles. The portal must outlive its use.
    pub fn entry(&self) -> Entry {
        // SAFETY: the address of portal code, which keeps this convention whatever the callee does.
        unsafe { std::mem::transmute::<*const (), Entry>(self.code.0 as *const ()) }
    }

    /// Calls with the words that the specification's letters ask for.
    pub fn call(&self, words: &[u64]) -> Result<u64, CallError> {
        if words.len() != self.words {
            return Err(CallError::Words { wanted: self.words, given: words.len() });
        }
        Portal::answer(self.pass(words))
    }

    fn pass(&self, words: &[u64]) -> Outcome {
        let word = |i: usize| words.get(i).copied().unwrap_or(0);
        let outcome = self.entry()(word(0), word(1), word(2), word(3), word(4), word(5));
        match self.callee.poisoned() {
            // It has ended itself, and come back nevertheless: its last act was a jump.
            Some(cause @ (Cause::Exit | Cause::Abort)) if outcome.status == status::OK => {
                fault::too_late(&self.callee, cause);
                Outcome { value: 0, status: status::FAULT }
            }
            _ => outcome,
        }
    }

    fn answer(outcome: Outcome) -> Result<u64, CallError> {
        match outcome.status {
            status::OK => Ok(outcome.value),
            status::NO_STACK => Err(CallError::no_stack()),
            status::REENTERED => Err(CallError::Reentered),
            status::NOT_LENT => Err(CallError::NotLent),
            status::NO_CLOCK => Err(CallError::NoClock),
            _ => {
                Err(take_fault().map_or_else(CallError::no_stack, |fault| CallError::Fault(Box::new(fault))))
            }
        }
    }

    /// [`Portal::call`] that ends after a time, a [`Limit`]: then the instance is poisoned, and the call
    /// comes back with a fault. If it is in another domain at that time, that has 10 ms of processor time to
    /// come back before it is ended in the same way.
    pub fn call_within(&self, limit: impl Into<Limit>, words: &[u64]) -> Result<u64, CallError> {
        if words.len() != self.words {
            return Err(CallError::Words { wanted: self.words, given: words.len() });
        }
        Portal::answer(self.pass_within(limit.into(), words))
    }

    /// The words are as many as the portal takes.
    pub(crate) fn pass_within(&self, limit: Limit, words: &[u64]) -> Outcome {
        if limit.is_none() {
            return self.pass(words);
        }
        let place = 0u8;
        let Ok(armed) = deadline::arm(&self.callee, limit, &raw const place) else {
            return Outcome { value: 0, status: status::NO_CLOCK };
        };
        let outcome = self.pass(words);
        let passed = armed.passed();
        match outcome.status {
            // The instance is poisoned: the next call would be told, and so is this one.
            status::OK if passed => {
                fault::too_late(&self.callee, Cause::Deadline);
                Outcome { value: 0, status: status::FAULT }
            }
            status::FAULT if passed => {
                fault::in_time();
                outcome
            }
            _ => outcome,
        }
    }
}
