//! x86-64 back end: portals between a process and its fault domains, step by step as they come.
//!
//! Registers: `r11` the mark of the stack under the caller, or, on the way in, under the callee; `r10` the
//! callee's on the way across; `rax`, which carries no argument, what is needed for a moment. On the return
//! leg `rax` and `rdx` are the results.

use crate::asm::{Asm, Label, Pool};
use crate::fault::{
    ARGS, Code, Crossing, Door, INSIDE, MOST_NESTED, NESTED, Op, PLAIN_CONTROL, PLAIN_MXCSR, PRESERVED,
    REENTERED, STACK_BYTES, STACK_ROOM_SHIFT, SURFACED, TAKEN, Way, record, steps,
};
use crate::isa::x86_64::encode::*;

/// Not even with all arguments in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EmitError {
    TooLong,
    /// Windows and capabilities are only lent by the process and to it.
    LendAcross,
}

impl core::fmt::Display for EmitError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(match self {
            EmitError::TooLong => "the portal would be too long: use fewer arguments",
            EmitError::LendAcross => {
                "windows and capabilities do not go directly from one fault domain to another"
            }
        })
    }
}

impl core::error::Error for EmitError {}

const MASK: i32 = STACK_BYTES as i32 - 1;
/// Room that a portal leaves on a return stack: its own pushes and a frame of a call that comes back in.
const ROOM: i32 = 512;

const fn field(name: i32) -> i32 {
    record::from_mark(name)
}

struct Emitter<'a> {
    a: Asm<'a, u8, { crate::fault::MAX_BYTES }>,
    c: &'a Crossing,
    door: &'a Door,
    site: usize,
    /// Branches to the place where the runtime finds a stack.
    no_stack: [Option<Label>; 3],
    /// Branch of a call that is refused, and of one for which the process's stack has no room.
    refused: Option<Label>,
    no_room: [Option<Label>; 2],
    /// Branch of a lending that failed.
    not_lent: Option<Label>,
    pool: Pool<8, 8>,
    callee: Reg,
    /// Words pushed on the process's stack, or the caller's on the way across.
    pushed: i32,
    /// What the words before the array of lent ones take so that the runtime is called on an aligned stack.
    padding: i32,
}

/// Bytes for the words that are lent, the mark, and what must not be lost.
const LENT: i32 = 64;

impl Emitter<'_> {
    fn pooled(&mut self, value: u64, hole: Label) {
        let fits = self.pool.keep(value, hole);
        self.a.demand(fits);
    }

    fn no_stack(&mut self) {
        let hole = self.a.jump_equal();
        self.note_no_stack(hole);
    }

    fn note_no_stack(&mut self, hole: Label) {
        if let Some(free) = self.no_stack.iter_mut().find(|hole| hole.is_none()) {
            *free = Some(hole);
        }
    }

    fn own(&mut self) {
        self.a.mov(R11, RSP);
        self.a.or(R11, MASK);
    }

    fn op(&mut self, op: Op) {
        let across = self.c.way == Way::Across;
        let (inside, nested) = (self.c.current + INSIDE, self.c.current + NESTED);
        match op {
            Op::Claim => {
                self.a.compare_fs32(inside, 0);
                self.refused = Some(self.a.jump_not_equal());
                self.a.store_fs32(inside, TAKEN);
            }
            Op::Reclaim => self.a.store_fs32(inside, TAKEN),
            Op::Release => self.a.store_fs32(inside, 0),
            Op::Room => {
                self.a.load(R10, R11, field(record::TOP));
                self.a.load(RAX, R10, -8);
                self.a.subtract(RAX, R11, field(record::STACK_LIMIT));
                self.a.shr(RAX, STACK_ROOM_SHIFT);
                self.no_room[0] = Some(self.a.jump_equal());
            }
            Op::Depth => {
                self.a.compare_fs32(nested, MOST_NESTED);
                self.no_room[1] = Some(self.a.jump_equal());
            }
            Op::Nest => self.a.add_fs32(nested, 1),
            Op::Unnest => self.a.add_fs32(nested, -1),
            Op::Current => {
                self.a.load_fs(R11, self.c.current);
                self.a.compare32(R11, field(record::SLOT), self.c.callee_slot);
                let hole = self.a.jump_not_equal();
                self.note_no_stack(hole);
                self.callee = R11;
            }
            Op::Own => {
                self.own();
                // Faults here, on the domain's account, rather than later on nobody's.
                self.a.load(R10, RSP, -ROOM);
            }
            Op::Linked(link) => {
                self.a.load(R10, R11, field(record::HOME));
                self.a.load(R10, R10, field(record::LINKS));
                self.a.load(R10, R10, i32::from(link) * 8);
                self.a.test(R10);
                self.no_stack();
                // Who resets the callee sees this, or the comparison sees that.
                self.a.store_fs(self.c.current, R10);
                self.a.compare32(R10, field(record::SLOT), self.c.callee_slot);
                let hole = self.a.jump_not_equal();
                self.note_no_stack(hole);
                self.callee = R10;
            }
            Op::TakeStack => {
                self.a.load(RAX, self.callee, field(record::QUEUE));
                self.a.test(RAX);
                self.no_stack();
                self.a.push_memory(RAX, field(record::QUEUE));
                self.a.pop_memory(self.callee, field(record::QUEUE));
                self.a.mov(self.callee, RAX);
            }
            Op::Keep(set) => {
                self.a.push(RBP);
                for reg in PRESERVED.into_iter().filter(|r| set >> r & 1 == 1) {
                    self.a.push(reg);
                    self.pushed += 1;
                }
                self.pushed += 1;
            }
            Op::Publish => {
                self.a.push_memory(R11, field(record::TOP));
                self.a.push_memory(R11, field(record::DATA));
                self.a.store(R11, field(record::TOP), RSP);
                self.a.store(R11, field(record::DATA), RBP);
                // On the way out words on the process's stack count.
                self.pushed += if across { 2 } else { 0 };
            }
            Op::KeepControl => {
                self.a.lea(RSP, RSP, -self.controls());
                self.a.stmxcsr(RSP, 0);
                self.a.fnstcw(RSP, 4);
                self.pushed += self.controls() / 8;
            }
            Op::PlainControl => {
                let hole = self.a.ldmxcsr_pool();
                self.pooled(PLAIN_MXCSR.into(), hole);
                let hole = self.a.fldcw_pool();
                self.pooled(PLAIN_CONTROL.into(), hole);
            }
            Op::LoadControl => {
                self.a.ldmxcsr(RSP, 0);
                self.a.fldcw(RSP, 4);
                self.a.lea(RSP, RSP, self.controls());
            }
            Op::Move { to, from } => {
                if let (Some(to), Some(from)) = (ARGS.get(to as usize), ARGS.get(from as usize)) {
                    self.a.mov(*to, *from);
                }
            }
            Op::Supply { to, letter, value } => {
                if let Some(to) = ARGS.get(to as usize) {
                    self.supply(*to, letter, value);
                }
            }
            Op::Lend => self.lend(),
            Op::Enter if across => {
                self.a.load(RAX, RSP, 8);
                self.a.load(RAX, RAX, -8);
                self.a.load(R11, R10, field(record::TOP));
                self.a.store(R11, -8, RAX);
                self.a.store(R11, -16, RSP);
                self.a.load(RBP, R10, field(record::DATA));
                self.a.lea(RSP, R11, -16);
            }
            Op::Enter => {
                self.a.load(RAX, R11, field(record::TOP));
                self.a.load(RBP, R11, field(record::DATA));
                self.a.store(RAX, -8, RSP);
                self.a.lea(RSP, RAX, -8);
            }
            Op::Base => self.base(RAX, self.c.callee_slot),
            Op::Surface => {
                self.a.load(RSP, R10, -8);
                self.a.and(RSP, -16);
                self.a.push(R11);
                self.a.push(R11);
                self.pushed += SURFACED;
            }
            Op::Scrub { keep } => {
                for reg in (0..16u8).filter(|r| *r != RSP && *r != RBP && keep >> r & 1 == 0) {
                    self.a.zero(reg);
                }
            }
            Op::ScrubVectors => {
                // A quarter of what `vzeroall` takes.
                if self.c.wide {
                    self.a.vzeroupper();
                }
                (0..16).for_each(|reg| self.a.zero_vector(reg));
            }
            Op::EmptyX87 => {
                self.a.fnclex();
                self.a.emms();
            }
            Op::ZeroX87 => {
                (0..8).for_each(|_| self.a.fldz());
                self.a.fxam();
                self.a.emms();
            }
            Op::Call => {
                let hole = self.a.call_pool();
                self.pooled(self.c.entry, hole);
            }
            Op::Return => {
                self.site = self.a.here();
                self.a.zero(RDX);
            }
            Op::Clear => {
                self.a.store_zero32(RSP, -4);
                if self.door.stack == crate::spec::Stack::New {
                    self.own();
                }
            }
            Op::Back => self.a.pop(RSP),
            Op::GiveStack => {
                self.failed_lending();
                self.a.load(RCX, R11, field(record::HOME));
                self.a.load(R10, RCX, field(record::QUEUE));
                self.a.store(R11, field(record::QUEUE), R10);
                self.a.store(RCX, field(record::QUEUE), R11);
            }
            Op::GiveBack => self.give_back(),
            Op::Dive => self.dive(),
            Op::Unpublish => {
                if across {
                    self.own();
                }
                self.a.pop_memory(R11, field(record::DATA));
                self.a.pop_memory(R11, field(record::TOP));
            }
            Op::Regain => {
                self.base(RCX, self.c.caller_slot);
                self.a.load(RCX, R11, field(record::HOME));
                self.a.store_fs(self.c.current, RCX);
            }
            Op::Restore(set) => {
                for reg in PRESERVED.into_iter().rev().filter(|r| set >> r & 1 == 1) {
                    self.a.pop(reg);
                }
                self.a.pop(RBP);
            }
            Op::Leave => self.a.ret(),
        }
    }

    /// Bytes for the controls of floating point; a function of the process wants an aligned stack.
    fn controls(&self) -> i32 {
        if self.c.way == Way::Out { 16 } else { 8 }
    }

    fn base(&mut self, by: Reg, slot: u32) {
        self.a.mov64(by, u64::from(slot) << 32);
        self.a.wrgsbase(by);
    }

    fn supply(&mut self, to: Reg, letter: u8, value: u64) {
        match letter {
            b'd' => self.a.load32(to, R11, field(record::THREAD_ID)),
            b'a' if self.c.way == Way::Out => self.a.load(to, R11, field(record::DOMAIN)),
            b'h' => {
                // `r10` may be the callee's mark.
                self.a.push(RDX);
                self.a.rdtsc();
                self.a.shl(RDX, 32);
                self.a.or_reg(RAX, RDX);
                self.a.pop(RDX);
                self.a.mov(to, RAX);
            }
            _ if value == 0 => self.a.zero(to),
            _ => match u32::try_from(value) {
                Ok(short) => self.a.mov32(to, short),
                Err(_) => self.a.mov64(to, value),
            },
        }
    }

    fn lend(&mut self) {
        self.padding = if self.c.way == Way::In && self.pushed % 2 == 0 { 8 } else { 0 };
        self.pushed += (LENT + self.padding) / 8;
        self.a.lea(RSP, RSP, -LENT - self.padding);
        for (reg, at) in ARGS.into_iter().zip((0..).step_by(8)) {
            self.a.store(RSP, at, reg);
        }
        self.a.store(RSP, 48, R11);
        self.runtime(self.c.lend);
        self.a.load(R11, RSP, 48);
        // The status of a lending that failed is its result.
        self.a.mov(RDX, RAX);
        self.a.test(RAX);
        self.not_lent = Some(self.a.jump_not_equal());
        for (reg, at) in ARGS.into_iter().zip((0..).step_by(8)) {
            self.a.load(reg, RSP, at);
        }
    }

    fn runtime(&mut self, function: u64) {
        self.a.mov64(RDI, self.c.description);
        self.a.mov(RSI, RSP);
        let hole = self.a.call_pool();
        self.pooled(function, hole);
    }

    fn failed_lending(&mut self) {
        if let Some(hole) = self.not_lent.take() {
            let over = self.a.jump();
            self.a.join(hole);
            self.a.zero(RAX);
            self.a.join(over);
        }
    }

    fn give_back(&mut self) {
        self.failed_lending();
        self.a.store(RSP, 48, RAX);
        self.a.store(RSP, 56, RDX);
        self.runtime(self.c.give_back);
        self.a.load(RAX, RSP, 48);
        self.a.load(RDX, RSP, 56);
        self.a.lea(RSP, RSP, LENT + self.padding);
    }

    fn dive(&mut self) {
        self.a.pop(R11);
        self.a.pop(R11);
        self.a.load(RSI, R11, field(record::HOME));
        self.a.compare_fs(self.c.current, RSI);
        let over = self.a.jump_equal();
        self.a.load32(RDI, R11, field(record::SLOT));
        self.a.shl(RDI, 32);
        self.a.wrgsbase(RDI);
        self.a.store_fs(self.c.current, RSI);
        self.a.join(over);
        self.a.load(RSP, R11, field(record::TOP));
    }

    /// Calls that come to nothing; the way to the runtime, which comes back to the start; the constants.
    fn end(&mut self) {
        if let Some(hole) = self.refused {
            self.a.join(hole);
            self.a.zero(RAX);
            self.a.mov32(RDX, REENTERED);
            self.a.ret();
        }
        for hole in self.no_room.into_iter().flatten() {
            self.a.join(hole);
        }
        if self.no_room != [None; 2] {
            // Whoever finds room after all tries again.
            let hole = self.a.lea_here(R10);
            self.a.aim(hole, 0);
            self.a.ud2();
        }
        let holes = self.no_stack;
        for hole in holes.into_iter().flatten() {
            self.a.join(hole);
        }
        if holes != [None; 3] {
            let hole = self.a.lea_here(R10);
            self.a.aim(hole, 0);
            if self.c.way == Way::Across {
                self.a.mov32(RAX, u32::from(self.c.link));
            } else {
                self.a.mov32(R11, self.c.callee_slot);
            }
            let hole = self.a.jump_pool();
            self.pooled(self.c.no_stack, hole);
        }
        while !self.a.here().is_multiple_of(8) && !self.a.is_full() {
            self.a.put(0xcc);
        }
    }
}

/// Compiles one portal.
pub fn emit(door: &Door, c: &Crossing) -> Result<Code, EmitError> {
    if c.way == Way::Across && door.lends() {
        return Err(EmitError::LendAcross);
    }
    let mut code = Code::default();
    let mut e = Emitter {
        a: Asm::new(&mut code.bytes),
        c,
        door,
        site: 0,
        no_stack: [None; 3],
        refused: None,
        no_room: [None; 2],
        not_lent: None,
        pool: Pool::default(),
        callee: R11,
        pushed: 0,
        padding: 0,
    };
    steps(door, c, &mut |op| e.op(op));
    e.end();
    let pool_at = e.a.here();
    e.pool.uses().for_each(|(hole, offset)| e.a.aim(hole, pool_at + offset));
    e.pool.values().iter().for_each(|value| e.a.put_all(&value.to_le_bytes()));
    let (site, full, pushed) = (e.site, e.a.is_full(), e.pushed);
    if full {
        return Err(EmitError::TooLong);
    }
    (code.site, code.pool_at, code.pushed) = (site as u16, pool_at as u16, pushed as u16);
    Ok(code)
}
