//! A recording, added up by names.

use std::collections::BTreeMap;

use crate::{Names, Node, Recording, Region};

/// Instructions under a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    pub name: String,
    pub instructions: u64,
}

/// A function of a domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    pub domain: String,
    pub name: String,
    pub instructions: u64,
}

/// A portal, whoever has opened it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Portal {
    pub name: String,
    pub calls: u64,
    /// Of nucleus and portal code, there and back.
    pub legs: u64,
    /// All until it is back, `legs` and further calls included: of the thread, not while it waits.
    pub whole: u64,
}

/// The sums. Each list begins with what takes most.
#[derive(Debug, Default)]
pub struct Fold {
    pub total: u64,
    /// Add up to the total.
    pub domains: Vec<Row>,
    pub portals: Vec<Portal>,
    /// Add up to the total, too.
    pub functions: Vec<Function>,
}

/// What stands in place of a domain's name.
fn place(region: Region) -> &'static str {
    match region {
        Region::User => "(no thread)",
        Region::Nucleus => "(nucleus)",
        Region::Portal => "(portal code)",
        Region::Firmware => "(firmware)",
    }
}

impl Fold {
    pub fn new(recording: &Recording, names: &Names) -> Fold {
        let mut functions: BTreeMap<(&str, &str), u64> = BTreeMap::new();
        for node in &recording.nodes {
            for (block, count) in &node.blocks {
                *functions.entry((names.domain(node.domain), names.function(*block))).or_default() += count;
            }
        }
        for (block, count) in &recording.privileged {
            let region = recording.blocks[block.index()].region;
            *functions.entry((place(region), names.function(*block))).or_default() += count;
        }
        // User mode before there was a thread.
        let rest = recording.total.saturating_sub(functions.values().sum());
        if rest > 0 {
            functions.insert((place(Region::User), "?"), rest);
        }
        let mut domains: BTreeMap<&str, u64> = BTreeMap::new();
        functions.iter().for_each(|((domain, _), count)| *domains.entry(domain).or_default() += count);

        let mut domains: Vec<_> =
            domains.into_iter().map(|(name, instructions)| Row { name: name.into(), instructions }).collect();
        domains.sort_by_key(|row| std::cmp::Reverse(row.instructions));
        let mut functions: Vec<_> = functions
            .into_iter()
            .map(|((domain, name), instructions)| Function {
                domain: domain.into(),
                name: name.into(),
                instructions,
            })
            .collect();
        functions.sort_by_key(|row| std::cmp::Reverse(row.instructions));
        Fold { total: recording.total, domains, portals: portals(recording, names), functions }
    }

    pub fn domain(&self, name: &str) -> u64 {
        self.domains.iter().filter(|row| row.name == name).map(|row| row.instructions).sum()
    }
}

/// Instructions of each node and of those below.
pub fn whole(recording: &Recording) -> Vec<u64> {
    let mut whole: Vec<u64> = recording.nodes.iter().map(Node::all).collect();
    // Who is called comes behind its caller.
    for (n, node) in recording.nodes.iter().enumerate().rev() {
        if let Some(parent) = node.parent {
            whole[parent.index()] += whole[n];
        }
    }
    whole
}

fn portals(recording: &Recording, names: &Names) -> Vec<Portal> {
    let mut all: BTreeMap<String, Portal> = BTreeMap::new();
    let whole = whole(recording);
    let entries: Vec<String> = recording.nodes.iter().map(|node| names.entry(node)).collect();
    for (n, node) in recording.nodes.iter().enumerate().filter(|(_, node)| node.parent.is_some()) {
        let portal = all.entry(entries[n].clone()).or_default();
        portal.calls += node.calls;
        portal.legs += node.legs;
        // What a portal takes is not counted again where it leads to itself.
        let mut above = std::iter::successors(node.parent, |id| recording.nodes[id.index()].parent);
        if above.all(|id| recording.nodes[id.index()].parent.is_none() || entries[id.index()] != entries[n]) {
            portal.whole += whole[n];
        }
    }
    for short in &recording.shorts {
        let portal = all.entry(names.code(short.address)).or_default();
        portal.calls += short.times;
        portal.legs += short.instructions;
        portal.whole += short.instructions;
    }
    let mut all: Vec<_> = all.into_iter().map(|(name, portal)| Portal { name, ..portal }).collect();
    all.retain(|portal| portal.whole > 0);
    all.sort_by_key(|portal| std::cmp::Reverse(portal.whole));
    all
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::{Block, BlockId, Domain, DomainId, Event, NodeId, Short};

    /// A shell that reads a file, whose server asks itself once more, and the time.
    pub fn example() -> (Recording, Names) {
        let block = |address, region| Block { address, region, bytes: Vec::new() };
        let node = |parent: Option<usize>, domain, entry, calls, legs, short, count| Node {
            parent: parent.map(NodeId::new),
            domain: DomainId::new(domain),
            entry,
            calls,
            legs,
            short,
            blocks: vec![(BlockId::new(domain), count)],
        };
        let event = |time, thread, node| Event { time, thread, node: NodeId::new(node) };
        let recording = Recording {
            before: 1000,
            total: 500,
            blocks: vec![
                block(0x10000, Region::User),
                block(0x20000, Region::User),
                block(0x8000, Region::Portal),
                block(0x4000, Region::Nucleus),
            ],
            domains: vec![Domain { asid: 5, before: 0 }, Domain { asid: 6, before: 0 }],
            nodes: vec![
                node(None, 0, 0x10000, 0, 0, 24, 76),
                node(Some(0), 1, 0x20000, 2, 150, 0, 50),
                node(Some(1), 1, 0x20000, 1, 75, 0, 125),
            ],
            privileged: vec![(BlockId::new(2), 200), (BlockId::new(3), 49)],
            shorts: vec![Short { address: 0x9000, times: 2, instructions: 24 }],
            events: vec![
                event(0, 1, 0),
                event(40, 1, 1),
                event(90, 1, 2),
                event(200, 1, 1),
                event(250, 2, 0),
                event(300, 1, 0),
            ],
            ..Recording::default()
        };
        let words = |all: &[&str]| all.iter().map(|word| String::from(*word)).collect();
        let names = Names {
            domains: words(&["shell", "file"]),
            functions: words(&["main", "file::read<u8>", "file.read", "trap"]),
            entries: BTreeMap::from([((DomainId::new(1), 0x20000), "file.read".into())]),
            codes: BTreeMap::from([(0x9000, "nucleus.hrtime".into())]),
        };
        assert!(recording.is_even());
        (recording, names)
    }

    #[test]
    fn domains_and_functions_add_up() {
        let (recording, names) = example();
        let fold = Fold::new(&recording, &names);
        assert_eq!(fold.domains.iter().map(|row| row.instructions).sum::<u64>(), fold.total);
        assert_eq!(fold.functions.iter().map(|row| row.instructions).sum::<u64>(), fold.total);
        let names: Vec<_> = fold.domains.iter().map(|row| row.name.as_str()).collect();
        assert_eq!(names, ["(portal code)", "file", "shell", "(nucleus)"]);
        assert_eq!(fold.domain("file"), 175);
        assert_eq!(fold.functions[1].name, "file::read<u8>");
    }

    #[test]
    fn a_portal_that_leads_to_itself_counts_once() {
        let (recording, names) = example();
        let portals = Fold::new(&recording, &names).portals;
        let portal = |name: &str, calls, legs, whole| Portal { name: name.into(), calls, legs, whole };
        assert_eq!(portals, [portal("file.read", 3, 225, 400), portal("nucleus.hrtime", 2, 24, 24)]);
    }
}
