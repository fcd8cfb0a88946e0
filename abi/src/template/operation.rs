//! The operations that templates are made of, of no processor in particular, and how they travel: a word
//! each.
//!
//! A word has the operation in its lowest 4 bits, above it three registers of 3 bits and a condition of 2,
//! and a number in its upper half. A word that another one would do for is none: what decodes is what encodes
//! to it.

/// A register of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Register {
    /// Reads as 0.
    Zero,
    /// At first the caller's word, in the end the callee's argument.
    Word,
    /// Address of the private data. It is never written.
    Base,
    /// Numbers of the two domains, until something else is written there.
    Caller,
    Callee,
    /// Free.
    A,
    B,
}

/// Comparisons are of signed words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Condition {
    Equal,
    Unequal,
    Less,
    /// Or equal.
    Greater,
}

/// Numbers are from -2048 to 2047, shifts from 0 to 63.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// The double word so many bytes behind `at`.
    Load {
        to: Register,
        at: Register,
        offset: i16,
    },
    Store {
        from: Register,
        at: Register,
        offset: i16,
    },
    Add {
        to: Register,
        a: Register,
        b: Register,
    },
    Subtract {
        to: Register,
        a: Register,
        b: Register,
    },
    AddNumber {
        to: Register,
        a: Register,
        number: i16,
    },
    AndNumber {
        to: Register,
        a: Register,
        number: i16,
    },
    /// The number times 4096.
    Pages {
        to: Register,
        number: i16,
    },
    ShiftLeft {
        to: Register,
        a: Register,
        by: u8,
    },
    /// Zeros come in.
    ShiftRight {
        to: Register,
        a: Register,
        by: u8,
    },
    /// Leaves out so many operations, at least one, if the comparison holds.
    Skip {
        a: Register,
        condition: Condition,
        b: Register,
        count: u8,
    },
    /// The call fails if the comparison holds.
    Refuse {
        a: Register,
        condition: Condition,
        b: Register,
    },
}

use Condition::*;
use Operation::*;
use Register::*;

/// In the order of their numbers.
const REGISTERS: [Register; 7] = [Zero, Word, Base, Caller, Callee, A, B];
const CONDITIONS: [Condition; 4] = [Equal, Unequal, Less, Greater];

impl Register {
    pub const fn name(self) -> &'static str {
        match self {
            Zero => "zero",
            Word => "word",
            Base => "base",
            Caller => "caller",
            Callee => "callee",
            A => "a",
            B => "b",
        }
    }

    /// By its number.
    pub const fn numbered(n: u64) -> Option<Register> {
        if n < REGISTERS.len() as u64 { Some(REGISTERS[n as usize]) } else { None }
    }
}

const fn pack(number: u32, registers: [Register; 3], condition: Condition, value: i16) -> u32 {
    let [x, y, z] = registers;
    number
        | (x as u32) << 4
        | (y as u32) << 7
        | (z as u32) << 10
        | (condition as u32) << 13
        | (value as u16 as u32) << 16
}

impl Operation {
    /// As it travels.
    pub const fn encode(self) -> u32 {
        match self {
            Load { to, at, offset } => pack(1, [to, at, Zero], Equal, offset),
            Store { from, at, offset } => pack(2, [from, at, Zero], Equal, offset),
            Add { to, a, b } => pack(3, [to, a, b], Equal, 0),
            Subtract { to, a, b } => pack(4, [to, a, b], Equal, 0),
            AddNumber { to, a, number } => pack(5, [to, a, Zero], Equal, number),
            AndNumber { to, a, number } => pack(6, [to, a, Zero], Equal, number),
            Pages { to, number } => pack(7, [to, Zero, Zero], Equal, number),
            ShiftLeft { to, a, by } => pack(8, [to, a, Zero], Equal, by as i16),
            ShiftRight { to, a, by } => pack(9, [to, a, Zero], Equal, by as i16),
            Skip { a, condition, b, count } => pack(10, [Zero, a, b], condition, count as i16),
            Refuse { a, condition, b } => pack(11, [Zero, a, b], condition, 0),
        }
    }

    /// `None`: the word is no operation, or has a number that is out of its range.
    pub fn decode(word: u32) -> Option<Operation> {
        let register = |at: u32| Register::numbered(u64::from(word >> at & 7));
        let (x, y, z) = (register(4)?, register(7)?, register(10)?);
        let condition = CONDITIONS[(word >> 13 & 3) as usize];
        let number = (word >> 16) as i16;
        let small = word >> 16 & 0xff;
        let operation = match word & 15 {
            1 => Load { to: x, at: y, offset: number },
            2 => Store { from: x, at: y, offset: number },
            3 => Add { to: x, a: y, b: z },
            4 => Subtract { to: x, a: y, b: z },
            5 => AddNumber { to: x, a: y, number },
            6 => AndNumber { to: x, a: y, number },
            7 => Pages { to: x, number },
            8 => ShiftLeft { to: x, a: y, by: small as u8 },
            9 => ShiftRight { to: x, a: y, by: small as u8 },
            10 => Skip { a: y, condition, b: z, count: small as u8 },
            11 => Refuse { a: y, condition, b: z },
            _ => return None,
        };
        let fits = match operation {
            ShiftLeft { by, .. } | ShiftRight { by, .. } => by < 64,
            _ => (-2048..2048).contains(&number),
        };
        (fits && operation.encode() == word).then_some(operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every word whose number is at the border of a range or near 0: it is an operation that encodes to it,
    /// or none.
    #[test]
    fn what_decodes_is_what_encodes_to_it() {
        let mut known = 0;
        for low in 0..1u32 << 16 {
            for number in [0i16, 1, 2, 31, 63, 64, 255, 256, 2047, 2048, -1, -2048, -2049, i16::MIN] {
                let word = low | u32::from(number as u16) << 16;
                if let Some(operation) = Operation::decode(word) {
                    assert_eq!(operation.encode(), word, "{operation:?}");
                    known += 1;
                }
            }
        }
        // Loads and stores and the like have 7 * 7 pairs of registers and 11 numbers of these 14.
        let (pairs, triples) = (7 * 7, 7 * 7 * 7);
        assert_eq!(known, pairs * 11 * 4 + triples * 2 + 7 * 11 + pairs * 5 * 2 + pairs * 4 * 7 + pairs * 4);
    }
}
