//! The registry against a plain map, and the policy against its definition.

use std::collections::BTreeMap;

use pebble_abi::capability;
use pebble_abi::link::{pack, unpack};
use pebble_boot::rules::{About, MAX_RULES, Patterns, Rule, RuleError, Verdict, about, matches};
use pebble_name::{CAPACITY, Error, MAX_PER_DOMAIN, Name, Registry};
use proptest::prelude::*;

fn name(text: &str) -> Name {
    pack(text).unwrap()
}

fn text(name: Name) -> String {
    let mut bytes = [0; 24];
    let len = unpack(&name, &mut bytes);
    String::from_utf8(bytes[..len].to_vec()).unwrap()
}

fn rule(client: &str, interface: &str, allow: bool) -> Rule {
    let verdict = if allow { Verdict::Allow } else { Verdict::Refuse };
    Rule { client: client.into(), about: About::Interface(interface.into()), verdict, ..Rule::default() }
}

#[test]
fn names_are_checked() {
    let mut registry = Registry::new();
    let mut register = |words| registry.register(1, words, 0);
    assert_eq!(register([0; 3]), Err(Error::Empty));
    assert_eq!(register(name("Clock.now")), Err(Error::BadByte(0)));
    assert_eq!(register(name("clock now")), Err(Error::BadByte(5)));
    assert_eq!(register([u64::from(b'a'), 1, 0]), Err(Error::BadByte(1)));
    assert_eq!(register([0, 1, 0]), Err(Error::BadByte(0)));
    assert_eq!(register(name("interrupt-dispatcher.ack")), Ok(()));
    assert_eq!(registry.lookup(1, name("Clock.now")), Err(Error::BadByte(0)));
    assert_eq!(registry.lookup(1, name("clock.now")), Err(Error::Unknown));
}

#[test]
fn a_name_has_one_owner() {
    let mut registry = Registry::new();
    registry.register(1, name("a.b"), 7).unwrap();
    assert_eq!(registry.register(2, name("a.b"), 8), Err(Error::Taken(1)));
    assert_eq!(registry.withdraw(2, name("a.b")), Err(Error::Refused));
    assert_eq!(registry.gone(1), 1);
    registry.register(2, name("a.b"), 8).unwrap();
    assert_eq!(registry.lookup(3, name("a.b")), Ok(8));
    registry.withdraw(2, name("a.b")).unwrap();
    assert_eq!(registry.lookup(3, name("a.b")), Err(Error::Unknown));
}

#[test]
fn limits_hold() {
    let mut registry = Registry::new();
    for i in 0..CAPACITY as u32 {
        let owner = 1 + i as u16 / MAX_PER_DOMAIN;
        registry.register(owner, name(&format!("n{i}")), i).unwrap();
        if (i + 1) % u32::from(MAX_PER_DOMAIN) == 0 {
            assert_eq!(registry.register(owner, name("more"), 0), Err(Error::TooMany));
        }
    }
    assert_eq!(registry.register(200, name("more"), 0), Err(Error::Full));
    assert_eq!(registry.gone(2), usize::from(MAX_PER_DOMAIN));
    assert_eq!(registry.register(200, name("more"), 0), Ok(()));
    assert_eq!(registry.register(256, name("other"), 0), Err(Error::NoDomain));
}

#[test]
fn first_rule_decides() {
    let rules = [
        rule("process", "vm.domain_*", true),
        rule("*", "vm.domain_*", false),
        rule("evil*", "*", false),
        rule("evil", "clock.now", true),
    ];
    let mut registry = Registry::new();
    registry.register(1, name("vm.domain_kill"), 1).unwrap();
    registry.policy(&rules).unwrap();
    registry.register(1, name("clock.now"), 2).unwrap();
    registry.domain(2, "process").unwrap();
    registry.domain(3, "evil").unwrap();
    registry.domain(4, "shell").unwrap();
    assert_eq!(registry.lookup(2, name("vm.domain_kill")), Ok(1));
    assert_eq!(registry.lookup(4, name("vm.domain_kill")), Err(Error::Refused));
    assert_eq!(registry.lookup(9, name("vm.domain_kill")), Err(Error::Refused), "not introduced");
    assert_eq!(registry.lookup(3, name("clock.now")), Err(Error::Refused));
    assert_eq!(registry.lookup(4, name("clock.now")), Ok(2));
    registry.gone(2);
    assert_eq!(registry.lookup(2, name("vm.domain_kill")), Err(Error::Refused), "the number is used again");
}

#[test]
fn bad_rules_are_named() {
    let star = [rule("a", "b", true), rule("*a", "b", true)];
    let many = vec![rule("a", "b", true); MAX_RULES + 1];
    let mut registry = Registry::new();
    assert_eq!(registry.policy(&star), Err(RuleError::Star(1)));
    assert_eq!(registry.policy(&many), Err(RuleError::TooMany(MAX_RULES + 1)));
}

#[derive(Clone, Debug)]
enum Op {
    Register(u16, String),
    Lookup(u16, String),
    Withdraw(u16, String),
    Gone(u16),
}

fn op() -> impl Strategy<Value = Op> {
    let asid = 0u16..6;
    prop_oneof![
        4 => (asid.clone(), "[ab.]{1,4}").prop_map(|(a, n)| Op::Register(a, n)),
        4 => (asid.clone(), "[ab.]{1,4}").prop_map(|(a, n)| Op::Lookup(a, n)),
        2 => (asid.clone(), "[ab.]{1,4}").prop_map(|(a, n)| Op::Withdraw(a, n)),
        1 => asid.prop_map(Op::Gone),
    ]
}

fn pattern() -> impl Strategy<Value = String> {
    ("[ab.]{0,2}", any::<bool>()).prop_map(|(p, star)| if star { p + "*" } else { p })
}

proptest! {
    #[test]
    fn behaves_like_a_map(
        rules in prop::collection::vec((pattern(), pattern(), any::<bool>()), 0..6),
        ops in prop::collection::vec(op(), 0..300),
    ) {
        let rules: Vec<Rule> = rules.iter().map(|(c, i, allow)| rule(c, i, *allow)).collect();
        let client = ["", "a", "b", "ab", "ba", "a.b"];
        let mut registry = Registry::new();
        registry.policy(&rules).unwrap();
        let mut model: BTreeMap<String, (u16, u32)> = BTreeMap::new();
        for (i, op) in ops.into_iter().enumerate() {
            match op {
                Op::Register(asid, n) => {
                    let expect = match model.get(&n) {
                        Some((owner, _)) => Err(Error::Taken(*owner)),
                        None if model.values().filter(|(o, _)| *o == asid).count() >= 64 => Err(Error::TooMany),
                        None => Ok(()),
                    };
                    prop_assert_eq!(registry.register(asid, name(&n), i as u32), expect);
                    if expect.is_ok() {
                        model.insert(n, (asid, i as u32));
                    }
                }
                Op::Lookup(asid, n) => {
                    let who = client[usize::from(asid)];
                    registry.domain(asid, who).unwrap();
                    let verdict = rules.iter().find(|r| matches(&r.client, who) && matches(r.about.pattern(), &n));
                    let expect = match model.get(&n) {
                        None => Err(Error::Unknown),
                        Some(_) if verdict.is_some_and(|r| r.verdict == Verdict::Refuse) => Err(Error::Refused),
                        Some((_, interface)) => Ok(*interface),
                    };
                    prop_assert_eq!(registry.lookup(asid, name(&n)), expect);
                }
                Op::Withdraw(asid, n) => {
                    let expect = match model.get(&n) {
                        None => Err(Error::Unknown),
                        Some((owner, _)) if *owner != asid => Err(Error::Refused),
                        Some(_) => Ok(()),
                    };
                    prop_assert_eq!(registry.withdraw(asid, name(&n)), expect);
                    if expect.is_ok() {
                        model.remove(&n);
                    }
                }
                Op::Gone(asid) => {
                    let before = model.len();
                    model.retain(|_, (owner, _)| *owner != asid);
                    prop_assert_eq!(registry.gone(asid), before - model.len());
                }
            }
            let mut listed = BTreeMap::new();
            let mut from = 0;
            while let Some((at, entry)) = registry.list(from) {
                listed.insert(text(entry.name), (entry.owner, entry.interface));
                from = at + 1;
            }
            prop_assert_eq!(&listed, &model);
        }
    }

    #[test]
    fn any_words_are_safe(words in any::<[u64; 3]>(), asid in any::<u16>()) {
        let mut registry = Registry::new();
        let registered = registry.register(asid, words, 1);
        prop_assert_eq!(registry.lookup(asid, words).is_ok(), registered.is_ok());
    }
}

#[test]
fn an_interface_changes_hands() {
    let mut registry = Registry::new();
    registry.register(1, name("a.b"), 7).unwrap();
    registry.register(1, name("a.c"), 8).unwrap();
    assert_eq!(registry.pass(9, 2), Err(Error::Unknown));
    assert_eq!(registry.pass(7, u16::MAX), Err(Error::NoDomain));
    assert_eq!(registry.pass(7, 2), Ok(()));
    assert_eq!(registry.gone(1), 1);
    assert_eq!(registry.lookup(3, name("a.b")), Ok(7));
    assert_eq!(registry.gone(2), 1);
    assert_eq!(registry.lookup(3, name("a.b")), Err(Error::Unknown));
}

#[test]
fn a_successor_knows_every_name() {
    let rules = [rule("shell", "a.*", false)];
    let mut old = Registry::new();
    old.policy(&rules).unwrap();
    old.domain(4, "shell").unwrap();
    for (n, text) in ["a.b", "a.c", "d.e"].into_iter().enumerate() {
        old.register(1 + n as u16, name(text), n as u32).unwrap();
    }
    old.gone(2);
    let mut new = Registry::new();
    new.policy(&rules).unwrap();
    new.register(9, name("x.y"), 9).unwrap();
    new.restore(old.names(), old.clients()).unwrap();
    assert!(new.names().eq(old.names()) && new.names().count() == 2);
    for (client, text) in [(3, "a.b"), (4, "a.b"), (3, "a.c"), (4, "d.e"), (3, "x.y")] {
        assert_eq!(new.lookup(client, name(text)), old.lookup(client, name(text)), "{client} {text}");
    }
    assert_eq!(new.gone(1), 1);
}

#[test]
fn a_rule_may_want_a_capability() {
    let capability = Rule {
        client: "*".into(),
        about: About::Interface("a.*".into()),
        verdict: Verdict::Capability,
        holders: "sh*".into(),
    };
    let rules = [rule("root", "*", true), capability, rule("*", "a.*", false)];
    let mut registry = Registry::new();
    registry.policy(&rules).unwrap();
    for (asid, called) in [(1, "root"), (2, "shell"), (3, "cat")] {
        registry.domain(asid, called).unwrap();
    }
    registry.register(1, name("a.b"), 7).unwrap();
    registry.register(1, name("b.b"), 8).unwrap();
    assert_eq!(registry.lookup(1, name("a.b")), Ok(7));
    for asid in [2, 3, 4] {
        assert_eq!(registry.lookup(asid, name("a.b")), Err(Error::Wants(1, 7)));
        assert_eq!(registry.lookup(asid, name("b.b")), Ok(8));
    }
    assert_eq!(registry.first_holder(1, name("a.b")), Err(Error::Unknown), "it needs none");
    assert_eq!(registry.first_holder(2, name("a.b")), Ok(1));
    assert_eq!(registry.first_holder(2, name("b.b")), Err(Error::Unknown));
    assert_eq!(registry.first_holder(3, name("a.b")), Err(Error::Refused));
    assert_eq!(registry.first_holder(9999, name("a.b")), Err(Error::Unknown));
    let mut new = Registry::new();
    new.policy(&rules).unwrap();
    new.restore(registry.names(), registry.clients()).unwrap();
    assert_eq!(
        (new.first_holder(2, name("a.b")), new.lookup(3, name("a.b"))),
        (Ok(1), Err(Error::Wants(1, 7)))
    );
    registry.gone(2);
    assert_eq!(registry.first_holder(2, name("a.b")), Err(Error::Refused));
}

/// A question of another server: rules of all kinds have one numbering, and only the set that is asked about
/// counts.
#[test]
fn others_ask_about_sets_of_rules() {
    let file = |client: &str, path: &str, verdict| Rule {
        client: client.into(),
        about: About::File(path.into()),
        verdict,
        holders: "sh*".into(),
    };
    let rules = [
        rule("*", "*", false),
        file("root", "/*", Verdict::Allow),
        file("*", "/etc/*", Verdict::Capability),
        file("*", "/dev/*", Verdict::Refuse),
    ];
    let mut registry = Registry::new();
    registry.policy(&rules).unwrap();
    for (asid, called) in [(1, "root"), (2, "shell"), (3, "cat")] {
        registry.domain(asid, called).unwrap();
    }
    let about = |path| about(&rules, capability::FILE, path);
    assert_eq!((about("/etc/x"), about("/dev/x"), about("/bin/x"), about("etc/x")), (0b110, 0b1010, 0b10, 0));
    assert_eq!(Patterns::of(&rules, capability::FILE).about("/etc/x"), 0b110);
    assert!(Patterns::of(&rules, capability::DEVICE).is_empty());
    assert_eq!(registry.says(1, about("/etc/x")), Ok((Verdict::Allow, 0)));
    assert_eq!(registry.says(2, about("/etc/x")), Ok((Verdict::Capability, 2)));
    assert_eq!(registry.says(3, about("/dev/x")), Ok((Verdict::Refuse, 0)));
    assert_eq!(registry.says(3, about("/bin/x")), Ok((Verdict::Allow, 0)));
    assert_eq!(registry.says(9999, about("/etc/x")), Err(Error::NoDomain));
    assert_eq!(registry.first(2, about("/etc/x")), Ok(2));
    assert_eq!(registry.first(3, about("/etc/x")), Err(Error::Refused));
    assert_eq!(registry.first(1, about("/etc/x")), Err(Error::Unknown), "it needs none");
    assert_eq!(registry.first(2, about("/bin/x")), Err(Error::Unknown));
}
