//! A bad specification: its maker is told the reason and the character, in the compiler's own words.

mod common;

use common::*;
use pebble_abi::link::pack;
use pebble_abi::specification::{Reason, SpecificationError};
use pebble_abi::words::Asid;
use pebble_abi::{errno, status};
use pebble_portal::Spec;
use pebble_portal_manager::specification::{mistake, parse};

const EXPORTER: u64 = SERVER as u64;

/// One for each mistake that the parser finds, and the character at which it is.
const BAD: [(&str, usize); 13] = [
    ("", 0),
    ("x", 0),
    ("n", 1),
    ("nx", 1),
    ("npaiz", 4),
    ("npw1i", 3),
    ("nprrr", 4),
    ("npABC", 4),
    ("npiacdhbi", 8),
    ("npiiiiii", 7),
    ("npi>", 4),
    ("npi>7", 4),
    ("npi>22", 5),
];

#[test]
fn its_words_are_the_compilers() {
    let mut reasons = Vec::new();
    for (spec, at) in BAD {
        let error = Spec::parse(spec).expect_err(spec);
        let told = mistake(&error);
        assert_eq!(usize::from(told.at), at, "{spec}");
        assert_eq!(told.to_string(), error.to_string(), "{spec}");
        assert_eq!(SpecificationError::from_status(told.status(9)), Some((9, told)), "{spec}");
        reasons.push(told.reason);
    }
    reasons.dedup();
    assert_eq!(reasons.len(), 12, "{reasons:?}");
}

#[test]
fn what_a_call_passes_is_parsed_alike() {
    for (spec, _) in BAD {
        let (letters, results) = spec.split_once('>').unwrap_or((spec, ""));
        if !results.is_empty() || spec.ends_with('>') {
            continue; // a number in a call
        }
        let [first, rest] = pack::<2>(letters).expect("short");
        assert_eq!(parse(first, rest << 40), Spec::parse(spec).map_err(|error| mistake(&error)), "{spec}");
    }
    let [first, rest] = pack::<2>("npw512r512i").expect("eleven");
    assert_eq!(parse(first, rest << 40 | 3 << 32).map(|s| s.to_string()), Ok("npw512r512i>3".into()));
}

#[test]
fn bytes_that_are_no_text_are_no_letters() {
    let wrong = SpecificationError { reason: Reason::UnknownArgument, at: 3, letter: Some(b'?') };
    assert_eq!(parse(u64::from_le_bytes(*b"npi\xff\0\0\0\0"), 0), Err(wrong));
    assert_eq!(parse(u64::from_le_bytes(*b"npi\xc3\xa4\0\0\0"), 0), Err(wrong));
}

#[test]
fn a_request_tells_whose_it_is() {
    let (mut manager, _) = system();
    let [first] = pack::<1>("npaiz").expect("short");
    assert_eq!(manager.parse(Asid(EXPORTER), first, 0), Err(errno::EINVAL));
    let (domain, error) = SpecificationError::from_status(manager.request.refused).expect("a reason");
    assert_eq!(
        (u64::from(domain), error.reason, error.at, error.letter),
        (EXPORTER, Reason::UnknownArgument, 4, Some(b'z'))
    );
}

#[test]
fn a_letter_without_a_template_is_told_to_the_opener() {
    let (mut manager, mut machine) = system();
    let made = manager.register(
        &mut machine,
        Asid(EXPORTER),
        "server.letter",
        Spec::parse("npiZ").expect("good"),
        0x1_0000,
    );
    let interface = made.expect("registered");
    manager.interfaces[usize::from(interface)].vouched = true;
    assert_eq!(manager.open(&mut machine, CLIENTS[0].into(), interface), Err(errno::ENOPROTOOPT));
    assert_eq!(status::code(manager.request.refused), status::SPECIFICATION);
    let (domain, error) = SpecificationError::from_status(manager.request.refused).expect("a reason");
    assert_eq!(
        (domain, error.to_string()),
        (SERVER, "column 4: 'Z' has no template: start the server that registers it first".into())
    );
    manager.request.refused = 0;
    manager.open(&mut machine, CLIENTS[0].into(), 0).expect("another");
    assert_eq!(manager.request.refused, 0);
}
