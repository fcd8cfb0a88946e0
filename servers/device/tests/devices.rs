//! Places of devices, and who drives them.

use pebble_abi::errno::*;
use pebble_abi::map::{DEVICES_VA, PAGE};
use pebble_abi::words::{Asid, PhysAddr, VirtAddr};
use pebble_boot::rules::{About, Rule};
use pebble_boot::{Device, Policy};
use pebble_device::{Devices, Registers};

fn devices() -> Devices {
    let device = |name: &str, at, bytes, irq| Device { name: name.into(), at, bytes, irq };
    let rule = |about| Rule { about, ..Rule::default() };
    let policy = Policy {
        domains: Vec::new(),
        interfaces: Vec::new(),
        rules: vec![
            rule(About::Interface("*".into())),
            rule(About::Device("r*".into())),
            rule(About::File("/*".into())),
            rule(About::Device("*".into())),
        ],
    };
    Devices::new((policy, vec![device("rtc", 0x10_1000, 0x24, 11), device("rom", 0x1000, 2 * PAGE + 1, 0)]))
}

#[test]
fn each_has_its_place_and_its_rules() {
    let devices = devices();
    assert_eq!(devices.find("rtc"), Ok((0, 0b1010)));
    assert_eq!(devices.find("rom"), Ok((1, 0b1010)));
    assert_eq!((devices.find("r"), devices.find("")), (Err(ENOENT), Err(ENOENT)));
    assert_eq!(
        devices.registers(0),
        Ok(Registers { va: VirtAddr(DEVICES_VA), pa: PhysAddr(0x10_1000), bytes: 0x24 })
    );
    let rom = Registers { va: VirtAddr(DEVICES_VA + PAGE), pa: PhysAddr(0x1000), bytes: 2 * PAGE + 1 };
    assert_eq!((devices.registers(1), devices.registers(2)), (Ok(rom), Err(ENOENT)));
}

#[test]
fn an_interrupt_has_one_driver_until_that_dies() {
    let mut devices = devices();
    assert_eq!(
        (devices.claim(1, Asid(7)), devices.source(1), devices.source(2)),
        (Err(ENOENT), Err(ENOENT), Err(EBADF))
    );
    assert_eq!((devices.claim(0, Asid(7)), devices.source(0)), (Ok(()), Ok(11)));
    assert_eq!((devices.claim(0, Asid(7)), devices.claim(0, Asid(8))), (Err(EBUSY), Err(EBUSY)));
    assert_eq!((devices.gone(Asid(8)), devices.gone(Asid(0))), (vec![], vec![]));
    assert_eq!((devices.gone(Asid(7)), devices.gone(Asid(7))), (vec![(0, 11)], vec![]));
    assert_eq!(devices.claim(0, Asid(8)), Ok(()));
    assert_eq!((devices.release(0), devices.gone(Asid(8))), (Ok(()), vec![]));
}
