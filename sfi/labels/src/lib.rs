//! The labels of a linked module, for its section `.pbl.labels`.
//!
//! Problem: the verifier reads code once, so it must be told beforehand where backward branches and tables
//! lead. Strategy: the linking step follows the code with the verifier's decoder and collects what it
//! branches to. Nothing here is trusted: a label that is missing or astray makes the verifier refuse the
//! module, one too many makes it know less.
#![forbid(unsafe_code)]

use pebble_sfi_verify::Module;
use pebble_sfi_verify::decode::{Insn, decode};
use pebble_sfi_verify::labels::{offset, targets};
use pebble_sfi_verify::sequence::Seq;
use pebble_sfi_verify::table::class;

/// Two bits for each byte of text.
struct Map {
    starts: Vec<bool>,
    labels: Vec<bool>,
}

/// The section, for a module whose own is not looked at. What lies behind something that cannot be decoded
/// may be anything: there the verifier never comes.
pub fn find(module: &Module<'_>) -> Vec<u8> {
    let size = module.text.len();
    let mut map = Map { starts: vec![false; size], labels: vec![false; size] };
    let mark = |labels: &mut Vec<bool>, address: u32| {
        if let Some(at) = offset(module, address) {
            labels[at] = true;
        }
    };
    let ftab_mask = module.text_at.wrapping_add(module.ftab_size).wrapping_sub(8);
    let mut seq = Seq::None;
    let mut at = 0;
    let mut insn = Insn::default();
    while decode(module.text, at, &mut insn).is_ok() {
        if insn.len == 0 || at + insn.len as usize > size {
            break;
        }
        map.starts[at] = true;
        let next = module.text_at.wrapping_add((at + insn.len as usize) as u32);
        match insn.class {
            class::BRANCH | class::JUMP | class::CALL => {
                mark(&mut map.labels, next.wrapping_add(insn.imm as u32))
            }
            class::INDIRECT => indirect(module, seq, &insn, &mut map.labels),
            _ => {}
        }
        seq = if insn.class == class::INDIRECT { Seq::None } else { seq.after(&insn, next, ftab_mask) };
        at += insn.len as usize;
    }
    map.starts.get_mut(at..).unwrap_or_default().fill(true);
    for slot in (0..module.ftab_size.min(size as u32)).step_by(8) {
        mark(&mut map.labels, module.text_at.wrapping_add(slot));
    }
    for export in module.exports {
        mark(&mut map.labels, *export);
    }
    code(map)
}

/// The targets of the table that the jump ends a sequence with.
fn indirect(module: &Module<'_>, seq: Seq, insn: &Insn, labels: &mut [bool]) {
    if insn.mem || insn.ext != 4 || seq.ready() != Some(insn.rm) {
        return;
    }
    let mark = |to: usize| {
        labels[to] = true;
        Ok(())
    };
    if let Seq::Table { table, .. } = seq {
        let _ = targets(module, table, mark); // what is wrong with it, the verifier says
    }
}

/// Each byte is the distance from the last label to the next; 255 only leads on.
fn code(map: Map) -> Vec<u8> {
    let mut section = Vec::new();
    let mut last = 0;
    for at in (0..map.labels.len()).filter(|at| map.labels[*at] && map.starts[*at]) {
        let mut distance = at - last;
        while distance >= 255 {
            section.push(255);
            distance -= 255;
        }
        section.push(distance as u8);
        last = at;
    }
    section
}

/// Puts the section at the end of a linked file that has one by this name, perhaps an empty one. `None` if it
/// has none.
pub fn attach(mut file: Vec<u8>, section: &[u8]) -> Option<Vec<u8>> {
    let header = header(&file)?;
    let end = file.len() as u64;
    file.get_mut(header + 24..header + 32)?.copy_from_slice(&end.to_le_bytes());
    file.get_mut(header + 32..header + 40)?.copy_from_slice(&(section.len() as u64).to_le_bytes());
    file.extend_from_slice(section);
    Some(file)
}

/// Where the header of the section lies.
fn header(file: &[u8]) -> Option<usize> {
    let word = |at: usize, bytes: usize| -> Option<usize> {
        let bytes = file.get(at..at.checked_add(bytes)?)?;
        Some(bytes.iter().rev().fold(0, |word, byte| word << 8 | usize::from(*byte)))
    };
    let (table, count) = (word(40, 8)?, word(60, 2)?);
    let names = word(table.checked_add(64 * word(62, 2)? + 24)?, 8)?;
    (0..count).filter_map(|i| table.checked_add(64 * i)).find(|header| {
        let name = word(*header, 4).and_then(|name| file.get(names.checked_add(name)?..));
        name.is_some_and(|name| name.starts_with(b".pbl.labels\0"))
    })
}
