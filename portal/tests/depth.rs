//! The deepest that an invocation stack can get, from the frames that portals push: it ends with its page.
//!
//! Programs may push as long as the top lies below `INVOCATION_LIMIT`, servers of the image below
//! `INVOCATION_RESERVE`, and whoever cannot is refused. What is pushed without asking lies above one of
//! these: a trap, in whatever domain the last call has led to; and above that, in the VM manager, a call of
//! the scheduler, which calls nobody, or a trap of its own. A policy that is asked, a handler that is asked,
//! and a call with a time limit are calls like others.

mod common;

use common::cases::{PROCESSORS, connect, domain, layout, lender};
use pebble_abi::{map, thread};
use pebble_portal::Spec;
use pebble_portal::hardware::hole::Facts;
use pebble_portal::hardware::{Connection, Domain, Shape, ir};

/// Bytes of the frame, on the processor where it is the largest.
fn bytes(spec: &str, shape: Shape, c: &Connection) -> u64 {
    let spec = Spec::parse(spec).expect("a good specification");
    let words = PROCESSORS.map(|processor| ir::lower(&spec, shape, &Facts::of(c), layout(processor)).words);
    u64::from(words.into_iter().max().expect("a processor")) * 8
}

/// The largest frame of a call from here, into domains of any kind.
fn largest_call(caller: Domain) -> u64 {
    let windows = ["", "w", "r", "o", "t", "g", "w2", "o16", "g512"];
    let pairs = windows.iter().flat_map(|a| windows.iter().map(move |b| format!("{a}{b}")));
    let specs =
        pairs.flat_map(|args| ["sm", "sp", "sf", "nm", "np", "nf"].map(|head| format!("{head}{args}>6")));
    let callees = [lender(7, false), lender(7, true)];
    let connections =
        callees.map(|callee| connect(caller, callee)).map(|c| [c, Connection { keeps_status: true, ..c }]);
    let frames =
        specs.flat_map(|spec| connections.as_flattened().iter().map(move |c| bytes(&spec, Shape::Call, c)));
    frames.max().expect("a call")
}

fn largest_trap(float: bool, exclusive: bool) -> u64 {
    let c = connect(domain(0, float, false), domain(3, false, exclusive));
    let shapes = [Shape::Exception, Shape::Interrupt, Shape::NoStack];
    shapes.into_iter().map(|shape| bytes("np", shape, &c)).max().expect("a trap")
}

#[test]
fn nothing_is_pushed_beyond_the_page() {
    let server = Domain { trusted: true, ..lender(5, false) };
    let (program, float) = (lender(5, false), lender(5, true));
    // The highest top at which a call is not refused, and the frame above it.
    let of_programs = thread::INVOCATION_LIMIT - 8 + largest_call(float).max(largest_call(program));
    let of_servers = thread::INVOCATION_RESERVE - 8 + largest_call(server);
    let trap = largest_trap(true, false).max(largest_trap(true, true));
    // The VM manager, which is entered by a trap, uses no floating point.
    let scheduler = connect(server, domain(1, false, true));
    let calls = ["nm", "np", "nf"].map(|head| bytes(&format!("{head}iiiii>6"), Shape::Call, &scheduler));
    let own_trap = largest_trap(false, true).max(largest_trap(false, false));
    let above = own_trap.max(calls.into_iter().max().expect("a call"));
    let highest = of_programs.max(of_servers) + trap + above;
    // And a word above it, which is stored beside the test whether there is room.
    assert!(highest + 16 <= map::PAGE, "the top word can lie at {highest:#x}");
    // A program's calls do not use up what servers need to call one another.
    let left = thread::INVOCATION_RESERVE.saturating_sub(of_programs);
    let deepest = left / bytes("npiiiii>6", Shape::Call, &connect(server, program));
    assert!(deepest >= 5, "only {deepest} servers in turn");
}

/// An exclusive domain leaves no frame.
#[test]
fn exclusive_domains_push_nothing() {
    let c = connect(domain(2, false, true), domain(1, false, true));
    let spec = Spec::parse("nmdii").expect("a good specification");
    for processor in PROCESSORS {
        assert_eq!(ir::lower(&spec, Shape::Tail, &Facts::of(&c), layout(processor)).words, 0);
    }
}
