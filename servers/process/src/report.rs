//! Tells of a crash on the console: what [`pebble_process::crash`] says, with what the VM manager has kept of
//! the dead domain and the portal manager knows of its calls.

use crate::loader::Text;
use crate::undertaker::Console;
use crate::{TABLE, services};
use alloc::vec::Vec;
use pebble::abi::map::{PAGE, STACK_SLOT, TIME_HZ};
use pebble::portal;
use pebble::words::{Asid, PortalIndex, VirtAddr};
use pebble_arch::{Arch, Layout, Native};
use pebble_process::PAGE_LIMIT;
use pebble_process::crash::{
    CALLERS, Code, FRAMES, Patience, Registers, STACK_WORDS, WORDS_A_LINE, Words, registers,
};
use pebble_process::elf::{self, Image};
use pebble_process::fault::{Function, Printable};
use pebble_process::startup::Path;

/// One dead domain.
pub struct Crash<'a> {
    pub domain: Asid,
    pub path: &'a Path,
    /// The program's file, if it has one.
    pub file: Option<&'a [u8]>,
}

/// The words kept of a domain: its thread's block, then a part of its stack.
struct Kept {
    domain: Asid,
    at: u64,
    words: [u64; 4],
}

impl Kept {
    fn word(&mut self, offset: u64) -> Option<u64> {
        let at = offset / 32;
        if self.at != at {
            (_, self.words) = services::dump(self.domain, offset)?;
            self.at = at;
        }
        Some(self.words[(offset % 32 / 8) as usize])
    }
}

impl Crash<'_> {
    pub fn print(&self, console: &mut Console, patience: &mut Patience) {
        if !patience.granted(1, portal::time(), TIME_HZ) {
            return;
        }
        let domain = self.domain;
        let image = self.file.and_then(|file| Image::parse::<Native>(file, PAGE_LIMIT).ok());
        let code = Code(image.as_ref());
        console.line(format_args!("crash {domain}: program {} text {:x}\n", Text(self.path), code.number()));
        let mut kept = Kept { domain, at: u64::MAX, words: [0; 4] };
        if let Some((base, frame)) = frame(&mut kept) {
            self.registers(console, &frame);
            self.calls(console, &mut kept, base);
            self.stack(console, &mut kept, &code, &frame);
        }
        console.line(format_args!("crash {domain}: end\n"));
    }

    fn registers(&self, console: &mut Console, frame: &Frame) {
        let mut named = registers(&LAYOUT, frame).peekable();
        while named.peek().is_some() {
            let line = Registers(core::array::from_fn(|_| named.next()));
            console.line(format_args!("crash {}:{line}\n", self.domain));
        }
    }

    /// The portal calls under way, the last first.
    fn calls(&self, console: &mut Console, kept: &mut Kept, mut base: u64) {
        for _ in 0..FRAMES {
            let Some(top) = base.checked_sub(8) else { return };
            let Some(what) = kept.word(top).and_then(|word| services::frame(VirtAddr(word))) else { return };
            let Some(below) = (top + 8).checked_sub((what & 0xffff) * 8).filter(|below| *below <= top) else {
                return;
            };
            base = below;
            let (caller, index) = (Asid(what >> 16 & 0xffff), PortalIndex(what >> 48));
            let Some(address) = kept.word(base).filter(|_| caller != Asid(0)) else { continue };
            let name = services::portal_name(caller, index).unwrap_or_default();
            let path = TABLE.lock().list(caller).filter(|e| e.domain == caller).map(|e| e.path);
            let (name, path) = (Text(&name), path.unwrap_or_default());
            let (domain, path) = (self.domain, Text(&path));
            console.line(format_args!(
                "crash {domain}: call {name} from domain {caller} ({path}) at {address:#x}\n"
            ));
        }
    }

    fn stack(&self, console: &mut Console, kept: &mut Kept, code: &Code, frame: &Frame) {
        let sp = frame[LAYOUT.stack];
        let end = (sp | (STACK_SLOT - 1)).min((sp | (PAGE - 1)).saturating_add(PAGE));
        let (mut words, mut callers) = (Vec::new(), Vec::new());
        if words.try_reserve(STACK_WORDS).is_err() || callers.try_reserve(CALLERS).is_err() {
            return;
        }
        let ra = frame[LAYOUT.link];
        // Within the function that died it is of a call that has come back. Behind one that never does there
        // may be another function.
        let own = |address| elf::symbol(self.file.unwrap_or_default(), address).map(|(name, _)| name);
        if code.returns::<Native>(ra) && own(ra - 1) != own(frame[LAYOUT.pc]) {
            callers.push(ra);
        }
        for at in (sp.next_multiple_of(8)..=end).step_by(8) {
            // The stack's first page lies behind the block's.
            let Some(word) = kept.word(at - (sp & !(PAGE - 1)) + PAGE) else { break };
            if words.len() < STACK_WORDS && code.telling::<Native>(word, sp) {
                words.push((at - sp, word));
            }
            if callers.len() < CALLERS && code.returns::<Native>(word) {
                callers.push(word);
            }
        }
        let names = Callers { file: self.file.unwrap_or_default(), addresses: &callers };
        if self.file.is_some() && !callers.is_empty() {
            console.line(format_args!("crash {}: seems called from{names}\n", self.domain));
        }
        for line in words.chunks(WORDS_A_LINE) {
            console.line(format_args!("crash {}: stack{}\n", self.domain, Words(line)));
        }
    }
}

const LAYOUT: Layout = Native::LAYOUT;
/// The words of a fault's frame on the invocation stack.
type Frame = [u64; LAYOUT.words];

/// The frame of the fault, and its lowest word's offset in the block.
fn frame(kept: &mut Kept) -> Option<(u64, Frame)> {
    let (top, _) = services::dump(kept.domain, 0)?;
    let first = (top + 8).checked_sub(LAYOUT.words as u64 * 8)?;
    let mut frame = [0; LAYOUT.words];
    for (word, at) in frame.iter_mut().zip((first..).step_by(8)) {
        *word = kept.word(at)?;
    }
    // Of a domain that uses floating point it is longer.
    let words =
        services::frame(VirtAddr(frame[LAYOUT.words - 1])).map_or(LAYOUT.words as u64, |what| what & 0xffff);
    Some(((top + 8).checked_sub(words * 8)?, frame))
}

struct Callers<'a> {
    file: &'a [u8],
    addresses: &'a [u64],
}

impl core::fmt::Display for Callers<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.addresses.iter().try_for_each(|address| match elf::symbol(self.file, address - 1) {
            Some((name, offset)) => write!(f, " {}+{:#x}", Printable(Function(name)), offset + 1),
            None => write!(f, " {address:#x}"),
        })
    }
}
