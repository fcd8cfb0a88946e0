//! The first instance of a process that asks for it has its segment at address zero, and is no less confined
//! there.

mod common;

use common::{basic, instance};
use pebble_sfi_runtime::{CallError, Cause, Fault, Instance, segment_at_zero};

fn fault(instance: &Instance, name: &str, words: &[u64]) -> Fault {
    let fault = match instance.portal(name, "smii").unwrap().call(words) {
        Err(CallError::Fault(fault)) => *fault,
        other => panic!("{name}: {other:?}"),
    };
    instance.reset().unwrap();
    fault
}

/// As for most users, the lowest pages cannot be mapped.
fn renounce() {
    const VERSION: u32 = 0x2008_0522;
    let (header, none) = ([VERSION, 0], [0u32; 6]);
    // SAFETY: gives up this thread's capabilities; both structures are as the kernel's header has them.
    assert_eq!(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) }, 0);
}

/// One test, since a process has one such segment.
#[test]
fn the_first_segment_lies_at_zero() {
    renounce();
    segment_at_zero();
    let zero = Instance::new(&basic(2)).unwrap();
    let (other, third) = (instance(), instance());
    assert_eq!([zero.base(), other.base(), third.base()], [0, 16 << 30, 32 << 30]);
    for spec in ["smii", "npii", "nfii"] {
        assert_eq!(zero.portal("add", spec).unwrap().call(&[40, 2]).unwrap(), 42);
        assert_eq!(zero.portal("callback", spec).unwrap().call(&[1, 2]).unwrap(), 1004);
    }
    // Across, in and out, on threads that have been in neither.
    other.connect("host0", &zero, "add", "npii").unwrap();
    zero.connect("host0", &third, "add", "npii").unwrap();
    for from in [&zero, &other] {
        let callback = from.portal("callback", "smii").unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| assert_eq!(callback.call(&[5, 6]).unwrap(), 12));
        });
    }
    // The null guard, memory that nobody has given, the end of the segment, what lies below it and above:
    // each a fault of the domain's.
    let cases: [(&str, [u64; 2], u64); 6] = [
        ("load", [0, 0], 0),
        ("store", [0x8, 1], 0x8),
        ("store", [0x1_0000, 1], 0x1_0000),
        ("load", [0x7000_0000, 0], 0x7000_0000),
        ("below", [0, 1], 8u64.wrapping_neg()),
        ("below", [0xFFFF_FFFF, 1], 0xFFFF_FFF7),
    ];
    for (name, words, address) in cases {
        let fault = fault(&zero, name, &words);
        assert_eq!((fault.cause, fault.address), (Cause::Memory, address), "{fault}");
        assert!(fault.to_string().contains(name), "{fault}");
    }
    assert_eq!(fault(&zero, "recurse", &[0, 0]).cause, Cause::ReturnStack);
    assert_eq!(fault(&zero, "deep", &[0, 0]).cause, Cause::DataStack);
    assert_eq!(fault(&other, "below", &[0, 1]).address, other.base() - 8);
    // The place is free for the next.
    drop((other, zero));
    assert_eq!(instance().base(), 0);
}
