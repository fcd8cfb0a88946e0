//! Attacks that are accepted, because confinement makes them harmless, run in the runtime: whatever they do,
//! the call comes back and the host's memory is as it was.

use pebble_sfi_runtime::{CallError, Imports, Instance, Module};
use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::hint::black_box;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const CANARY: u64 = 0x5eed_0f_7e57_c0de;
/// For an attack that never ends.
const PATIENCE: Duration = Duration::from_millis(200);

fn module(level: &str) -> Vec<u8> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/attacks/attacks.c");
    let out = std::env::temp_dir().join(format!("pebble-sfi-attacks-{level}-{}.pbl", std::process::id()));
    let status = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"))
        .args(["cc", "-O1", "-w", "-nostdlib", "-isystem"])
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../libc/include"))
        .arg(format!("-fpbl-level={level}"))
        .arg(source)
        .arg("-o")
        .arg(&out)
        .status()
        .expect("pebble-sfi");
    assert!(status.success(), "{level}");
    let bytes = std::fs::read(&out).expect("the module");
    let _ = std::fs::remove_file(out);
    bytes
}

/// Hash of everything in this process that nobody should write: files that are mapped for execution or
/// reading.
fn constants() -> u64 {
    let memory = File::open("/proc/self/mem").expect("our memory");
    let maps = std::fs::read_to_string("/proc/self/maps").expect("our mappings");
    let mut hasher = DefaultHasher::new();
    for line in maps.lines().filter(|line| line.contains(".so") || line.contains("/attacks-")) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (from, to) = words[0].split_once('-').expect("a range");
        let number = |text| u64::from_str_radix(text, 16).expect("an address");
        if words[1].contains('w') {
            continue;
        }
        let mut bytes = vec![0; (number(to) - number(from)) as usize];
        memory.read_exact_at(&mut bytes, number(from)).expect("readable");
        (words[0], bytes).hash(&mut hasher);
    }
    hasher.finish()
}

/// Do numbers still come out as they should?
fn arithmetic() -> (u64, u64) {
    let third = black_box(1.0_f64) / black_box(3.0);
    let tiny = black_box(f64::MIN_POSITIVE) / black_box(2.0);
    assert!((black_box(1.0_f64) / black_box(0.0)).is_infinite());
    (third.to_bits(), tiny.to_bits())
}

#[test]
fn host_memory_is_unchanged() {
    let numbers = arithmetic();
    let canary = vec![CANARY; 1 << 16];
    let intact = || canary.iter().all(|word| *word == CANARY);
    let at = canary.as_ptr() as u64 + (canary.len() as u64 * 4);
    let (mut done, mut faults, mut hash) = (0, 0, 0);
    let mut attacks = std::collections::BTreeSet::new();
    for level in ["write", "full"] {
        let module = Module::load("attacks", module(level)).unwrap_or_else(|e| panic!("{level}: {e}"));
        let linked = Imports::new().link(&module).expect("linked");
        let [victim, before, after] = [(); 3].map(|()| Instance::new(&linked).expect("an instance"));
        let neighbours = || [&before, &after].map(|i| i.portal("own_data", "sm").unwrap());
        hash = constants();
        for attack in module.exports.iter().filter(|e| e.name != "own_data") {
            for spec in ["smi", "npi", "nfi"] {
                let portal = victim.portal(&attack.name, spec).expect("a portal");
                let value = portal.call_within(PATIENCE, &[at]);
                attacks.insert(attack.name.clone());
                assert!(intact(), "{} at {level} changed the host's memory", attack.name);
                assert_eq!(arithmetic(), numbers, "{} at {level} left its arithmetic behind", attack.name);
                match value {
                    Ok(value) => {
                        let seen = value == CANARY && level != "write";
                        assert!(!seen, "{} at {level} has seen the host's memory", attack.name);
                    }
                    Err(CallError::Fault(fault)) => {
                        assert_eq!(fault.module.name, "attacks", "{fault}");
                        faults += 1;
                    }
                    Err(other) => panic!("{} at {level}: {other}", attack.name),
                }
                victim.reset().expect("reset");
                done += 1;
            }
        }
        assert_eq!(constants(), hash, "{level}");
        for neighbour in neighbours() {
            assert_eq!(neighbour.call(&[]).expect("a neighbour"), 1, "its memory was changed at {level}");
        }
    }
    assert!(done >= 2 * 3 * 40, "only {done} attacks");
    let _ = writeln!(
        std::io::stderr(),
        "note: {} hand-written escapes contained, in {done} calls (levels, kinds of portals) of which \
         {faults} were faults; hash of the host's memory {hash:016x} before and after",
        attacks.len()
    );
}
