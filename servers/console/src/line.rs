//! The line discipline of cooked mode: bytes typed, lines read.
//!
//! | key | effect |
//! |---|---|
//! | Enter (CR, LF, or CR LF) | ends the line, with `\n` |
//! | Backspace, Delete | takes back a character |
//! | Ctrl-U, Ctrl-W | takes back the line, the word |
//! | Ctrl-D | hands over what there is; with nothing there: the end of the input |
//! | Ctrl-C | drops the line, and says so |
//!
//! Other control characters are put in and echoed as `^X`, a tab as a space. To take back characters it moves
//! the cursor to the left, which terminals do within a row: a line that has wrapped reads right but may look
//! wrong.
//!
//! Invariants: while a line is [`ready`](LineDiscipline::ready) no byte is taken; a line that fills the
//! buffer is ready without its end, so that none is dropped; no byte causes more than [`ECHO_BYTES`] of echo.

/// Longest line that is edited and read as one.
pub const LINE_BYTES: usize = 1024;
/// Most that one byte is echoed as.
pub const ECHO_BYTES: usize = 16;

const CTRL_C: u8 = 3;
const CTRL_D: u8 = 4;
const BACKSPACE: u8 = 8;
const CTRL_U: u8 = 21;
const CTRL_W: u8 = 23;
const ESCAPE: u8 = 27;
const DELETE: u8 = 127;

/// What a byte did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    None,
    /// There is something to read.
    Ready,
    /// It was Ctrl-C.
    Interrupt,
}

pub struct LineDiscipline {
    bytes: [u8; LINE_BYTES],
    len: usize,
    /// Bytes read already.
    read: usize,
    ready: bool,
    after_cr: bool,
}

/// A line as a successor needs it: how much of it has been read, whether it may be, whether the last byte was
/// a CR.
pub type Line<'a> = (&'a [u8], usize, bool, bool);

impl Default for LineDiscipline {
    fn default() -> Self {
        Self::new()
    }
}

impl LineDiscipline {
    pub const fn new() -> Self {
        LineDiscipline { bytes: [0; LINE_BYTES], len: 0, read: 0, ready: false, after_cr: false }
    }

    /// Whether there is a line, or the end of the input, to read.
    pub fn ready(&self) -> bool {
        self.ready
    }

    /// Takes one byte; must not be called while a line is ready.
    pub fn take(&mut self, byte: u8, echo: &mut impl FnMut(u8)) -> Effect {
        debug_assert!(!self.ready);
        let second_of_pair = core::mem::replace(&mut self.after_cr, byte == b'\r') && byte == b'\n';
        match byte {
            b'\n' if second_of_pair => {}
            b'\r' | b'\n' => {
                self.put(b'\n');
                echo(b'\n');
                self.ready = true;
            }
            BACKSPACE | DELETE => self.take_back(self.last_character(), echo),
            CTRL_U => self.take_back(0, echo),
            CTRL_W => self.take_back(self.last_word(), echo),
            CTRL_D => self.ready = true,
            CTRL_C => {
                self.clear();
                [b'^', b'C', b'\n'].into_iter().for_each(echo);
                return Effect::Interrupt;
            }
            _ => {
                self.put(byte);
                match byte {
                    b'\t' => echo(b' '),
                    0..32 => [b'^', byte | 64].into_iter().for_each(echo),
                    _ => echo(byte),
                }
                self.ready = self.len == LINE_BYTES;
            }
        }
        if self.ready { Effect::Ready } else { Effect::None }
    }

    /// Removes up to 32 bytes, `max` at most, of the line that is ready; none: the end of the input, once.
    pub fn get(&mut self, max: usize) -> (usize, [u64; 4]) {
        let count = max.min(32).min(self.len - self.read);
        let mut words = [0; 4];
        for (i, byte) in self.bytes[self.read..][..count].iter().enumerate() {
            words[i / 8] |= u64::from(*byte) << (i % 8 * 8);
        }
        self.read += count;
        if self.read == self.len && max != 0 {
            self.clear();
        }
        (count, words)
    }

    /// Drops the line.
    pub fn save(&self) -> Line<'_> {
        (&self.bytes[..self.len], self.read, self.ready, self.after_cr)
    }

    /// Becomes what [`save`](Self::save) gave: no more than a line, of which no more has been read.
    pub fn load(&mut self, (bytes, read, ready, after_cr): Line) {
        self.clear();
        bytes.iter().for_each(|byte| self.put(*byte));
        (self.read, self.ready, self.after_cr) = (read, ready, after_cr);
    }

    pub fn clear(&mut self) {
        self.len = 0;
        self.read = 0;
        self.ready = false;
    }

    fn put(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    fn line(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Where the last character starts: bytes that continue one (UTF-8) go with their first.
    fn last_character(&self) -> usize {
        self.line().iter().rposition(|b| !continues(*b)).unwrap_or(0)
    }

    fn last_word(&self) -> usize {
        let space = |b: &u8| *b == b' ' || *b == b'\t';
        let end = self.line().iter().rposition(|b| !space(b)).map_or(0, |at| at + 1);
        self.bytes[..end].iter().rposition(space).map_or(0, |at| at + 1)
    }

    /// Takes back the line from `to` on.
    fn take_back(&mut self, to: usize, echo: &mut impl FnMut(u8)) {
        let columns: usize = self.line()[to..].iter().map(|b| columns(*b)).sum();
        self.len = to;
        match columns {
            0 => {}
            1 => [BACKSPACE, b' ', BACKSPACE].into_iter().for_each(echo),
            _ => {
                // Cursor left so many columns, erase to the end of the row.
                echo(ESCAPE);
                echo(b'[');
                for scale in [1000, 100, 10, 1].into_iter().filter(|scale| *scale <= columns) {
                    echo(b'0' + (columns / scale % 10) as u8);
                }
                b"D\x1b[K".iter().for_each(|b| echo(*b));
            }
        }
    }
}

fn continues(byte: u8) -> bool {
    byte & 0xc0 == 0x80
}

/// What the echo of a byte takes on the screen.
fn columns(byte: u8) -> usize {
    match byte {
        b'\t' => 1,
        0..32 => 2,
        _ if continues(byte) => 0,
        _ => 1,
    }
}
