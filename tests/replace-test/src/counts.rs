//! The counter's state: how often each domain has called, and what it has added. Two formats: the older one
//! has no sums.

use alloc::vec::Vec;
use pebble_abi::errno::{self, Errno};

/// Formats of the saved state.
pub const PLAIN: u64 = 1;
pub const WITH_SUMS: u64 = 2;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Record {
    domain: u64,
    count: u64,
    /// What it has added; 0 for what was counted before sums were kept.
    sum: u64,
}

#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts(Vec<Record>);

impl Counts {
    pub const fn new() -> Self {
        Counts(Vec::new())
    }

    fn record(&mut self, domain: u64) -> &mut Record {
        let at = self.0.iter().position(|r| r.domain == domain).unwrap_or_else(|| {
            self.0.push(Record { domain, ..Record::default() });
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// One more call of this domain: how many that makes.
    pub fn add(&mut self, domain: u64, amount: u64) -> u64 {
        let record = self.record(domain);
        record.count += 1;
        record.sum = record.sum.wrapping_add(amount);
        record.count
    }

    pub fn count(&self, domain: u64) -> u64 {
        self.0.iter().find(|r| r.domain == domain).map_or(0, |r| r.count)
    }

    pub fn total(&self) -> u64 {
        self.0.iter().map(|r| r.count).sum()
    }

    /// The domain begins again.
    pub fn forget(&mut self, domain: u64) {
        self.0.retain(|r| r.domain != domain);
    }

    /// Appends the state, part by part; false if a part is not taken.
    pub fn save(&self, format: u64, mut append: impl FnMut(&[u8]) -> bool) -> bool {
        let words = if format == PLAIN { 2 } else { 3 };
        self.0.iter().all(|r| [r.domain, r.count, r.sum][..words].iter().all(|w| append(&w.to_le_bytes())))
    }

    /// Becomes what was saved in a format that is not newer than `newest`; nothing changes on refusal.
    pub fn load(&mut self, newest: u64, format: u64, bytes: &[u8]) -> Result<(), Errno> {
        let words = match format {
            PLAIN => 2,
            WITH_SUMS if newest >= WITH_SUMS => 3,
            _ => return Err(errno::EINVAL),
        };
        let (records, rest) = bytes.as_chunks::<8>();
        if !rest.is_empty() || !records.len().is_multiple_of(words) {
            return Err(errno::EINVAL);
        }
        let word = |r: &[[u8; 8]], i: usize| r.get(i).map_or(0, |b| u64::from_le_bytes(*b));
        let records = records.chunks(words);
        self.0 = records.map(|r| Record { domain: word(r, 0), count: word(r, 1), sum: word(r, 2) }).collect();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved(counts: &Counts, format: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        assert!(counts.save(format, |part| {
            bytes.extend_from_slice(part);
            true
        }));
        bytes
    }

    #[test]
    fn the_newer_version_reads_both_formats_and_the_older_refuses_the_newer() {
        let mut counts = Counts::new();
        assert_eq!([counts.add(7, 3), counts.add(9, 1), counts.add(7, 4)], [1, 1, 2]);
        let (plain, sums) = (saved(&counts, PLAIN), saved(&counts, WITH_SUMS));
        let mut other = Counts::new();
        assert_eq!(other.load(PLAIN, WITH_SUMS, &sums), Err(errno::EINVAL));
        assert_eq!(other, Counts::new());
        other.load(WITH_SUMS, PLAIN, &plain).unwrap();
        assert_eq!((other.count(7), other.total(), other.0[0].sum), (2, 3, 0));
        other.load(WITH_SUMS, WITH_SUMS, &sums).unwrap();
        assert_eq!(other, counts);
        assert_eq!(other.load(WITH_SUMS, WITH_SUMS, &sums[1..]), Err(errno::EINVAL));
        other.forget(7);
        assert_eq!((other.count(7), other.total()), (0, 1));
    }
}
