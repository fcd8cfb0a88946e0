//! Whom what is typed is for: the jobs that the shell, who alone can say it, has in the foreground.
//!
//! Problem: any program can open the console, and one in the background would take what is typed for others.
//! Strategy: a job is known by its family, the first program and all that it starts, which nobody chooses for
//! himself. The number is a domain's.
//!
//! Invariant: who has ended is not in front, so nobody who gets its number is; nor is anybody after a Ctrl-C,
//! or without a shell, until the shell says so.

pub struct Front([u8; 32]);

impl Front {
    pub const fn new() -> Self {
        Front([0; 32])
    }

    /// Carries out `front N`, one more, or `front`, nobody; false: it is something else.
    pub fn order(&mut self, text: &[u8]) -> bool {
        let (b"front", digits) = text.split_at(text.len().min(5)) else { return false };
        if digits.is_empty() {
            self.clear();
            return true;
        }
        let [b' ', digits @ ..] = digits else { return false };
        let mut number = 0;
        for digit in digits {
            number = number * 10 + usize::from(digit.wrapping_sub(b'0'));
            if !digit.is_ascii_digit() || number > 255 {
                return false;
            }
        }
        self.0[number / 8 % 32] |= 1 << (number % 8);
        number != 0
    }

    pub fn has(&self, number: u8) -> bool {
        self.0[usize::from(number / 8)] >> (number % 8) & 1 != 0
    }

    pub fn remove(&mut self, number: u8) {
        self.0[usize::from(number / 8)] &= !(1 << (number % 8));
    }

    pub fn clear(&mut self) {
        self.0 = [0; 32];
    }

    /// For a successor.
    pub fn save(&self) -> &[u8] {
        &self.0
    }

    pub fn load(bytes: [u8; 32]) -> Self {
        Front(bytes)
    }
}
