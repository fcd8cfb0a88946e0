//! A program under a policy.

mod common;

use pebble_sfi_runtime::{CallError, Cause, Fault, Imports, Instance, Module, Policy, Portal, run_module};
use std::sync::Arc;
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

fn ended(portal: &Portal, words: &[u64]) -> Fault {
    match portal.call_within(Duration::from_secs(10), words) {
        Err(CallError::Fault(fault)) => *fault,
        other => panic!("{other:?}"),
    }
}

/// Memory and an end need no policy; files do. A policy that comes later leaves what is there.
#[test]
fn without_a_policy() {
    let module = Module::load("ends", common::build("ends", 1)).unwrap_or_else(|e| panic!("{e}"));
    let mut imports = Imports::new();
    imports.system_calls().unwrap();
    let i = Instance::new(&imports.link(&module).unwrap()).unwrap();
    let take = i.portal("take", "smi").unwrap();
    let place = take.call(&[1 << 20]).unwrap();
    let mut word = [0; 8];
    i.read(place, &mut word).unwrap();
    assert_eq!(u64::from_le_bytes(word), 7);
    let [leave, quit] = ["leave", "quit"].map(|name| i.portal(name, "smi").unwrap());
    let abort = i.portal("abort", "sm").unwrap();
    for (portal, status) in [(&leave, 0), (&leave, 3), (&leave, 255), (&quit, 0), (&quit, 7)] {
        let fault = ended(portal, &[status as u64]);
        assert_eq!((fault.cause, fault.status, i.exit_code()), (Cause::Exit, Some(status), Some(status)));
        assert!(fault.to_string().contains(&format!("exited with status {status},")), "{fault}");
        i.reset().unwrap();
    }
    assert!(matches!(quit.call(&[1]), Err(CallError::Fault(fault)) if fault.status == Some(1)));
    i.reset().unwrap();
    let fault = ended(&abort, &[]);
    assert_eq!((fault.cause, fault.status), (Cause::Abort, None));
    i.reset().unwrap();
    let none = -i64::from(libc::ENOENT);
    assert_eq!(i.portal("open", "smi").unwrap().call(&[take.call(&[4096]).unwrap()]).unwrap() as i64, none);

    // A stack is 12 MiB.
    i.grant(&Arc::new(Policy::default().memory(14 << 20)), 0);
    i.read(take.call(&[1 << 20]).unwrap(), &mut word).unwrap();
    assert_eq!(take.call(&[1 << 20]).unwrap() as i64, -i64::from(libc::ENOMEM));
}
