//! The image file: an ELF that is loaded at its physical addresses and entered in the nucleus, with the
//! report as a note.
//!
//! Firmware finds memory at its physical addresses, or, where hardware maps these for it, at its direct ones.

use crate::memory::Memory;
use crate::report::Report;
use object::LittleEndian;
use object::elf::{ET_EXEC, FileHeader64, PT_LOAD, PT_NOTE, ProgramType};
use object::read::elf::{FileHeader, ProgramHeader};
use pebble_abi::map;
use pebble_arch::Arch;

const EHDR: u64 = 64;
const PHDR: u64 = 56;
/// Flags of what is loaded, and of the note.
const ALL_RIGHTS: u32 = 7;
const READ: u32 = 4;

/// `entry`: physical address of the first instruction.
pub fn write<A: Arch>(memory: &Memory<A>, entry: u64, report: &Report) -> Vec<u8> {
    let seen = |pa| if A::fixed(map::NUCLEUS_VA).is_some() { A::direct(pa) } else { pa };
    let note = serde_json::to_vec(report).unwrap_or_default();
    let mut headers = Vec::new();
    let mut at = map::PAGE;
    for (pa, bytes) in memory.pieces() {
        let len = bytes.len() as u64;
        headers.push((PT_LOAD.0, ALL_RIGHTS, [at, seen(pa), seen(pa), len, len, map::PAGE]));
        at += len;
    }
    headers.push((PT_NOTE.0, READ, [at, 0, 0, note.len() as u64, 0, map::PAGE]));
    let mut out = Vec::new();
    out.extend_from_slice(&[0x7f, b'E', b'L', b'F', 2, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    let half = |v: u16, out: &mut Vec<u8>| out.extend_from_slice(&v.to_le_bytes());
    half(ET_EXEC.0, &mut out);
    half(A::ELF_MACHINE, &mut out);
    out.extend_from_slice(&1u32.to_le_bytes());
    for word in [seen(entry), EHDR, 0] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(&0u32.to_le_bytes());
    for v in [EHDR as u16, PHDR as u16, headers.len() as u16, 64, 0, 0] {
        half(v, &mut out);
    }
    for (kind, flags, words) in headers {
        out.extend_from_slice(&kind.to_le_bytes());
        out.extend_from_slice(&flags.to_le_bytes());
        for word in words {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
    out.resize(map::PAGE as usize, 0);
    memory.pieces().for_each(|(_, bytes)| out.extend_from_slice(bytes));
    out.extend_from_slice(&note);
    out
}

/// What is loaded by an image file: bytes, and where its file says they go.
pub fn loaded(image: &[u8]) -> Vec<(u64, &[u8])> {
    parts(image, PT_LOAD)
}

/// The report of an image file.
pub fn read_report(image: &[u8]) -> Option<Report> {
    let (_, note) = parts(image, PT_NOTE).pop()?;
    serde_json::from_slice(note).ok()
}

fn parts(image: &[u8], kind: ProgramType) -> Vec<(u64, &[u8])> {
    let file = FileHeader64::<LittleEndian>::parse(image);
    let headers = file.and_then(|file| file.program_headers(LittleEndian, image)).unwrap_or_default();
    let wanted = headers.iter().filter(|header| header.p_type(LittleEndian) == kind);
    wanted.filter_map(|p| Some((p.p_paddr(LittleEndian), p.data(LittleEndian, image).ok()?))).collect()
}
