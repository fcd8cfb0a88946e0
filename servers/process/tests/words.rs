//! Start-up pages and fault lines.

use pebble_abi::errno::{E2BIG, EINVAL, Errno};
use pebble_abi::fault::{Cause, KILLED};
use pebble_abi::link::Startup;
use pebble_abi::words::{Asid, ThreadId, VirtAddr};
use pebble_arch::riscv64::frame;
use pebble_arch::{Arch, Layout, Riscv64};
use pebble_process::crash;
use pebble_process::elf::{Image, Segment};
use pebble_process::fault::{Fault, Printable};
use pebble_process::startup::{Gathered, name_for_rules, path};

const LAYOUT: Layout = Riscv64::LAYOUT;

/// The page that the words make.
fn page(gathered: &Gathered) -> Vec<u8> {
    let mut page = vec![0; 4096];
    for (offset, word) in gathered.words(&path("/bin/prog"), 0x12000) {
        let at = offset as usize;
        page[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }
    page
}

fn append(gathered: &mut Gathered, text: &[u8]) -> Result<(), Errno> {
    let mut words = [u64::MAX; 4];
    for (word, bytes) in words.iter_mut().zip(text.chunks(8)) {
        let mut padded = [0xff; 8];
        padded[..bytes.len()].copy_from_slice(bytes);
        *word = u64::from_le_bytes(padded);
    }
    gathered.append(&words, text.len() as u64)
}

#[test]
fn arguments_come_in_pieces() {
    let mut g = Gathered::new([path("/dev/console"), path("/pipe/a/w"), path("/dev/null")]);
    for piece in [&b"wc\0-l\0\0"[..], &[b'x'; 32], b"y\0last"] {
        append(&mut g, piece).unwrap();
    }
    let page = page(&g);
    assert_eq!(page[Startup::ARGC], 5);
    assert_eq!(page[Startup::BREAK..Startup::BREAK + 8], 0x12000u64.to_le_bytes());
    assert!(page[Startup::STDOUT..].starts_with(b"/pipe/a/w\0"));
    assert!(page[Startup::STDERR..].starts_with(b"/dev/null\0"));
    let expected = [&b"wc\0-l\0\0"[..], &[b'x'; 32], b"y\0last\0\0"].concat();
    assert!(page[Startup::ARGS..].starts_with(&expected));
}

/// It comes behind the arguments, ends with an empty string, and is counted by nobody.
#[test]
fn the_environment_is_behind_the_arguments() {
    let mut g = Gathered::default();
    let word = |text: &[u8; 8]| [u64::from_le_bytes(*text), 0, 0, 0];
    assert_eq!(g.append(&word(b"A=12345\0"), 8 | Startup::ENVIRONMENT), Err(EINVAL), "whose?");
    append(&mut g, b"prog\0an").unwrap();
    assert_eq!(
        g.append(&word(b"A=12345\0"), 8 | Startup::ENVIRONMENT),
        Err(EINVAL),
        "an argument has no end"
    );
    append(&mut g, b" x\0").unwrap();
    assert_eq!(g.append(&[0; 4], Startup::ENVIRONMENT), Err(EINVAL));
    assert_eq!(g.append(&[0; 4], 33 | Startup::ENVIRONMENT), Err(EINVAL));
    g.append(&word(b"A=12345\0"), 4 | Startup::ENVIRONMENT).unwrap();
    g.append(&word(b"3\0B=\0xxx"), 5 | Startup::ENVIRONMENT).unwrap();
    assert_eq!(append(&mut g, b"more\0"), Err(EINVAL), "the arguments have ended");
    let page = page(&g);
    assert_eq!(page[Startup::ARGC], 2);
    assert!(page[Startup::ARGS..].starts_with(b"prog\0an x\0A=123\0B=\0\0"));
}

#[test]
fn without_arguments_the_path_is_the_first() {
    let page = page(&Gathered::default());
    assert_eq!(page[Startup::ARGC], 1);
    assert!(page[Startup::ARGS..].starts_with(b"/bin/prog\0"));
}

#[test]
fn arguments_end_with_the_page() {
    let mut g = Gathered::default();
    assert_eq!(append(&mut g, &[]), Err(EINVAL));
    assert_eq!(g.append(&[0; 4], 33), Err(EINVAL));
    for _ in 0..Startup::ARGS_MAX / 32 - 1 {
        append(&mut g, &[b'a'; 32]).unwrap();
    }
    assert_eq!(append(&mut g, &[b'a'; 32]), Err(E2BIG));
    append(&mut g, &[b'b'; 31]).unwrap();
    assert_eq!(append(&mut g, b"c"), Err(E2BIG));
    let page = page(&g);
    assert_eq!((page[Startup::ARGC], page[4094], page[4095]), (1, b'b', 0));
}

fn fault(cause: Cause, value: u64) -> Fault<'static> {
    Fault {
        domain: Asid(12),
        name: "prog",
        thread: ThreadId(7),
        cause,
        value,
        address: VirtAddr(0x10234),
        symbol: None,
    }
}

#[test]
fn faults_read_well() {
    let shown = |cause, value| fault(cause, value).to_string();
    assert_eq!(
        Fault { symbol: Some(("main", 0x1c)), ..fault(Cause::Store, 0x10) }.to_string(),
        "fault: domain 12 (prog): store to 0x10 (page fault) at main+0x1c (0x10234), thread 7: killed"
    );
    assert_eq!(
        shown(Cause::Call, 99),
        "fault: domain 12 (prog): invokes portal 99, which it does not hold at 0x10234, thread 7: killed"
    );
    assert!(shown(Cause::InvocationOverflow, 0).contains("invocation stack overflow"));
    assert!(shown(Cause::StackOverflow, 0x2000_0000).contains("stack overflow, access to 0x20000000"));
    assert!(
        shown(Cause::NoMemory, 0x2000_0000).contains("no memory left for its stack, access to 0x20000000")
    );
    assert!(shown(Cause::Illegal, 0).contains("illegal or privileged instruction"));
    assert!(shown(Cause::Other, 77).contains("trap 77 of the processor"));
}

#[test]
fn symbols_of_rust_are_readable() {
    for (symbol, text) in [
        ("main", "main"),
        ("_RNvNtCs5Sl7nEry9tf_6pebble6attack4sret", "pebble::attack::sret"),
        (
            "_RNvMNtCs3wSWwXOBXpA_9pebble_vm7domainsINtB4_2VmNtCsdEnQ0PTaXrI_2vm4RealE4killBL_",
            "pebble_vm::domains::Vm::vm::Real::kill",
        ),
        ("_RNCNvCs4fqI2P2rA04_4prog4main0B3_", "prog::main"),
        ("_ZN4prog3cpu5_left17h0123456789abcdefE", "prog::cpu::_left"),
        ("_RN", ""),
        ("_R99999999999999999999999a", ""),
        ("_R5abc", ""),
        ("_R2\u{e9}x\u{e9}\u{e9}", "\u{e9}"),
    ] {
        let shown = Fault { symbol: Some((symbol, 2)), ..fault(Cause::Illegal, 0) }.to_string();
        assert!(shown.contains(&format!(" at {text}+0x2 (")), "{shown}");
    }
}

#[test]
fn statuses_tell_faults_from_kills() {
    assert_eq!([Cause::Store, Cause::Illegal, Cause::Aborted].map(Cause::status), [139, 132, 134]);
    for number in 0..300 {
        let cause = Cause::of(number);
        assert!(cause as u64 == number || cause == Cause::Other, "{number}");
        assert!(cause.status() > 128 && cause.status() != KILLED, "{cause:?}");
    }
}

#[test]
fn names_of_strangers_do_nothing_to_the_terminal() {
    assert_eq!(Printable("a\x1b[2Jb\n").to_string(), "a?[2Jb?");
    assert_eq!(Printable("x".repeat(100)).to_string(), "x".repeat(80) + "...");
}

#[test]
fn who_can_write_a_file_is_not_whom_the_rules_trust() {
    let called = |text: &str| {
        let name = name_for_rules(&path(text)).map(u64::to_le_bytes).concat();
        String::from_utf8(name).unwrap().trim_end_matches('\0').to_string()
    };
    for (path, name) in [
        ("/bin/shell", "shell"),
        ("bin//shell", "shell"),
        ("/ram/../bin/shell", "shell"),
        ("/a/ram/shell", "shell"),
        ("/ramp/shell", "shell"),
        ("/bin/sixteen-letters-and-more", "sixteen-letters-"),
        ("/ram/shell", "ram/shell"),
        ("ram/shell", "ram/shell"),
        ("//ram///shell", "ram/shell"),
        ("./ram/./shell", "ram/shell"),
        ("../../ram/shell", "ram/shell"),
        ("/bin/../ram/shell", "ram/shell"),
        ("/a/b/../../ram/shell", "ram/shell"),
        ("/ram/sixteen-letters-and-more", "ram/sixteen-lett"),
        ("/ram/shell/", "ram/"),
        ("", ""),
    ] {
        assert_eq!(called(path), name, "{path}");
    }
}

#[test]
fn registers_have_their_names() {
    let mut words = [0; LAYOUT.words];
    words[LAYOUT.pc] = 0x10234;
    for x in [1, 2, 4, 8, 10, 31] {
        words[frame::word(x)] = 0x1000 + x as u64;
    }
    let mut named = crash::registers(&LAYOUT, &words);
    let line = crash::Registers(core::array::from_fn(|_| named.next()));
    assert_eq!(line.to_string(), " pc=10234 ra=1001 sp=1002 tp=1004 s0=1008 a0=100a");
    assert_eq!(named.collect::<Vec<_>>(), [("t6", 0x101f)]);
}

#[test]
fn what_follows_a_call_is_where_a_function_returns_to() {
    // c.nop; jal ra; c.jalr a0; jalr a0; c.jr ra; c.ebreak
    let code = [0x01, 0, 0xef, 0, 0, 0, 0x02, 0x95, 0xe7, 0, 0x05, 0, 0x82, 0x80, 0x02, 0x90];
    let segment = Segment {
        address: 0x10000,
        pages: 1,
        bytes: &code,
        offset: 0,
        size: 16,
        write: false,
        execute: true,
    };
    let image = Image {
        entry: 0x10000,
        float: false,
        segments: vec![segment],
        imports: vec![],
        exports: vec![],
        manifest: None,
    };
    let code = crash::Code(Some(&image));
    let found: Vec<u64> = (0xff00..0x10200).filter(|address| code.returns::<Riscv64>(*address)).collect();
    assert_eq!(found, [0x10006, 0x10008, 0x1000c]);
    // A call that is the last there is: of a function that never returns.
    let code = [0x01, 0, 0xef, 0, 0, 0];
    let last =
        Segment { address: 0x10000, pages: 1, bytes: &code, offset: 0, size: 6, write: false, execute: true };
    let ends = Image { segments: vec![last], imports: vec![], exports: vec![], ..image };
    assert!(crash::Code(Some(&ends)).returns::<Riscv64>(0x10006));
    let code = crash::Code(Some(&image));
    for address in [0, 1, 0xffff, u64::MAX, u64::MAX - 1, 1 << 63] {
        assert!(!code.returns::<Riscv64>(address));
        let _ = code.telling::<Riscv64>(address, u64::MAX - address);
    }
    let sp = 0x2020_fd00;
    assert!(
        code.telling::<Riscv64>(sp + 8, sp)
            && !code.telling::<Riscv64>(sp + 4, sp)
            && !code.telling::<Riscv64>(sp - 8, sp)
    );
    assert!(!code.telling::<Riscv64>(sp + 0x1_0000, sp));
}

#[test]
fn four_crashes_at_once_are_told_and_four_a_second() {
    let mut patience = crash::Patience::for_crashes();
    let mut told = |now| (0..10).filter(|_| patience.granted(1, now, 1000)).count();
    assert_eq!([0, 0, 249, 250, 600, 10_000, 10_100].map(&mut told), [4, 0, 0, 1, 1, 4, 0]);
    // Of a large file no function is named, of small ones some.
    let mut names = crash::Patience::for_names();
    assert!(!names.granted(8 << 20, 0, 1000) && names.granted(3 << 20, 0, 1000));
    assert!(!names.granted(800 << 10, 1000, 1000) && names.granted(800 << 10, 2000, 1000));
}
