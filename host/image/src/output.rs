//! The image file: an ELF with one loadable segment, entered at its first byte, and the report as a note.

use crate::memory::Memory;
use crate::report::Report;
use pebble_abi::map;
use pebble_arch::Arch;

const EHDR: u64 = 64;
const PHDR: u64 = 56;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;

pub fn write<A: Arch>(memory: &Memory<A>, report: &Report) -> Vec<u8> {
    let note = serde_json::to_vec(report).unwrap_or_default();
    let load_at = map::PAGE;
    let note_at = load_at + memory.bytes.len() as u64;
    let mut out = Vec::new();
    out.extend_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let half = |v: u16, out: &mut Vec<u8>| out.extend_from_slice(&v.to_le_bytes());
    // Executable.
    half(2, &mut out);
    half(A::ELF_MACHINE, &mut out);
    out.extend_from_slice(&1u32.to_le_bytes());
    for word in [map::LOAD_PA, EHDR, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&0u32.to_le_bytes());
    for v in [EHDR as u16, PHDR as u16, 2, 64, 0, 0] {
        half(v, &mut out);
    }
    let len = memory.bytes.len() as u64;
    for (kind, flags, at, va, size) in
        [(PT_LOAD, 7u32, load_at, map::LOAD_PA, len), (PT_NOTE, 4, note_at, 0, note.len() as u64)]
    {
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        for word in [at, va, va, size, if kind == PT_LOAD { size } else { 0 }, map::PAGE] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
    out.resize(load_at as usize, 0);
    out.extend_from_slice(&memory.bytes);
    out.extend_from_slice(&note);
    out
}

/// The report of an image file.
pub fn read_report(image: &[u8]) -> Option<Report> {
    let word = |at: usize| image.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes);
    let note = (EHDR + PHDR) as usize;
    let (at, len) = (word(note + 8)? as usize, word(note + 32)? as usize);
    serde_json::from_slice(image.get(at..at.checked_add(len)?)?).ok()
}
