//! Level `check`: a module is accepted, and the instruction that leaves the segment is named with file and
//! line, and the address that it wanted.

use pebble_sfi_runtime::{CallError, Cause, Imports, Instance, Module};
use std::path::Path;
use std::process::Command;

/// The flags are dead where `store` and `counted` write, and live where `between` does: all forms of the
/// comparison.
const SOURCE: &str = r#"#include <pebble_plugin.h>
PBL_EXPORT(store, "smi");
PBL_EXPORT(between, "smii");
PBL_EXPORT(trap, "sm");
void trap(void) { __builtin_trap(); }
long values[4];
void store(long *to) {
    long *p = to ? to : values;
    *p = 7;
}
long between(long *to, long limit) {
    long below;
    __asm__ volatile("cmpq %3, %2\n\t"
                     "movq %2, (%1)\n\t"
                     "setl %b0" : "=&q"(below) : "r"(to), "r"(3L), "r"(limit) : "cc", "memory");
    return below & 1;
}
PBL_EXPORT(counted, "smi");
void counted(long *to) {
    __asm__ volatile("movq $7, -8(%%rax,%0)" : : "c"(to), "a"(0L) : "memory");
}
"#;

#[test]
fn the_offending_instruction_is_named() {
    let source = std::env::temp_dir().join(format!("pebble-sfi-check-{}.c", std::process::id()));
    std::fs::write(&source, SOURCE).expect("the source");
    let out = source.with_extension("pbl");
    let status = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"))
        .args(["cc", "-g", "-O1", "-nostdlib", "-fpbl-level=check", "-isystem"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../libc/include"))
        .arg(&source)
        .arg("-o")
        .arg(&out)
        .status()
        .expect("pebble-sfi");
    assert!(status.success());
    let module =
        Module::load("check", std::fs::read(&out).expect("the module")).unwrap_or_else(|e| panic!("{e}"));
    let linked = Imports::new().link(&module).expect("linked");
    let instance = Instance::new(&linked).expect("an instance");
    let mut outside = 0u64;
    let to = &raw mut outside as u64;
    instance.portal("store", "smi").unwrap().call(&[0]).expect("an own address");
    let (strange, above) = (0xfedc_ba98_7654_3210, instance.base() + (1 << 32));
    for (name, spec, arguments, line, address) in [
        ("store", "smi", &[to][..], 9, to),
        ("store", "smi", &[strange], 9, strange),
        ("store", "smi", &[above], 9, above),
        ("between", "smii", &[to, 5], 13, to),
        ("between", "smii", &[strange, 5], 13, strange),
        ("between", "smii", &[above + 0x123, 5], 13, above + 0x123),
        ("counted", "smi", &[to], 20, to - 8),
        ("counted", "smi", &[strange], 20, strange - 8),
    ] {
        match instance.portal(name, spec).unwrap().call(arguments) {
            Err(CallError::Fault(fault)) => {
                let place = format!("{}:{line}", source.file_name().unwrap().to_string_lossy());
                assert!(fault.to_string().contains(&place), "{fault}, not at {place}");
                assert_eq!((fault.cause, fault.address), (Cause::Check, address), "{fault}");
                assert!(
                    fault.to_string().contains(&format!("outside the domain: {address:#x}, ")),
                    "{fault}"
                );
            }
            other => panic!("{name}: {other:?}"),
        }
        instance.reset().expect("reset");
    }
    match instance.portal("trap", "sm").unwrap().call(&[]) {
        Err(CallError::Fault(fault)) => assert_eq!(fault.cause, Cause::Instruction, "{fault}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(outside, 0);
    let _ = (std::fs::remove_file(source), std::fs::remove_file(out));
}
