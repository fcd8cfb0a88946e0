//! `longjmp` goes where a `setjmp` is still on the return stack, and nowhere else.

mod common;

use pebble_sfi_runtime::{CallError, Cause, Imports, Instance, Module};

#[test]
fn jumps_go_where_they_may() {
    for level in [1, 2] {
        let module = Module::load("jumps", common::build("jumps", level)).unwrap_or_else(|e| panic!("{e}"));
        let i = Instance::new(&Imports::new().link(&module).unwrap()).unwrap();
        for spec in ["sm", "np"] {
            let attempt = i.portal("attempt", &format!("{spec}i")).unwrap();
            for deep in [0, 1, 2, 100, 5000] {
                assert_eq!(attempt.call(&[deep]).unwrap(), 77, "{deep}");
            }
            for bad in ["forged", "gone"] {
                match i.portal(bad, spec).unwrap().call(&[]) {
                    Err(CallError::Fault(fault)) => {
                        assert_eq!(fault.cause, Cause::LongJump);
                        assert_eq!(fault.function.map(|f| f.0).as_deref(), Some(bad));
                    }
                    other => panic!("{other:?}"),
                }
                i.reset().unwrap();
            }
        }
    }
}
