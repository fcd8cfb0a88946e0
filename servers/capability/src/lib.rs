//! The capability manager: who holds which token, derived from which other.
//!
//! Problem: rights must be given on, weakened, and taken back with everything that came of them, while portal
//! code passes capabilities (letter `k`) without asking anybody. Strategy: one table of nodes, shared with
//! portal code; each node names its holder, its token and its parent. Portal code only takes free nodes and
//! fills them; everything else happens here. Layout: `docs/src/capability.md`. Nodes are shared by families
//! ([`shares`]).
//!
//! Invariants:
//! * a token is held by somebody only if a creator made it and every node from it to there was passed on or
//!   derived by its holder;
//! * rights and flags never grow on that way;
//! * what is derived from a revoked node is gone when `revoke` returns, whatever portal code did meanwhile;
//! * every node is free, valid, or a tombstone from which something is derived; a failed request changes
//!   nothing.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod model;
mod shares;

use pebble_abi::capability::{
    FIRST_USER_KIND, FLAG_ONCE, FLAG_TRANSFER, HOLDER, NEXT, NODE_BYTES, NODES, ONCE, PARENT, ROOT, TOKEN,
    TRANSFER, VALID, token, token_parts,
};
use pebble_abi::errno::{self, Errno};
use pebble_abi::words::Asid;
use shares::Shares;

/// The table's memory.
pub trait Table {
    /// Word of a node.
    fn read(&self, node: usize, word: usize) -> u64;
    fn write(&mut self, node: usize, word: usize, value: u64);
    /// Stores `new` at the head of the free list if it is `old`, in one step even against portal code.
    fn exchange_head(&mut self, old: u64, new: u64) -> bool;
}

/// What a holder may do with a capability besides using it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags {
    pub transfer: bool,
    pub once: bool,
}

impl Flags {
    /// As calls carry them.
    pub fn from_bits(bits: u64) -> Result<Self, Errno> {
        if bits & !(FLAG_TRANSFER | FLAG_ONCE) != 0 {
            return Err(errno::EINVAL);
        }
        Ok(Flags { transfer: bits & FLAG_TRANSFER != 0, once: bits & FLAG_ONCE != 0 })
    }

    pub fn bits(self) -> u64 {
        u64::from(self.transfer) * FLAG_TRANSFER | u64::from(self.once) * FLAG_ONCE
    }
}

/// One capability as its holder sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    pub kind: u16,
    pub object: u32,
    pub rights: u16,
    pub flags: Flags,
}

/// In use, free, tombstones, nodes that were ever used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    pub used: u64,
    pub free: u64,
    pub tombstones: u64,
    pub touched: u64,
}

/// Requests between two clearings of tombstones.
const BURY_EVERY: u32 = 64;

pub struct Manager<T> {
    pub table: T,
    /// No node above has ever been used.
    high: usize,
    requests: u32,
    shares: Shares,
    /// A free node that is not in the list: what comes back here portal code has not taken before whoever has
    /// asked gets one.
    kept: Option<usize>,
}

/// A set of nodes.
struct Set([u64; NODES / 64]);

impl Set {
    fn has(&self, node: usize) -> bool {
        self.0[node / 64] >> (node % 64) & 1 == 1
    }

    fn put(&mut self, node: usize) {
        self.0[node / 64] |= 1 << (node % 64);
    }
}

impl<T: Table> Manager<T> {
    pub const fn new(table: T) -> Self {
        Manager { table, high: 0, requests: 0, shares: Shares::NEW, kept: None }
    }

    /// The parent of a node that is not free; 0 for a root.
    fn parent(&self, node: usize) -> usize {
        (self.table.read(node, PARENT) / NODE_BYTES) as usize % NODES
    }

    fn is_free(&self, node: usize) -> bool {
        self.table.read(node, PARENT) == 0
    }

    /// Nodes that may be in use. Fresh ones leave the free list in ascending order, and come back only
    /// through here.
    fn touched(&mut self) -> core::ops::RangeInclusive<usize> {
        while self.high + 1 < NODES && !self.is_free(self.high + 1) {
            self.high += 1;
        }
        1..=self.high
    }

    fn take(&mut self) -> Result<usize, Errno> {
        if self.table.read(0, NEXT) == 0 {
            self.bury();
        } else {
            self.tend();
        }
        loop {
            let head = self.table.read(0, NEXT);
            let node = (head / NODE_BYTES) as usize % NODES;
            if node == 0 {
                return self.kept.take().ok_or(errno::ENOSPC);
            }
            // Between these two only portal code can come, which takes: then the head differs.
            let next = self.table.read(node, NEXT);
            if self.table.exchange_head(head, next) {
                return Ok(node);
            }
        }
    }

    /// Of a node that is invalid already, and from which nothing is derived.
    fn give(&mut self, node: usize) {
        self.table.write(node, TOKEN, 0);
        self.table.write(node, PARENT, 0);
        self.high = self.high.max(node);
        if self.kept.is_none() {
            self.kept = Some(node);
            return;
        }
        loop {
            let head = self.table.read(0, NEXT);
            self.table.write(node, NEXT, head);
            if self.table.exchange_head(head, node as u64 * NODE_BYTES) {
                return;
            }
        }
    }

    /// The node becomes valid by the last store.
    fn make(&mut self, holder: u16, token: u64, parent: u64, flags: Flags) -> Result<u16, Errno> {
        self.grant_node(holder)?;
        let node = self.take()?;
        self.table.write(node, TOKEN, token);
        self.table.write(node, PARENT, parent);
        let mut word = u64::from(holder) | VALID;
        for (bit, on) in [(TRANSFER, flags.transfer), (ONCE, flags.once)] {
            word |= if on { bit } else { 0 };
        }
        self.table.write(node, HOLDER, word);
        Ok(node as u16)
    }

    fn held(&self, holder: Asid, name: u64) -> Result<(usize, u64), Errno> {
        let holder = holder.number();
        let node = usize::try_from(name).ok().filter(|n| (1..NODES).contains(n)).ok_or(errno::EBADF)?;
        let word = self.table.read(node, HOLDER);
        if holder != 0 && word & (0xffff | VALID) == u64::from(holder) | VALID {
            Ok((node, word))
        } else {
            Err(errno::EBADF)
        }
    }

    /// A new token for its maker. Kinds of users are told apart by who made them: the object's upper half is
    /// the maker.
    pub fn create(
        &mut self,
        maker: Asid,
        kind: u64,
        object: u64,
        rights: u16,
        flags: Flags,
    ) -> Result<u16, Errno> {
        let kind = u16::try_from(kind).ok().filter(|k| *k >= FIRST_USER_KIND).ok_or(errno::EPERM)?;
        let object = u16::try_from(object).map_err(|_| errno::EINVAL)?;
        let maker = maker.number();
        if maker == 0 {
            return Err(errno::ESRCH);
        }
        let object = u32::from(object) | u32::from(maker) << 16;
        self.make(maker, token(kind, rights, object), ROOT, flags)
    }

    /// A token of the image's servers, for whom they choose.
    pub fn grant(
        &mut self,
        holder: Asid,
        kind: u64,
        object: u64,
        rights: u16,
        flags: Flags,
    ) -> Result<u16, Errno> {
        let kind = u16::try_from(kind).ok().filter(|k| *k < FIRST_USER_KIND).ok_or(errno::EINVAL)?;
        let object = u32::try_from(object).map_err(|_| errno::EINVAL)?;
        let holder = holder.number();
        if holder == 0 {
            return Err(errno::ESRCH);
        }
        self.make(holder, token(kind, rights, object), ROOT, flags)
    }

    pub fn look(&self, holder: Asid, name: u64) -> Result<Capability, Errno> {
        let (node, word) = self.held(holder, name)?;
        let (kind, rights, object) = token_parts(self.table.read(node, TOKEN));
        let flags = Flags { transfer: word & TRANSFER != 0, once: word & ONCE != 0 };
        Ok(Capability { kind, object, rights, flags })
    }

    /// A weaker capability for the same holder: rights and transferability can only go, use-once can only
    /// come. One that can be used once is not doubled.
    pub fn derive(&mut self, holder: Asid, name: u64, rights: u16, flags: Flags) -> Result<u16, Errno> {
        let (node, _) = self.held(holder, name)?;
        let old = self.look(holder, name)?;
        if rights & !old.rights != 0 || flags.transfer && !old.flags.transfer || old.flags.once {
            return Err(errno::EPERM);
        }
        let token = token(old.kind, rights, old.object);
        self.make(holder.number(), token, node as u64 * NODE_BYTES + ROOT, flags)
    }

    /// Whether it has all these rights; one that can be used once is used then.
    pub fn consume(&mut self, holder: Asid, name: u64, rights: u16) -> Result<(), Errno> {
        let capability = self.look(holder, name)?;
        if rights & !capability.rights != 0 {
            return Err(errno::EPERM);
        }
        if capability.flags.once { self.discard(holder, name) } else { Ok(()) }
    }

    /// Whether the holder has some capability of this kind for this object with all these rights. Node by
    /// node: for decisions that are rare.
    pub fn holds(&mut self, holder: Asid, kind: u16, object: u32, rights: u16) -> bool {
        let fits = |t: u64| {
            let (k, r, o) = token_parts(t);
            (k, o) == (kind, object) && rights & !r == 0
        };
        self.touched().any(|n| self.held(holder, n as u64).is_ok() && fits(self.table.read(n, TOKEN)))
    }

    /// Everything derived from it goes; it stays.
    pub fn revoke(&mut self, holder: Asid, name: u64) -> Result<(), Errno> {
        let (node, _) = self.held(holder, name)?;
        self.tend();
        let mut roots = Set([0; _]);
        roots.put(node);
        self.uproot(&roots);
        Ok(())
    }

    /// Frees all that descends from these nodes. Portal code can derive from a node only while it is valid,
    /// so a pass in which nothing more was found has found everything.
    fn uproot(&mut self, roots: &Set) {
        let mut doomed = Set([0; _]);
        loop {
            let mut more = false;
            for node in self.touched() {
                let parent = self.parent(node);
                if !self.is_free(node) && !doomed.has(node) && (roots.has(parent) || doomed.has(parent)) {
                    self.table.write(node, HOLDER, 0);
                    doomed.put(node);
                    more = true;
                }
            }
            if !more {
                break;
            }
        }
        for node in self.touched() {
            if doomed.has(node) {
                self.give(node);
            }
        }
    }

    /// It goes; what was derived from it now derives from its parent.
    pub fn discard(&mut self, holder: Asid, name: u64) -> Result<(), Errno> {
        let (node, _) = self.held(holder, name)?;
        self.tend();
        self.table.write(node, HOLDER, 0);
        self.unlink(node);
        Ok(())
    }

    fn unlink(&mut self, node: usize) {
        let parent = self.table.read(node, PARENT);
        for child in self.touched() {
            if !self.is_free(child) && self.parent(child) == node {
                self.table.write(child, PARENT, parent);
            }
        }
        self.give(node);
    }

    /// A domain has died: what it held is dropped, and the tokens that it made are nobody's.
    pub fn forget(&mut self, asid: Asid) {
        self.shares.forget(asid);
        let mut made = Set([0; _]);
        loop {
            let mut more = false;
            for node in self.touched() {
                let (kind, _, object) = token_parts(self.table.read(node, TOKEN));
                let its = kind >= FIRST_USER_KIND && object >> 16 == u32::from(asid.number());
                if its && !self.is_free(node) && !made.has(node) {
                    self.table.write(node, HOLDER, 0);
                    made.put(node);
                    more = true;
                }
            }
            if !more {
                break;
            }
        }
        for node in self.touched() {
            if made.has(node) {
                self.give(node);
            } else if self.held(asid, node as u64).is_ok() {
                self.table.write(node, HOLDER, 0);
                self.unlink(node);
            }
        }
    }

    /// Use-once capabilities that portal code has moved leave tombstones: gone, once what they link is linked
    /// without them. Nothing can be derived from a tombstone, so those found first stay what they are while
    /// portal code makes others.
    fn bury(&mut self) {
        let mut dead = Set([0; _]);
        for node in self.touched() {
            if !self.is_free(node) && self.table.read(node, HOLDER) & VALID == 0 {
                dead.put(node);
            }
        }
        for child in self.touched() {
            if self.is_free(child) || dead.has(child) || !dead.has(self.parent(child)) {
                continue;
            }
            let mut parent = self.parent(child);
            while dead.has(self.parent(parent)) {
                parent = self.parent(parent);
            }
            self.table.write(child, PARENT, self.table.read(parent, PARENT));
        }
        for node in 1..NODES {
            if dead.has(node) {
                self.give(node);
            }
        }
    }

    /// Before a request that makes or ends capabilities. Portal code cannot bury: it would find no node one
    /// day although few are in use.
    fn tend(&mut self) {
        self.requests = self.requests.wrapping_add(1);
        if self.requests.is_multiple_of(BURY_EVERY) {
            self.bury();
        }
    }

    pub fn count(&mut self) -> Count {
        let touched = self.touched();
        let mut count = Count { touched: *touched.end() as u64, ..Count::default() };
        for node in touched {
            if self.is_free(node) {
                continue;
            }
            let valid = self.table.read(node, HOLDER) & VALID != 0;
            *(if valid { &mut count.used } else { &mut count.tombstones }) += 1;
        }
        count.free = NODES as u64 - 1 - count.used - count.tombstones;
        count
    }
}
