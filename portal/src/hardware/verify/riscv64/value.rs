//! The lattice: what is known of a register, and how arithmetic moves it.
//!
//! What has no rule becomes `Unknown`. The rules are exactly the computations of addresses and identities
//! that portal code makes.

use super::MAX_FRAME;
use crate::isa::riscv64::decode::Alu;
use pebble_abi::map;
use pebble_arch::riscv64::{frame, paging};

/// Where a value comes from; the number in [`Value`] tells which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    Unknown,
    /// What the register with this number held at the call.
    Own,
    /// What the register held when the callee came back.
    Theirs,
    /// This number, sign-extended.
    Const,
    /// The pool's double word at this offset of the portal.
    Pool,
    /// Address of this offset of the portal.
    Code,
    /// Top of the invocation stack before the push, plus this.
    Top,
    /// `Top` shifted so that its sign tells whether the stack is full.
    Limit,
    /// The quarter of the page in which `Top` lies; less three.
    Quarter,
    LastQuarter,
    /// `Top` divided by the page size; the low bits are the thread.
    TopPage,
    ThreadId,
    /// Thread block of the running thread.
    Block,
    /// The thread to switch to: number, times the page size, block, saved top, saved register.
    NextId,
    NextOffset,
    NextBlock,
    NextTop,
    NextRegister,
    /// From the top word of the invocation stack: 0 of the running thread, 1 of the next.
    ReturnCode,
    /// That of the running thread, shifted so that its sign tells whether the call is late.
    Late,
    /// The word before that code, shifted, and the caller that it names.
    Description,
    DescriptionHigh,
    Origin,
    /// The running domain's table entry with this index.
    TableEntry,
    /// A control register's content at entry.
    Csr,
    /// `satp` on its way to the status of a dead domain.
    SatpTop,
    Asid,
    AsidHigh,
    /// The own domain's status with this code; the status with which a return leg was entered.
    Leaving,
    Status,
    /// Counter, semaphore: read, known to allow it, new value.
    CountRead,
    CountNext,
    SemRead,
    SemFree,
    SemNext,
    /// Head of the stack queue, perhaps an end of it, and the word there; a descriptor; its two words.
    Head,
    HeadNext,
    Desc,
    DescNext,
    DescStack,
    Float,

    // Of a window: parts of the caller's word, and what tests look at.
    Far,
    AboveImage,
    Region,
    Beyond,
    Crooked,
    Difference,
    Apart,
    TableIndex,
    TableOffset,
    Page,
    LeafIndex,
    LeafOffset,
    InPageHigh,
    InPage,
    /// Addresses: of the entry in the level-1 table, of the table that it names (and 2047 more), of the leaf.
    TableWord,
    Table,
    TableEnd,
    Leaf,
    /// Level-1 entry, that of the read-only twin, leaf; what is left of them; as they are lent.
    Pointer,
    Twin,
    Entry,
    BarePointer,
    BareTwin,
    Bare,
    LentPointer,
    LentTwin,
    Lent,
    Flags,
    FlagsTest,
    Number,
    NumberHigh,
    Bits,
    Low,
    /// Of a window, and the second bit of the number: of the leaf (0), or of the level-1 entry (1). Its flags
    /// with both marks; what is wrong with these for something borrowed; of the slot where it is shown,
    /// number and distance of the descriptor; the caller's control page; what is so far from it; the
    /// descriptor's holder, beside the running thread's top; beside the running thread.
    Marked,
    Stranger,
    BufferPlace,
    HolderIndex,
    HolderOffset,
    Control,
    HolderBase,
    Holder,
    OtherTop,
    OtherThread,
    /// A buffer's last leaf, and the one behind it.
    Last,
    Behind,
    /// The callee's argument.
    Address,
    /// `g`: the caller's place; what is in the slot; whether either is not as it must be.
    Place,
    Given,
    GivenTwin,
    /// Which side of the slots a goal is on, and what its entry is beside what it must be; what is in the
    /// slot but that it waits.
    Sides,
    Side,
    OtherSide,
    Occupied,
    Unfit,
    Rest,
    Bad,
    BadPointer,
    // Of a slot: descriptor, the next, the slot's address, the address of its entry; the queue's head.
    Slot,
    SlotNext,
    SlotAddress,
    SlotEntry,
    SlotHead,
    /// Count of moved pages; changed.
    Moved,
    MovedBy,
    /// What the template with this number made.
    Translated,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Value(pub Kind, pub i32);

/// A row of values.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Values<const N: usize>([Value; N]);

impl<const N: usize> Values<N> {
    pub const UNKNOWN: Self = Values([UNKNOWN; N]);

    /// All of one kind, numbered.
    #[inline(always)]
    pub fn numbered(kind: Kind) -> Self {
        Values(core::array::from_fn(|x| Value(kind, x as i32)))
    }

    #[inline(always)]
    pub fn get(&self, i: usize) -> Value {
        self.0[i]
    }

    #[inline(always)]
    pub fn set(&mut self, i: usize, value: Value) {
        self.0[i] = value;
    }
}

pub(super) const ZERO: Value = Value(Kind::Const, 0);
pub(super) const UNKNOWN: Value = Value(Kind::Unknown, 0);

pub(super) mod reg {
    pub const RA: usize = 1;
    pub const SP: usize = 2;
    pub const GP: usize = 3;
    pub const T0: usize = 5;
    pub const T1: usize = 6;
    /// Where a stack's descriptor is.
    pub const T3: u8 = 28;
    pub const A0: usize = 10;
    pub const A1: usize = 11;
    pub const A2: usize = 12;
    /// `t1`-`t3`, in which portal code computes.
    pub const SCRATCH: u32 = 3 << 6 | 1 << 28;
    /// Of a call whose callee has no stack.
    pub const STACK_SCRATCH: u32 = SCRATCH | 1 << 29;
    /// And where there are windows or templates: `t1`-`t6`, `a0`, `a6`, `a7`.
    pub const WINDOW_SCRATCH: u32 = 3 << 6 | 15 << 28 | 1 << 10 | 3 << 16;
    pub const TEMPORARY: u32 = 7 << 5 | 15 << 28;
    pub const PRESERVED: u32 = 1 << 4 | 3 << 8 | 0x3ff << 18;
    pub const FLOAT_PRESERVED: u32 = 3 << 8 | 0x3ff << 18;
    /// Order of the preserved registers in a thread block.
    pub const IN_BLOCK: [u8; super::frame::PRESERVED] = [8, 9, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 4];
}

pub(super) mod csr {
    pub const FCSR: u16 = 0x003;
    pub const SSTATUS: u16 = 0x100;
    pub const SIE: u16 = 0x104;
    pub const SSCRATCH: u16 = 0x140;
    pub const SEPC: u16 = 0x141;
    pub const SCAUSE: u16 = 0x142;
    pub const STVAL: u16 = 0x143;
    pub const STIMECMP: u16 = 0x14d;
    pub const SATP: u16 = 0x180;
    pub const TIME: u16 = 0xc01;
}

pub(super) const fn csr_value(number: u16) -> Value {
    Value(Kind::Csr, number as i32)
}

pub(super) const fn own(x: usize) -> Value {
    Value(Kind::Own, x as i32)
}

#[inline(always)]
pub(super) fn add_imm(value: Value, imm: i64) -> Value {
    let Value(kind, n) = value;
    match kind {
        _ if imm == 0 => value,
        Kind::Const | Kind::Top | Kind::Code => n.checked_add(imm as i32).map_or(UNKNOWN, |n| Value(kind, n)),
        Kind::Quarter if imm == -3 => Value(Kind::LastQuarter, 0),
        Kind::CountRead if imm == 1 => Value(Kind::CountNext, 0),
        Kind::SemFree if imm == i64::from(n) => Value(Kind::SemNext, 0),
        _ => UNKNOWN,
    }
}

#[inline]
pub(super) fn alu_imm(op: Alu, value: Value, imm: i64) -> Value {
    let Value(kind, n) = value;
    match op {
        Alu::Add => add_imm(value, imm),
        Alu::Sll => match (kind, imm) {
            (Kind::Top, 52) if n == 0 => Value(Kind::Limit, 0),
            (Kind::TopPage, 12) => Value(Kind::Block, 0),
            (Kind::ReturnCode, LATE_SHIFT) if n == 0 => Value(Kind::Late, 0),
            (Kind::NextId, 12) => Value(Kind::NextOffset, 0),
            (Kind::Csr, 4) if n == i32::from(csr::SATP) => Value(Kind::SatpTop, 0),
            (Kind::Description, 32) => Value(Kind::DescriptionHigh, 0),
            _ => UNKNOWN,
        },
        Alu::Srl => match (kind, imm) {
            (Kind::Top, 12) if (0..=MAX_FRAME as i32 * 8).contains(&n) => Value(Kind::TopPage, 0),
            (Kind::DescriptionHigh, 48) => Value(Kind::Origin, 0),
            (Kind::Limit, 62) => Value(Kind::Quarter, 0),
            (Kind::SatpTop, 48) => Value(Kind::Asid, 0),
            (Kind::SatpTop, 32) => Value(Kind::AsidHigh, 0),
            _ => UNKNOWN,
        },
        Alu::And => match (kind, imm) {
            (Kind::TopPage, THREAD_MASK) => Value(Kind::ThreadId, 0),
            (Kind::Own, THREAD_MASK) if n == reg::A0 as i32 => Value(Kind::NextId, 0),
            _ => UNKNOWN,
        },
        Alu::Or if kind == Kind::AsidHigh && (0..1 << 11).contains(&imm) => Value(Kind::Leaving, imm as i32),
        _ => UNKNOWN,
    }
}

// The page number in `satp` has no bit that would reach bit 32 of `Kind::SatpTop`.
const _: () = assert!(map::RAM_PA + map::RAM_BYTES <= 1 << 40);
const LATE_SHIFT: i64 = paging::LATE.leading_zeros() as i64;
const THREAD_MASK: i64 = map::MAX_THREADS as i64 - 1;

pub(super) fn add(a: Value, b: Value) -> Value {
    match (a, b) {
        (Value(Kind::NextOffset, _), Value(Kind::Const, n)) if i64::from(n) as u64 == map::THREADS_VA => {
            Value(Kind::NextBlock, 0)
        }
        _ => UNKNOWN,
    }
}
