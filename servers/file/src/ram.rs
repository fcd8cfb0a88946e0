//! Files in memory, under `ram/`: made by [`Ram::create`], gone when the system stops. A place for what comes
//! in over the console and for what programs leave each other; not deep, since it has no directories of its
//! own.
//!
//! What there is of files and bytes families share ([`share`]). A file is of the family that has last made or
//! lengthened it, so nobody uses up what others may have; when that has ended, it is nobody's, and counts
//! against all.
//!
//! Invariant: whatever a program asks for, memory that is not there is an error and changes nothing.

use alloc::string::String;
use alloc::vec::Vec;

use pebble_abi::errno::{self, Errno};
use pebble_abi::share;
use serde::{Deserialize, Serialize};

/// Files at once, bytes of one, and of all together.
pub const RAM_FILES: usize = share::RAM_FILES.all;
pub const RAM_FILE_MAX: usize = 8 << 20;
pub const RAM_MAX: usize = share::RAM_BYTES.all;

/// Where they are.
pub const PREFIX: &str = "ram/";

#[derive(Serialize, Deserialize)]
struct File {
    path: String,
    /// 0: the image's, or nobody's any more.
    family: u16,
    bytes: Vec<u8>,
}

/// Removed files leave their place empty, and who has it open reads nothing more.
#[derive(Default, Serialize, Deserialize)]
pub struct Ram {
    files: Vec<Option<File>>,
    /// Text of the directory, made anew when files come and go.
    listing: String,
}

impl Ram {
    pub fn find(&self, path: &str) -> Option<usize> {
        self.files.iter().position(|f| f.as_ref().is_some_and(|f| f.path == path))
    }

    /// May the family have that file with so many bytes?
    fn grant(&self, family: u16, at: usize, bytes: usize) -> Result<(), Errno> {
        let (mut its, mut all) = ([0; 2], [0; 2]);
        for file in self.files.iter().enumerate().filter_map(|(n, f)| f.as_ref().filter(|_| n != at)) {
            for (n, more) in [1, file.bytes.capacity()].into_iter().enumerate() {
                all[n] += more;
                its[n] += if file.family == family { more } else { 0 };
            }
        }
        let file = self.files.get(at).and_then(Option::as_ref);
        if file.is_none_or(|file| file.family != family) {
            share::RAM_FILES.grant(family, its[0], all[0], 1)?;
        }
        share::RAM_BYTES.grant(family, its[1], all[1], bytes)
    }

    /// A family has ended: what it has left is nobody's.
    pub fn gone(&mut self, family: u16) {
        self.files.iter_mut().flatten().filter(|f| f.family == family).for_each(|f| f.family = 0);
    }

    /// An empty file of that path; one that exists loses its bytes.
    pub fn create(&mut self, path: &str, family: u16) -> Result<usize, Errno> {
        let name = name(path)?;
        if let Some(at) = self.find(path) {
            self.cut(at, 0);
            return Ok(at);
        }
        let at = self.files.iter().position(Option::is_none).unwrap_or(self.files.len());
        self.grant(family, at, 0)?;
        let own = self.room(path, name)?;
        if at == self.files.len() {
            self.files.try_reserve(1).map_err(|_| errno::ENOMEM)?;
            self.files.push(None);
        }
        self.files[at] = Some(File { path: own, family, bytes: Vec::new() });
        self.list();
        Ok(at)
    }

    /// The path in memory of its own, and memory for its line in the listing.
    fn room(&mut self, path: &str, name: &str) -> Result<String, Errno> {
        let mut own = String::new();
        own.try_reserve_exact(path.len()).map_err(|_| errno::ENOMEM)?;
        own.push_str(path);
        self.listing.try_reserve(name.len() + 1).map_err(|_| errno::ENOMEM)?;
        Ok(own)
    }

    /// Another path for a file, in place of the file that has it, if there is one.
    pub fn rename(&mut self, at: usize, path: &str) -> Result<(), Errno> {
        let own = self.room(path, name(path)?)?;
        if let Some(other) = self.find(path).filter(|other| *other != at) {
            self.cut(other, 0);
            self.files[other] = None;
        }
        let file = self.files.get_mut(at).and_then(Option::as_mut).ok_or(errno::ENOENT)?;
        file.path = own;
        self.list();
        Ok(())
    }

    /// Nothing stays of the file behind its first `len` bytes.
    pub fn cut(&mut self, at: usize, len: usize) {
        if let Some(Some(file)) = self.files.get_mut(at) {
            match len {
                0 => file.bytes = Vec::new(),
                _ => file.bytes.truncate(len),
            }
        }
    }

    pub fn remove(&mut self, path: &str) -> Result<(), Errno> {
        let at = self.find(path).ok_or(errno::ENOENT)?;
        self.cut(at, 0);
        self.files[at] = None;
        self.list();
        Ok(())
    }

    pub fn bytes(&self, at: usize) -> &[u8] {
        self.files.get(at).and_then(Option::as_ref).map_or(&[], |f| &f.bytes)
    }

    /// So many bytes from `place` on, which is not behind the end, to be written over. The file grows as
    /// needed: then it is the family's. That has paid for all that is reserved, so it is asked seldom.
    pub fn room_at(
        &mut self,
        at: usize,
        place: usize,
        count: usize,
        family: u16,
    ) -> Result<&mut [u8], Errno> {
        let file = self.files.get(at).and_then(Option::as_ref).ok_or(errno::EBADF)?;
        let (len, capacity) = (file.bytes.len(), file.bytes.capacity());
        let end = place.checked_add(count).filter(|end| *end <= RAM_FILE_MAX).ok_or(errno::ENOSPC)?;
        if place > len {
            return Err(errno::ENOSPC);
        }
        let grown = match end {
            _ if end <= capacity => capacity,
            // Doubling, but never by more than memory can bear to lose.
            _ => (len + len.clamp(4096, 1 << 20)).clamp(end, RAM_FILE_MAX),
        };
        if end > capacity || end > len && file.family != family {
            self.grant(family, at, grown)?;
        }
        let Some(Some(file)) = self.files.get_mut(at) else { return Err(errno::EBADF) };
        file.bytes.try_reserve_exact(grown - len).map_err(|_| errno::ENOMEM)?;
        if end > len {
            file.family = family;
            file.bytes.resize(end, 0);
        }
        Ok(&mut file.bytes[place..end])
    }

    /// Whoever makes a file has made room for its line.
    fn list(&mut self) {
        let name = |at: u8| self.files[usize::from(at)].as_ref().map_or("", |f| &f.path[PREFIX.len()..]);
        let mut order: [u8; RAM_FILES] = core::array::from_fn(|at| at as u8);
        let order = &mut order[..self.files.len()];
        order.sort_unstable_by_key(|at| name(*at));
        self.listing.clear();
        for name in order.iter().map(|at| name(*at)).filter(|name| !name.is_empty()) {
            self.listing.push_str(name);
            self.listing.push('\n');
        }
    }

    /// The names, one a line.
    pub fn listing(&self) -> &str {
        &self.listing
    }
}

/// What a file of this path is called here, where there are no directories.
fn name(path: &str) -> Result<&str, Errno> {
    let name = path.strip_prefix(PREFIX).ok_or(errno::EROFS)?;
    match name {
        "" | "." | ".." => Err(errno::EISDIR),
        _ if name.contains('/') => Err(errno::ENOENT),
        _ => Ok(name),
    }
}
