//! What a domain gets of the process when it asks for the wrong thing, or at the wrong time.

mod common;

use pebble_sfi_runtime::{Imports, Instance, Module, Policy, Portal};
use std::sync::Arc;

struct Domain {
    instance: Instance,
    portal: Portal,
}

impl Domain {
    fn new(policy: Policy) -> Domain {
        let module = Module::load("sys", common::build("sys", 1)).unwrap_or_else(|e| panic!("{e}"));
        let mut imports = Imports::new();
        imports.system_calls().unwrap();
        let instance = Instance::new(&imports.link(&module).unwrap()).unwrap();
        instance.grant(&Arc::new(policy), 0);
        let portal = instance.portal("sys", "smiiiiii").unwrap();
        Domain { instance, portal }
    }

    /// A system call of the domain's.
    fn ask(&self, number: libc::c_long, words: [u64; 5]) -> i64 {
        let [a, b, c, d, e] = words;
        self.portal.call(&[number as u64, a, b, c, d, e]).unwrap() as i64
    }

    /// Memory of the domain's, and what is in it first.
    fn memory(&self, bytes: u64, begin: &[u8]) -> u64 {
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let at = self.ask(libc::SYS_mmap, [0, bytes, 3, flags, !0]) as u64;
        self.instance.write(at, begin).unwrap();
        at
    }
}

#[test]
fn lengths_are_compared_before_they_are_added() {
    let domain = Domain::new(Policy::default());
    let at = domain.memory(4096, b"kept");
    let endless = u64::MAX - 4095;
    let wrong = -i64::from(libc::EINVAL);
    assert_eq!(domain.ask(libc::SYS_mremap, [at, endless, endless, 1, 0]), wrong);
    assert_eq!(domain.ask(libc::SYS_mremap, [at, endless, 4096, 1, 0]), wrong);
    let mut found = [0; 4];
    domain.instance.read(at, &mut found).unwrap();
    assert_eq!(&found, b"kept");
}
