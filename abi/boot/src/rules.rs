//! Rules: "domains named so may, or may not, have what is named so"; the first that matches decides. About
//! interfaces, files and devices.
//!
//! Strategy: a [`RuleSet`] is the set of rules that one side of a question satisfies, a bit per rule in
//! order. Two sets, intersected, leave the rules that match the whole question; the lowest bit is the first
//! of them. Who knows what is asked for (the name server an interface, the file server a path) makes one set;
//! the name server, which knows the domains, has the other, and answers.
//!
//! Invariant: all rules of a system have one numbering, their order in its manifest, whatever they are about.

use alloc::string::String;
use alloc::vec::Vec;
use pebble_abi::capability;
use serde::{Deserialize, Serialize};

/// A set of rules is one 128-bit word.
pub const MAX_RULES: usize = 128;

/// Rules by position.
pub type RuleSet = u128;

/// "Domains whose name matches `client` may have what matches `about`": first match decides. A `*` at the end
/// matches any rest. Without a match: allowed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    pub client: String,
    pub about: About,
    pub verdict: Verdict,
    /// Of a rule that wants a capability: domains named so can have a first one. Empty: nobody.
    pub holders: String,
}

/// What a rule is about: a kind of thing, and a pattern for its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum About {
    Interface(String),
    /// A path as the file server sees it: from `/` on, nothing doubled, no `.` or `..`; a directory ends in
    /// `/`.
    File(String),
    Device(String),
}

impl Default for About {
    fn default() -> Self {
        About::Interface(String::new())
    }
}

impl About {
    /// Of the capabilities that the rule wants.
    pub fn kind(&self) -> u16 {
        match self {
            About::Interface(_) => capability::NAME,
            About::File(_) => capability::FILE,
            About::Device(_) => capability::DEVICE,
        }
    }

    pub fn pattern(&self) -> &str {
        match self {
            About::Interface(pattern) | About::File(pattern) | About::Device(pattern) => pattern,
        }
    }
}

/// What a rule says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Verdict {
    #[default]
    Allow,
    Refuse,
    /// Allowed to whoever holds a capability of the rule's kind for the rule's position, as far as its rights
    /// go.
    Capability,
}

/// What is wrong with a list of rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// There are this many, more than [`MAX_RULES`].
    TooMany(usize),
    /// The rule at this position has a `*` elsewhere than at the end of a pattern.
    Star(usize),
}

/// What the rules say of a domain, by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Rules that speak of it.
    pub named: RuleSet,
    /// Rules whose capability it can have first.
    pub holds: RuleSet,
}

/// Whether `pattern` covers `name`: it is the same, or ends in `*` and the rest of it begins the name.
pub fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    }
}

/// Whether a `*` is nowhere but at the end.
pub fn well_formed(pattern: &str) -> bool {
    !pattern.strip_suffix('*').unwrap_or(pattern).contains('*')
}

pub fn check(rules: &[Rule]) -> Result<(), RuleError> {
    if rules.len() > MAX_RULES {
        return Err(RuleError::TooMany(rules.len()));
    }
    let wrong = |r: &Rule| [&*r.client, r.about.pattern(), &*r.holders].iter().any(|p| !well_formed(p));
    rules.iter().position(wrong).map_or(Ok(()), |at| Err(RuleError::Star(at)))
}

fn select(rules: &[Rule], chosen: impl Fn(&Rule) -> bool) -> RuleSet {
    rules.iter().enumerate().filter(|(_, rule)| chosen(rule)).fold(0, |set, (i, _)| set | 1 << i)
}

pub fn of_client(rules: &[Rule], name: &str) -> Client {
    Client {
        named: select(rules, |rule| matches(&rule.client, name)),
        holds: select(rules, |rule| !rule.holders.is_empty() && matches(&rule.holders, name)),
    }
}

/// Rules of one kind about what has this name.
pub fn about(rules: &[Rule], kind: u16, name: &str) -> RuleSet {
    select(rules, |rule| rule.about.kind() == kind && matches(rule.about.pattern(), name))
}

/// As [`about`], for who keeps no more than the rules of one kind.
#[derive(Default)]
pub struct Patterns(Vec<(usize, String)>);

impl Patterns {
    pub fn of(rules: &[Rule], kind: u16) -> Self {
        let its = rules.iter().enumerate().filter(|(at, rule)| *at < MAX_RULES && rule.about.kind() == kind);
        Patterns(its.map(|(at, rule)| (at, rule.about.pattern().into())).collect())
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn about(&self, name: &str) -> RuleSet {
        self.0.iter().filter(|(_, pattern)| matches(pattern, name)).fold(0, |set, (at, _)| set | 1 << at)
    }
}

/// Rules that do not simply allow: those that refuse, those that want a capability.
#[derive(Clone, Copy, Default)]
pub struct Strict {
    refusing: RuleSet,
    wanting: RuleSet,
}

impl Strict {
    pub const NONE: Strict = Strict { refusing: 0, wanting: 0 };

    pub fn of(rules: &[Rule]) -> Strict {
        Strict {
            refusing: select(rules, |rule| rule.verdict == Verdict::Refuse),
            wanting: select(rules, |rule| rule.verdict == Verdict::Capability),
        }
    }

    /// What the first rule says that both sides satisfy; for one that wants a capability its position.
    pub fn verdict(self, client: RuleSet, about: RuleSet) -> (Verdict, u16) {
        let both = client & about;
        let first = both & both.wrapping_neg();
        if first & self.refusing != 0 {
            (Verdict::Refuse, 0)
        } else if first & self.wanting != 0 {
            (Verdict::Capability, first.trailing_zeros() as u16)
        } else {
            (Verdict::Allow, 0)
        }
    }
}
