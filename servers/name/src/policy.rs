//! Rules: "domains named so may, or may not, open interfaces named so"; the first that matches decides.
//!
//! Strategy: a [`RuleSet`] is the set of rules that one side of a question satisfies, a bit per rule in
//! order. Two sets, intersected, leave the rules that match the whole question; the lowest bit is the first
//! of them.

use crate::registry::Client;
use pebble_boot::{Rule, Verdict};

/// A set of rules is one 128-bit word.
pub const MAX_RULES: usize = 128;

/// Rules by position.
pub type RuleSet = u128;

/// What is wrong with a list of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// There are this many, more than [`MAX_RULES`].
    TooMany(usize),
    /// The rule at this position has a `*` elsewhere than at the end of a pattern.
    Star(usize),
}

/// Whether `pattern` covers `name`: it is the same, or ends in `*` and the rest of it begins the name.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

pub(crate) fn check(rules: &[Rule]) -> Result<(), RuleError> {
    if rules.len() > MAX_RULES {
        return Err(RuleError::TooMany(rules.len()));
    }
    let well_formed = |pattern: &str| !pattern.strip_suffix('*').unwrap_or(pattern).contains('*');
    match rules.iter().position(|r| [&r.client, &r.interface, &r.holders].iter().any(|p| !well_formed(p))) {
        Some(at) => Err(RuleError::Star(at)),
        None => Ok(()),
    }
}

fn select(rules: &[Rule], chosen: impl Fn(&Rule) -> bool) -> RuleSet {
    rules.iter().enumerate().filter(|(_, rule)| chosen(rule)).fold(0, |set, (i, _)| set | 1 << i)
}

pub(crate) fn of_client(rules: &[Rule], name: &str) -> Client {
    Client {
        named: select(rules, |rule| matches(&rule.client, name)),
        holds: select(rules, |rule| !rule.holders.is_empty() && matches(&rule.holders, name)),
    }
}

pub(crate) fn of_interface(rules: &[Rule], name: &str) -> RuleSet {
    select(rules, |rule| matches(&rule.interface, name))
}

/// Rules that do not simply allow: those that refuse, those that want a capability.
#[derive(Clone, Copy, Default)]
pub(crate) struct Strict {
    refusing: RuleSet,
    wanting: RuleSet,
}

impl Strict {
    pub(crate) const NONE: Strict = Strict { refusing: 0, wanting: 0 };

    pub(crate) fn of(rules: &[Rule]) -> Strict {
        Strict {
            refusing: select(rules, |rule| rule.verdict == Verdict::Refuse),
            wanting: select(rules, |rule| rule.verdict == Verdict::Capability),
        }
    }
}

/// What the first rule says that both sides satisfy; for one that wants a capability its position.
pub(crate) fn verdict(client: RuleSet, interface: RuleSet, strict: Strict) -> (Verdict, u16) {
    let both = client & interface;
    let first = both & both.wrapping_neg();
    if first & strict.refusing != 0 {
        (Verdict::Refuse, 0)
    } else if first & strict.wanting != 0 {
        (Verdict::Capability, first.trailing_zeros() as u16)
    } else {
        (Verdict::Allow, 0)
    }
}
