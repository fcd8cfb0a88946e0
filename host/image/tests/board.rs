//! Boards, accepted or refused with their sentences.

use pebble_image::Board;

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
    assert_eq!(u32::from(board.device["uart"].interrupt), map::IRQ_UART);
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
    refused("bytes = 0x800_0000", "bytes = 0xfffffffffffff000", "beyond all addresses");
    refused(
        "at = 0x10_1000, bytes = 0x1000",
        "at = 0x10_1004, bytes = 4",
        "device 'rtc': its registers must begin",
    );
    refused(
        "at = 0x10_1000, bytes = 0x1000",
        "at = 0x10_1000, bytes = 0",
        "device 'rtc': its registers must begin",
    );
    refused(
        "at = 0x10_1000, bytes = 0x1000",
        "at = 0x7fff_f000, bytes = 0x1001",
        "this is memory, not a device",
    );
    refused("interrupt = 11", "interrupt = 64", "interrupt must be below 64");
    refused("interrupt = 11", "interrupt = 10", "another device has this interrupt");
    refused("interrupt = 11", "irq = 11", "unknown field `irq`");
}
