//! What a domain is not told, and what it does not get by asking for it itself.

mod common;

use pebble_sfi_runtime::{Error, Imports, Instance, Linked, Module};
use std::arch::asm;
use std::sync::Arc;

fn linked(level: u32) -> Arc<Linked> {
    let module = Module::load("asks", common::build("asks", level)).unwrap_or_else(|e| panic!("{e}"));
    let mut imports = Imports::new();
    imports.closure("host0", |_, _| {
        // Rounds down, and leaves something in the x87 registers.
        dirty();
        0
    });
    imports.link(&module).unwrap_or_else(|e| panic!("{e}"))
}

/// Negative numbers in all x87 registers, none of which is in use any more, and condition codes.
fn dirty() {
    // SAFETY: fills and empties registers that nothing uses.
    unsafe {
        asm!(
            "fninit",
            "fld1",
            "fchs",
            "fld st(0)",
            "fld st(0)",
            "fld st(0)",
            "fld st(0)",
            "fld st(0)",
            "fld st(0)",
            "fld st(0)",
            "ftst",
            "emms"
        )
    };
}

fn with_rounding<R>(mxcsr: u32, f: impl FnOnce() -> R) -> R {
    let mut before = 0u32;
    // SAFETY: changes how this thread rounds, and changes it back.
    unsafe { asm!("stmxcsr [{0}]", "ldmxcsr [{1}]", in(reg) &mut before, in(reg) &mxcsr) };
    let done = f();
    let mut after = 0u32;
    // SAFETY: as above.
    unsafe { asm!("stmxcsr [{0}]", "ldmxcsr [{1}]", in(reg) &mut after, in(reg) &before) };
    assert_eq!(after & !0x3f, mxcsr & !0x3f, "the process's own came back changed");
    done
}

#[test]
fn how_the_process_rounds() {
    const MODES: [u32; 5] = [0x1f80, 0x3f80, 0x5f80, 0x7f80, 0x9fc0];
    let full = Instance::new(&linked(2)).unwrap();
    let (third, controls) = (full.portal("third", "sm").unwrap(), full.portal("controls", "nf").unwrap());
    for mode in MODES.into_iter().chain([0x1fbf]) {
        let (number, control) =
            with_rounding(mode, || (third.call(&[]).unwrap(), controls.call(&[]).unwrap()));
        assert_eq!((number, control), ((1.0_f64 / 3.0).to_bits(), 0x1f80), "{mode:#x}");
    }
    // By way of another domain, which can tell.
    let (between, write) = (Instance::new(&linked(1)).unwrap(), Instance::new(&linked(1)).unwrap());
    between.connect("host0", &full, "third", "sm").unwrap();
    let after = between.portal("after", "sm").unwrap();
    with_rounding(0x5f80, || after.call(&[]).unwrap());
    let third = write.portal("third", "sm").unwrap();
    let seen = MODES.map(|mode| with_rounding(mode, || third.call(&[]).unwrap()));
    assert!(seen.iter().any(|number| *number != seen[0]), "level write reads all of the process anyway");
}

#[test]
fn what_x87_registers_have_held() {
    let full = Instance::new(&linked(2)).unwrap();
    let [signs, codes, after] = ["signs", "codes", "after"].map(|name| full.portal(name, "sm").unwrap());
    dirty();
    let before = codes.call(&[]).unwrap();
    dirty();
    assert_eq!(signs.call(&[]).unwrap(), 0);
    assert_eq!(after.call(&[]).unwrap(), 0);
    // Whatever the process's last comparison was.
    // SAFETY: compares on an empty stack, and empties it.
    unsafe { asm!("fninit", "fldz", "fld1", "fcompp", "fldpi", "fxam", "emms") };
    assert_eq!(codes.call(&[]).unwrap(), before);
    let write = Instance::new(&linked(1)).unwrap();
    dirty();
    assert_eq!(write.portal("signs", "sm").unwrap().call(&[]).unwrap(), 0xff, "the test can tell");
    // From one domain to another.
    let from = Instance::new(&linked(2)).unwrap();
    from.connect("host0", &full, "signs", "sm").unwrap();
    dirty();
    assert_eq!(from.portal("after", "sm").unwrap().call(&[]).unwrap(), 0);
}

/// Portal code and segments are far from everything that is the process's own.
#[test]
fn where_the_process_is() {
    const FAR: u64 = 1 << 40;
    let full = Instance::new(&linked(2)).unwrap();
    let code = full.portal("entry", "sm").unwrap().call(&[]).unwrap();
    let seen = [code, full.base()];
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let own = ["[stack]", "[heap]", ".so", "hidden-", "[vdso]"];
    let mut compared = 0;
    for line in maps.lines().filter(|line| own.iter().any(|name| line.contains(name))) {
        let begin = u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap();
        assert!(seen.iter().all(|at| at.abs_diff(begin) >= FAR / 2), "{seen:x?} and {line}");
        compared += 1;
    }
    assert!(compared > 10, "{maps}");
    // Portal code lies in the one slot's worth beside 2^46 bytes of slots.
    assert!(code.abs_diff(full.base()) < (1 << 46) + (1 << 35), "{seen:x?}");
}

/// A module's own specification gives it words; what is the host's, the host says.
#[test]
fn a_module_cannot_give_itself_anything() {
    let linked = linked(2);
    let [asks, other] = [0; 2].map(|_| Instance::new(&linked).unwrap());
    assert_eq!(asks.portal("plain", "").unwrap().call(&[1, 2]).unwrap(), 3);
    for letter in ["w", "r", "o", "t", "g", "k", "a", "d", "h"] {
        let spec = asks.module().export(letter).unwrap().spec.clone();
        let refused = |made: Result<(), Error>| match made {
            Err(error @ Error::Consent { .. }) => {
                let text = error.to_string();
                assert!(text.contains(&format!("('{letter}')")) && text.contains(&spec), "{text}");
            }
            other => panic!("{letter}: {other:?}"),
        };
        refused(asks.portal(letter, "").map(drop));
        refused(asks.portal_with(letter, "", 7).map(drop));
        refused(asks.portal_over(letter, "", &[]).map(drop));
        refused(other.connect("host0", &asks, letter, ""));
        assert!(asks.portal(letter, &spec).is_ok(), "{letter}");
    }
}

#[test]
fn levels_and_timers_are_demanded() {
    let [write, full] = [1, 2].map(|level| Module::load("asks", common::build("asks", level)).unwrap());
    let silent = Module::load("basic", common::build("basic", 2)).unwrap();
    let mut imports = Imports::new();
    imports.lenient = true;
    imports.full = true;
    assert!(matches!(imports.link(&write), Err(Error::NotFull)));
    assert!(imports.link(&full).is_ok());
    imports.no_timer = true;
    match imports.link(&full) {
        Err(error @ Error::Timer(at)) => {
            assert_eq!(full.function(at).map(|(name, _)| name), Some("clock"));
            assert!(error.to_string().contains("-fpbl-no-timer"), "{error}");
        }
        other => panic!("{:?}", other.err()),
    }
    assert!(imports.link(&silent).is_ok());
}
