//! Two 8259A (Intel, "8259A Programmable Interrupt Controller"), the second at line 2 of the first, with the
//! register that says which lines are levels (PIIX4, "ELCR").
//!
//! Source `n` is line `n`. Nobody else acknowledges for the processor, so the lines are asked by polls. A
//! line is masked from its claim until it is complete, and the end of its interrupt is told at once: a driver
//! that takes its time holds up no other line. Lines are levels where they can be, for an edge that comes
//! while its line is claimed would be lost. What comes unasked is masked too, and stays so.
//!
//! The board maps three ranges: the first chip, the second, the two bytes for levels. That there are levels
//! tells that all has been initialised: after a reset there is none.

use crate::Registers;

/// Ranges.
const CHIPS: [usize; 2] = [0, 1];
const LEVELS: usize = 2;
/// Offsets in the range of a chip.
const COMMAND: usize = 0;
const DATA: usize = 1;
/// The line of the first chip at which the second is, and the second's number for it.
const CASCADE: u8 = 2;
const LINES: u64 = 16;

/// First command word: three more follow, of which the first is the vector, which polls do not ask for.
const INITIALISE: u8 = 0x11;
/// The last of them: without acknowledgement of its own accord, as an 8086 has it.
const MODE: u8 = 0x01;
const POLL: u8 = 0x0c;
/// What a poll answers if there is an interrupt, its line in the low bits.
const PENDING: u8 = 0x80;
/// The end of the interrupt at the line that is added.
const END: u8 = 0x60;
/// Lines that can be levels.
const LEVEL: [u8; 2] = [0xf8, 0xde];

#[inline(always)]
pub fn claim(registers: impl Registers) -> u32 {
    let Some(first) = poll(&registers, 0) else { return 0 };
    let line = match first {
        CASCADE => poll(&registers, 1).map(|line| line + 8),
        line => Some(line),
    };
    if let Some(line) = line {
        mask(&registers, line, true);
        end(&registers, line);
    }
    if first == CASCADE {
        end(&registers, CASCADE);
    }
    line.unwrap_or(0).into()
}

pub fn enable(registers: impl Registers, source: u64) -> bool {
    let Some(line) = line(source) else { return false };
    if registers.read_byte(LEVELS, 0) != LEVEL[0] {
        initialise(&registers);
    }
    mask(&registers, line, false);
    true
}

pub fn complete(registers: impl Registers, source: u64) -> bool {
    let line = line(source);
    if let Some(line) = line {
        mask(&registers, line, false);
    }
    line.is_some()
}

fn initialise(registers: &impl Registers) {
    let [first, second] = CHIPS;
    for (chip, vector, cascade) in [(first, 0, 1 << CASCADE), (second, 8, CASCADE)] {
        registers.write_byte(chip, COMMAND, INITIALISE);
        for word in [vector, cascade, MODE] {
            registers.write_byte(chip, DATA, word);
        }
    }
    registers.write_byte(first, DATA, !(1 << CASCADE));
    registers.write_byte(second, DATA, !0);
    for (chip, lines) in LEVEL.into_iter().enumerate() {
        registers.write_byte(LEVELS, chip, lines);
    }
}

/// The line of a chip that has an interrupt, which is in service from now on.
fn poll(registers: &impl Registers, chip: usize) -> Option<u8> {
    registers.write_byte(chip, COMMAND, POLL);
    let answer = registers.read_byte(chip, COMMAND);
    (answer & PENDING != 0).then_some(answer & 7)
}

fn end(registers: &impl Registers, line: u8) {
    registers.write_byte(usize::from(line / 8), COMMAND, END | line % 8);
}

fn mask(registers: &impl Registers, line: u8, masked: bool) {
    let (chip, bit) = (usize::from(line / 8), 1 << (line % 8));
    let others = registers.read_byte(chip, DATA) & !bit;
    registers.write_byte(chip, DATA, if masked { others | bit } else { others });
}

/// `None` for a source that the board does not have: line 0 has no device, and that of the second chip none.
fn line(source: u64) -> Option<u8> {
    (1..LINES).contains(&source).then_some(source as u8).filter(|line| *line != CASCADE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;

    /// One chip as far as the driver sees it, after a reset: nothing masked.
    #[derive(Default)]
    struct Chip {
        /// Words of the initialisation that have come; 0: none is under way.
        expected: usize,
        words: [u8; 3],
        mask: u8,
        requests: u8,
        service: u8,
        polled: bool,
    }

    impl Chip {
        /// The most urgent line, if no other that is as urgent is in service.
        fn pending(&self) -> Option<u8> {
            let first = |lines: u8| lines.trailing_zeros();
            let line = first(self.requests & !self.mask);
            (line < 8 && line < first(self.service)).then_some(line as u8)
        }
    }

    #[derive(Default)]
    struct Board {
        chips: [Chip; 2],
        levels: [u8; 2],
    }

    impl Board {
        /// Devices at these lines want attention; edges are remembered.
        fn raise(&mut self, lines: &[u8]) {
            lines.iter().for_each(|line| self.chips[usize::from(line / 8)].requests |= 1 << (line % 8));
        }

        /// What the second chip's output is for the first.
        fn cascade(&mut self) {
            let wants = u8::from(self.chips[1].pending().is_some()) << CASCADE;
            self.chips[0].requests = self.chips[0].requests & !(1 << CASCADE) | wants;
        }
    }

    impl Registers for &RefCell<Board> {
        fn read(&self, _: usize, _: usize) -> u32 {
            panic!("registers are bytes")
        }
        fn write(&self, _: usize, _: usize, _: u32) {
            panic!("registers are bytes")
        }
        fn read_byte(&self, range: usize, offset: usize) -> u8 {
            let board = &mut *self.borrow_mut();
            if range == LEVELS {
                return board.levels[offset];
            }
            board.cascade();
            let levels = board.levels[range];
            let chip = &mut board.chips[range];
            if offset == DATA {
                return chip.mask;
            }
            assert!(std::mem::take(&mut chip.polled), "only polls are read");
            let Some(line) = chip.pending() else { return 0 };
            chip.service |= 1 << line;
            chip.requests &= !(1 << line) | levels;
            PENDING | line
        }
        fn write_byte(&self, range: usize, offset: usize, value: u8) {
            let board = &mut *self.borrow_mut();
            if range == LEVELS {
                board.levels[offset] = value;
                return;
            }
            let chip = &mut board.chips[range];
            match (offset, value) {
                (COMMAND, INITIALISE) => *chip = Chip { expected: 3, ..Chip::default() },
                (COMMAND, POLL) => chip.polled = true,
                (COMMAND, end) => {
                    assert_eq!(end & !7, END, "{end:#x}");
                    assert!(chip.service & 1 << (end & 7) != 0, "line {} is not in service", end & 7);
                    chip.service &= !(1 << (end & 7));
                }
                (_, word) if chip.expected > 0 => {
                    chip.words[3 - chip.expected] = word;
                    chip.expected -= 1;
                }
                (_, mask) => chip.mask = mask,
            }
        }
    }

    #[test]
    fn only_real_lines_are_enabled_and_completed() {
        let board = RefCell::<Board>::default();
        for none in [0, 2, 16, u64::MAX, 1 << 32 | 4] {
            assert!(!enable(&board, none) && !complete(&board, none), "{none}");
        }
        assert_eq!(board.borrow().levels, [0; 2], "nothing was done for them");
        assert!(enable(&board, 4) && enable(&board, 8));
        let told = board.borrow().chips.each_ref().map(|chip| (chip.words, chip.mask, chip.expected));
        assert_eq!(told, [([0, 4, 1], 0b1110_1011, 0), ([8, 2, 1], 0b1111_1110, 0)]);
        assert_eq!(board.borrow().levels, LEVEL);
    }

    #[test]
    fn a_claimed_line_is_silent_until_complete_and_no_other() {
        let board = RefCell::<Board>::default();
        assert!([4, 6, 8, 12].into_iter().all(|line| enable(&board, line)));
        assert_eq!(claim(&board), 0);
        // 4 and 12 are levels that stay; the edge at 8 comes once more while it is claimed.
        board.borrow_mut().raise(&[4, 12, 8]);
        assert_eq!([claim(&board), claim(&board), claim(&board), claim(&board)], [8, 12, 4, 0]);
        board.borrow_mut().raise(&[8, 6]);
        assert_eq!([claim(&board), claim(&board)], [6, 0], "drivers do not wait for each other");
        assert!(complete(&board, 8) && complete(&board, 4));
        assert_eq!([claim(&board), claim(&board), claim(&board)], [8, 4, 0]);
        assert!(board.borrow().chips.iter().all(|chip| chip.service == 0));
    }

    #[test]
    fn what_nobody_has_enabled_is_masked() {
        let board = RefCell::<Board>::default();
        // Nothing is initialised, and the timer of the board ticks.
        board.borrow_mut().raise(&[0]);
        assert_eq!(claim(&board), 0);
        board.borrow_mut().raise(&[0, 1]);
        assert_eq!([claim(&board), claim(&board)], [1, 0]);
    }
}
