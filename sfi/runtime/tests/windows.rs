//! Windows, moved pages, shared regions, capabilities.

mod common;

use common::{build, instance};
use pebble_sfi_runtime::{CallError, Cause, Error, Extent, Imports, Instance, Lent, Module, Portal, Region};

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

fn touched(portal: &Portal, words: &[u64]) -> Option<u64> {
    match portal.call(words) {
        Err(CallError::Fault(fault)) => Some(fault.address),
        Err(error) => panic!("{error}"),
        Ok(_) => None,
    }
}

#[test]
fn a_window_reaches_as_far_as_is_said() {
    let (i, region) = (instance(), Region::new(5 * 4096).unwrap());
    let counted = [Extent::counted(0, 1, 8)];
    // `add` tells where the window is, plus its second word.
    let place = i.portal_over("add", "smoi", &counted).unwrap();
    let at = region.address() + 4096;
    for (count, pages) in [(0, 1), (512, 1), (513, 2), (1024, 2), (2048, 4)] {
        let begin = place.call(&[at, count]).unwrap() - count;
        let store = i.portal("store", "smii").unwrap();
        assert_eq!(touched(&store, &[begin + pages * 4096 - 8, count]), None, "{count}");
        assert_eq!(word(&region, 4096 + pages as usize * 4096 - 8), count);
        assert_eq!(touched(&store, &[begin + pages * 4096, 0]), Some(begin + pages * 4096));
        i.reset().unwrap();
    }
    // Not past the region, nor with a size that overflows.
    for count in [2049, u64::MAX / 8, u64::MAX] {
        assert!(matches!(place.call(&[at, count]), Err(CallError::NotLent)), "{count}");
    }
    // Windows of every length find room again when the area is full of old ones, and overlap nowhere.
    let long = Region::new(64 << 20).unwrap();
    let load = i.portal_over("load", "smri", &counted).unwrap();
    for n in 0..40u64 {
        let from = n % 4 * 4096;
        long.write(from as usize, &n.to_le_bytes()).unwrap();
        assert_eq!(load.call(&[long.address() + from, (4 << 20) + n]).unwrap(), n);
    }
    for bad in [
        &[Extent::bytes(1, 8)][..],
        &[Extent::counted(0, 0, 1)],
        &[Extent::counted(0, 7, 1)],
        &[Extent::text(9)],
    ] {
        assert!(matches!(i.portal_over("add", "smwi", bad), Err(Error::NoExtent(_))), "{bad:?}");
    }
}

#[test]
fn texts_end_with_their_nul() {
    let (i, region) = (instance(), Region::new(8192).unwrap());
    let load = i.portal_over("load", "smr", &[Extent::text(0)]).unwrap();
    region.write(4090, b"longer\0").unwrap();
    assert_eq!(load.call(&[region.address() + 4090]).unwrap() as u8, b'l');
    region.write(4090, &[b'x'; 4102]).unwrap();
    assert!(matches!(load.call(&[region.address() + 4090]), Err(CallError::NotLent)), "no NUL");
}

/// Memory that is in no region goes by a copy, which shows nothing else and comes back.
#[test]
fn any_memory_can_be_lent() {
    let i = instance();
    let load = i.portal_over("load", "smri", &[Extent::counted(0, 1, 8)]).unwrap();
    let store = i.portal_over("store", "smwi", &[Extent::bytes(0, 8)]).unwrap();
    let mut secret = [0x5ec4e7u64; 600];
    assert_eq!(load.call(&[Lent::read(&secret).unwrap().word(), 600]).unwrap(), 0x5ec4e7);
    for n in 0..50 {
        let mut own = [n; 3];
        let lent = Lent::write(&mut own[1..2]).unwrap();
        // The rest of the page is not what was there before.
        let peek = i.portal_over("load", "smr", &[Extent::bytes(0, 16)]).unwrap();
        assert_eq!(
            [peek.call(&[lent.word() + 8]).unwrap(), peek.call(&[lent.word() + 4088]).unwrap()],
            [0, 0]
        );
        store.call(&[lent.word(), 7]).unwrap();
        drop(lent);
        assert_eq!(own, [n, 7, n]);
    }
    // Also when the callee dies of it.
    let crash = i.portal_over("crash", "smwi", &[Extent::counted(0, 1, 8)]).unwrap();
    let lent = Lent::write(&mut secret).unwrap();
    assert!(crash.call(&[lent.word(), 600]).is_err());
    drop(lent);
    assert_eq!(secret, [0x5ec4e7; 600]);
    let none: [u8; 0] = [];
    i.reset().unwrap();
    assert_eq!(load.call(&[Lent::read(&none).unwrap().word(), 0]).unwrap(), 0);
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
