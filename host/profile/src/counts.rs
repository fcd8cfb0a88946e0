//! Counts by block, of which a domain has few: rows of a table that is filled where somebody counts.

use crate::BlockId;

const CHUNK: usize = 64;

#[derive(Default)]
pub struct Counts {
    chunks: Vec<Option<Box<[u64; CHUNK]>>>,
}

impl Counts {
    pub fn add(&mut self, block: BlockId, count: u64) {
        let (chunk, at) = (block.index() / CHUNK, block.index() % CHUNK);
        if self.chunks.len() <= chunk {
            self.chunks.resize_with(chunk + 1, || None);
        }
        self.chunks[chunk].get_or_insert_with(|| Box::new([0; CHUNK]))[at] += count;
    }

    pub fn clear(&mut self) {
        self.chunks.clear();
    }

    /// Those that are not 0.
    pub fn list(&self) -> Vec<(BlockId, u64)> {
        let chunks = self.chunks.iter().enumerate().filter_map(|(n, chunk)| Some((n, chunk.as_ref()?)));
        let all = chunks.flat_map(|(n, chunk)| {
            chunk.iter().enumerate().map(move |(at, count)| (BlockId::new(n * CHUNK + at), *count))
        });
        all.filter(|(_, count)| *count > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_added_is_listed() {
        let mut counts = Counts::default();
        for (block, count) in [(3, 1), (1000, 5), (3, 2), (64, 0)] {
            counts.add(BlockId::new(block), count);
        }
        assert_eq!(counts.list(), [(BlockId::new(3), 3), (BlockId::new(1000), 5)]);
        counts.clear();
        assert!(counts.list().is_empty());
    }
}
