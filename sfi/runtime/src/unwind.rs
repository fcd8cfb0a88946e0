//! How a debugger gets from a domain's frames to those of whoever called it, and the other way: portals' call
//! frame information.
//!
//! A portal is one frame: at the place that its callee returns to, the word at the stack pointer says where
//! the stack is that the portal was called on (`steps` of the portal compiler say what is there). It is
//! marked as a signal's frame, since debuggers want the stacks of ordinary frames to follow one another.

use pebble_portal::fault::{Code, Crossing, Door, Op, STATUS_BYTES, SURFACED, Way, record, steps};

const RBP: u8 = 6;
const RIP: u8 = 16;
// Call frame instructions and expressions, by their DWARF codes.
const EXPRESSION: u8 = 0x10;
const DEF_CFA_EXPRESSION: u8 = 0x0f;
const OFFSET: u8 = 0x80;
const DEREF: u8 = 0x06;
const CONST1S: u8 = 0x09;
const PLUS: u8 = 0x22;
const PLUS_UCONST: u8 = 0x23;
const BREG_RSP: u8 = 0x77;
const NOP: u8 = 0;
/// Of a return from a call: version, "S" for a signal's frame, units of code and data, register of the return
/// address.
const COMMON: [u8; 6] = [1, b'S', 0, 1, 0x78, RIP];

/// ULEB128 of a number that two bytes hold.
fn number(n: u16) -> [u8; 2] {
    [n as u8 & 0x7f | 0x80, (n >> 7) as u8]
}

/// Where registers are while the portal's callee runs.
fn rules(door: &Door, c: &Crossing, code: &Code) -> Vec<u8> {
    let mut out = Vec::new();
    let pushed = code.pushed;
    if c.way == Way::Out {
        // The mark of the domain's return stack is the last word that was pushed on the way to the process's
        // stack.
        let [low, high] = number(8 * (pushed - SURFACED as u16));
        let field = |at: i32| {
            [BREG_RSP, 0, PLUS_UCONST, low, high, DEREF, CONST1S, record::from_mark(at) as i8 as u8, PLUS]
        };
        let (top, data) = (field(record::TOP), field(record::DATA));
        out.extend([DEF_CFA_EXPRESSION, top.len() as u8 + 3]);
        out.extend(top);
        // Two words of the record, and the return address.
        out.extend([DEREF, PLUS_UCONST, 24]);
        out.extend([EXPRESSION, RBP, data.len() as u8]);
        out.extend(data);
    } else {
        let [low, high] = number(8 * pushed + 8);
        out.extend([DEF_CFA_EXPRESSION, 6, BREG_RSP, 0, DEREF, PLUS_UCONST, low, high]);
        out.extend([OFFSET | RBP, 2]);
        steps(door, c, &mut |op| {
            if let Op::Keep(set) = op {
                // Of these registers DWARF has the processor's numbers.
                let kept = (0..16u8).filter(|r| set >> r & 1 == 1);
                out.extend(kept.zip(3..).flat_map(|(r, word)| [OFFSET | r, word]));
            }
        });
    }
    out.extend([OFFSET | RIP, 1]);
    out
}

/// An entry of the section, of whole words.
fn entry(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(8) + 4, NOP);
    [&(bytes.len() as u32).to_le_bytes(), &bytes[..]].concat()
}

/// `.debug_frame` for a portal whose code lies at `at`.
pub fn frames(at: u64, door: &Door, c: &Crossing, code: &Code) -> Vec<u8> {
    let common = entry([&u32::MAX.to_le_bytes(), &COMMON[..]].concat());
    // Debuggers look for a frame just before the return site, too.
    let begin = (at + u64::from(code.site) - 1).to_le_bytes();
    let range = (1 + STATUS_BYTES).to_le_bytes();
    [common, entry([&0u32.to_le_bytes(), &begin[..], &range, &rules(door, c, code)].concat())].concat()
}

/// An ELF file that says of a stretch of memory that it is code of this name, and how it is unwound.
pub fn object(name: &str, at: u64, bytes: u64, frames: &[u8]) -> Vec<u8> {
    const HEADER: u64 = 64;
    let texts = format!("\0.text\0.debug_frame\0.symtab\0.strtab\0{name}\0");
    let text_at = |what: &str| texts.find(&format!("\0{what}\0")).map_or(0, |at| at as u64 + 1);
    // A null symbol, then a global function in the first section.
    let mut symbols = vec![0; 24];
    symbols.extend((text_at(name) as u32).to_le_bytes());
    symbols.extend([0x12, 0, 1, 0]);
    symbols.extend([at, bytes].iter().flat_map(|word| word.to_le_bytes()));
    let mut contents = Vec::new();
    let mut headers = vec![0; HEADER as usize];
    // Name, type, flags, address, contents, length where there are none, section that belongs to it,
    // information, length of an entry.
    let mut section =
        |name: &str, kind: u64, flags: u64, at: u64, data: &[u8], length: u64, link: u64, entry: u64| {
            let (place, length) = (HEADER + contents.len() as u64, length.max(data.len() as u64));
            contents.extend(data);
            contents.resize(contents.len().next_multiple_of(8), 0);
            let words = [text_at(name) | kind << 32, flags, at, place, length, link, 1, entry];
            headers.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        };
    section(".text", 8, 6, at, &[], bytes, 0, 0);
    section(".debug_frame", 1, 0, 0, frames, 0, 0, 0);
    section(".symtab", 2, 0, 0, &symbols, 0, 4 | 1 << 32, 24);
    section(".strtab", 3, 0, 0, texts.as_bytes(), 0, 0, 0);
    let count = headers.len() as u64 / HEADER;
    let table = HEADER + contents.len() as u64;
    let mut out = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // An executable file for x86-64, version 1; no entry, no program headers; the section headers.
    let words = [2 | 62 << 16 | 1 << 32, 0, 0, table, HEADER << 32, HEADER << 16 | count << 32 | 4 << 48];
    out.extend(words.iter().flat_map(|word: &u64| word.to_le_bytes()));
    out.extend(contents);
    out.extend(headers);
    out
}
