//! Global objects and constructors of plugins, as compilers and the linker leave them: they have run before
//! the first call.

use pebble_sfi_runtime::{Imports, Instance, Module};
use std::process::Command;

const C: &str = r#"
#include <pebble_plugin.h>
static unsigned long order;
__attribute__((constructor(102))) static void second(void) { order = order * 10 + 2; }
__attribute__((constructor)) static void last(void) { order = order * 10 + 3; }
__attribute__((constructor(101))) static void first(void) { order = order * 10 + 1; }
PBL_EXPORT(get, "sm") unsigned long get(void) { return order; }
"#;

const CXX: &str = r#"
#include <pebble_plugin.h>
struct Object { unsigned long value; Object(unsigned long v) : value(v + 1) {} };
unsigned long computed(unsigned long n) { return n ? n + computed(n - 1) : 0; }
Object one(computed(4)), two(one.value);
PBL_EXPORT(get, "sm") extern "C" unsigned long get(void) { return 100 * one.value + two.value; }
"#;

#[test]
fn constructors_have_run_before_the_first_call() {
    let place = std::env::temp_dir().join(format!("pebble-sfi-constructors-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    for (text, file, command, wanted) in [(C, "a.c", "cc", 123), (CXX, "a.cc", "c++", 1112)] {
        for compiler in ["clang", "gcc"] {
            let module = place.join("a.pbl");
            std::fs::write(place.join(file), text).unwrap();
            let mut cc = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"));
            cc.args([command, "--compiler", compiler, "-O1", "-nostdlib", "-isystem"])
                .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../libc/include"))
                .arg(place.join(file))
                .arg("-o")
                .arg(&module);
            assert!(cc.status().unwrap().success(), "{command} {compiler}");
            let module = Module::open(&module).unwrap_or_else(|e| panic!("{e}"));
            let instance = Instance::new(&Imports::new().link(&module).unwrap()).unwrap();
            let get = instance.portal("get", "").unwrap();
            assert_eq!(get.call(&[]).unwrap(), wanted, "{command} {compiler}");
            instance.reset().unwrap();
            assert_eq!(get.call(&[]).unwrap(), wanted, "{command} {compiler}, after a reset");
        }
    }
    std::fs::remove_dir_all(&place).unwrap();
}
