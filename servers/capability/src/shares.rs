//! Families and their shares ([`pebble_abi::share`]) of the table's nodes.
//!
//! Problem: a family that makes, derives and passes capabilities among its own takes all nodes, and portal
//! code, which takes them too, asks nobody. Strategy: what is made here is counted against its holder's
//! family; what portal code has taken beyond a family's share is taken back when somebody else lacks it.
//! Counting looks at every node, so it is done once in as many requests as no family can exceed its share by.
//!
//! Whose family a holder is the portal manager says. It asks this server, so it is asked without the lock:
//! [`Manager::unknown`].

use crate::{Manager, Table};
use pebble_abi::capability::{HOLDER, NEXT, VALID};
use pebble_abi::errno::Errno;
use pebble_abi::map::MAX_DOMAINS;
use pebble_abi::share::CAPABILITIES;
use pebble_abi::words::Asid;

pub struct Shares {
    /// Of each domain, plus 1; 0: not told.
    families: [u16; MAX_DOMAINS],
    /// So many nodes may be made before they are counted again.
    credit: usize,
}

impl Shares {
    pub const NEW: Shares = Shares { families: [0; MAX_DOMAINS], credit: CAPABILITIES.family };

    pub fn forget(&mut self, asid: Asid) {
        self.families[usize::from(asid.number()) % MAX_DOMAINS] = 0;
    }
}

impl<T: Table> Manager<T> {
    /// A domain's family, as the portal manager says.
    pub fn belongs(&mut self, asid: Asid, family: u16) {
        self.shares.families[usize::from(asid.number()) % MAX_DOMAINS] = family + 1;
    }

    /// A domain whose family must be known before `holder` gets one more.
    pub fn unknown(&mut self, holder: Asid) -> Option<Asid> {
        if !self.counts() {
            return None;
        }
        let holders = self.touched().filter_map(|node| self.holder(node));
        core::iter::once(holder.number())
            .chain(holders)
            .find(|asid| self.shares.families[usize::from(*asid) % MAX_DOMAINS] == 0)
            .map(Asid::from)
    }

    /// Whether nodes are to be counted before another is made: perhaps portal code has taken all.
    fn counts(&self) -> bool {
        self.shares.credit == 0 || self.kept.is_none() && self.table.read(0, NEXT) == 0
    }

    /// Who holds a node that is valid.
    fn holder(&self, node: usize) -> Option<u16> {
        let word = self.table.read(node, HOLDER);
        (word & VALID != 0).then_some(word as u16)
    }

    /// Who is not known is a family of its own.
    fn family(&self, asid: u16) -> u16 {
        self.shares.families[usize::from(asid) % MAX_DOMAINS].checked_sub(1).unwrap_or(asid)
    }

    /// One more node for a domain.
    pub(crate) fn grant_node(&mut self, holder: u16) -> Result<(), Errno> {
        if self.counts() {
            let used = self.grant_family(holder)?;
            self.shares.credit = CAPABILITIES.family.saturating_sub(used).max(1);
        }
        self.shares.credit -= 1;
        Ok(())
    }

    /// How many nodes are in use, if the domain's family may have another.
    fn grant_family(&mut self, holder: u16) -> Result<usize, Errno> {
        let family = self.family(holder);
        let grant = |census: &Census| {
            let its = census.had[usize::from(family) % MAX_DOMAINS].into();
            CAPABILITIES.grant(family, its, census.used, 1).map(|()| census.used)
        };
        let census = self.census();
        grant(&census).or_else(|error| {
            let its = usize::from(census.had[usize::from(family) % MAX_DOMAINS]);
            // Nothing is taken back for who has its part: it would be from itself, again and again. So whoever
            // asks in vain costs one look at the table.
            if family != 0 && its >= census.most() {
                self.tend();
                return Err(error);
            }
            if self.take_back(&census) { grant(&self.census()) } else { Err(error) }
        })
    }

    fn census(&mut self) -> Census {
        let mut census = Census { had: [0; MAX_DOMAINS], used: 0, tombstones: false };
        for node in self.touched() {
            match self.holder(node) {
                Some(asid) => census.had[usize::from(self.family(asid)) % MAX_DOMAINS] += 1,
                None if self.is_free(node) => continue,
                None => census.tombstones = true,
            }
            census.used += 1;
        }
        census
    }

    /// What families have beyond their share, and tombstones, are free nodes. Whether there were any.
    fn take_back(&mut self, census: &Census) -> bool {
        let most = census.most();
        let beyond = census.had[1..].iter().any(|had| usize::from(*had) > most);
        if beyond {
            let mut left = [0u16; MAX_DOMAINS];
            for node in self.touched() {
                let Some(family) = self.family_of(node) else { continue };
                left[family] += 1;
                if usize::from(left[family]) > most {
                    self.table.write(node, HOLDER, 0);
                }
            }
        }
        if beyond || census.tombstones {
            self.bury();
        }
        beyond || census.tombstones
    }

    /// The family that holds a node, if it is not the image.
    fn family_of(&self, node: usize) -> Option<usize> {
        let family = self.holder(node).map(|asid| usize::from(self.family(asid)))?;
        (1..MAX_DOMAINS).contains(&family).then_some(family)
    }
}

/// Nodes of each family, and all in use, tombstones too.
struct Census {
    had: [u16; MAX_DOMAINS],
    used: usize,
    tombstones: bool,
}

impl Census {
    /// What a family may keep. Portal code has not left what is kept for others, so those that have more than
    /// the least share the rest evenly.
    fn most(&self) -> usize {
        let rich = self.had[1..].iter().filter(|had| usize::from(**had) > CAPABILITIES.least).count().max(1);
        CAPABILITIES.family.min((CAPABILITIES.all - CAPABILITIES.kept()) / rich).max(CAPABILITIES.least)
    }
}
