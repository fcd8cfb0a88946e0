//! What the compiler promises beyond its code, which the golden files and the verifier hold.

mod common;

use common::cases::{Case, PROCESSORS, connect, domain, layout};
use pebble_portal::hardware::hole::Facts;
use pebble_portal::hardware::{
    Code, CompileError, Connection, Domain, Shape, Short, compile, compile_into, ir,
};
use pebble_portal::{Processor, Spec};

fn spec(text: &str) -> Spec {
    Spec::parse(text).expect("a good specification")
}

/// Interrupts are off in an exclusive domain, and it cannot wait for a stack.
#[test]
fn exclusive_domains_call_only_their_like() {
    let scheduler = domain(1, false, true);
    let plain = connect(scheduler, domain(7, false, false));
    for shape in [Shape::Call, Shape::Wait(70), Shape::Signal(70), Shape::Tail] {
        for text in ["np", "nm", "sm"] {
            let error = compile(&spec(text), shape, &plain, Processor::Riscv64).expect_err("an error");
            assert_eq!(error, CompileError::Exclusive { caller: 1, callee: 7 });
            assert!(
                error.to_string().starts_with("domain 1 is exclusive (")
                    && error.to_string().contains("domain 7")
            );
        }
        let like = connect(scheduler, domain(2, false, true));
        assert!(compile(&spec("nm"), shape, &like, Processor::Riscv64).is_ok());
    }
    for processor in PROCESSORS {
        let timer = compile(&spec("sm"), Shape::Short(Short::SetTimer), &plain, processor);
        assert!(timer.is_ok(), "short-circuit portals are for all");
    }
}

/// Only calls are counted.
#[test]
fn other_shapes_have_no_counter() {
    let plain = connect(domain(2, false, true), domain(1, false, true));
    let counted = Connection { counter: Some(3), ..plain };
    for processor in PROCESSORS {
        let make = |shape, c| compile(&spec("nmd"), shape, c, processor).expect("code");
        for shape in [
            Shape::Tail,
            Shape::Short(Short::Time),
            Shape::Switch,
            Shape::Dispatch,
            Shape::None,
            Shape::Bounce,
            Shape::ThreadEnd,
            Shape::Interrupt,
            Shape::Exception,
            Shape::NoStack,
        ] {
            assert_eq!(make(shape, &counted), make(shape, &plain), "{shape:?}");
        }
        for shape in [Shape::Call, Shape::Wait(70), Shape::Signal(70)] {
            assert_eq!(make(shape, &counted).call_words, make(shape, &plain).call_words + 4, "{shape:?}");
        }
    }
}

/// Compiling in place leaves nothing of what was there.
#[test]
fn compiling_in_place_is_compiling() {
    let c = connect(domain(5, true, false), domain(7, true, false));
    let mut code = Code::default();
    for (text, shape) in [
        ("nfiiii>6", Shape::Call),
        ("sm", Shape::Dispatch),
        ("np", Shape::Exception),
        ("smcii", Shape::Call),
        ("sm", Shape::None),
    ] {
        for processor in PROCESSORS {
            compile_into(&spec(text), shape, &c, processor, &mut code).expect("code");
            assert_eq!(Ok(&code), compile(&spec(text), shape, &c, processor).as_ref(), "{text}");
        }
    }
}

/// Every return leg begins with clearing the status, so that behind this is an error entry.
#[test]
fn return_legs_have_an_error_entry() {
    let c = connect(domain(5, false, false), domain(7, false, false));
    for shape in [Shape::Call, Shape::Wait(70), Shape::Exception, Shape::Interrupt, Shape::ThreadEnd] {
        for processor in PROCESSORS {
            let lowered = ir::lower(&spec("nmd"), shape, &Facts::of(&c), layout(processor));
            assert_eq!(lowered.ret.first(), Some(&ir::Op::Return), "{shape:?}");
        }
    }
}

/// The status of a dead domain is its number above the code, whatever else is in the address-space register.
#[test]
fn a_bounce_names_the_dead_domain() {
    let Domain { space, .. } = domain(0xfedc, false, false);
    let code = ir::leaves_with(Shape::Bounce).map(u64::from);
    assert_eq!(code.map(|code| space << 4 >> 32 | code), Some(pebble_abi::status::dead(0xfedc)));
}

/// Windows and templates that cannot be had are refused before any code is made.
#[test]
fn windows_need_two_domains_that_have_them() {
    let make =
        |text: &str, shape, c: &Connection| compile(&spec(text), shape, c, Processor::Riscv64).map(|_| ());
    let (a, b) = (common::cases::lender(5, false), common::cases::lender(7, false));
    let good = connect(a, b);
    assert_eq!(make("npwt", Shape::Call, &good), Ok(()));
    let scheduler = connect(a, Domain { windows: b.windows, ..domain(1, false, true) });
    assert_eq!(make("nmw", Shape::Call, &scheduler), Err(CompileError::ExclusiveWindow { callee: 1 }));
    let no_slots = connect(a, domain(7, false, false));
    assert_eq!(make("npr", Shape::Call, &no_slots), Err(CompileError::NoWindows { domain: 7 }));
    let no_books = connect(Domain { windows: 0, ..a }, b);
    assert_eq!(make("npr", Shape::Call, &no_books), Ok(()));
    assert_eq!(make("npt", Shape::Call, &no_books), Err(CompileError::NoWindows { domain: 5 }));
    assert_eq!(make("npg2", Shape::Call, &no_books), Err(CompileError::NoWindows { domain: 5 }));
    assert_eq!(make("npw", Shape::Wait(70), &good), Err(CompileError::NotACall));
    assert_eq!(make("npk", Shape::Call, &good), Err(CompileError::NoTemplate { letter: b'k' }));
}

/// What does not fit is refused: here, more ways out than there is room for.
#[test]
fn portals_have_a_bounded_length() {
    use pebble_portal::hardware::template::{Condition, Operation, Register};
    let refuse = Operation::Refuse { a: Register::Word, condition: Condition::Less, b: Register::Zero };
    let letters = [b'A', b'B'].map(|letter| common::cases::registered(letter, &[refuse; 32]));
    let templates: &'static [_] = letters.to_vec().leak();
    let c = Connection { templates, ..connect(domain(5, false, false), domain(7, false, false)) };
    for processor in PROCESSORS {
        let long = Case::new("long", "nfAB", Shape::Call, c).on(processor);
        let error = compile(&long.spec, long.shape, &long.connection, processor).expect_err("an error");
        assert_eq!(error, CompileError::TooLong, "{processor}");
    }
}
