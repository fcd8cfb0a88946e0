//! Rules: "domains named so may, or may not, open interfaces named so"; the first that matches decides.
//!
//! Strategy: a [`RuleSet`] is the set of rules that one side of a question satisfies, a bit per rule in
//! order. Two sets, intersected, leave the rules that match the whole question; the lowest bit is the first
//! of them.

use pebble_boot::Rule;

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
    match rules.iter().position(|r| !well_formed(&r.client) || !well_formed(&r.interface)) {
        Some(at) => Err(RuleError::Star(at)),
        None => Ok(()),
    }
}

fn select(rules: &[Rule], chosen: impl Fn(&Rule) -> bool) -> RuleSet {
    rules.iter().enumerate().filter(|(_, rule)| chosen(rule)).fold(0, |set, (i, _)| set | 1 << i)
}

pub(crate) fn of_client(rules: &[Rule], name: &str) -> RuleSet {
    select(rules, |rule| matches(&rule.client, name))
}

pub(crate) fn of_interface(rules: &[Rule], name: &str) -> RuleSet {
    select(rules, |rule| matches(&rule.interface, name))
}

pub(crate) fn refusing(rules: &[Rule]) -> RuleSet {
    select(rules, |rule| !rule.allow)
}

/// Whether the first rule that both sides satisfy is one that refuses.
pub(crate) fn refused(client: RuleSet, interface: RuleSet, refusing: RuleSet) -> bool {
    let both = client & interface;
    let first = both & both.wrapping_neg();
    first & refusing != 0
}
