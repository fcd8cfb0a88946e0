//! The specification language: what is accepted prints back to itself, what is not says what is wrong and
//! where.

use pebble_portal::spec::{SpecError, SpecErrorKind};
use pebble_portal::{Spec, spec};
use proptest::prelude::*;

fn refused(text: &str) -> SpecError {
    match Spec::parse(text) {
        Ok(spec) => panic!("{text:?} is accepted as {spec}"),
        Err(error) => error,
    }
}

#[test]
fn every_error_says_what_and_where() {
    use SpecErrorKind::*;
    let cases = [
        ("", MissingStack, 0..0, "column 1: missing stack letter: write 's' (shared) or 'n' (new) first"),
        ("xm", BadStack('x'), 0..1, "column 1: 'x' is no stack letter: write 's' (shared) or 'n' (new)"),
        ("N", BadStack('N'), 0..1, "column 1: 'N' is no stack letter: write 's' (shared) or 'n' (new)"),
        ("n", MissingState, 1..1, "column 2: missing state letter: write 'm', 'p' or 'f' second"),
        ("ni", BadState('i'), 1..2, "column 2: 'i' is no state letter: write 'm', 'p' or 'f'"),
        ("s\u{fc}", BadState('\u{fc}'), 1..3, "column 2: '\u{fc}' is no state letter: write 'm', 'p' or 'f'"),
        (
            "npiz",
            UnknownArgument('z'),
            3..4,
            "column 4: 'z' is no argument letter: use i c = a b d h, a window (w r o t g), k, or A to Z",
        ),
        (
            "np i",
            UnknownArgument(' '),
            2..3,
            "column 3: ' ' is no argument letter: use i c = a b d h, a window (w r o t g), k, or A to Z",
        ),
        (
            "npw0",
            BadPages('w'),
            3..4,
            "column 4: 'w' takes a number of pages from 2 to 512, or none for one page",
        ),
        (
            "npw1",
            BadPages('w'),
            3..4,
            "column 4: 'w' takes a number of pages from 2 to 512, or none for one page",
        ),
        (
            "npr513i",
            BadPages('r'),
            3..6,
            "column 4: 'r' takes a number of pages from 2 to 512, or none for one page",
        ),
        (
            "smt016",
            BadPages('t'),
            3..6,
            "column 4: 't' takes a number of pages from 2 to 512, or none for one page",
        ),
        (
            "smg99999999999999999999",
            BadPages('g'),
            3..23,
            "column 4: 'g' takes a number of pages from 2 to 512, or none for one page",
        ),
        (
            "npk2",
            UnknownArgument('2'),
            3..4,
            "column 4: '2' is no argument letter: use i c = a b d h, a window (w r o t g), k, or A to Z",
        ),
        ("npwro", TooManyWindows, 4..5, "column 5: more than 2 windows"),
        ("npkAk", TooManyTemplates, 4..5, "column 5: more than 2 template letters"),
        ("npwriiik", TooManyWords, 7..8, "column 8: more than 5 words from the caller"),
        ("npcccdddi", TooManyArguments, 8..9, "column 9: more than 6 arguments"),
        ("npiiiiii", TooManyWords, 7..8, "column 8: more than 5 words from the caller"),
        ("np>", BadResults, 3..3, "column 4: '>' needs one digit from 1 to 6"),
        ("np>0", BadResults, 3..4, "column 4: '>' needs one digit from 1 to 6"),
        ("np>7", BadResults, 3..4, "column 4: '>' needs one digit from 1 to 6"),
        ("npi>2i", TrailingText, 5..6, "column 6: nothing may follow the number of results"),
        ("np>12", TrailingText, 4..5, "column 5: nothing may follow the number of results"),
    ];
    for (text, kind, span, message) in cases {
        let error = refused(text);
        assert_eq!(error.to_string(), message, "{text:?}");
        assert_eq!(error, SpecError { kind, span }, "{text:?}");
    }
}

#[test]
fn letters_mean_arguments() {
    use spec::Arg::*;
    let spec = Spec::parse("nfic=abd").expect("six arguments");
    assert_eq!((spec.stack, spec.state), (spec::Stack::New, spec::State::Full));
    assert_eq!(spec.args.as_slice(), [Word, Constant, Index, Domain, Origin, Thread]);
    assert_eq!(spec.caller_words(), 1);
    let spec = Spec::parse("npaw16kg512=").expect("two windows");
    assert_eq!(
        spec.args.as_slice(),
        [
            Domain,
            Window(spec::WindowKind::Write, 16),
            Template(b'k'),
            Window(spec::WindowKind::Get, 512),
            Index
        ]
    );
    assert_eq!(spec.caller_words(), 3);
    assert!(spec.windows().eq([(1, spec::WindowKind::Write, 16), (3, spec::WindowKind::Get, 512)]));
    assert!(spec.templates().eq([(2, b'k')]));
    assert_eq!(Spec::parse("smh>6").map(|spec| (spec.args[0], spec.results)), Ok((Time, 6)));
}

/// Whatever is said of a text is said of bytes that it has.
fn check(text: &str) {
    match Spec::parse(text) {
        Ok(spec) => assert_eq!(spec.to_string(), text),
        Err(error) => {
            assert!(text.get(error.span.clone()).is_some(), "{text:?}: {error}");
            assert!(
                Spec::parse(&text[..error.span.start]).is_ok() || error.span.start < 2 || text.contains('>')
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_accepted_whole_or_refused(text in ".*") {
        check(&text);
    }

    #[test]
    fn nearly_good_text_is_accepted_whole_or_refused(
        text in "[snx]?[mpfx]?[ic=abdhwgkZz]{0,7}[0-9]{0,4}[iw]?(>[0-9]?)?[i>]?",
    ) {
        check(&text);
    }

    #[test]
    fn good_text_is_accepted(
        text in "[sn][mpf]i{0,2}([wrotg]([2-9]|[1-9][0-9]|[1-4][0-9][0-9])?){0,2}[kA-Z]{0,1}[c=abdh]{0,1}(>[1-6])?",
    ) {
        prop_assert_eq!(Spec::parse(&text).map(|spec| spec.to_string()), Ok(text));
    }
}
