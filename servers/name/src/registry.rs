//! The table of names. See the head of the crate for strategy and invariants.

use alloc::vec::Vec;
use pebble_abi::capability;
use pebble_abi::errno::{self, Errno};
use pebble_abi::link::{NAMELEN, pack, unpack};
use pebble_abi::map::MAX_DOMAINS;
use pebble_boot::rules::{self, Client, Rule, RuleError, RuleSet, Strict, Verdict};

/// Interfaces that can be registered at once.
pub const CAPACITY: usize = pebble_abi::share::INTERFACES.all;
/// Of these by one domain, so that none can use up the table.
pub const MAX_PER_DOMAIN: u16 = 64;
const BUCKETS: usize = 256;

/// A name as calls carry it, zero-padded; see `pebble_abi::link::pack`.
pub type Name = [u64; 3];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The name is empty.
    Empty,
    /// The byte at this position is none of `a-z 0-9 . - _`.
    BadByte(usize),
    /// This domain has the name already.
    Taken(u16),
    /// No free entry is left.
    Full,
    /// No memory is left for another entry.
    NoMemory,
    /// The domain has registered [`MAX_PER_DOMAIN`] interfaces.
    TooMany,
    /// Nobody registered the name.
    Unknown,
    /// The policy refuses it to this caller.
    Refused,
    /// The policy allows it to whoever holds a capability for the rule at this position; the interface.
    Wants(u16, u32),
    /// There is no such domain number.
    NoDomain,
}

impl Error {
    pub const fn errno(self) -> Errno {
        match self {
            Error::Empty | Error::BadByte(_) => errno::EINVAL,
            Error::Taken(_) => errno::EEXIST,
            Error::Full => errno::ENOSPC,
            Error::NoMemory => errno::ENOMEM,
            Error::TooMany => errno::EAGAIN,
            Error::Unknown => errno::ENOENT,
            Error::Refused | Error::Wants(..) => errno::EACCES,
            Error::NoDomain => errno::ESRCH,
        }
    }
}

/// One registered interface, as [`Registry::list`] shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: Name,
    pub interface: u32,
    pub owner: u16,
}

#[derive(Clone, Copy)]
struct Slot {
    name: Name,
    rules: RuleSet,
    interface: u32,
    owner: u16,
    /// Next of the chain or of the free list, plus one; zero ends it.
    next: u16,
    used: bool,
}

const EMPTY: Slot = Slot { name: [0; 3], rules: 0, interface: 0, owner: 0, next: 0, used: false };

const STRANGER: Client = Client { named: 0, holds: 0 };

pub struct Registry<'a> {
    /// As many as were ever in use at once.
    slots: Vec<Slot>,
    /// First slot of each chain, plus one.
    heads: [u16; BUCKETS],
    /// First slot given back, plus one.
    free: u16,
    owned: [u16; MAX_DOMAINS],
    /// By number, as far as any domain was introduced.
    clients: Vec<Client>,
    /// What a domain satisfies that was not introduced: the rules for everybody.
    nameless: Client,
    strict: Strict,
    /// Optional, because an empty slice is not all zero.
    rules: Option<&'a [Rule]>,
}

impl Default for Registry<'_> {
    fn default() -> Self {
        Self::new()
    }
}

impl<'a> Registry<'a> {
    /// No name and no rule: everything is allowed.
    pub const fn new() -> Self {
        Registry {
            slots: Vec::new(),
            heads: [0; BUCKETS],
            free: 0,
            owned: [0; MAX_DOMAINS],
            clients: Vec::new(),
            nameless: STRANGER,
            strict: Strict::NONE,
            rules: None,
        }
    }

    /// Every name with interface and owner, for a successor.
    pub fn names(&self) -> impl Iterator<Item = Entry> + '_ {
        let used = self.slots.iter().filter(|s| s.used);
        used.map(|s| Entry { name: s.name, interface: s.interface, owner: s.owner })
    }

    /// What the rules say of each domain, by number; the same rules say the same of it in a successor.
    pub fn clients(&self) -> impl Iterator<Item = Client> + '_ {
        (0..MAX_DOMAINS as u16).map(|asid| self.client(asid).unwrap_or(self.nameless))
    }

    /// Becomes what a predecessor was; its rules are in force already. In place, since a server's stack is
    /// small; after an error it is of no use.
    pub fn restore(
        &mut self,
        names: impl Iterator<Item = Entry>,
        clients: impl Iterator<Item = Client>,
    ) -> Result<(), Error> {
        self.slots.clear();
        self.heads.fill(0);
        self.owned.fill(0);
        self.free = 0;
        self.clients.clear();
        for (asid, client) in clients.take(MAX_DOMAINS).enumerate() {
            if client != self.nameless {
                self.introduce(asid, client)?;
            }
        }
        for entry in names {
            // More than a domain may register now are no mistake: it had them.
            self.enter(entry.owner, entry.name, entry.interface)?;
        }
        Ok(())
    }

    /// Puts the rules in force. Domains must be introduced (again) afterwards.
    pub fn policy(&mut self, rules: &'a [Rule]) -> Result<(), RuleError> {
        rules::check(rules)?;
        self.rules = Some(rules);
        self.strict = Strict::of(rules);
        self.nameless = rules::of_client(rules, "");
        self.clients.clear();
        for slot in &mut self.slots {
            slot.rules = with_text(slot.name, |name| rules::about(rules, capability::NAME, name));
        }
        Ok(())
    }

    /// Says what the domain is called, for rules that speak of it.
    pub fn domain(&mut self, asid: u16, name: &str) -> Result<(), Error> {
        self.introduce(usize::from(asid), rules::of_client(self.rules.unwrap_or_default(), name))
    }

    fn introduce(&mut self, asid: usize, client: Client) -> Result<(), Error> {
        if asid >= MAX_DOMAINS {
            return Err(Error::NoDomain);
        }
        if let Some(more) = (asid + 1).checked_sub(self.clients.len()) {
            self.clients.try_reserve(more).map_err(|_| Error::NoMemory)?;
            self.clients.resize(asid + 1, self.nameless);
        }
        self.clients[asid] = client;
        Ok(())
    }

    /// Enters an interface of domain `owner` under `name`.
    pub fn register(&mut self, owner: u16, name: Name, interface: u32) -> Result<(), Error> {
        check(name)?;
        let owned = *self.owned.get(usize::from(owner)).ok_or(Error::NoDomain)?;
        if let Some(at) = self.find(name) {
            return Err(Error::Taken(self.slots[at].owner));
        }
        if owned >= MAX_PER_DOMAIN {
            return Err(Error::TooMany);
        }
        self.enter(owner, name, interface)
    }

    fn enter(&mut self, owner: u16, name: Name, interface: u32) -> Result<(), Error> {
        if usize::from(owner) >= MAX_DOMAINS {
            return Err(Error::NoDomain);
        }
        let at = match self.free {
            0 if self.slots.len() == CAPACITY => return Err(Error::Full),
            0 => {
                self.slots.try_reserve(1).map_err(|_| Error::NoMemory)?;
                self.slots.push(EMPTY);
                self.slots.len() - 1
            }
            given_back => {
                let at = usize::from(given_back) - 1;
                self.free = self.slots[at].next;
                at
            }
        };
        let head = &mut self.heads[bucket(name)];
        let about = |text: &str| rules::about(self.rules.unwrap_or_default(), capability::NAME, text);
        let rules = with_text(name, about);
        self.slots[at] = Slot { name, rules, interface, owner, next: *head, used: true };
        *head = at as u16 + 1;
        self.owned[usize::from(owner)] += 1;
        Ok(())
    }

    /// The interface called `name`, if the policy lets domain `client` open it.
    pub fn lookup(&self, client: u16, name: Name) -> Result<u32, Error> {
        let client = self.client(client)?;
        let Some(at) = self.find(name) else {
            return Err(missing(name));
        };
        let slot = &self.slots[at];
        match self.strict.verdict(client.named, slot.rules) {
            (Verdict::Allow, _) => Ok(slot.interface),
            (Verdict::Refuse, _) => Err(Error::Refused),
            (Verdict::Capability, rule) => Err(Error::Wants(rule, slot.interface)),
        }
    }

    /// The rule for which `client` can have a first capability, to open `name`.
    pub fn first_holder(&self, client: u16, name: Name) -> Result<u16, Error> {
        self.find(name).ok_or(Error::Unknown).and_then(|at| self.first(client, self.slots[at].rules))
    }

    fn client(&self, asid: u16) -> Result<Client, Error> {
        let asid = usize::from(asid);
        if asid >= MAX_DOMAINS {
            return Err(Error::NoDomain);
        }
        Ok(self.clients.get(asid).copied().unwrap_or(self.nameless))
    }

    /// What the rules say to a domain that asks for something which these rules are about; of one that wants
    /// a capability its position.
    pub fn says(&self, client: u16, about: RuleSet) -> Result<(Verdict, u16), Error> {
        Ok(self.strict.verdict(self.client(client)?.named, about))
    }

    /// The rule about this for which `client` can have a first capability.
    pub fn first(&self, client: u16, about: RuleSet) -> Result<u16, Error> {
        let holds = self.client(client).map_or(0, |c| c.holds);
        match self.says(client, about) {
            Ok((Verdict::Capability, rule)) if holds >> rule & 1 == 1 => Ok(rule),
            Ok((Verdict::Capability, _)) => Err(Error::Refused),
            _ => Err(Error::Unknown),
        }
    }

    /// Takes back one name of domain `owner`.
    pub fn withdraw(&mut self, owner: u16, name: Name) -> Result<(), Error> {
        match self.find(name) {
            Some(at) if self.slots[at].owner == owner => self.remove(at),
            Some(_) => return Err(Error::Refused),
            None => return Err(missing(name)),
        }
        Ok(())
    }

    /// An interface changes hands: its component has been replaced, or waits for a successor.
    pub fn pass(&mut self, interface: u32, owner: u16) -> Result<(), Error> {
        if usize::from(owner) >= MAX_DOMAINS {
            return Err(Error::NoDomain);
        }
        let named = |s: &Slot| s.used && s.interface == interface;
        let slot = self.slots.iter_mut().find(|s| named(s)).ok_or(Error::Unknown)?;
        self.owned[usize::from(slot.owner)] -= 1;
        self.owned[usize::from(owner)] += 1;
        slot.owner = owner;
        Ok(())
    }

    /// The domain is dead: forgets it and its interfaces, and says how many there were.
    pub fn gone(&mut self, asid: u16) -> usize {
        if let Some(client) = self.clients.get_mut(usize::from(asid)) {
            *client = self.nameless;
        }
        let mut count = 0;
        for at in 0..self.slots.len() {
            if self.slots[at].used && self.slots[at].owner == asid {
                self.remove(at);
                count += 1;
            }
        }
        count
    }

    /// The first interface at or after position `from`, with its position; ask again from the next one.
    pub fn list(&self, from: usize) -> Option<(usize, Entry)> {
        let at = (from..self.slots.len()).find(|&at| self.slots[at].used)?;
        let Slot { name, interface, owner, .. } = self.slots[at];
        Some((at, Entry { name, interface, owner }))
    }

    fn find(&self, name: Name) -> Option<usize> {
        let mut next = self.heads[bucket(name)];
        while next != 0 {
            let at = usize::from(next) - 1;
            let slot = &self.slots[at];
            if same(slot.name, name) {
                return Some(at);
            }
            next = slot.next;
        }
        None
    }

    fn remove(&mut self, at: usize) {
        let Slot { name, owner, next, .. } = self.slots[at];
        let this = at as u16 + 1;
        let head = &mut self.heads[bucket(name)];
        if *head == this {
            *head = next;
        } else {
            let mut before = usize::from(*head) - 1;
            while self.slots[before].next != this {
                before = usize::from(self.slots[before].next) - 1;
            }
            self.slots[before].next = next;
        }
        self.slots[at] = Slot { next: self.free, ..EMPTY };
        self.free = this;
        self.owned[usize::from(owner)] -= 1;
    }
}

/// Three multiplications by odd constants spread every byte of the name into the top of the word.
fn bucket([a, b, c]: Name) -> usize {
    let mixed = a.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ b.wrapping_mul(0xc2b2_ae3d_27d4_eb4f);
    let mixed = (mixed ^ mixed >> 29 ^ c).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (mixed >> (64 - BUCKETS.trailing_zeros())) as usize
}

/// Equality in a few instructions; `==` on the arrays calls `memcmp`.
fn same(a: Name, b: Name) -> bool {
    (a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) == 0
}

/// 1 to 24 bytes of `a-z 0-9 . - _`, then zeros.
fn check(name: Name) -> Result<(), Error> {
    let mut bytes = [0; NAMELEN];
    let len = unpack(&name, &mut bytes);
    let text = &bytes[..len];
    if let Some(at) = text.iter().position(|b| !matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'-' | b'_')) {
        return Err(Error::BadByte(at));
    }
    let padded = core::str::from_utf8(text).ok().and_then(pack::<3>);
    match len {
        0 if name == [0; 3] => Err(Error::Empty),
        _ if padded != Some(name) => Err(Error::BadByte(len)),
        _ => Ok(()),
    }
}

/// Why a name was not found.
#[cold]
#[inline(never)]
fn missing(name: Name) -> Error {
    check(name).err().unwrap_or(Error::Unknown)
}

/// Runs `f` on the text of a checked name.
fn with_text<T>(name: Name, f: impl FnOnce(&str) -> T) -> T {
    let mut bytes = [0; NAMELEN];
    let len = unpack(&name, &mut bytes);
    f(core::str::from_utf8(&bytes[..len]).unwrap_or(""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With a hundred names in use a look-up compares two of them on average at most, and never more than
    /// four.
    #[test]
    fn chains_are_short() {
        let servers =
            [*b"scheduler", *b"vm-memory", *b"pm-portal", *b"name-look", *b"file-arch", *b"clock-utc"];
        let methods =
            [*b"open", *b"read", *b"seek", *b"list", *b"info", *b"gone", *b"kill", *b"wait", *b"exit"];
        let numbers = *b"12";
        let mut chains = [0usize; BUCKETS];
        for server in servers {
            for method in methods {
                for number in numbers {
                    let mut bytes = [0; NAMELEN];
                    bytes[..9].copy_from_slice(&server);
                    bytes[9] = b'.';
                    bytes[10..14].copy_from_slice(&method);
                    bytes[14] = number;
                    let words =
                        core::array::from_fn(|i| u64::from_le_bytes(*bytes[i * 8..].first_chunk().unwrap()));
                    chains[bucket(words)] += 1;
                }
            }
        }
        let names: usize = chains.iter().sum();
        let compared: usize = chains.iter().map(|n| n * (n + 1) / 2).sum();
        assert_eq!(names, 108);
        assert!(compared <= 2 * names, "{compared}");
        assert!(chains.iter().all(|n| *n <= 4), "{chains:?}");
    }
}
