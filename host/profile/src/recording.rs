//! What the plug-in leaves behind: numbers. The host tool reads it back and gives them names.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::Region;

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        $($(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(u32);

        impl $name {
            pub fn new(index: usize) -> Self {
                $name(index as u32)
            }

            pub fn index(self) -> usize {
                self.0 as usize
            }
        })*
    };
}

numbers! {
    /// A piece of code without a jump in it.
    BlockId;
    /// A domain of the run; two that had the same number one after the other are two.
    DomainId;
    /// A domain, entered by one portal, for somebody who was entered like this, and so on.
    NodeId;
}

#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Recording {
    /// Instructions from reset to where the recording begins.
    pub before: u64,
    /// Instructions in it.
    pub total: u64,
    /// Those of `total` that belong to no thread: before there was one.
    pub outside: u64,
    pub blocks: Vec<Block>,
    pub domains: Vec<Domain>,
    pub nodes: Vec<Node>,
    /// Instructions of privileged blocks. Nodes have them too, without saying where.
    pub privileged: Vec<(BlockId, u64)>,
    pub shorts: Vec<Short>,
    pub events: Vec<Event>,
    /// Events that came when there were as many as were asked for.
    pub lost: u64,
    /// Instructions since reset whenever user mode has read their counter: the first of them.
    pub readings: Vec<u64>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Block {
    pub address: u64,
    pub region: Region,
    /// Its code, in user mode.
    pub bytes: Vec<u8>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Domain {
    pub asid: u16,
    /// How many had the number before.
    pub before: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Node {
    pub parent: Option<NodeId>,
    pub domain: DomainId,
    /// The first address in user mode: tells which portal it was. Without a parent: where a thread began. 0:
    /// an interrupt came first.
    pub entry: u64,
    pub calls: u64,
    /// Instructions of nucleus and portal code on the ways in and out.
    pub legs: u64,
    /// The same of what is asked from here, and leads into no other domain.
    pub short: u64,
    pub blocks: Vec<(BlockId, u64)>,
}

impl Node {
    /// Instructions in its own blocks.
    pub fn own(&self) -> u64 {
        self.blocks.iter().map(|(_, count)| count).sum()
    }

    /// All that belong to it alone.
    pub fn all(&self) -> u64 {
        self.own() + self.legs + self.short
    }
}

/// A traversal that ends where it has begun: a short-circuit portal, or a trap that privileged code settles.
#[derive(Debug, Serialize, Deserialize)]
pub struct Short {
    /// The first portal code in it; where there is none, that of the nucleus.
    pub address: u64,
    pub times: u64,
    pub instructions: u64,
}

/// A thread is somewhere else now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// Instructions since the recording has begun.
    pub time: u64,
    pub thread: u16,
    pub node: NodeId,
}

/// What the numbers are called.
#[derive(Debug, Default)]
pub struct Names {
    /// Of domains, by number.
    pub domains: Vec<String>,
    /// Of the functions that blocks are of, by number.
    pub functions: Vec<String>,
    /// Of entries.
    pub entries: BTreeMap<(DomainId, u64), String>,
    /// Of portal code and functions of the nucleus, by address.
    pub codes: BTreeMap<u64, String>,
}

impl Names {
    pub fn domain(&self, id: DomainId) -> &str {
        self.domains.get(id.index()).map_or("?", String::as_str)
    }

    pub fn function(&self, id: BlockId) -> &str {
        self.functions.get(id.index()).map_or("?", String::as_str)
    }

    /// What a domain was entered for.
    pub fn entry(&self, node: &Node) -> String {
        match self.entries.get(&(node.domain, node.entry)) {
            Some(name) => name.clone(),
            None if node.entry == 0 => format!("{}: (interrupted at once)", self.domain(node.domain)),
            None => format!("{}+{:#x}", self.domain(node.domain), node.entry),
        }
    }

    pub fn code(&self, address: u64) -> String {
        self.codes.get(&address).cloned().unwrap_or_else(|| format!("portal code at {address:#x}"))
    }
}

impl Recording {
    pub fn write(&self) -> Result<Vec<u8>, String> {
        postcard::to_allocvec(self).map_err(|error| error.to_string())
    }

    /// Numbers that name nothing are refused.
    pub fn read(bytes: &[u8]) -> Result<Recording, String> {
        let recording: Recording =
            postcard::from_bytes(bytes).map_err(|error| format!("no recording: {error}"))?;
        recording.check().map(|()| recording)
    }

    fn check(&self) -> Result<(), String> {
        let block = |id: &BlockId| id.index() < self.blocks.len();
        for (n, node) in self.nodes.iter().enumerate() {
            let whole = node.domain.index() < self.domains.len()
                && node.parent.is_none_or(|parent| parent.index() < n)
                && node.blocks.iter().all(|(id, _)| block(id));
            if !whole {
                return Err(format!("no recording: node {n} names what there is not"));
            }
        }
        let whole = self.privileged.iter().all(|(id, _)| block(id))
            && self.events.iter().all(|event| event.node.index() < self.nodes.len());
        whole.then_some(()).ok_or_else(|| "no recording: it names what there is not".into())
    }

    /// Whether each instruction is in one place.
    pub fn is_even(&self) -> bool {
        self.nodes.iter().map(Node::all).sum::<u64>() + self.outside == self.total
    }

    /// A node and those that led there, the first first.
    pub fn way(&self, node: NodeId) -> Vec<NodeId> {
        let mut way: Vec<_> = std::iter::successors(Some(node), |id| self.nodes[id.index()].parent).collect();
        way.reverse();
        way
    }
}
