//! The lattice: what is known of a register, and how arithmetic moves it.
//!
//! What has no rule becomes `Unknown`. The rules are exactly the computations of addresses and identities
//! that portal code makes: those that every processor makes alike are here, its own in its folder.

/// Where a value comes from; the number in [`Value`] tells which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Kind {
    Unknown,

    // What may be kept in a frame while the callee runs: see [`Kind::lasts`].
    /// What the register with this number held at the call.
    Own,
    /// This number, sign-extended.
    Const,
    /// Address of this offset of the portal.
    Code,
    /// A control register's content at entry.
    Control,
    /// What a register beside the general ones held.
    Beside,
    /// A descriptor of a stack; of a window's slot.
    Desc,
    Slot,
    /// Of a window, addresses: of the entry in the level-1 table, of the leaf.
    TableWord,
    Leaf,

    /// What the register held when the callee came back.
    Theirs,
    /// The pool's double word at this offset of the portal; if that names a domain, without its number.
    Pool,
    PoolRoot,
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
    /// Address so far behind the beginning of other code, to which the register of the leg's address leads.
    Inside,
    /// That of the running thread, shifted so that its sign tells whether the call is late.
    Late,
    /// The word before that code, shifted, and the caller that it names.
    Description,
    DescriptionHigh,
    Origin,
    /// The running domain's table entry with this index; a page of that table.
    TableEntry,
    TablePage,
    /// The running domain, from the name of its address space: on the way, its number, where it is in a
    /// status.
    SpaceTop,
    Asid,
    AsidHigh,
    /// The running domain's name without its number.
    Root,
    /// The kind of a trap, from its cause.
    TrapCode,
    /// The time that was read last, how much has passed since, their sum; the same once it is kept.
    TimeBefore,
    Elapsed,
    TimeNow,
    Time,
    /// The own domain's status with this code; the status with which a return leg was entered.
    Leaving,
    Status,
    /// Counter, semaphore: read, known to allow it, new value.
    CountRead,
    CountNext,
    SemRead,
    SemFree,
    SemNext,
    /// Head of the stack queue, perhaps an end of it, and the word there; the two words of a descriptor.
    Head,
    HeadNext,
    DescNext,
    DescStack,
    /// Whether the word at the head is that of an end, where the processor computes that.
    NoStack,

    // Of a window: parts of the caller's word, and what tests look at.
    Far,
    AboveImage,
    Region,
    Beyond,
    Within,
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
    /// The address of the table that a level-1 entry names, and 2047 more.
    Table,
    TableEnd,
    /// Level-1 entry, that of the read-only twin, leaf; what is left of them; as they are lent.
    Pointer,
    Twin,
    Entry,
    BarePointer,
    BareTwin,
    Stripped,
    Bare,
    Unseen,
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
    ControlPage,
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
    HalfOccupied,
    Occupied,
    HalfUnfit,
    Unfit,
    Rest,
    Bad,
    BadPointer,
    // Of a slot: the next descriptor, the slot's address, the address of its entry; the queue's head.
    SlotNext,
    SlotAddress,
    SlotEntry,
    SlotHead,
    /// What one entry of a translation buffer maps beside a window; the same, and whose it is.
    Pair,
    Probe,
    /// The status, or, where that is none, that the callee is to blame.
    Blamed,
    /// Count of moved pages; changed.
    Moved,
    MovedBy,
    /// What the template with this number made.
    Translated,
}

impl Kind {
    /// Whether it is still true when the callee has come back: nothing that others change behind a call's
    /// back.
    #[inline(always)]
    pub(super) const fn lasts(self) -> bool {
        Kind::Own as u32 <= self as u32 && self as u32 <= Kind::Leaf as u32
    }
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

pub(super) const fn own(x: usize) -> Value {
    Value(Kind::Own, x as i32)
}

/// What adding a number makes of a value.
#[inline(always)]
pub(super) fn add_imm(value: Value, imm: i64) -> Value {
    let Value(kind, n) = value;
    match kind {
        _ if imm == 0 => value,
        Kind::Const | Kind::Top | Kind::Code => n.checked_add(imm as i32).map_or(UNKNOWN, |n| Value(kind, n)),
        Kind::CountRead if imm == 1 => Value(Kind::CountNext, 0),
        Kind::SemFree if imm == i64::from(n) => Value(Kind::SemNext, 0),
        _ => UNKNOWN,
    }
}
