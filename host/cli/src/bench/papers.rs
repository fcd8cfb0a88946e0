//! The figures of the Pebble papers, for comparison.
//!
//! E. Gabber, C. Small, J. Bruno, J. Brustoloni, A. Silberschatz: "The Pebble Component-Based Operating
//! System", USENIX 1999, and J. Bruno et al.: "Pebble: A Component-Based Operating System for Embedded
//! Applications", USENIX Workshop on Embedded Systems 1999. Machine cycles on their middle board (166 MHz
//! R5000), means for portals and rings, medians for interrupt latency; footprint in bytes (70 pages of 8 KB).
//! They are cycles and ours are instructions: a scale to read ours by, not a race.

/// Row id and figure, in the order of the report.
const FIGURES: &[(&str, u64)] = &[
    ("portal.short_circuit", 46),
    ("portal.leg.np.4", 114),
    ("portal.chain.sm.1", 95),
    ("portal.chain.sm.2", 95),
    ("portal.chain.sm.4", 95),
    ("portal.chain.sm.8", 98),
    ("portal.chain.np.1", 114),
    ("portal.chain.np.2", 114),
    ("portal.chain.np.4", 118),
    ("portal.chain.np.8", 133),
    ("yield.1", 429),
    ("yield.2", 429),
    ("yield.4", 740),
    ("yield.8", 759),
    ("sem.ring.1", 552),
    ("sem.ring.2", 802),
    ("sem.ring.4", 1142),
    ("sem.ring.8", 1206),
    ("pipe.ring.2", 411),
    ("pipe.ring.4", 963),
    ("pipe.ring.8", 1162),
    ("pipe.latency.2", 1310),
    ("pipe.latency.4", 1914),
    ("pipe.latency.8", 2061),
    ("irq.idle", 1344),
    ("irq.sc", 1296),
    ("irq.ipc", 1370),
    ("irq.yield", 1468),
    ("irq.sem", 1956),
    ("size.system", 573_440),
];

/// Families of rows in the order of the report.
const FAMILIES: &[&str] = &[
    "portal",
    "yield",
    "sem",
    "pipe",
    "irq",
    "window",
    "tear",
    "copy",
    "cap",
    "file",
    "spawn",
    "sandbox",
    "domain_fork",
    "fork",
    "size",
    "boot",
];

pub fn figure(id: &str) -> Option<u64> {
    FIGURES.iter().find(|(name, _)| *name == id).map(|(_, figure)| *figure)
}

/// Sorts rows: by family, then by id.
pub fn rank(id: &str) -> (usize, String) {
    let family = id.split('.').next().unwrap_or(id);
    let place = FAMILIES.iter().position(|name| *name == family).unwrap_or(FAMILIES.len());
    (place, id.into())
}
