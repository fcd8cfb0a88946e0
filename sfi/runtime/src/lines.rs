//! Line programs of debug information, read a step at a time: by whoever wants to know a line, and by whoever
//! moves addresses.
//!
//! They are the module's, so nothing in them is believed: every read is checked, numbers wrap around, and
//! each step takes at least a byte.

/// Checked reads, forward.
#[derive(Clone, Copy)]
pub struct Bytes<'a> {
    pub all: &'a [u8],
    pub at: usize,
}

impl<'a> Bytes<'a> {
    pub fn new(all: &'a [u8], at: usize) -> Bytes<'a> {
        Bytes { all, at }
    }

    pub fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let end = self.at.checked_add(bytes)?;
        let taken = self.all.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    /// A little-endian number of at most eight bytes.
    pub fn number(&mut self, bytes: usize) -> Option<u64> {
        Some(self.take(bytes)?.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    pub fn byte(&mut self) -> Option<u8> {
        self.number(1).map(|byte| byte as u8)
    }

    /// LEB128, of which what is beyond 64 bits is lost; and how many bits it has.
    fn leb(&mut self) -> Option<(u64, u32)> {
        let (mut number, mut bits) = (0, 0u32);
        loop {
            let byte = self.byte()?;
            if bits < 64 {
                number |= u64::from(byte & 0x7f) << bits;
            }
            bits = bits.saturating_add(7);
            if byte & 0x80 == 0 {
                return Some((number, bits));
            }
        }
    }

    pub fn unsigned(&mut self) -> Option<u64> {
        self.leb().map(|(number, _)| number)
    }

    fn signed(&mut self) -> Option<i64> {
        let (number, bits) = self.leb()?;
        let unused = 64u32.saturating_sub(bits);
        Some((number as i64) << unused >> unused)
    }

    /// The begin of a table with its length: where it ends, and how many bytes offsets in it have.
    pub fn length(&mut self) -> Option<(usize, usize)> {
        let (length, offsets) = match self.number(4)? {
            0xffff_ffff => (self.number(8)?, 8),
            length => (length, 4),
        };
        let end = self.at.checked_add(usize::try_from(length).ok()?)?;
        (end <= self.all.len()).then_some((end, offsets))
    }
}

/// One program: what its header says that counts, and where its instructions are in the section.
pub struct Program<'a> {
    /// Of the whole, header and all.
    pub begin: usize,
    pub end: usize,
    /// Bytes of the lists of directories and files.
    pub listed: u64,
    minimum: u64,
    line_base: i64,
    line_range: u8,
    opcode_base: u8,
    lengths: &'a [u8],
    section: &'a [u8],
    instructions: usize,
}

/// A place of the code, from this address to the next row's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    pub address: u64,
    pub file: u64,
    pub line: u64,
    pub end_sequence: bool,
}

impl<'a> Program<'a> {
    /// The program that begins at this offset of the section, if its length can be believed; and what it
    /// says, if it is understood.
    pub fn at(section: &'a [u8], begin: usize) -> Option<(usize, Option<Program<'a>>)> {
        let mut bytes = Bytes::new(section, begin);
        let (end, offsets) = bytes.length()?;
        Some((end, Program::parse(section.get(..end)?, begin, bytes, offsets)))
    }

    fn parse(section: &'a [u8], begin: usize, mut b: Bytes<'a>, offsets: usize) -> Option<Program<'a>> {
        let (all, version) = (section, b.number(2)?);
        b = Bytes::new(all, b.at);
        if !(2..=5).contains(&version) {
            return None;
        }
        if version == 5 && b.take(2)? != [8, 0] {
            return None;
        }
        let listed = b.number(offsets)?;
        let instructions = b.at.checked_add(usize::try_from(listed).ok()?)?;
        let minimum = b.number(1)?;
        // Instructions of several operations are of no x86-64.
        b.take(if version >= 4 { 2 } else { 1 })?;
        let line_base = i64::from(b.byte()? as i8);
        let (line_range, opcode_base) = (b.byte()?, b.byte()?);
        let lengths = b.take(usize::from(opcode_base.checked_sub(1)?))?;
        let end = all.len();
        (line_range > 0 && instructions <= end).then_some(Program {
            begin,
            end,
            listed,
            minimum,
            line_base,
            line_range,
            opcode_base,
            lengths,
            section,
            instructions,
        })
    }

    pub fn steps(&self) -> Steps<'_> {
        Steps { program: self, bytes: Bytes::new(self.section, self.instructions), row: START }
    }
}

const START: Row = Row { address: 0, file: 1, line: 1, end_sequence: false };

pub struct Steps<'a> {
    program: &'a Program<'a>,
    bytes: Bytes<'a>,
    row: Row,
}

/// What one instruction has done.
pub enum Step {
    Row(Row),
    /// The address that it sets lies at this offset of the section.
    Address(usize, u64),
    Other,
}

impl Iterator for Steps<'_> {
    type Item = Step;

    /// The next instruction; none behind the last, or behind what is none.
    fn next(&mut self) -> Option<Step> {
        let (p, b) = (self.program, &mut self.bytes);
        let opcode = b.byte()?;
        let advance = |row: &mut Row, by: u64| {
            row.address = row.address.wrapping_add(p.minimum.wrapping_mul(by));
        };
        if opcode >= p.opcode_base {
            let special = opcode - p.opcode_base;
            advance(&mut self.row, u64::from(special / p.line_range));
            let line = p.line_base + i64::from(special % p.line_range);
            self.row.line = self.row.line.wrapping_add_signed(line);
            return Some(Step::Row(self.row));
        }
        match opcode {
            0 => {
                let length = usize::try_from(b.unsigned()?).ok()?;
                let (at, operation) = (b.at, b.take(length)?);
                match operation.first() {
                    Some(1) => {
                        let last = Row { end_sequence: true, ..self.row };
                        self.row = START;
                        return Some(Step::Row(last));
                    }
                    Some(2) if length == 9 => {
                        self.row.address = Bytes::new(operation, 1).number(8)?;
                        return Some(Step::Address(at + 1, self.row.address));
                    }
                    _ => {}
                }
            }
            1 => return Some(Step::Row(self.row)),
            2 => advance(&mut self.row, b.unsigned()?),
            3 => self.row.line = self.row.line.wrapping_add_signed(b.signed()?),
            4 => self.row.file = b.unsigned()?,
            8 => advance(&mut self.row, u64::from((255 - p.opcode_base) / p.line_range)),
            9 => self.row.address = self.row.address.wrapping_add(b.number(2)?),
            _ => {
                for _ in 0..*p.lengths.get(usize::from(opcode) - 1)? {
                    b.unsigned()?;
                }
            }
        }
        Some(Step::Other)
    }
}
