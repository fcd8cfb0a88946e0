//! Files and lines come from debug information, which is the module's: reading it costs what its size says,
//! and no more.

mod common;

use pebble_sfi_runtime::{CallError, Fault, Imports, Instance, Module, moved_file, source_line};
use std::process::{Command, Stdio};
use std::time::Duration;

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

/// A line program of version 5: `files` files of one long name in one directory, then `rows` rows from
/// 0x70000000 on, and one sequence that holds 0x20100.
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
        .fill {files}, 5, 5
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

/// Processor time of this thread while it does something.
fn time(work: impl FnOnce()) -> Duration {
    let now = || {
        let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: writes a structure of ours.
        unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
        Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
    };
    let before = now();
    work();
    now() - before
}

/// A source that includes a file of these bytes, so many times over.
struct Repeated(std::path::PathBuf);

impl Repeated {
    fn new(bytes: &[u8], count: usize) -> Repeated {
        let name = format!("pebble-sfi-repeated-{:x}-{}", bytes.len(), std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, bytes.repeat(count)).unwrap();
        Repeated(path)
    }

    fn source(&self) -> String {
        format!(".incbin \"{}\"", self.0.display())
    }
}

impl Drop for Repeated {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// How often somebody looks at each byte of a module with this debug information while a fault of it is told. Both
/// are timed in turn, so a slow machine is slow for both.
fn read_while_told(name: &str, source: &str) -> f64 {
    let path = std::env::temp_dir().join(format!("pebble-sfi-told-{name}-{}.s", std::process::id()));
    std::fs::write(&path, format!(".include \"basic.s\"\n{source}")).unwrap();
    let file = common::build_from(&path, name, 1, &[]);
    std::fs::remove_file(path).unwrap();
    let bytes = file.clone();
    assert!(bytes.len() > 40_000_000, "{name}: {} bytes", bytes.len());
    let module = Module::load(name, file).unwrap_or_else(|e| panic!("{e}"));
    let mut imports = Imports::new();
    imports.lenient = true;
    let i = Instance::new(&imports.link(&module).unwrap()).unwrap();
    let wild = i.portal("wild", "smi").unwrap();
    let (mut telling, mut reading) = (Duration::MAX, Duration::MAX);
    for _ in 0..5 {
        let fault: Box<Fault> = match wild.call(&[0x18]) {
            Err(CallError::Fault(fault)) => fault,
            other => panic!("{other:?}"),
        };
        telling = telling.min(time(|| {
            fault.line();
            assert!(fault.to_string().contains(" in wild+0x"), "{fault}");
        }));
        let sum = || bytes.iter().fold(0u32, |sum, byte| sum.rotate_left(1) ^ u32::from(*byte));
        reading = reading.min(time(|| _ = std::hint::black_box(sum())));
        i.reset().unwrap();
    }
    println!("{name}: told in {telling:?}, read in {reading:?}");
    telling.as_secs_f64() / reading.as_secs_f64()
}

/// Debug information of 50 MB, of each kind that takes long in its own way.
#[test]
fn a_fault_is_told_in_time() {
    const MUCH: u32 = 50_000_000;
    const PROGRAM: &[u8] = &[
        // Its length, version 4, the header's length.
        40, 0, 0, 0, 4, 0, 20, 0, 0, 0, // Steps, opcodes and their lengths, no directories, no files.
        1, 1, 1, 0xfb, 14, 13, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 0, 0, // An address; the end.
        0, 9, 2, 0, 0, 2, 0, 0, 0, 0, 0, 0, 1, 1,
    ];
    let many = Repeated::new(PROGRAM, MUCH as usize / PROGRAM.len());
    let advances = program(1, 8, 1).replace(".fill 1, 1, 0x40", &format!(".fill {}, 2, 0x0002", MUCH / 2));
    let skips = program(1, 8, 1).replace(".fill 1, 1, 0x40", &format!(".fill {}, 2, 0x0100", MUCH / 2));
    for (name, source) in [
        ("rows", program(1, 8, MUCH)),
        ("many", format!(".section .debug_line,\"\",@progbits\n{}\n", many.source())),
        ("advances", advances),
        ("skips", skips),
        ("files", program(MUCH / 5, 8, 1)),
        ("name", program(1, MUCH, 1)),
    ] {
        let often = read_while_told(name, &source);
        assert!(often < 5.0, "{name}: as long as to look at each byte {often:.1} times");
    }
}

/// Numbers without an end that are always the same.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % end
    }
}

/// Debug information is the module's: no byte of it ends the process, whoever reads it.
#[test]
fn changed_debug_information_harms_nobody() {
    let count: usize = std::env::var("PEBBLE_FUZZ").ok().and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let source = "int variable = 3; static int *other = &variable; struct s { int a; char b[4]; } some;
        static int add(int a) { int c[4] = { a, 1, 2, 3 }; return c[a & 3] + *other; }
        int first(int a) { for (int i = 0; i < a; i++) { int k = add(i); if (k > 3) a -= k; } return a; }
        __attribute__((section(\".text.second\"))) int second(int a) { return first(a) + some.a; }";
    let files = ["-gdwarf-5", "-gdwarf-4"].map(|version| {
        let out = std::env::temp_dir().join(format!("pebble-sfi-changed{version}-{}", std::process::id()));
        let mut clang = Command::new("clang-19");
        clang.args(["-x", "c", "-", "-O1", version, "-gdwarf-aranges", "-nostdlib"]);
        clang.args(["-fuse-ld=lld-19", "-shared", "-fPIC", "-o"]).arg(&out).stdin(Stdio::piped());
        let mut clang = clang.spawn().unwrap();
        std::io::Write::write_all(&mut clang.stdin.take().unwrap(), source.as_bytes()).unwrap();
        assert!(clang.wait().unwrap().success());
        let bytes = std::fs::read(&out).unwrap();
        std::fs::remove_file(out).unwrap();
        bytes
    });
    let mut numbers = Numbers(1);
    for file in files {
        const BASE: u64 = 0x7000_0000_0000;
        let debug: Vec<_> = debug_sections(&file);
        assert!(debug.len() >= 4, "{debug:?}");
        let known = (0..0x4000).filter_map(|at| source_line(&file, at)).count();
        assert!(known > 20, "{known} lines");
        let moved = moved_file(&file, BASE).unwrap();
        let there =
            (0..0x4000).filter(|at| source_line(&moved, BASE + at) == source_line(&file, *at)).count();
        assert_eq!(there, 0x4000);
        let mut changed = file.clone();
        for _ in 0..count / 2 {
            let mut was = Vec::new();
            for _ in 0..1 + numbers.below(4) {
                let section = &debug[numbers.below(debug.len())];
                let at = section.start + numbers.below(section.len());
                was.push((at, changed[at]));
                const LIKELY: [u8; 8] = [0, 1, 2, 0x7f, 0x80, 0xff, 0xfe, 9];
                changed[at] = match numbers.below(3) {
                    0 => LIKELY[numbers.below(8)],
                    1 => changed[at] ^ 1 << numbers.below(8),
                    _ => numbers.below(256) as u8,
                };
            }
            let moved = moved_file(&changed, BASE).expect("an ELF file");
            assert_eq!(moved.len(), file.len());
            source_line(&changed, 0x1000 + numbers.below(0x1000) as u64);
            was.into_iter().rev().for_each(|(at, byte)| changed[at] = byte);
        }
    }
}

/// Where in the file they are.
fn debug_sections(file: &[u8]) -> Vec<std::ops::Range<usize>> {
    use object::{Object, ObjectSection};
    let object = object::File::parse(file).unwrap();
    let debug = object.sections().filter(|s| s.name().is_ok_and(|name| name.starts_with(".debug_")));
    let place = debug.filter_map(|s| s.file_range()).filter(|(_, bytes)| *bytes > 0);
    place.map(|(at, bytes)| at as usize..(at + bytes) as usize).collect()
}
