//! Emitters: steps to machine code. Here is what all processors share, in a folder what each has for itself.
//!
//! Problem: portals are the same on every processor, and their code is not. Whoever adds a processor should
//! write its own instructions, and not once more in which order a portal does what.
//! Strategy: an [`Emitter`] holds the code under construction, for a processor that is a type. It speaks of
//! instructions that every processor has ([`Instructions`]). The runs that portals are made of are here, in
//! [`steps`], [`stack`], [`window`] and [`template`]; where processors differ, the runs ask the processor by
//! the trait of their file ([`Steps`], [`Stacks`], [`Windows`], [`Templates`]).
//!
//! * Layout of a portal: call code, constant pool (8-byte aligned), return code. While portal code runs,
//!   [`Instructions::CODE`] is the address of the leg's first instruction, so the pool is one load away.
//! * The last two words before the return code are the caller's address space and the frame's description,
//!   at -16 and -8 from it. The return code's second instruction is its error entry. What other constants it
//!   has lie behind it.
//! * What differs from connection to connection is a [hole](super::hole), and always in a pool.
//! * Slow ways out (no room, no stack) lie behind the leg's end; every branch is forward.
//! * Portals are compiled on the board: which processor it is for is known when an emitter is compiled, and
//!   nothing is looked up.

use crate::asm::{Asm, Label, Pool, Ways};
use crate::hardware::hole::{Facts, Hole};
use crate::hardware::ir::{self, Op, Shape};
use crate::hardware::{Code, CompileError, MAX_WORDS};
use crate::{Processor, Spec};
use arrayvec::ArrayVec;
use core::marker::PhantomData;
use pebble_arch::{Arch, Mips64, Riscv64};

mod mips64;
mod riscv64;
mod stack;
mod steps;
mod template;
mod window;

use stack::Stacks;
use steps::Steps;
use template::Templates;
use window::Windows;

/// Register number.
type Reg = u8;

/// Registers, and instructions that every processor has: one word each, operands in the assembler's order.
trait Instructions: Arch {
    const ZERO: Reg;
    /// Return address and stack pointer, by the convention.
    const LINK: Reg;
    const STACK: Reg;
    /// The address of the leg, and the top of the invocation stack. The second may be set by [`Op::Top`].
    const CODE: Reg;
    const TOP: Reg;
    /// The index of the portal that is invoked.
    const INDEX: Reg;
    /// The first argument, or the caller's first word; the next have the next numbers.
    const ARGUMENT: Reg;
    /// The first result, in portals without a frame the next have the next numbers; the status of a call.
    const VALUE: Reg;
    const STATUS: Reg;
    /// In which portal code computes.
    const T1: Reg;
    const T2: Reg;
    const T3: Reg;
    const T4: Reg;
    const T5: Reg;
    const T6: Reg;

    /// How far a load, and the address of the return leg, reach from the leg's beginning, in bytes.
    const REACH: usize;
    /// What stands behind a branch for want of better, where that is executed on both ways. Without it a
    /// branch that is taken executes nothing more.
    const SHADOW: Option<u32>;

    /// The branch, which leads so many bytes on.
    fn leads(branch: u32, distance: i32) -> u32;
    /// The load or addition, whose number was 0, with this one.
    fn displaced(word: u32, by: usize) -> u32;

    fn load(rd: Reg, base: Reg, offset: i32) -> u32;
    fn store(from: Reg, base: Reg, offset: i32) -> u32;
    fn copy(rd: Reg, from: Reg) -> u32;
    fn add_number(rd: Reg, a: Reg, number: i32) -> u32;
    fn and_number(rd: Reg, a: Reg, number: i32) -> u32;
    /// 0 if it is this number, which is not negative.
    fn unlike_number(rd: Reg, a: Reg, number: i32) -> u32;
    fn shift_left(rd: Reg, a: Reg, by: u32) -> u32;
    fn shift_right(rd: Reg, a: Reg, by: u32) -> u32;
    fn add(rd: Reg, a: Reg, b: Reg) -> u32;
    fn subtract(rd: Reg, a: Reg, b: Reg) -> u32;
    fn or(rd: Reg, a: Reg, b: Reg) -> u32;
    fn xor(rd: Reg, a: Reg, b: Reg) -> u32;
    fn branch_equal(a: Reg, b: Reg) -> u32;
    fn branch_unequal(a: Reg, b: Reg) -> u32;
    /// Signed.
    fn branch_negative(a: Reg) -> u32;
    fn branch_not_positive(a: Reg) -> u32;

    /// The upper part of an address in the last 2 GiB or the first; the rest fits the offset of a load.
    fn high(e: &mut Emitter<Self>, rd: Reg, address: u64) -> i32;
    /// Any number, by at most two instructions; it may lie in the pool.
    fn constant(e: &mut Emitter<Self>, rd: Reg, value: u64);
}

/// A portal under construction.
struct Emitter<'a, A> {
    a: Asm<'a, u32, MAX_WORDS>,
    c: &'a Facts<'a>,
    shape: Shape,
    /// Where the pool is, in bytes, and the return leg; instructions of the call leg, words of the frame.
    pool_at: u16,
    ret_at: Option<u16>,
    call_words: u16,
    frame_words: u8,
    /// Constants of the leg that is being made.
    pool: Pool<24, 40>,
    /// Where the call leg computes the return code's address.
    push: Option<Label>,
    /// Where it branches to the domain's exception entry, with these registers to be cleared before; to the
    /// common code that waits for a stack or slot, after a trap's save or not.
    raises: Option<(Label, u32)>,
    waits: ArrayVec<Label, 3>,
    after_save: bool,
    /// Where it branches back to the caller, with which status code.
    refusals: Ways<32>,
    /// The window that was checked last.
    first: Option<ir::Lent>,
    /// Registers hold what the next window needs too; the template's base this address.
    ready: bool,
    base: Option<u64>,
    /// A register holds what a slot does for which `g` waits.
    awaited: bool,
    /// Where an interrupt's entry finds that there was none, and whether floating-point registers are saved.
    no_interrupt: Option<(Label, bool)>,
    /// Bytes from the bottom of the frame to its top word.
    bias: i32,
    processor: PhantomData<A>,
}

impl<A: Instructions> Emitter<'_, A> {
    #[inline]
    fn put(&mut self, word: u32) {
        self.a.put(word);
    }

    /// The instruction, to be completed when it is known where it leads.
    #[inline]
    fn open(&mut self, word: u32) -> Label {
        let label = self.a.label();
        self.put(word);
        label
    }

    /// A branch, with nothing behind it that could be done on both ways.
    fn open_alone(&mut self, branch: u32) -> Label {
        let label = self.open(branch);
        self.shadow();
        label
    }

    /// A branch, and what is done on both ways.
    fn open_with(&mut self, branch: u32, word: u32) -> Label {
        if A::SHADOW.is_none() {
            self.put(word);
            return self.open(branch);
        }
        let label = self.open(branch);
        self.put(word);
        label
    }

    /// Behind a branch there is nothing to be done on both ways.
    fn shadow(&mut self) {
        if let Some(word) = A::SHADOW {
            self.put(word);
        }
    }

    /// The branch leads here.
    fn join(&mut self, branch: Label) {
        lead::<A>(&mut self.a, branch);
    }

    fn put_double(&mut self, value: u64) {
        self.put(value as u32);
        self.put((value >> 32) as u32);
    }

    fn pool_load(&mut self, rd: Reg, value: u64) {
        let load = self.open(A::load(rd, A::CODE, 0));
        let fits = self.pool.keep(value, load);
        self.a.demand(fits);
    }

    /// What differs from connection to connection.
    fn hole(&mut self, rd: Reg, hole: Hole) {
        self.pool_load(rd, hole.symbol());
    }

    /// The leg's constants, behind it. `start`: of the leg, in bytes. Returns where they begin.
    fn put_pool(&mut self, start: usize) -> usize {
        if self.a.here() % 2 == 1 {
            self.put(0);
        }
        let pool_at = self.a.here() * 4;
        for (load, offset) in self.pool.uses() {
            if let Some(word) = self.a.from(load).first_mut() {
                *word = A::displaced(*word, pool_at + offset - start);
            }
        }
        for i in 0..self.pool.values().len() {
            self.put_double(self.pool.values()[i]);
        }
        pool_at
    }

    fn high(&mut self, rd: Reg, address: u64) -> i32 {
        A::high(self, rd, address)
    }

    fn constant(&mut self, rd: Reg, value: u64) {
        A::constant(self, rd, value);
    }

    fn scrub(&mut self, set: u32) {
        // Each portal has two or three of these.
        let mut left = set & !1;
        while left != 0 {
            self.put(A::copy(left.trailing_zeros() as Reg, A::ZERO));
            left &= left - 1;
        }
    }

    /// Into this word of the frame.
    fn save(&mut self, reg: Reg, word: u8) {
        self.put(A::store(reg, A::TOP, offset(word)));
    }

    fn load(&mut self, reg: Reg, word: u8) {
        self.put(A::load(reg, A::TOP, offset(word) - self.bias));
    }

    /// The branch refuses the call with this code. What comes next is done on both ways, where that is so.
    fn refuse(&mut self, branch: u32, code: u64) {
        let branch = self.open(branch);
        let fits = self.refusals.add(branch, code as u16);
        self.a.demand(fits);
    }
}

/// The branch leads here.
fn lead<A: Instructions>(a: &mut Asm<u32, MAX_WORDS>, branch: Label) {
    let distance = a.distance(branch) * 4;
    if let Some(word) = a.from(branch).first_mut() {
        *word = A::leads(*word, distance);
    }
}

/// Of a frame's word from what was the top.
const fn offset(word: u8) -> i32 {
    (word as i32 + 1) * 8
}

/// Words of a trap's frame before the general registers.
const fn float_words<A: Arch>(float: bool) -> u8 {
    if float { A::LAYOUT.float_words as u8 } else { 0 }
}

/// The form, with symbols in place, into `code`, whatever it held.
pub(super) fn emit(
    processor: Processor,
    spec: &Spec,
    shape: Shape,
    c: &Facts,
    code: &mut Code,
) -> Result<(), CompileError> {
    match processor {
        Processor::Riscv64 => emit_for::<Riscv64>(spec, shape, c, code),
        Processor::Mips64 => emit_for::<Mips64>(spec, shape, c, code),
        Processor::X86_64 => Err(CompileError::NoEmitter(processor)),
    }
}

fn emit_for<A: Steps>(spec: &Spec, shape: Shape, c: &Facts, code: &mut Code) -> Result<(), CompileError> {
    let mut e = Emitter::<A> {
        a: Asm::new(&mut code.words),
        c,
        shape,
        pool_at: 0,
        ret_at: None,
        call_words: 0,
        frame_words: 0,
        pool: Pool::default(),
        push: None,
        raises: None,
        waits: ArrayVec::new(),
        after_save: false,
        refusals: Ways::default(),
        first: None,
        ready: false,
        awaited: false,
        base: None,
        no_interrupt: None,
        bias: 0,
        processor: PhantomData,
    };
    ir::steps(spec, shape, c, &A::LAYOUT, &mut |op| e.op(op));
    match e.ret_at {
        None => {
            code.ret_words = 0;
            e.end_call_leg(false);
        }
        Some(start) => {
            code.ret_words = (e.a.here() - usize::from(start) / 4) as u16;
            if !e.pool.values().is_empty() {
                e.put_pool(start.into());
            }
        }
    }
    // Each leg reaches its pool, and the call leg the return leg, by an offset.
    let call = e.ret_at.map_or(e.a.here() * 4, usize::from);
    let reached = call < A::REACH && e.a.here() * 4 - call < A::REACH;
    e.a.demand(reached);
    let full = e.a.is_full();
    (code.call_words, code.pool_at, code.ret_at, code.frame_words) =
        (e.call_words, e.pool_at, e.ret_at, e.frame_words);
    if full { Err(CompileError::TooLong) } else { Ok(()) }
}
