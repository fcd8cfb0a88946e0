//! What an image contains, kept in the image itself for `./pebble inspect`.

use crate::manifest::Grant;
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    pub system: String,
    /// Code and constants of the nucleus.
    pub nucleus_bytes: u64,
    /// Pages of the nucleus, its tables and data, gate and dead tables.
    pub shared_pages: u32,
    /// Bytes of portal code.
    pub code_bytes: u64,
    pub domains: Vec<DomainReport>,
    pub threads: u32,
    pub archive_bytes: u64,
    pub image_bytes: u64,
    pub portals: Vec<PortalReport>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DomainReport {
    pub asid: u16,
    pub name: String,
    /// Physical address of its root page table.
    pub root: u64,
    /// Memory that it has beyond its own, as the manifest names it.
    pub grants: Vec<Grant>,
    pub core: bool,
    /// All its pages: image, stacks, page tables, portal table.
    pub pages: u32,
    pub text: u64,
    pub rodata: u64,
    pub data: u64,
    pub threads: u32,
    pub stacks: u32,
    pub float: bool,
    pub exclusive: bool,
    pub symbols: Vec<(u64, String)>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PortalReport {
    pub domain: String,
    pub index: u16,
    pub name: String,
    pub spec: String,
    pub target: String,
    pub address: u64,
    pub words: Vec<u32>,
    pub call_words: u16,
}

impl Report {
    /// Resident pages of the essential system: nucleus, what all share, portal code, and the core components
    /// with their threads.
    pub fn essential_pages(&self) -> u32 {
        self.pages_with(|d| d.core)
    }

    /// The same of the components that the papers count as essential: they had no name server, and left out
    /// virtual memory.
    pub fn papers_pages(&self) -> u32 {
        const ESSENTIAL: [&str; 5] =
            ["interrupt-dispatcher", "scheduler", "portal-manager", "clock", "console"];
        self.pages_with(|d| d.core && ESSENTIAL.contains(&d.name.as_str()))
    }

    fn pages_with(&self, counts: impl Fn(&DomainReport) -> bool) -> u32 {
        let counted = self.domains.iter().filter(|d| counts(d));
        self.shared_pages
            + self.code_bytes.div_ceil(pebble_abi::map::PAGE) as u32
            + counted.map(|d| d.pages + d.threads).sum::<u32>()
    }
}
