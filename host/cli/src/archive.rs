//! Writes the file archive of an image: `cpio`, format `newc`, which the file server reads.

/// A regular file that all may read and run.
const MODE: u32 = 0o100_755;
/// A directory that all may look into.
const FOLDER: u32 = 0o040_755;
const END: &str = "TRAILER!!!";
const HEADER: usize = 110;
const WORD: usize = 8;
const PAGE: usize = pebble_abi::map::PAGE as usize;
/// A file of so many bytes has pages of its own, so that others can see it as it lies there.
const LARGE: usize = 4 * PAGE;

#[derive(Default)]
pub struct Archive {
    bytes: Vec<u8>,
    files: u32,
}

impl Archive {
    pub fn add(&mut self, path: &str, data: &[u8]) {
        self.files += 1;
        self.record(path, self.files, MODE, data);
    }

    /// A directory, for readers that do not make those of a file: before what is in it.
    pub fn add_folder(&mut self, path: &str) {
        self.files += 1;
        self.record(path, self.files, FOLDER, &[]);
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.record(END, 0, 0, &[]);
        self.bytes
    }

    /// Header of 13 numbers, zero-terminated name, data; each part padded to four bytes. The name has as many
    /// zeros that the data begins with a whole word, which is copied in one. Zeros before the record and
    /// behind it see to it that a large file shares no page with what is not zero.
    fn record(&mut self, path: &str, inode: u32, mode: u32, data: &[u8]) {
        let large = data.len() >= LARGE;
        if large {
            let before = (HEADER + path.len() + 1).next_multiple_of(WORD);
            let data_at = (self.bytes.len().next_multiple_of(WORD) + before).next_multiple_of(PAGE);
            self.bytes.resize(data_at - before, 0);
        }
        let name = self.bytes.len() + HEADER;
        let end = name + path.len() + 1;
        let end = if data.is_empty() { end } else { end.next_multiple_of(WORD) };
        let (links, size, name_size) = (1, data.len() as u32, (end - name) as u32);
        self.bytes.extend_from_slice(b"070701");
        for number in [inode, mode, 0, 0, links, 0, size, 0, 0, 0, 0, name_size, 0] {
            self.bytes.extend_from_slice(format!("{number:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.resize(end, 0);
        self.pad();
        self.bytes.extend_from_slice(data);
        self.pad();
        if large {
            self.bytes.resize(self.bytes.len().next_multiple_of(PAGE), 0);
        }
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pebble_file::Contents;

    #[test]
    fn the_file_server_reads_it() {
        let mut archive = Archive::default();
        archive.add("bin/wc", b"program");
        archive.add_folder("etc");
        archive.add("motd", b"");
        let bytes = archive.finish();
        let read = pebble_file::Archive::parse(&bytes).unwrap();
        let contents = |path| read.contents(read.lookup(path).unwrap()).unwrap();
        assert_eq!(contents("/bin/wc"), Contents::File(b"program"));
        assert_eq!(bytes.windows(7).position(|seven| seven == b"program").unwrap() % WORD, 0);
        assert_eq!(contents("motd"), Contents::File(b""));
        assert_eq!(contents("/"), Contents::Directory("bin/\netc/\nmotd\nram/\n"));
    }

    #[test]
    fn large_files_have_pages_of_their_own() {
        let large = |len: usize| (0..len).map(|n| n as u8 | 1).collect::<Vec<_>>();
        let data = [large(LARGE), large(LARGE + 1), large(LARGE - 1), large(5 * PAGE - 1)];
        let mut archive = Archive::default();
        for (n, data) in data.iter().enumerate() {
            archive.add(&format!("small{n}"), b"small");
            archive.add(&format!("file{n}"), data);
        }
        let bytes = archive.finish();
        let end = pebble_file::length(|len| &bytes[..len], bytes.len()).unwrap();
        assert_eq!(end.next_multiple_of(4), bytes.len());
        let read = pebble_file::Archive::parse(&bytes).unwrap();
        for (n, data) in data.iter().enumerate() {
            let node = read.lookup(&format!("file{n}")).unwrap();
            assert_eq!(read.contents(node), Some(Contents::File(data)));
            assert_eq!(read.pages(node), (data.len() >= LARGE).then_some(&data[..]), "{n}");
        }
    }
}
