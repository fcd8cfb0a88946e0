//! Boards, accepted or refused with their sentences.

use pebble_image::Board;
use pebble_image::board::Registers;

const GOOD: &str = include_str!("../../../boards/virt.toml");

fn refused(from: &str, to: &str, sentence: &str) {
    assert!(GOOD.contains(from), "{from}");
    let error = Board::parse(&GOOD.replacen(from, to, 1)).expect_err(to).to_string();
    assert!(error.contains(sentence), "{to}\ngave: {error}");
}

#[test]
fn every_board_of_the_project_is_good_and_has_its_files_name() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../boards");
    for entry in std::fs::read_dir(folder).expect(folder).flatten() {
        let board = Board::load(&entry.path()).unwrap_or_else(|error| panic!("{entry:?}: {error}"));
        assert_eq!(entry.path().file_stem().and_then(|name| name.to_str()), Some(&*board.name));
    }
}

#[test]
fn components_are_compiled_for_what_the_board_says() {
    use pebble_abi::map;
    let board = Board::parse(GOOD).expect("a good board");
    let told = (board.memory.at, board.memory.bytes, board.memory.load, board.time_hz);
    assert_eq!(told, (map::RAM_PA, map::RAM_BYTES, map::LOAD_PA, map::TIME_HZ));
    let (uart, told) = (&board.device["uart"], map::DEVICE_UART);
    assert_eq!((&*uart.kind, u32::from(uart.interrupt)), (told.kind, told.interrupt));
    assert_eq!(uart.registers[0].bytes, told.registers[0].bytes as u64);
}

#[test]
fn a_domain_gets_the_pages_in_which_registers_are() {
    let pages = |at, bytes| Registers { at, bytes }.pages();
    assert_eq!(pages(0x1000, 0x1000), Registers { at: 0x1000, bytes: 0x1000 });
    assert_eq!(pages(0x13f8, 8), Registers { at: 0x1000, bytes: 0x1000 });
    assert_eq!(pages(0x1fff, 2), Registers { at: 0x1000, bytes: 0x2000 });
}

#[test]
fn what_cannot_be_is_refused() {
    refused(
        "processor = \"riscv64\"",
        "processor = \"z80\"",
        "processor = \"z80\": known are riscv64, mips64, x86_64",
    );
    refused("load = 0x8020_0000", "load = 0x8020_0001", "multiples of 4096");
    refused("load = 0x8020_0000", "load = 0x1000", "load inside");
    refused("at = 0x8000_0000", "at = 0x8010_0000", "it must begin at 0 or 2 GiB");
    refused("bytes = 0x800_0000", "bytes = 0x800_1000", "no more than 128 MiB");
    refused("bytes = 0x800_0000", "bytes = 0xfffffffffffff000", "beyond all addresses");
    refused(
        "at = 0x10_1000, bytes = 0x1000",
        "at = 0x10_1000, bytes = 0",
        "device 'rtc': it needs registers",
    );
    refused(
        "at = 0x10_1000, bytes = 0x1000",
        "at = 0xfff_ffff_ffff_f000, bytes = 0x1000",
        "device 'rtc': its registers reach beyond all addresses",
    );
    refused("kind = \"goldfish\"\n", "", "missing field `kind`");
    refused("-no-reboot\"", "-no-reboot\"\nstatus = \"fax\"", "unknown variant `fax`");
    refused(
        "at = 0x10_1000, bytes = 0x1000",
        "at = 0x7fff_f000, bytes = 0x1001",
        "this is memory, not a device",
    );
    refused("interrupt = 11", "interrupt = 64", "interrupt must be below 64");
    refused("interrupt = 11", "interrupt = 10", "another device has this interrupt");
    refused("interrupt = 11", "irq = 11", "unknown field `irq`");
}
