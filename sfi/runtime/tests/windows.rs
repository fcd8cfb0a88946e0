//! Windows, moved pages, shared regions, capabilities.

mod common;

use common::{build, instance};
use pebble_sfi_runtime::{CallError, Cause, Imports, Instance, Module, Region};

fn word(region: &Region, at: usize) -> u64 {
    let mut bytes = [0; 8];
    region.read(at, &mut bytes).unwrap();
    u64::from_le_bytes(bytes)
}

#[test]
fn a_window_is_the_page_itself_until_the_call_returns() {
    let (i, region) = (instance(), Region::new(8192).unwrap());
    region.write(4096, &7u64.to_le_bytes()).unwrap();
    let page = region.address() + 4096;
    for _ in 0..100 {
        assert_eq!(i.portal("load", "smw").unwrap().call(&[page]).unwrap(), 7);
        assert_eq!(i.portal("load", "npr").unwrap().call(&[page]).unwrap(), 7);
    }
    i.portal("store", "smwi").unwrap().call(&[page + 8, 99]).unwrap();
    assert_eq!(word(&region, 4104), 99);
    // The place where it was is empty afterwards.
    let kept = i.portal("add", "smwi").unwrap().call(&[page, 0]).unwrap();
    match i.portal("load", "smi").unwrap().call(&[kept]) {
        Err(CallError::Fault(fault)) => assert_eq!((fault.cause, fault.address), (Cause::Memory, kept)),
        other => panic!("{other:?}"),
    }
    i.reset().unwrap();
    // Read-only means it.
    assert!(matches!(i.portal("store", "smri").unwrap().call(&[page, 1]), Err(CallError::Fault(_))));
    assert_eq!(word(&region, 4096), 7);
    i.reset().unwrap();
    // An open one stays.
    let kept = i.portal("add", "smoi").unwrap().call(&[page, 0]).unwrap();
    assert_eq!(i.portal("load", "smi").unwrap().call(&[kept]).unwrap(), 7);
    // Memory of the process that is no region cannot be lent, and nothing stays lent.
    let own = Box::new([0u8; 4096]);
    let portal = i.portal("load", "smww").unwrap();
    assert!(matches!(portal.call(&[page, own.as_ptr() as u64]), Err(CallError::NotLent)));
    assert_eq!(i.portal("load", "nmw").unwrap().call(&[page]).unwrap(), 7);
    assert!(!i.busy());
}

#[test]
fn pages_move() {
    let (i, region) = (instance(), Region::new(4096).unwrap());
    region.write(0, &5u64.to_le_bytes()).unwrap();
    assert_eq!(i.portal("load", "smt").unwrap().call(&[region.address()]).unwrap(), 5);
    assert_eq!(word(&region, 0), 0, "it is the callee's now");
    i.portal("store", "smgi").unwrap().call(&[region.address(), 6]).unwrap();
    assert_eq!(word(&region, 0), 6);
}

#[test]
fn shared_regions_have_one_offset() {
    let (a, b, region) = (instance(), instance(), Region::new(10_000).unwrap());
    let (at, again) = (region.share(&a, true).unwrap(), region.share(&b, false).unwrap());
    assert_eq!(at, again);
    a.portal("store", "smii").unwrap().call(&[at + 8, 3]).unwrap();
    assert_eq!(b.portal("load", "smi").unwrap().call(&[at + 8]).unwrap(), 3);
    assert_eq!(word(&region, 8), 3);
    assert!(b.portal("store", "smii").unwrap().call(&[at, 3]).is_err(), "read-only there");
}

extern "C" fn twice(page: *mut u64, object: u64) -> u64 {
    // SAFETY: the portal passes a page of its own.
    unsafe {
        *page *= 2;
        *page + object
    }
}

#[test]
fn windows_and_capabilities_out_of_a_domain() {
    let module = Module::load("basic", build("basic", 1)).unwrap();
    let mut imports = Imports::new();
    imports.lenient = true;
    // SAFETY: takes a page and a word.
    unsafe { imports.function("host0", "smwk", twice as *const (), 0).unwrap() };
    let i = Instance::new(&imports.link(&module).unwrap()).unwrap();
    let counter = i.portal("pointer", "sm").unwrap().call(&[]).unwrap();
    // The object 1000 gets a name, which comes back as the object.
    let name = i.portal("add", "smki").unwrap().call(&[1000, 0]).unwrap();
    assert_eq!(name, 1);
    let callback = i.portal("callback", "smii").unwrap();
    assert_eq!(callback.call(&[counter, name]).unwrap(), 82 + 1000 + 1);
    assert_eq!(i.portal("count", "sm").unwrap().call(&[]).unwrap(), 83);
    // Neither memory elsewhere nor a name that was not given.
    for bad in [[0x1000, name], [counter, 2], [counter, 0]] {
        assert_eq!(callback.call(&bad).unwrap(), 1, "an error without a value");
    }
    assert_eq!(i.portal("count", "sm").unwrap().call(&[]).unwrap(), 84);
}
