//! Memory operands: from what the compiler wrote to what the contract allows.
//!
//! Operands relative to `rsp` or the frame pointer become offsets from the data stack pointer; thread-local
//! ones are found through the data stack region; the rest are pointers, confined where the level asks for it.

use crate::error::Kind;
use crate::isa::{self, Access};
use crate::operand::{self, AddrReg, Gpr, Mem, RAX, RBP, RSP, Width};
use crate::parse::Insn;
use crate::scratch::Scratch;
use crate::stack::{Frame, Function, Place, State};

/// Segment base, as a memory operand.
pub const BASE: &str = "%gs:0x10000";
/// The slot that holds the moving stack pointer, relative to `rbp` at entry.
pub const SLOT: i64 = -8;
/// The slot that holds a frame pointer at no known place: below the alignment's padding or the hole of a
/// saved register.
pub const FRAME_SLOT: i64 = -16;
/// Low bits of a data stack region.
const REGION: u32 = 0x7f_ffff;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Region {
    /// In the image: free.
    Free,
    /// On the data stack at a known place: free, too.
    Frame,
    Pointer,
    /// Already confined.
    Done,
}

/// What one instruction is rewritten in: the state before it and the lines so far.
#[derive(Debug)]
pub struct Scope<'a> {
    pub state: &'a State,
    pub function: &'a Function,
    /// What may be used meanwhile.
    pub scratch: Scratch,
    pub flags_busy: bool,
    pub lines: Vec<String>,
    /// Registers pushed for want of free ones, to be popped after the instruction.
    lent: Vec<u8>,
}

impl<'a> Scope<'a> {
    pub fn new(state: &'a State, function: &'a Function, scratch: Scratch, flags_busy: bool) -> Scope<'a> {
        Scope { state, function, scratch, flags_busy, lines: Vec::new(), lent: Vec::new() }
    }

    pub fn line(&mut self, text: impl AsRef<str>) {
        self.lines.push(format!("\t{}", text.as_ref()));
    }

    /// A register to use until the instruction is done; lent by the program if none is free.
    pub fn take(&mut self) -> Result<u8, Kind> {
        let taken = self.scratch.take()?;
        if taken.lent {
            self.line(format!("pushq\t{}", operand::r64(taken.number)));
            self.lent.push(taken.number);
        }
        Ok(taken.number)
    }

    /// The program has its registers back: nothing that was taken may be used any more.
    pub fn give_back(&mut self) {
        while let Some(r) = self.lent.pop() {
            self.line(format!("popq\t{}", operand::r64(r)));
        }
    }

    /// Puts the stack pointer, which is at a known place, into its slot.
    pub fn keep_place(&mut self, place: i64) -> Result<(), Kind> {
        let r = operand::r64(self.take()?);
        self.line(format!("leaq\t{}(%rbp), {r}", place - 8));
        self.line(format!("movq\t{r}, {SLOT}(%rbp)"));
        Ok(())
    }

    pub fn delta(&self) -> i64 {
        self.function.delta(self.state)
    }

    /// Where the word at offset `x` of the compiler's frame is now.
    pub fn frame_mem(&self, x: i64) -> Mem {
        Mem::based(x - 8 - self.delta(), RBP)
    }

    /// `rsp` or the frame pointer as a base: where it points, or the slot where that is to be found.
    fn frame_base(&self, num: u8, insn: &Insn) -> Result<Result<i64, i64>, Kind> {
        match (num, self.state.sp, self.state.fp) {
            (RSP, Place::At(o), _) => Ok(Ok(o)),
            (RSP, Place::Dynamic, _) => Ok(Err(SLOT)),
            (_, _, Frame::At(c)) => Ok(Ok(c)),
            (_, _, Frame::Dynamic) => Ok(Err(FRAME_SLOT)),
            _ => Err(Kind::StackRegister(insn.to_string())),
        }
    }

    /// Translates an operand; may emit lines that load what it needs.
    pub fn translate(&mut self, m: &Mem, insn: &Insn) -> Result<(Mem, Region), Kind> {
        let mut m = m.clone();
        match m.segment.as_deref() {
            Some("%fs") => return self.thread_local(&m).map(|m| (m, Region::Done)),
            Some("%gs") => {
                return Err(Kind::Forbidden(insn.to_string(), "gs is the runtime's; use plain addresses"));
            }
            _ => m.segment = None,
        }
        if m.index_gpr() == Some(RBP) && m.scale == 1 {
            std::mem::swap(&mut m.base, &mut m.index);
        }
        if m.index_gpr().is_some_and(|r| r == RBP || r == RSP) {
            return Err(Kind::StackRegister(insn.to_string()));
        }
        if m.is_rip() {
            return Ok((m, Region::Free));
        }
        let Some(base @ (RSP | RBP)) = m.base_gpr() else { return Ok((m, Region::Pointer)) };
        let Some(d) = m.number() else { return Err(Kind::StackRegister(insn.to_string())) };
        match self.frame_base(base, insn)? {
            Ok(o) => {
                let own = m.index.is_none() && self.state.on_return_stack(o + d);
                if own && isa::access(insn) != Access::None && !isa::is_fence(insn) {
                    return Err(Kind::ReturnStack(insn.to_string()));
                }
                let frame = self.frame_mem(o + d);
                m.disp = frame.disp;
                m.base = frame.base;
                Ok((m.clone(), if m.index.is_none() { Region::Frame } else { Region::Pointer }))
            }
            Err(slot) => {
                let r = self.take()?;
                self.line(format!("movq\t{slot}(%rbp), {}", operand::r64(r)));
                m.base = Some(AddrReg::Gpr(Gpr { num: r, width: Width::B64 }));
                Ok((m, Region::Pointer))
            }
        }
    }

    /// The last byte of the thread's data stack region, as an offset in the segment, in a register: not rax
    /// where the flags are live, which only rax can carry.
    fn region_end(&mut self, r: u8) {
        let name = operand::r32(r);
        if !self.flags_busy {
            self.line(format!("movl\t%ebp, {name}"));
            self.line(format!("orl\t${REGION:#x}, {name}"));
            return;
        }
        for l in ["pushq\t%rax", "lahf", "seto\t%al"] {
            self.line(l);
        }
        self.line(format!("movl\t%ebp, {name}"));
        self.line(format!("orl\t${REGION:#x}, {name}"));
        for l in ["addb\t$127, %al", "sahf", "popq\t%rax"] {
            self.line(l);
        }
    }

    fn take_beside_flags(&mut self) -> Result<u8, Kind> {
        if self.flags_busy {
            self.scratch.claim(1 << RAX);
        }
        self.take()
    }

    /// `%fs:…`: the thread pointer is the end of the region.
    fn thread_local(&mut self, m: &Mem) -> Result<Mem, Kind> {
        let r = self.take_beside_flags()?;
        self.region_end(r);
        let end = AddrReg::Gpr(Gpr { num: r, width: Width::B64 });
        let mut out = m.clone();
        out.disp = if m.disp.is_empty() { "1".into() } else { format!("{}+1", m.disp) };
        match (&m.base, &m.index) {
            (None, _) => out.base = Some(end),
            (Some(b), None) => {
                out.index = Some(b.clone());
                out.scale = 1;
                out.base = Some(end);
            }
            (Some(b), Some(_)) => {
                self.line(format!("leaq\t({end},{b}), {end}"));
                out.base = Some(end);
            }
        }
        Ok(out.confined())
    }

    /// The thread pointer itself.
    pub fn thread_pointer(&mut self, to: u8) -> Result<(), Kind> {
        let end = if self.flags_busy && to == RAX { self.take_beside_flags()? } else { to };
        self.region_end(end);
        let base = self.take()?;
        let (end, base, to) = (operand::r64(end), operand::r64(base), operand::r64(to));
        self.line(format!("movq\t{BASE}, {base}"));
        self.line(format!("leaq\t1({base},{end}), {to}"));
        Ok(())
    }

    /// Brings a register into the segment, in place.
    pub fn sandbox(&mut self, r: u8) -> Result<(), Kind> {
        let (wide, narrow) = (operand::r64(r), operand::r32(r));
        if self.flags_busy {
            let b = self.take()?;
            let b = operand::r64(b);
            self.line(format!("movq\t{BASE}, {b}"));
            self.line(format!("movl\t{narrow}, {narrow}"));
            self.line(format!("leaq\t({b},{wide}), {wide}"));
        } else {
            self.line(format!("movl\t{narrow}, {narrow}"));
            self.line(format!("addq\t{BASE}, {wide}"));
        }
        Ok(())
    }
}

/// Does the level ask for this access to be confined?
pub fn must_confine(access: Access, loads: bool) -> bool {
    match access {
        Access::Store => true,
        Access::Load => loads,
        Access::None => false,
    }
}
