//! Physical pages: which are free, and which of those are zero.
//!
//! Problem: a page is zeroed before anybody gets it, which costs more than all else that is done for it.
//! Strategy: the idle thread zeroes free pages before they are wanted. There is one bit for each page. It is
//! clear for those that are *dirty*, which are handed out next-fit: one that is given back is not handed out
//! before the cursor has come round. *Clean* pages are linked through their first words, so that the list
//! takes no memory; they go first to whoever wants a zeroed page, and last to whoever overwrites all of it.
//!
//! Invariants:
//! * a page that is given back is dirty, and becomes clean only when all of it has been zeroed since;
//! * no window shows a clean page, or one that the idle thread zeroes: it was dirty when nothing was
//!   [`loose`](Frames::loose). So windows need not be searched for it, and its bit is set;
//! * the idle thread has [`BATCH`] pages at most, and takes none of the last [`RESERVE`]. They count as free,
//!   but nobody can have them: programs, which leave the reserve, never need them, and for the image's
//!   domains they are not there ([`Vm::afford`](crate::Vm::afford)).

use crate::{Machine, RESERVE};
use pebble_abi::map::{LOAD_PA, PAGE, RAM_BYTES, RAM_PA};

const FRAMES: usize = (RAM_BYTES / PAGE) as usize;
const WORDS: usize = FRAMES / 64;
/// So many pages are kept clean, 16 MiB: what lies idle longer need not be touched.
const CLEAN: u32 = 4096;
/// Pages that the idle thread zeroes at a time.
pub const BATCH: usize = 4;

/// Pages in the idle thread's hands: it has zeroed them, or is to do so. 0: none.
pub type Batch = [u64; BATCH];

pub struct Frames {
    used: [u64; WORDS],
    /// Word at which the next search begins.
    next: u32,
    /// Pages whose bits are clear.
    dirty: u32,
    /// The first clean page, whose first word names the next; how many there are.
    first: u32,
    clean: u32,
    /// Pages in the idle thread's hands.
    away: u8,
    /// Pages that exist behind the firmware.
    all: u32,
    /// Pages were given back that windows may still show.
    loose: bool,
}

impl Frames {
    /// All in use, until [`adopt`](Self::adopt).
    pub const fn new() -> Self {
        Frames { used: [0; WORDS], next: 0, dirty: 0, first: 0, clean: 0, away: 0, all: 0, loose: false }
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
        self.dirty = free.len() as u32;
        self.all = frame(ram_end).saturating_sub(frame(LOAD_PA)) as u32;
    }

    pub fn free(&self) -> usize {
        (self.dirty + self.clean) as usize + self.away()
    }

    /// Free pages that nobody can have before the idle thread is done with them.
    pub fn away(&self) -> usize {
        self.away.into()
    }

    pub fn all(&self) -> usize {
        self.all as usize
    }

    /// Whether pages have been given back since [`settle`](Self::settle).
    pub fn loose(&self) -> bool {
        self.loose
    }

    /// No window shows a free page.
    pub fn settle(&mut self) {
        self.loose = false;
    }

    /// Whether no window need lose this page: somebody has it, or it is clean, or about to be. What is no
    /// page that can be given back is always somebody's.
    pub fn in_use(&self, pa: u64) -> bool {
        let n = (pa.wrapping_sub(RAM_PA) / PAGE) as usize;
        n >= FRAMES || self.used[n / 64] >> (n % 64) & 1 == 1
    }

    /// A page, zeroed. Inline: once for each page of a heap that grows.
    #[inline]
    pub fn take(&mut self, machine: &mut impl Machine) -> Option<u64> {
        self.take_clean(machine).or_else(|| {
            let pa = self.take_dirty()?;
            machine.zero_page(pa);
            Some(pa)
        })
    }

    /// A page for whoever overwrites all of it.
    pub fn take_any(&mut self, machine: &mut impl Machine) -> Option<u64> {
        self.take_dirty().or_else(|| self.take_clean(machine))
    }

    #[inline(always)]
    fn take_clean(&mut self, machine: &mut impl Machine) -> Option<u64> {
        self.clean = self.clean.checked_sub(1)?;
        let pa = self.first.into();
        self.first = machine.read(pa) as u32;
        machine.write(pa, 0);
        Some(pa)
    }

    fn take_dirty(&mut self) -> Option<u64> {
        debug_assert!(!self.loose, "windows may show what is free");
        self.dirty = self.dirty.checked_sub(1)?;
        let mut word = self.next as usize % WORDS;
        while self.used[word] == u64::MAX {
            word = (word + 1) % WORDS;
        }
        self.next = word as u32;
        let bit = self.used[word].trailing_ones() as usize;
        self.used[word] |= 1 << bit;
        Some(RAM_PA + (word * 64 + bit) as u64 * PAGE)
    }

    /// For the idle thread: the pages of the batch have been zeroed and are clean, and there are dirty ones
    /// in it, unless enough are clean. Whether there are any.
    pub fn launder(&mut self, machine: &mut impl Machine, batch: &mut Batch) -> bool {
        for page in batch.iter_mut() {
            if *page != 0 {
                machine.write(*page, self.first.into());
                self.first = *page as u32;
                self.clean += 1;
                self.away -= 1;
            }
            let wanted = self.clean + u32::from(self.away) < CLEAN && self.dirty > RESERVE as u32;
            *page = if wanted { self.take_dirty().unwrap_or(0) } else { 0 };
            self.away += u8::from(*page != 0);
        }
        batch[0] != 0
    }

    /// A table, which no window ever shows.
    pub fn give_unseen(&mut self, pa: u64) {
        let loose = self.loose;
        self.give(pa);
        self.loose = loose;
    }

    /// Anything that is no page in use is left alone.
    pub fn give(&mut self, pa: u64) {
        let n = (pa.wrapping_sub(RAM_PA) / PAGE) as usize;
        let known = pa >= LOAD_PA && n < FRAMES && self.used[n / 64] >> (n % 64) & 1 == 1;
        debug_assert!(known, "{pa:#x} is no page in use");
        if known {
            self.used[n / 64] &= !(1 << (n % 64));
            self.dirty += 1;
            self.loose = true;
        }
    }

    /// A page that has just been given back is in use again: it was nobody's for as long as windows over it
    /// were searched.
    pub fn take_back(&mut self, pa: u64) {
        let n = (pa.wrapping_sub(RAM_PA) / PAGE) as usize;
        debug_assert!(!self.in_use(pa) && !self.loose, "{pa:#x} is in use, or may still be seen");
        self.used[n / 64] |= 1 << (n % 64);
        self.dirty -= 1;
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
    use std::collections::{BTreeMap, BTreeSet};
    use std::vec::Vec;

    const START: u64 = LOAD_PA + 0x7000;
    const PAGES: usize = RESERVE + 200;

    /// Of each page the first word, and one that stands for the others; what was never written is nonsense.
    #[derive(Default)]
    struct Memory(BTreeMap<u64, [u64; 2]>);

    impl Memory {
        fn page(&mut self, pa: u64) -> &mut [u64; 2] {
            self.0.entry(pa).or_insert([0xdead, 0xbeef])
        }
    }

    impl Machine for Memory {
        type Arch = pebble_arch::Riscv64;

        fn read(&self, pa: u64) -> u64 {
            self.0[&pa][0]
        }
        fn write(&mut self, pa: u64, word: u64) {
            self.page(pa)[0] = word;
        }
        fn zero_page(&mut self, pa: u64) {
            *self.page(pa) = [0; 2];
        }
        fn copy_page(&mut self, _: u64, _: u64) {
            unreachable!();
        }
        fn flush(&mut self, _: u16) {
            unreachable!();
        }
        fn exchange(&mut self, _: u64, _: u64, _: u64) -> bool {
            unreachable!();
        }
        fn switches(&self) -> u64 {
            unreachable!();
        }
        fn top(&self) -> u64 {
            unreachable!();
        }
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Give(usize),
        Take,
        TakeAny,
        /// The idle thread zeroes the next page of its batch, or asks for others.
        Idle,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            3 => any::<usize>().prop_map(Step::Give),
            4 => Just(Step::Take),
            1 => Just(Step::TakeAny),
            6 => Just(Step::Idle),
        ]
    }

    proptest! {
        /// No page is handed out twice, none is lost, none has old contents; none is refused, but what the
        /// idle thread has.
        #[test]
        fn pages_are_there_once_and_clean(steps in proptest::collection::vec(step(), 1..900)) {
            let (mut frames, mut memory, mut batch) = (Frames::new(), Memory::default(), Batch::default());
            prop_assert_eq!(frames.take(&mut memory), None);
            prop_assert!(!frames.launder(&mut memory, &mut batch));
            frames.adopt(START, START + PAGES as u64 * PAGE);
            let (mut held, mut to_zero) = (BTreeSet::new(), Vec::new());
            for step in steps {
                let taken = match step {
                    Step::Give(n) => {
                        if let Some(pa) = held.iter().nth(n % held.len().max(1)).copied() {
                            held.remove(&pa);
                            prop_assert!(frames.in_use(pa));
                            frames.give(pa);
                            prop_assert!(frames.loose() && !frames.in_use(pa));
                            frames.settle();
                        }
                        continue;
                    }
                    Step::Idle => {
                        if let Some(pa) = to_zero.pop() {
                            memory.zero_page(pa);
                        } else {
                            let any = frames.launder(&mut memory, &mut batch);
                            to_zero.extend(batch.iter().filter(|pa| **pa != 0));
                            prop_assert_eq!(any, !to_zero.is_empty());
                            prop_assert_eq!(frames.away(), to_zero.len());
                        }
                        continue;
                    }
                    Step::Take => frames.take(&mut memory),
                    Step::TakeAny => frames.take_any(&mut memory),
                };
                match taken {
                    Some(pa) => {
                        prop_assert!((START..START + PAGES as u64 * PAGE).contains(&pa) && pa % PAGE == 0);
                        prop_assert!(held.insert(pa) && !batch.contains(&pa), "{:#x} is somebody's", pa);
                        let zero = *memory.page(pa) == [0; 2];
                        prop_assert!(zero || matches!(step, Step::TakeAny), "{:#x} has old contents", pa);
                        *memory.page(pa) = [0x5ec2e7; 2];
                    }
                    None => prop_assert_eq!(frames.free(), frames.away()),
                }
                prop_assert_eq!(frames.free() + held.len(), PAGES);
            }
        }
    }

    /// All that are wanted clean become so, and go first to whoever wants them zeroed, last to who does not.
    #[test]
    fn the_idle_thread_comes_to_an_end() {
        let (mut frames, mut memory, mut batch) = (Frames::new(), Memory::default(), Batch::default());
        for (pages, clean) in [(RESERVE, 0), (RESERVE + 3, 3), (FRAMES, CLEAN as usize)] {
            frames = Frames::new();
            frames.adopt(START, START + pages as u64 * PAGE);
            while frames.launder(&mut memory, &mut batch) {
                batch.iter().filter(|pa| **pa != 0).for_each(|pa| memory.zero_page(*pa));
            }
            assert_eq!((frames.clean as usize, frames.away(), batch), (clean, 0, [0; BATCH]));
        }
        let free = frames.free();
        let pa = frames.take_any(&mut memory).unwrap();
        assert_eq!((frames.clean, *memory.page(pa)), (CLEAN, [0xdead, 0xbeef]));
        frames.take(&mut memory).unwrap();
        assert_eq!((frames.clean, frames.free()), (CLEAN - 1, free - 2));
        frames.give(pa);
        frames.settle();
        assert!(frames.launder(&mut memory, &mut batch), "there is one to be zeroed");
    }
}
