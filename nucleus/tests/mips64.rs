//! The nucleus alone on its board: what each of its paths does, seen from user mode.
//!
//! Tables, portals and a user program are made by hand here, and nothing of the product but the nucleus is
//! there. The program does one thing after the other, and hands what it sees to the portal `check`, which
//! knows what it should be and says so on the console. The last thing that it does is a fault of privileged
//! code.
#![no_std]
#![no_main]

#[path = "../src/arch/mips64/mod.rs"]
mod nucleus;

use core::arch::{asm, global_asm};
use core::fmt::Write;
use pebble_abi::{map, sys};

const DOMAIN: u64 = 5;
/// What stands in `$28` of the program.
const THREAD_POINTER: u64 = 0x1234_5678;
/// Indices of the portals, in different pages of the table.
const CHECK: usize = 600;
const ACT: usize = map::TABLE_ENTRIES - 1;

// Physical pages from 1 MiB on, by number; those of data begin with their number.
const ROOT: u64 = 0;
const UPPER: u64 = 1;
const LOWER: u64 = 2;
const TABLE: u64 = 8;
const CODE: u64 = 16;
const DATA: u64 = 32;
const STACK: u64 = 200;
/// What the program's [`user`] addresses are: a table's worth from here on, data page `n` at `n`.
const PROGRAM: u64 = 0x1_0000;
const PAGES: u64 = 0x20_0000;
/// Another page's number in memory of 2 MiB that one leaf maps.
const SPAN: u64 = 0x40_0000;

const fn direct(page: u64) -> u64 {
    0xffff_ffff_8010_0000 + page * 4096
}

const LEAF: u64 = 3;
const EXECUTE: u64 = 1 << 3;
const V: u64 = 1 << 7;
const D: u64 = 1 << 8;
const CACHED: u64 = 3 << 9;
const UNTOUCHED: u64 = 1 << 63;

const fn leaf(page: u64, flags: u64) -> u64 {
    0x10_0000 + page * 4096 | LEAF | V | CACHED | flags
}

fn read(at: u64) -> u64 {
    // SAFETY: the harness alone has these pages.
    unsafe { (at as *const u64).read_volatile() }
}

fn write(at: u64, word: u64) {
    // SAFETY: as in `read`.
    unsafe { (at as *mut u64).write_volatile(word) }
}

/// The entry of data page `n`.
const fn entry(n: u64) -> u64 {
    direct(LOWER + 1) + n * 8
}

/// What the program shall see, in its order.
const CHECKS: [(&str, u64); 33] = [
    ("refill, even page", 0x40),
    ("refill, odd page", 0x41),
    ("nothing left of it", 0),
    ("a page mapped beside one in the TLB", 0x43),
    ("nothing left of it", 0),
    ("a page made writable in the TLB", 0x77),
    ("no page is in the TLB twice", 0),
    ("one page of a span", 3),
    ("another, odd", 301),
    ("a window before it is touched", 1),
    ("a window after", 0),
    ("the one beside it", 0),
    ("its page", 0x47),
    ("store to a page that is read", 1 << 32 | PAGES + 0x8000),
    ("load of nothing", 2 << 32 | PAGES + 0xa000),
    ("store to nothing", 3 << 32 | PAGES + 0xa000),
    ("load without a table", 2 << 32 | 0x60_0000),
    ("load behind user addresses", 2 << 32 | 0x4000_0000 | PAGES),
    ("load of the nucleus", 4 << 32 | 0x8800_0000),
    ("load of a page that is the nucleus's", 2 << 32 | PAGES + 0xc000),
    ("thread pointer", THREAD_POINTER),
    ("nothing left of it", 0),
    ("thread pointer in a delay slot", 10 << 32),
    ("another that does not exist", 10 << 32),
    ("privileged instruction", 11 << 32),
    ("interrupt", 1),
    ("idle has waited, with interrupts as before", 0),
    ("then the interrupt", 2),
    ("a page in the TLB stays", 0x50),
    ("when another domain is forgotten", 0x50),
    ("when this one is, it goes", 0x51),
    ("64-bit operations", 1 << 40),
    ("registers are the program's", 0x5a),
];

global_asm!(
    ".set push",
    ".set noreorder",
    ".set noat",
    // The program: copied to its page, so it knows no address. $16 to $23 stay over portals.
    ".macro check",
    "    bal    stub",
    "    li     $12, {CHECK}",
    ".endm",
    ".macro act what",
    "    li     $5, \\what",
    "    bal    stub",
    "    li     $12, {ACT}",
    ".endm",
    // An exception leaves its code and the address in $2.
    ".macro expect instruction:vararg",
    "    li     $2, 0",
    "    \\instruction",
    "    move   $5, $2",
    "    check",
    ".endm",
    ".section .rodata.program, \"a\"",
    ".balign 8",
    "program:",
    "    li     $23, 0x5a",
    "    lui    $16, 0x20",         // PAGES
    "    lui    $28, 0x1234",
    "    ori    $28, $28, 0x5678",
    "    ld     $5, 0($16)",
    "    or     $17, $26, $27",
    "    check",
    "    ld     $5, 0x1000($16)",
    "    check",
    "    move   $5, $17",
    "    check",
    "    ld     $5, 0x2000($16)",
    "    act    0",                 // maps page 3
    "    ld     $5, 0x3000($16)",
    "    or     $17, $26, $27",
    "    check",
    "    move   $5, $17",
    "    check",
    "    ld     $5, 0x4000($16)",
    "    act    1",                 // makes page 4 writable
    "    li     $5, 0x77",
    "    sd     $5, 0x4000($16)",
    "    ld     $5, 0x4000($16)",
    "    check",
    "    act    10",                // how many pages are in the TLB twice?
    "    move   $5, $2",
    "    check",
    "    lui    $18, 0x40",         // SPAN
    "    ld     $5, 0x3000($18)",
    "    check",
    "    lui    $18, 0x52",
    "    ori    $18, $18, 0xd000",  // its page 301
    "    ld     $5, 0($18)",
    "    check",
    "    act    2",                 // is page 7 untouched?
    "    move   $5, $2",
    "    check",
    "    ld     $17, 0x7000($16)",
    "    act    2",
    "    move   $5, $2",
    "    check",
    "    act    3",                 // and page 6?
    "    move   $5, $2",
    "    check",
    "    move   $5, $17",
    "    check",
    "    ori    $18, $16, 0x8000",
    "    ld     $17, 0($18)",
    "    expect sd $17, 0($18)",
    "    ori    $18, $16, 0xa000",
    "    expect ld $17, 0($18)",
    "    expect sd $17, 0($18)",
    "    lui    $18, 0x60",
    "    expect ld $17, 0($18)",
    "    lui    $18, 0x4020",
    "    expect ld $17, 0($18)",
    "    lui    $18, 0x8800",
    "    expect ld $17, 0($18)",
    "    ori    $18, $16, 0xc000",
    "    expect ld $17, 0($18)",
    "    li     $3, 0",
    "    rdhwr  $3, $29",
    "    or     $17, $26, $27",
    "    move   $5, $3",
    "    check",
    "    move   $5, $17",
    "    check",
    "    li     $2, 0",
    "    b      1f",
    "    rdhwr  $3, $29",
    "1:  move   $5, $2",
    "    check",
    "    expect rdhwr $4, $29",
    "    expect mfc0 $4, $12",
    "    ori    $18, $16, 0xe000",  // counts interrupts
    "    act    4",                 // sets the clock
    "2:  ld     $17, 0($18)",
    "    beqz   $17, 2b",
    "    nop",
    "    move   $5, $17",
    "    check",
    "    act    5",                 // sets it, and waits
    "    move   $5, $2",
    "    check",
    "    ld     $5, 0($18)",
    "    check",
    "    lui    $18, 0x21",         // page 16
    "    ld     $17, 0($18)",
    "    act    6",                 // is another page now
    "    ld     $5, 0($18)",
    "    check",
    "    act    7",                 // forgets the domain before
    "    ld     $5, 0($18)",
    "    check",
    "    act    8",                 // forgets this one
    "    ld     $5, 0($18)",
    "    check",
    "    li     $5, 1",
    "    dsll32 $5, $5, 8",
    "    check",
    "    move   $5, $23",
    "    check",
    "    act    9",                 // privileged code goes wrong
    "stub:",
    "    syscall",
    "program_end:",
    // Portals: on a stack of their own, on to a function that says where to go on, and may change $2.
    ".macro portal name, function",
    "\\name:",
    "    lui    $29, 0x801d",
    "    sd     $31, -8($29)",
    "    sd     $2, -16($29)",
    "    move   $4, $31",
    "    move   $6, $27",
    "    daddiu $7, $29, -16",
    "    jal    \\function",
    "    daddiu $29, $29, -64",
    "    dmtc0  $2, $14",           // EPC
    "    ld     $2, 48($29)",
    "    ld     $31, 56($29)",
    "    li     $26, 0",
    "    li     $27, 0",
    "    ehb",
    "    eret",
    ".endm",
    ".text",
    "portal portal_check, {check}",
    "portal portal_act, {act}",
    "portal portal_exception, {exception}",
    "portal portal_interrupt, {interrupt}",
    "first:",
    "    lui    $8, 1",             // PROGRAM
    "    dmtc0  $8, $14",
    "    li     $26, 0",
    "    li     $27, 0",
    "    ehb",
    "    eret",
    ".global harness",
    "harness:",
    "    lui    $29, 0x801d",
    "    jal    {prepare}",
    "    daddiu $29, $29, -64",
    "    j      _start",
    "    nop",
    ".set pop",
    CHECK = const CHECK,
    ACT = const ACT,
    check = sym check,
    act = sym act,
    exception = sym exception,
    interrupt = sym interrupt,
    prepare = sym prepare,
);

unsafe extern "C" {
    static program: u8;
    static program_end: u8;
    static mut BOOT_RECORD: [u64; 2];
    fn portal_check();
    fn portal_act();
    fn portal_exception();
    fn portal_interrupt();
    fn first();
}

extern "C" fn prepare() {
    for page in 0..=STACK {
        (0..512).for_each(|word| write(direct(page) + word * 8, 0));
    }
    let table = |at, page| write(at, direct(page) | 1);
    table(direct(ROOT), UPPER);
    table(direct(UPPER), LOWER);
    table(direct(UPPER) + 8, LOWER + 1);
    write(direct(UPPER) + 16, 2 * SPAN | LEAF | V | CACHED);
    (0..512).for_each(|page| write(0xffff_ffff_8000_0000 + 2 * SPAN + page * 4096, page));
    write(direct(LOWER) + PROGRAM / 4096 * 8, leaf(CODE, EXECUTE));
    for n in [0, 1, 2, 3, 4, 6, 7, 8, 12, 14, 16, 17] {
        write(direct(DATA + n), 0x40 + n);
    }
    for n in [0, 1, 16] {
        write(entry(n), leaf(DATA + n, D));
    }
    write(entry(2), leaf(DATA + 2, 0));
    write(entry(4), leaf(DATA + 4, 0));
    write(entry(6), leaf(DATA + 6, UNTOUCHED));
    write(entry(7), leaf(DATA + 7, UNTOUCHED | D));
    write(entry(8), leaf(DATA + 8, 0));
    write(entry(12), leaf(DATA + 12, 0) & !V);
    write(entry(14), leaf(DATA + 14, 0));
    write(direct(DATA + 14), 0);
    // SAFETY: the program lies between its symbols, and the record is the nucleus's, which does not run yet.
    unsafe {
        let bytes = (&raw const program_end).offset_from(&raw const program) as usize;
        core::ptr::copy_nonoverlapping(&raw const program, direct(CODE) as *mut u8, bytes);
        (&raw mut BOOT_RECORD).write_volatile([direct(ROOT) | DOMAIN, direct(STACK)]);
    }
    write(direct(STACK), first as *const () as u64);
    (0..8).for_each(|page| write(direct(ROOT) + 64 + page * 8, direct(TABLE + page)));
    let portals = [
        (CHECK, portal_check as *const ()),
        (ACT, portal_act as *const ()),
        (sys::EXCEPTION, portal_exception as *const ()),
        (sys::INTERRUPT, portal_interrupt as *const ()),
    ];
    for (index, portal) in portals {
        write(direct(TABLE) + index as u64 * 8, portal as u64);
    }
}

/// Of coprocessor 0.
macro_rules! get {
    ($register:literal) => {{
        let word: u64;
        // SAFETY: reads a register.
        unsafe { asm!(concat!("dmfc0 {}, $", $register), out(reg) word) };
        word
    }};
}

fn set_clock(ticks: u32) -> u32 {
    let now = get!("9") as u32;
    // SAFETY: the clock is the harness's.
    unsafe { asm!(".set noat", "mtc0 {}, $11", "ehb", ".set at", in(reg) now.wrapping_add(ticks)) };
    now
}

struct Console;

impl Write for Console {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        const COM1: u64 = 0xffff_ffff_b800_03f8;
        for byte in text.bytes() {
            // SAFETY: registers of COM1.
            unsafe {
                while ((COM1 + 5) as *const u8).read_volatile() & 0x20 == 0 {}
                (COM1 as *mut u8).write_volatile(byte);
            }
        }
        Ok(())
    }
}

extern "C" fn check(back: u64, got: u64, top: u64) -> u64 {
    let turn = direct(STACK - 1);
    let (name, want) = CHECKS[read(turn) as usize];
    write(turn, read(turn) + 1);
    let _ = match got == want && top == direct(STACK) {
        true => writeln!(Console, "ok {name}"),
        false => writeln!(Console, "FAILED {name}: {got:#x}, not {want:#x}; stack {top:#x}"),
    };
    back
}

extern "C" fn exception(_: u64, _: u64, _: u64, result: &mut u64) -> u64 {
    let cause = get!("13");
    let code = cause >> 2 & 31;
    *result = code << 32 | if code < 6 { get!("8") & 0xffff_ffff } else { 0 };
    get!("14") + if cause >> 31 & 1 == 1 { 8 } else { 4 }
}

extern "C" fn interrupt() -> u64 {
    set_clock(u32::MAX);
    write(direct(DATA + 14), read(direct(DATA + 14)) + 1);
    get!("14")
}

extern "C" fn act(back: u64, what: u64, _: u64, result: &mut u64) -> u64 {
    match what {
        0 => write(entry(3), leaf(DATA + 3, 0)),
        1 => write(entry(4), leaf(DATA + 4, D)),
        2 => *result = read(entry(7)) >> 63,
        3 => *result = read(entry(6)) >> 63,
        4 => _ = set_clock(20_000),
        5 => *result = idle(),
        6 => write(entry(16), leaf(DATA + 17, D)),
        7 => flush(DOMAIN - 1),
        8 => flush(DOMAIN),
        10 => *result = twice(),
        _ => _ = read(0xffff_ffff_c000_0000),
    }
    back
}

/// Entries of the TLB that are of the same pages as another.
fn twice() -> u64 {
    let space = get!("10");
    let entry = |index: u64| {
        // SAFETY: reads an entry; the register that changes is put back below.
        unsafe { asm!(".set noat", "mtc0 {}, $0", "ehb", "tlbr", "ehb", ".set at", in(reg) index) };
        get!("10")
    };
    let pairs = (0..32).filter(|one| (0..*one).any(|other| entry(*one) == entry(other))).count();
    // SAFETY: as it was.
    unsafe { asm!(".set noat", "dmtc0 {}, $10", ".set at", in(reg) space) };
    pairs as u64
}

fn idle() -> u64 {
    let (status, before) = (get!("12"), set_clock(20_000));
    // SAFETY: as the nucleus says of this place.
    unsafe {
        asm!(
            ".set push", ".set noreorder", "jalr $25, {}", "nop", ".set pop",
            in(reg) map::NUCLEUS_VA + 0x160, out("$24") _, out("$25") _,
        )
    };
    let waited = (get!("9") as u32).wrapping_sub(before) >= 20_000;
    (status ^ get!("12")) | if waited { 0 } else { 1 << 32 }
}

fn flush(domain: u64) {
    let space = get!("10") & 0xff;
    // SAFETY: as the nucleus says of this place.
    unsafe {
        asm!(
            ".set push", ".set noreorder", ".set noat", "jalr $25, {}", "nop", ".set pop",
            in(reg) map::NUCLEUS_VA + 0x100, inout("$24") domain => _, out("$25") _,
        )
    };
    if get!("10") & 0xff != space {
        let _ = writeln!(Console, "FAILED flush: the address space is another");
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    let _ = writeln!(Console, "FAILED: the harness itself");
    loop {}
}
