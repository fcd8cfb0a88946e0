//! Open files. See the head of the crate.
//!
//! Invariants:
//! * A control word names an entry by index and generation; entries are reused, generations are not, so the
//!   portals of a closed file answer `EBADF` even while another domain uses the entry.
//! * `offset` never lies behind the end of the file when it is used.
//! * What may be done with an open file was decided when it was opened, and stays so.

use alloc::vec;
use alloc::vec::Vec;

use pebble_abi::call::IO_BYTES;
use pebble_abi::capability::{READ, WRITE};
use pebble_abi::errno::{self, Errno};
use pebble_abi::link::{PATHLEN, unpack};
use pebble_abi::map::PAGE;
use pebble_abi::share;
use pebble_abi::sys::{
    ABOUT_DIRECTORY, ABOUT_SIZE, ABOUT_WRITABLE, SEEK_ABOUT, SEEK_APPEND, SEEK_CUT, WRITE_APPEND,
};
use pebble_abi::words::Asid;

use postcard::ser_flavors::Flavor;
use serde::{Deserialize, Serialize};

use pebble_boot::rules::{Patterns, RuleSet};

use crate::archive::{Archive, Contents};
use crate::path::{Path, normal, places};
use crate::ram::{PREFIX, Ram};

/// Files open at once.
pub const FILES: usize = share::FILES.all;
/// Of these, by one domain.
pub const FILES_PER_DOMAIN: usize = 64;

/// `whence` of a seek.
pub const SEEK_SET: u64 = 0;
pub const SEEK_CUR: u64 = 1;
pub const SEEK_END: u64 = 2;

/// Beside an open file's rights: what is written goes to its end.
const APPEND: u16 = 1 << 15;

#[derive(Clone, Copy, Serialize, Deserialize)]
struct Open {
    generation: u32,
    /// 0: closed.
    asid: u16,
    family: u16,
    /// `READ`, `WRITE`; and [`APPEND`].
    rights: u16,
    node: Node,
    /// Where it goes on reading or writing.
    offset: usize,
}

impl Open {
    /// Of its bytes the next, up to `max`.
    #[inline(always)]
    fn next<'b>(&mut self, bytes: &'b [u8], max: u64) -> &'b [u8] {
        let rest = &bytes[self.offset..];
        let rest = &rest[..rest.len().min(max as usize)];
        self.offset += rest.len();
        rest
    }
}

/// Who opens a file.
#[derive(Clone, Copy)]
pub struct Client {
    pub asid: Asid,
    /// With whom it shares what is scarce: see [`share`].
    pub family: u16,
}

/// A domain of which no more is known is a family of its own.
impl From<Asid> for Client {
    fn from(asid: Asid) -> Self {
        Client { asid, family: asid.number() }
    }
}

/// What it reads.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum Node {
    Archive(u16),
    Ram(u16),
    RamDirectory,
}

pub struct Files<'a> {
    archive: Archive<'a>,
    open: Vec<Open>,
    /// No entry from here on is in use.
    behind: usize,
    ram: Ram,
    rules: Patterns,
    /// Domains that have said which file shall get another path, and not yet which.
    renaming: Vec<(u16, u16)>,
}

impl<'a> Files<'a> {
    pub fn new(archive: Archive<'a>) -> Self {
        let closed =
            Open { generation: 0, asid: 0, family: 0, rights: 0, node: Node::RamDirectory, offset: 0 };
        Files {
            archive,
            open: vec![closed; FILES],
            behind: 0,
            ram: Ram::default(),
            rules: Patterns::default(),
            renaming: Vec::new(),
        }
    }

    /// The same files, some of them under rules.
    pub fn under(self, rules: Patterns) -> Self {
        Files { rules, ..self }
    }

    /// The sets of rules about the places that a path leaves by `..`, and last about where it leads; none, if
    /// no rule is about any of them.
    pub fn guarded(&self, path: [u64; 5]) -> Vec<RuleSet> {
        let (mut sets, mut bytes) = (Vec::new(), [0; PATHLEN]);
        if self.rules.is_empty() {
            return sets;
        }
        let Ok(path) = text(&path, &mut bytes) else { return sets };
        places(path, |place| sets.push(self.about(place)));
        if sets.iter().all(|set| *set == 0) {
            sets.clear();
        }
        sets
    }

    /// The rules about a normal path. They see it with a `/` in front, and a directory with one behind.
    fn about(&self, place: &str) -> RuleSet {
        let (mut seen, mut len) = ([0; PATHLEN + 2], 0);
        let directory = place == PREFIX.trim_matches('/') || self.archive.is_directory(place);
        let end = if directory && !place.is_empty() { "/" } else { "" };
        for part in ["/", place, end] {
            seen[len..len + part.len()].copy_from_slice(part.as_bytes());
            len += part.len();
        }
        core::str::from_utf8(&seen[..len]).map_or(0, |seen| self.rules.about(seen))
    }

    /// Opens the file or directory for domain `asid` and returns the control word.
    pub fn open(&mut self, client: impl Into<Client>, path: [u64; 5], rights: u16) -> Result<u64, Errno> {
        let node = self.node(path)?;
        self.enter(client.into(), node, rights)
    }

    /// What is at a path.
    fn node(&self, path: [u64; 5]) -> Result<Node, Errno> {
        let mut bytes = [0; PATHLEN];
        let path = text(&path, &mut bytes)?;
        let place = normal(path);
        match self.ram.find(place.as_str()) {
            Some(_) if means_directory(path) => Err(errno::ENOTDIR),
            Some(at) => Ok(Node::Ram(at as u16)),
            None if place.as_str() == PREFIX.trim_matches('/') => Ok(Node::RamDirectory),
            None => Ok(Node::Archive(u16::try_from(self.archive.lookup(path)?).map_err(|_| errno::ENOMEM)?)),
        }
    }

    /// For who reads the same files again and again: a number for a file of the archive, whose contents never
    /// change; 0 for others.
    pub fn fixed(&self, path: [u64; 5], rights: u16) -> Result<u64, Errno> {
        if rights & READ == 0 {
            return Err(errno::EACCES);
        }
        match self.node(path)? {
            Node::Archive(at) if matches!(self.archive.contents(at.into()), Some(Contents::File(_))) => {
                Ok(u64::from(at) + 1)
            }
            _ => Ok(0),
        }
    }

    /// An empty file under `ram/`, open.
    pub fn create(&mut self, client: impl Into<Client>, path: [u64; 5], rights: u16) -> Result<u64, Errno> {
        if rights & WRITE == 0 {
            return Err(errno::EACCES);
        }
        let mut bytes = [0; PATHLEN];
        let path = text(&path, &mut bytes)?;
        if means_directory(path) {
            return Err(errno::EINVAL);
        }
        let client = client.into();
        self.room(client)?;
        let at = self.ram.create(normal(path).as_str(), client.family)?;
        self.enter(client, Node::Ram(at as u16), rights)
    }

    /// A new file under `ram/`, open: there was none of that path.
    pub fn make(&mut self, client: impl Into<Client>, path: [u64; 5], rights: u16) -> Result<u64, Errno> {
        let mut bytes = [0; PATHLEN];
        let text = text(&path, &mut bytes)?;
        let place = normal(text);
        let exists = self.ram.find(place.as_str()).is_some() || self.archive.lookup(text).is_ok();
        if exists || place.as_str() == PREFIX.trim_matches('/') {
            return Err(errno::EEXIST);
        }
        self.create(client, path, rights)
    }

    /// The file whose path the domain's next [`rename_to`](Self::rename_to) changes.
    pub fn rename(&mut self, asid: Asid, path: [u64; 5], rights: u16) -> Result<(), Errno> {
        let asid = asid.number();
        let (_, at) = self.writable(path, rights)?;
        self.renaming.retain(|(who, _)| *who != asid);
        self.renaming.try_reserve(1).map_err(|_| errno::ENOMEM)?;
        self.renaming.push((asid, at));
        Ok(())
    }

    /// The other path. `-EAGAIN`: which file it was about is not known here, or it is gone; begin again.
    pub fn rename_to(&mut self, asid: Asid, path: [u64; 5], rights: u16) -> Result<(), Errno> {
        let asid = asid.number();
        let entry = self.renaming.iter().position(|(who, _)| *who == asid).ok_or(errno::EAGAIN)?;
        let (_, at) = self.renaming.swap_remove(entry);
        if rights & WRITE == 0 {
            return Err(errno::EACCES);
        }
        let mut bytes = [0; PATHLEN];
        let path = text(&path, &mut bytes)?;
        if means_directory(path) {
            return Err(errno::ENOTDIR);
        }
        let place = normal(path);
        let other = self.ram.find(place.as_str()).map(|other| other as u16).filter(|other| *other != at);
        self.ram.rename(at.into(), place.as_str())?;
        if let Some(other) = other {
            self.forget(other);
        }
        Ok(())
    }

    /// The file under `ram/` of this path, which may be changed: normal path and number.
    fn writable(&self, path: [u64; 5], rights: u16) -> Result<(Path, u16), Errno> {
        if rights & WRITE == 0 {
            return Err(errno::EACCES);
        }
        let mut bytes = [0; PATHLEN];
        let path = text(&path, &mut bytes)?;
        if means_directory(path) {
            return Err(errno::ENOTDIR);
        }
        let place = normal(path);
        match self.ram.find(place.as_str()) {
            Some(at) => Ok((place, at as u16)),
            None if self.archive.lookup(path).is_ok() => Err(errno::EROFS),
            None => Err(errno::ENOENT),
        }
    }

    /// A file under `ram/` is no more.
    fn forget(&mut self, at: u16) {
        for open in self.open.iter_mut().filter(|open| open.node == Node::Ram(at)) {
            (open.node, open.offset) = (Node::Ram(u16::MAX), 0);
        }
        self.renaming.retain(|(_, file)| *file != at);
    }

    /// A file under `ram/` goes; who has it open finds it empty.
    pub fn remove(&mut self, path: [u64; 5], rights: u16) -> Result<(), Errno> {
        let (place, at) = self.writable(path, rights)?;
        self.ram.remove(place.as_str())?;
        self.forget(at);
        Ok(())
    }

    /// A free entry for the domain, within its limit and its family's.
    fn room(&self, Client { asid, family }: Client) -> Result<usize, Errno> {
        let asid = asid.number();
        let (mut own, mut its, mut used, mut free) = (0, 0, 0, None);
        for (n, open) in self.open[..self.behind].iter().enumerate() {
            match open.asid {
                0 => free = free.or(Some(n)),
                who => {
                    used += 1;
                    own += usize::from(who == asid);
                    its += usize::from(open.family == family);
                }
            }
        }
        if asid == 0 || own >= FILES_PER_DOMAIN {
            return Err(errno::EMFILE);
        }
        share::FILES.grant(family, its, used, 1)?;
        free.or((self.behind < FILES).then_some(self.behind)).ok_or(errno::ENFILE)
    }

    fn enter(&mut self, client: Client, node: Node, rights: u16) -> Result<u64, Errno> {
        let index = self.room(client)?;
        self.behind = self.behind.max(index + 1);
        let generation = self.open[index].generation.wrapping_add(1);
        self.open[index] =
            Open { generation, asid: client.asid.number(), family: client.family, rights, node, offset: 0 };
        Ok(u64::from(generation) << 16 | index as u64)
    }

    /// The next bytes, up to `max` and 32 at most: their number, 0 at the end, and the bytes in words that
    /// are otherwise zero.
    pub fn read(&mut self, control: u64, max: u64) -> (i64, [u64; 4]) {
        let Some((open, bytes)) = self.file(control) else { return (-errno::EBADF, [0; 4]) };
        if open.rights & READ == 0 {
            return (-errno::EACCES, [0; 4]);
        }
        let bytes = open.next(bytes, max.min(IO_BYTES as u64));
        (bytes.len() as i64, words(bytes))
    }

    /// The next bytes, up to `max`: none at the end.
    pub fn read_on(&mut self, control: u64, max: u64) -> Result<&[u8], Errno> {
        let (open, bytes) = self.file(control).ok_or(errno::EBADF)?;
        if open.rights & READ == 0 {
            return Err(errno::EACCES);
        }
        Ok(open.next(bytes, max))
    }

    /// What the file has from a page on, if it is one of the archive, with pages of its own: they never
    /// change.
    pub fn pages(&mut self, control: u64, offset: u64) -> Result<&'a [u8], Errno> {
        let (&mut Open { rights, node, .. }, _) = self.file(control).ok_or(errno::EBADF)?;
        if rights & READ == 0 {
            return Err(errno::EACCES);
        }
        let Node::Archive(node) = node else { return Err(errno::EINVAL) };
        let bytes = self.archive.pages(node.into()).filter(|_| offset.is_multiple_of(PAGE));
        bytes
            .and_then(|bytes| bytes.get(offset as usize..))
            .filter(|rest| !rest.is_empty())
            .ok_or(errno::EINVAL)
    }

    /// Up to 32 bytes at the current offset of a file under `ram/`, or at its end ([`WRITE_APPEND`]); the
    /// archive is read-only.
    pub fn write(&mut self, control: u64, count: u64, words: [u64; 4]) -> i64 {
        let bytes = words.map(u64::to_le_bytes);
        let written = self.write_on(control, count, IO_BYTES, |place| {
            place.copy_from_slice(&bytes.as_flattened()[..place.len()]);
            Ok(())
        });
        written.map_or_else(|error| -error, |count| count as i64)
    }

    /// Lets `fill` write up to `most` of `count` bytes there: how many.
    #[inline]
    pub fn write_on(
        &mut self,
        control: u64,
        count: u64,
        most: usize,
        fill: impl FnOnce(&mut [u8]) -> Result<(), Errno>,
    ) -> Result<usize, Errno> {
        let index = (control & 0xffff) as usize;
        if self.file(control).is_none() {
            return Err(errno::EBADF);
        }
        let Open { node, offset, rights, family, .. } = self.open[index];
        let at = self.ram_of(node, rights)?;
        let at_end = count & WRITE_APPEND != 0 || rights & APPEND != 0;
        let offset = if at_end { usize::MAX } else { offset };
        let count = (count & !WRITE_APPEND).min(most as u64) as usize;
        // What somebody else has cut short is written to from its end on.
        let offset = offset.min(self.ram.bytes(at).len());
        fill(self.ram.room_at(at, offset, count, family)?)?;
        self.open[index].offset = offset + count;
        Ok(count)
    }

    /// The file in memory behind a node that is to be written.
    fn ram_of(&self, node: Node, rights: u16) -> Result<usize, Errno> {
        match node {
            _ if rights & WRITE == 0 => Err(errno::EACCES),
            Node::Ram(at) => Ok(at.into()),
            Node::RamDirectory => Err(errno::EISDIR),
            Node::Archive(at) => match self.archive.contents(at.into()) {
                Some(Contents::Directory(_)) => Err(errno::EISDIR),
                _ => Err(errno::EROFS),
            },
        }
    }

    /// What it is and how large, in one word ([`SEEK_ABOUT`]).
    fn about_open(&self, open: Open, size: usize) -> i64 {
        let (directory, ram) = match open.node {
            Node::Archive(at) => {
                (matches!(self.archive.contents(at.into()), Some(Contents::Directory(_))), false)
            }
            Node::Ram(_) => (false, true),
            Node::RamDirectory => (true, true),
        };
        let writable = ram && open.rights & WRITE != 0;
        let bits = if directory { ABOUT_DIRECTORY } else { 0 } | if writable { ABOUT_WRITABLE } else { 0 };
        (bits | size as u64 * ABOUT_SIZE) as i64
    }

    /// Moves to `offset` from the start, from here or from the end, and returns the new offset; not before
    /// the start nor behind the end. [`SEEK_ABOUT`], [`SEEK_CUT`] and [`SEEK_APPEND`] move nowhere.
    pub fn seek(&mut self, control: u64, offset: u64, whence: u64) -> i64 {
        let Some((open, bytes)) = self.file(control) else { return -errno::EBADF };
        let from = match whence {
            SEEK_ABOUT => {
                let (open, size) = (*open, bytes.len());
                return self.about_open(open, size);
            }
            SEEK_CUT => {
                let open = *open;
                return self.ram_of(open.node, open.rights).map_or_else(
                    |error| -error,
                    |at| {
                        self.ram.cut(at, offset as usize);
                        0
                    },
                );
            }
            SEEK_APPEND => {
                let Open { node, rights, .. } = *open;
                return self.ram_of(node, rights).map_or_else(
                    |error| -error,
                    |_| {
                        self.open[(control & 0xffff) as usize].rights |= APPEND;
                        0
                    },
                );
            }
            SEEK_SET => 0,
            SEEK_CUR => open.offset,
            SEEK_END => bytes.len(),
            _ => return -errno::EINVAL,
        };
        match (from as u64).checked_add_signed(offset as i64) {
            Some(to) if to <= bytes.len() as u64 => {
                open.offset = to as usize;
                to as i64
            }
            _ => -errno::EINVAL,
        }
    }

    pub fn close(&mut self, control: u64) -> i64 {
        let Some((open, _)) = self.file(control) else { return -errno::EBADF };
        open.asid = 0;
        self.shorten();
        0
    }

    fn shorten(&mut self) {
        let last = self.open[..self.behind].iter().rposition(|open| open.asid != 0);
        self.behind = last.map_or(0, |last| last + 1);
    }

    /// The domain is dead: closes what it had open.
    pub fn gone(&mut self, asid: Asid) {
        let asid = asid.number();
        for open in self.open[..self.behind].iter_mut().filter(|open| open.asid == asid) {
            open.asid = 0;
        }
        self.shorten();
        self.renaming.retain(|(who, _)| *who != asid);
        self.ram.gone(asid);
    }

    /// Files open now.
    pub fn in_use(&self) -> usize {
        self.open.iter().filter(|open| open.asid != 0).count()
    }

    /// The open file that the control word names, and its bytes.
    fn file(&mut self, control: u64) -> Option<(&mut Open, &[u8])> {
        let open = self.open.get_mut((control & 0xffff) as usize)?;
        let named = open.asid != 0 && u64::from(open.generation) == control >> 16;
        let bytes = match open.node {
            Node::Archive(node) => self.archive.contents(usize::from(node))?.bytes(),
            Node::Ram(at) => self.ram.bytes(usize::from(at)),
            Node::RamDirectory => self.ram.listing().as_bytes(),
        };
        open.offset = open.offset.min(bytes.len());
        named.then_some((open, bytes))
    }
}

/// Format of what [`Files::save`] writes.
pub const FORMAT: u64 = 4;

impl Files<'_> {
    /// Open files, and those in memory, for a successor with the same archive.
    pub fn save(&self) -> Result<Vec<u8>, Errno> {
        postcard::serialize_with_flavor(&(&self.open, &self.ram), Growing(Vec::new()))
            .map_err(|_| errno::ENOMEM)
    }

    /// What a predecessor has saved; nothing changes if it makes no sense.
    pub fn load(&mut self, format: u64, bytes: &[u8]) -> Result<(), Errno> {
        if format != FORMAT {
            return Err(errno::EINVAL);
        }
        let (open, ram): (Vec<Open>, Ram) = postcard::from_bytes(bytes).map_err(|_| errno::EINVAL)?;
        let known = |open: &Open| match open.node {
            Node::Archive(node) => self.archive.contents(node.into()).is_some(),
            _ => true,
        };
        if open.len() != FILES || !open.iter().all(|o| o.asid == 0 || known(o)) {
            return Err(errno::EINVAL);
        }
        (self.open, self.ram, self.behind) = (open, ram, FILES);
        self.shorten();
        Ok(())
    }
}

/// Bytes of a state that may be larger than what memory is left.
struct Growing(Vec<u8>);

impl Flavor for Growing {
    type Output = Vec<u8>;

    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.try_extend(&[byte])
    }

    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.try_reserve(bytes.len()).map_err(|_| postcard::Error::SerializeBufferFull)?;
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<Vec<u8>> {
        Ok(self.0)
    }
}

/// A path out of its words.
fn text<'b>(words: &[u64; 5], bytes: &'b mut [u8; PATHLEN]) -> Result<&'b str, Errno> {
    let len = unpack(words, bytes);
    core::str::from_utf8(&bytes[..len]).ok().filter(|path| !path.is_empty()).ok_or(errno::ENOENT)
}

/// Whether the path can only be that of a directory.
fn means_directory(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("" | "." | ".."))
}

/// Up to 32 bytes as words.
fn words(bytes: &[u8]) -> [u64; 4] {
    let mut words = [0; 4];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks(8)) {
        *word = match chunk.first_chunk() {
            Some(whole) => u64::from_le_bytes(*whole),
            None => chunk.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        };
    }
    words
}
