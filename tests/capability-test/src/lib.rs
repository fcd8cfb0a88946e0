//! What the driver asks an actor to do: the capability manager's model, run on the machine. The driver holds
//! the model; each actor is a domain of its own, which does the step with its own portals.
#![no_std]
#![forbid(unsafe_code)]

/// Steps by number, as `actorN.do` gets them, with up to three words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Kind, object, rights with flags.
    Create,
    /// Name, rights with flags.
    Derive,
    /// Name, to which actor.
    Pass,
    /// Name, rights.
    Use,
    Revoke,
    Drop,
    Look,
}

impl Step {
    pub fn numbered(n: u64) -> Option<Step> {
        let all = [Step::Create, Step::Derive, Step::Pass, Step::Use, Step::Revoke, Step::Drop, Step::Look];
        all.get(n as usize).copied()
    }
}

/// Domains that take part.
pub const ACTORS: usize = 6;
