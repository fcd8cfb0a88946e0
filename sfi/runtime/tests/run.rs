//! A program under a policy.

mod common;

use pebble_sfi_runtime::{Imports, Module, Policy, run_module};
use std::time::Duration;

static FILE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();

fn run(policy: Policy, path: &str) -> i32 {
    let module = Module::load("program", FILE.get_or_init(|| common::build("program", 1)).clone())
        .unwrap_or_else(|e| panic!("{e}"));
    let mut imports = Imports::new();
    imports.system_calls().unwrap();
    let arguments = ["program", path, "text"].map(String::from);
    run_module(&module, &imports, &arguments, policy, Some(Duration::from_secs(10)))
        .unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn files_only_where_the_policy_says() {
    let place = std::env::temp_dir().join(format!("pebble-sfi-run-{}", std::process::id()));
    std::fs::create_dir_all(place.join("inside")).unwrap();
    std::os::unix::fs::symlink("/etc", place.join("inside/link")).unwrap();
    FILE.get_or_init(|| common::build("program", 1));
    let policy = |writable| Policy::default().directory("/data", &place.join("inside"), writable).unwrap();
    assert_eq!(run(policy(true), "/data/file"), 4);
    assert_eq!(std::fs::read(place.join("inside/file")).unwrap(), b"text");
    let fenced = policy(true).fence();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(run(fenced, "/data/fenced"), 4);
            // The fence stands: this thread makes no socket any more.
            assert!(std::net::UdpSocket::bind("127.0.0.1:0").is_err());
        });
    });
    assert_eq!(run(policy(false), "/data/file"), -libc::EACCES);
    assert_eq!(run(policy(true), "/data/../outside"), -libc::EXDEV);
    assert_eq!(run(policy(true), "/data/link/passwd"), -libc::EXDEV);
    assert_eq!(run(policy(true), "/etc/passwd"), -libc::ENOENT);
    assert_eq!(run(Policy::default(), "/data/file"), -libc::ENOENT);
    assert!(!place.join("outside").exists());
    std::fs::remove_dir_all(place).unwrap();
}
