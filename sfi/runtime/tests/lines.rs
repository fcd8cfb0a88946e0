//! Files and lines come from debug information, which is the module's: reading it costs what its size says, and no more.

use pebble_sfi_runtime::source_line;
use std::process::{Command, Stdio};

/// An object file with these debug sections.
fn assembled(name: &str, source: &str) -> Vec<u8> {
    use std::io::Write;
    let out = std::env::temp_dir().join(format!("pebble-sfi-lines-{name}-{}.o", std::process::id()));
    let mut clang = Command::new("clang-19");
    clang.args(["-c", "-x", "assembler", "-", "-o"]).arg(&out).stdin(Stdio::piped());
    let mut clang = clang.spawn().unwrap();
    clang.stdin.take().unwrap().write_all(source.as_bytes()).unwrap();
    assert!(clang.wait().unwrap().success());
    let bytes = std::fs::read(&out).unwrap();
    std::fs::remove_file(out).unwrap();
    bytes
}

/// The most memory that this process has had, in KiB.
fn most_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

/// Compilation units that say they are everywhere, all with the first line program.
fn units(count: u32) -> String {
    format!(
        ".section .debug_abbrev,\"\",@progbits
        .byte 1, 0x11, 0, 0x11, 1, 0x12, 7, 0x10, 0x17, 0, 0, 0
        .section .debug_info,\"\",@progbits
        .rept {count}
        .long 28
        .short 4
        .long 0
        .byte 8, 1
        .quad 0, 0x80000000
        .long 0
        .endr
        "
    )
}

/// A line program of version 5: `files` files of one long name in one directory, then `rows` rows from 0x70000000 on, and one sequence that holds 0x20100.
fn program(files: u32, name: u32, rows: u32) -> String {
    format!(
        ".section .debug_line_str,\"MS\",@progbits,1
        .ascii \"/dir\"
        .byte 0
        .fill {name}, 1, 'x'
        .byte 0
        .section .debug_line,\"\",@progbits
        .long 9f - 1f
        1: .short 5
        .byte 8, 0
        .long 3f - 2f
        2: .byte 1, 1, 1, -5, 14, 13
        .byte 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1
        .byte 1, 1, 0x1f
        .uleb128 1
        .long 0
        .byte 2, 1, 0x1f, 2, 0x0b
        .uleb128 {files}
        .rept {files}
        .long 5
        .byte 0
        .endr
        3: .byte 0, 9, 2
        .quad 0x70000000
        .fill {rows}, 1, 0x40
        .byte 0, 1, 1
        .byte 0, 9, 2
        .quad 0x20000
        .byte 3, 6, 1
        .byte 2
        .uleb128 0x1000
        .byte 0, 1, 1
        9:
        "
    )
}

#[test]
fn a_line_is_found() {
    let file = assembled("plain", &(units(1) + &program(2, 8, 3)));
    assert_eq!(source_line(&file, 0x20100), Some(("/dir/xxxxxxxx".into(), 7)));
    assert_eq!(source_line(&file, 0x1ffff), None);
    assert_eq!(source_line(&file, 0x21000), None);
    for cut in (0..file.len()).step_by(7) {
        source_line(&file[..cut], 0x20100);
    }
}

#[test]
fn a_line_costs_what_its_file_is_long() {
    let many =
        [("units", units(2000) + &program(1, 8, 20_000)), ("names", units(1) + &program(4000, 100_000, 1))];
    let files = many.map(|(name, source)| (name, assembled(name, &source)));
    for (name, file) in files {
        let before = most_memory();
        source_line(&file, 0x30000);
        source_line(&file, 0x20100);
        let more = most_memory() - before;
        assert!(more < 64 << 10, "{name}: {more} KiB for {} KiB", file.len() >> 10);
    }
}
