//! Physical pages: one bit each, set while in use, handed out next-fit.
//!
//! A page that is given back is not handed out before the cursor has come round, nor zeroed before it is taken: whoever takes it
//! zeroes it.

use pebble_abi::map::{LOAD_PA, PAGE, RAM_BYTES, RAM_PA};

const FRAMES: usize = (RAM_BYTES / PAGE) as usize;
const WORDS: usize = FRAMES / 64;

pub struct Frames {
    used: [u64; WORDS],
    /// Word at which the next search begins.
    next: usize,
    free: usize,
    /// Pages that exist behind the firmware.
    all: usize,
    /// Pages were given back that windows may still show.
    loose: bool,
}

impl Frames {
    /// All in use, until [`adopt`](Self::adopt).
    pub const fn new() -> Self {
        Frames { used: [0; WORDS], next: 0, free: 0, all: 0, loose: false }
    }

    /// Free is what lies between the end of the image and the end of memory.
    pub fn adopt(&mut self, image_end: u64, ram_end: u64) {
        let frame = |pa: u64| (pa.saturating_sub(RAM_PA) / PAGE).min(FRAMES as u64) as usize;
        let free = frame(image_end)..frame(ram_end);
        for n in 0..FRAMES {
            if !free.contains(&n) {
                self.used[n / 64] |= 1 << (n % 64);
            }
        }
        self.free = free.len();
        self.all = frame(ram_end).saturating_sub(frame(LOAD_PA));
    }

    pub fn free(&self) -> usize {
        self.free
    }

    pub fn all(&self) -> usize {
        self.all
    }

    /// Whether pages have been given back since [`settle`](Self::settle).
    pub fn loose(&self) -> bool {
        self.loose
    }

    /// No window shows a free page.
    pub fn settle(&mut self) {
        self.loose = false;
    }

    /// Whether somebody has this page; what is no page that can be given back is always somebody's.
    pub fn in_use(&self, pa: u64) -> bool {
        let n = (pa.wrapping_sub(RAM_PA) / PAGE) as usize;
        n >= FRAMES || self.used[n / 64] >> (n % 64) & 1 == 1
    }

    pub fn take(&mut self) -> Option<u64> {
        debug_assert!(!self.loose, "windows may show what is free");
        if self.free == 0 {
            return None;
        }
        while self.used[self.next] == u64::MAX {
            self.next = (self.next + 1) % WORDS;
        }
        let bit = self.used[self.next].trailing_ones() as usize;
        self.used[self.next] |= 1 << bit;
        self.free -= 1;
        Some(RAM_PA + (self.next * 64 + bit) as u64 * PAGE)
    }

    /// Anything that is no page in use is left alone.
    pub fn give(&mut self, pa: u64) {
        let n = (pa.wrapping_sub(RAM_PA) / PAGE) as usize;
        let known = pa >= LOAD_PA && n < FRAMES && self.used[n / 64] >> (n % 64) & 1 == 1;
        debug_assert!(known, "{pa:#x} is no page in use");
        if known {
            self.used[n / 64] &= !(1 << (n % 64));
            self.free += 1;
            self.loose = true;
        }
    }

    /// A page that has just been given back is in use again: it was nobody's for as long as windows over it were searched.
    pub fn take_back(&mut self, pa: u64) {
        let n = (pa.wrapping_sub(RAM_PA) / PAGE) as usize;
        debug_assert!(!self.in_use(pa) && !self.loose, "{pa:#x} is in use, or may still be seen");
        self.used[n / 64] |= 1 << (n % 64);
        self.free -= 1;
    }
}

impl Default for Frames {
    fn default() -> Self {
        Frames::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn no_page_is_handed_out_twice_and_none_is_lost(steps in proptest::collection::vec(any::<u8>(), 1..600)) {
            let (start, end) = (LOAD_PA + 0x7000, LOAD_PA + 0x7000 + 200 * PAGE);
            let mut frames = Frames::new();
            prop_assert_eq!(frames.take(), None);
            frames.adopt(start, end);
            let mut held = BTreeSet::new();
            for step in steps {
                if step < 90 && !held.is_empty() {
                    let pa = *held.iter().nth(step as usize % held.len()).unwrap();
                    held.remove(&pa);
                    prop_assert!(frames.in_use(pa));
                    frames.give(pa);
                    prop_assert!(frames.loose() && !frames.in_use(pa));
                    frames.settle();
                } else if let Some(pa) = frames.take() {
                    prop_assert!((start..end).contains(&pa) && pa % PAGE == 0);
                    prop_assert!(held.insert(pa));
                }
                prop_assert_eq!(frames.free() + held.len(), 200);
            }
        }
    }
}
