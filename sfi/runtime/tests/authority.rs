//! What a domain gets of the process when it asks for the wrong thing, or at the wrong time.

mod common;

use pebble_sfi_runtime::{CallError, Cause, Imports, Instance, Module, Policy, Portal};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

struct Domain {
    instance: Instance,
    portal: Portal,
}

impl Domain {
    fn new(policy: Policy) -> Domain {
        let module = Module::load("sys", common::build("sys", 1)).unwrap_or_else(|e| panic!("{e}"));
        let mut imports = Imports::new();
        imports.system_calls().unwrap();
        let instance = Instance::new(&imports.link(&module).unwrap()).unwrap();
        instance.grant(&Arc::new(policy), 0);
        let portal = instance.portal("sys", "smiiiiii").unwrap();
        Domain { instance, portal }
    }

    /// A system call of the domain's.
    fn ask(&self, number: libc::c_long, words: [u64; 5]) -> i64 {
        let [a, b, c, d, e] = words;
        self.portal.call(&[number as u64, a, b, c, d, e]).unwrap() as i64
    }

    /// Memory of the domain's, and what is in it first.
    fn memory(&self, bytes: u64, begin: &[u8]) -> u64 {
        let flags = (libc::MAP_PRIVATE | libc::MAP_ANONYMOUS) as u64;
        let at = self.ask(libc::SYS_mmap, [0, bytes, 3, flags, !0]) as u64;
        self.instance.write(at, begin).unwrap();
        at
    }
}

#[test]
fn lengths_are_compared_before_they_are_added() {
    let domain = Domain::new(Policy::default());
    let at = domain.memory(4096, b"kept");
    let endless = u64::MAX - 4095;
    let wrong = -i64::from(libc::EINVAL);
    assert_eq!(domain.ask(libc::SYS_mremap, [at, endless, endless, 1, 0]), wrong);
    assert_eq!(domain.ask(libc::SYS_mremap, [at, endless, 4096, 1, 0]), wrong);
    let mut found = [0; 4];
    domain.instance.read(at, &mut found).unwrap();
    assert_eq!(&found, b"kept");
}

#[test]
fn holes_in_memory_are_counted() {
    const PAGES: u64 = 40_000;
    let mappings = || std::fs::read_to_string("/proc/self/maps").unwrap().lines().count();
    let before = mappings();
    let domain = Domain::new(Policy::default());
    let at = domain.memory(PAGES * 4096, b"kept");
    let give = |page| domain.ask(libc::SYS_munmap, [at + page * 4096, 4096, 0, 0, 0]);
    let refused = (1..PAGES).step_by(2).filter(|page| give(*page) == -i64::from(libc::ENOMEM)).count();
    // A process has 65,530 mappings, and needs some itself.
    assert!(mappings() < before + 5000, "{} after {before}", mappings());
    assert!(refused > 10_000, "{refused}");
    // Pages that have moved do not become one mapping with their neighbours.
    let moves = (0..20_000).map(|_| {
        let page = domain.memory(4096, &[]);
        domain.ask(libc::SYS_mremap, [page, 4096, 8192, libc::MREMAP_MAYMOVE as u64, 0])
    });
    let refused = moves.filter(|at| *at == -i64::from(libc::ENOMEM)).count();
    assert!(mappings() < before + 10_000, "{} after {before}", mappings());
    assert!(refused > 10_000, "{refused}");
    // What joins others is taken and given as before.
    let more = domain.memory(4096, b"more");
    assert_eq!(domain.ask(libc::SYS_munmap, [more, 4096, 0, 0, 0]), 0);
    assert_eq!(domain.ask(libc::SYS_munmap, [at, PAGES * 4096, 0, 0, 0]), 0);
}

#[test]
fn clocks_are_the_systems() {
    let domain = Domain::new(Policy::default());
    let to = domain.memory(4096, &[]);
    assert_eq!(domain.ask(libc::SYS_clock_gettime, [libc::CLOCK_MONOTONIC as u64, to, 0, 0, 0]), 0);
    // How much of a processor this process has used, by its number.
    let clock = (!(std::process::id() as i32) << 3 | 2) as u64;
    assert_eq!(domain.ask(libc::SYS_clock_gettime, [clock, to, 0, 0, 0]), -i64::from(libc::EINVAL));
}

#[test]
fn the_processs_own_memory_is_no_file() {
    for (path, name) in
        [("/proc", "/own/self/mem"), ("/", "/own/proc/self/mem"), ("/", "/own/proc/self/environ")]
    {
        let domain = Domain::new(Policy::default().directory("/own", path.as_ref(), true).unwrap());
        let at = domain.memory(4096, format!("{name}\0").as_bytes());
        for flags in [libc::O_RDONLY, libc::O_RDWR] {
            let answer = domain.ask(libc::SYS_open, [at, flags as u64, 0, 0, 0]);
            assert_eq!(answer, NO, "{name}, {flags}");
        }
    }
}

/// The text of a link is read as far as the policy reaches: what lies above its directories is no link, and
/// the process's own are not told.
#[test]
fn links_are_read_below_the_policys_directories() {
    let place = std::env::temp_dir().join(format!("pebble-sfi-links-{}", std::process::id()));
    std::fs::create_dir_all(place.join("inside")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", place.join("inside/link")).unwrap();
    std::os::unix::fs::symlink("..", place.join("inside/up")).unwrap();
    std::os::unix::fs::symlink("secret", place.join("outside")).unwrap();
    let read = |name: &str, of: &str, to_own_memory: bool| {
        let policy = Policy::default().directory("/data/own", of.as_ref(), false).unwrap();
        let domain = Domain::new(policy);
        let at = domain.memory(4096, format!("{name}\0").as_bytes());
        let to = if to_own_memory { at + 1024 } else { &raw const domain as u64 };
        let length = domain.ask(libc::SYS_readlink, [at, to, 6, 0, 0]);
        let mut text = [0; 6];
        domain.instance.read(at + 1024, &mut text).unwrap();
        (length, text)
    };
    let own = place.to_str().unwrap().to_string() + "/inside";
    assert_eq!(read("/data/own/link", &own, true), (6, *b"/etc/p"));
    let refused = [
        ("/data/own/up/outside", &own[..], libc::EXDEV),
        ("/data/own/../outside", &own, libc::EXDEV),
        ("/data/own/none", &own, libc::ENOENT),
        ("/data/own", &own, libc::EINVAL),
        ("/data", &own, libc::EINVAL),
        ("/", &own, libc::EINVAL),
        ("/dat", &own, libc::ENOENT),
        ("/data/ow", &own, libc::ENOENT),
        ("/data/own/self/exe", "/proc", libc::EACCES),
        ("/data/own/self", "/proc", libc::EACCES),
    ];
    for (name, of, error) in refused {
        assert_eq!(read(name, of, true), (-i64::from(error), [0; 6]), "{name}");
    }
    assert_eq!(read("/data/own/link", &own, false).0, -i64::from(libc::EFAULT));
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn pieces_of_a_vector_end_with_the_deadline() {
    const PIECE: u64 = 32 << 20;
    let domain = Domain::new(Policy::default().directory("/own", "/dev".as_ref(), false).unwrap());
    let at = domain.memory(PIECE + 4096, b"/own/zero\0");
    let fd = domain.ask(libc::SYS_open, [at, 0, 0, 0, 0]) as u64;
    let pieces: Vec<u8> = [at + 4096, PIECE].map(u64::to_le_bytes).concat().repeat(64);
    domain.instance.write(at, &pieces).unwrap();
    let words = [libc::SYS_readv as u64, fd, at, 64, 0, 0];
    // All of it takes much longer than one piece.
    match domain.portal.call_within(Duration::from_millis(1), &words) {
        Ok(read) => assert!(read < 64 * PIECE, "{read}"),
        // It did not even begin.
        Err(error) => assert!(matches!(&error, CallError::Fault(f) if f.cause == Cause::Deadline), "{error}"),
    }
}

#[test]
fn whatever_waits_ends_with_the_deadline() {
    let socket = [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0];
    let address = &[2, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];
    let policy = || {
        let policy = Policy::default().allow("sleep").unwrap().allow("listen=127.0.0.1:0").unwrap();
        policy.allow("connect=127.0.0.1:0").unwrap()
    };
    // A listening socket, and one that is connected to it.
    let sockets = move |domain: &Domain, at: u64| {
        let [own, other] = [0; 2].map(|_| domain.ask(libc::SYS_socket, socket) as u64);
        domain.instance.write(at, address).unwrap();
        assert_eq!(domain.ask(libc::SYS_bind, [own, at, 16, 0, 0]), 0);
        assert_eq!(domain.ask(libc::SYS_listen, [own, 1, 0, 0, 0]), 0);
        domain.instance.write(at + 16, &16u32.to_le_bytes()).unwrap();
        assert_eq!(domain.ask(libc::SYS_getsockname, [own, at, at + 16, 0, 0]), 0);
        assert_eq!(domain.ask(libc::SYS_connect, [other, at, 16, 0, 0]), 0);
        [own, other]
    };
    type Words = fn([u64; 2], u64) -> (libc::c_long, [u64; 5]);
    let waits: [(&str, Words); 6] = [
        ("nanosleep", |_, at| (libc::SYS_nanosleep, [at + 32, 0, 0, 0, 0])),
        ("poll", |_, at| (libc::SYS_poll, [at, 0, !0, 0, 0])),
        ("read", |[_, other], at| (libc::SYS_read, [other, at, 1, 0, 0])),
        ("recvfrom", |[_, other], at| (libc::SYS_recvfrom, [other, at, 1, 0, 0])),
        // More than the other end takes in unread.
        ("write", |[_, other], at| (libc::SYS_write, [other, at, 64 << 20, 0, 0])),
        // The first one is there already.
        ("accept", |[own, _], _| (libc::SYS_accept, [own, 0, 0, 0, 0])),
    ];
    for (name, words) in waits {
        let (done, wait) = channel();
        std::thread::spawn(move || {
            let domain = Domain::new(policy());
            let at = domain.memory(64 << 20, &[]);
            let sockets = sockets(&domain, at);
            if name == "accept" {
                assert!(domain.ask(libc::SYS_accept, [sockets[0], 0, 0, 0, 0]) > 0);
            }
            domain.instance.write(at + 32, &1_000_000u64.to_le_bytes()).unwrap();
            let (number, [a, b, c, d, e]) = words(sockets, at);
            let words = [number as u64, a, b, c, d, e];
            let _ = done.send(domain.portal.call_within(Duration::from_millis(100), &words));
        });
        match wait.recv_timeout(Duration::from_secs(20)) {
            Ok(Err(CallError::Fault(fault))) => assert_eq!(fault.cause, Cause::Deadline, "{name}"),
            // The jump to the import was the last that it did.
            Ok(Ok(answer)) if name == "write" => assert!((1..64 << 20).contains(&answer), "{answer}"),
            Ok(Ok(answer)) => assert_eq!(answer as i64, -i64::from(libc::EINTR), "{name}"),
            other => panic!("{name}: {other:?}"),
        }
    }
}

#[test]
fn who_opens_a_fifo_waits_no_longer_than_others() {
    let place = std::env::temp_dir().join(format!("pebble-sfi-fifo-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    let (path, status) =
        (place.join("fifo"), std::process::Command::new("mkfifo").arg(place.join("fifo")).status());
    assert!(status.unwrap().success());
    let (done, wait) = channel();
    let policy = Policy::default().directory("/own", &place, true).unwrap();
    std::thread::spawn(move || {
        let domain = Domain::new(policy);
        let at = domain.memory(4096, b"/own/fifo\0");
        // Nobody writes, nobody reads, and then somebody has written before it is asked again.
        let open = |flags: i32| [libc::SYS_open as u64, at, flags as u64, 0, 0, 0];
        let early = domain.portal.call_within(Duration::from_millis(50), &open(libc::O_RDONLY));
        let poisoned = domain.instance.poisoned().is_some();
        domain.instance.reset().unwrap();
        let at = domain.memory(4096, b"/own/fifo\0");
        let alone = domain.ask(libc::SYS_open, [at, libc::O_WRONLY as u64, 0, 0, 0]);
        let writer = std::thread::spawn(move || std::fs::write(path, b"text"));
        let fd = domain.ask(libc::SYS_open, [at, 0, 0, 0, 0]);
        let read = domain.ask(libc::SYS_read, [fd as u64, at, 100, 0, 0]);
        let end = domain.ask(libc::SYS_read, [fd as u64, at, 100, 0, 0]);
        writer.join().unwrap().unwrap();
        let _ = done.send((early.is_err() || poisoned, alone, read, end));
    });
    let told = wait.recv_timeout(Duration::from_secs(20)).expect("it is back");
    assert_eq!(told, (true, -i64::from(libc::ENXIO), 4, 0));
    std::fs::remove_dir_all(place).unwrap();
}

const NO: i64 = -(libc::EACCES as i64);

#[test]
fn only_what_may_listen_listens() {
    let socket = [libc::AF_INET as u64, libc::SOCK_STREAM as u64, 0, 0, 0];
    // A socket without an address gets one of the kernel's choice when it listens, on every interface.
    for right in ["connect=127.0.0.1:0", "listen=127.0.0.1:0"] {
        let domain = Domain::new(Policy::default().allow(right).unwrap());
        let fd = domain.ask(libc::SYS_socket, socket) as u64;
        assert_eq!(domain.ask(libc::SYS_listen, [fd, 1, 0, 0, 0]), NO, "{right}");
    }
    let domain = Domain::new(Policy::default().allow("listen=127.0.0.1:0").unwrap());
    let fd = domain.ask(libc::SYS_socket, socket) as u64;
    let address = domain.memory(4096, &[2, 0, 0, 0, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(domain.ask(libc::SYS_bind, [fd, address, 16, 0, 0]), 0);
    assert_eq!(domain.ask(libc::SYS_listen, [fd, 1, 0, 0, 0]), 0);
}

#[test]
fn a_file_closed_meanwhile_is_not_another_one() {
    const LONG: u64 = 64 << 20;
    let dir = std::env::temp_dir().join(format!("pebble-sfi-authority-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("own")).unwrap();
    let long = File::create(dir.join("own/long")).unwrap();
    long.set_len(LONG).unwrap();
    long.write_all_at(b"begin", 0).unwrap();
    let secret = File::create(dir.join("secret")).unwrap();
    secret.write_all_at(b"secret", LONG).unwrap();

    let policy = Policy::default().directory("/own", &dir.join("own"), false).unwrap();
    let domain = Domain::new(policy);
    let path = domain.memory(4096, b"/own/long\0");
    let fd = domain.ask(libc::SYS_open, [path, 0, 0, 0, 0]) as u64;
    // Where the mapping is going to be: right below the last one.
    let bytes = LONG + 4096;
    let place = path - bytes;
    let mut found = [0; 6];
    std::thread::scope(|scope| {
        // The file is read to its end, and then asked for more.
        let reader = scope.spawn(|| domain.ask(libc::SYS_mmap, [0, bytes, 3, libc::MAP_PRIVATE as u64, fd]));
        while !reader.is_finished() {
            if domain.instance.read(place, &mut found[..5]).is_ok() && &found[..5] == b"begin" {
                assert_eq!(domain.ask(libc::SYS_close, [fd, 0, 0, 0, 0]), 0);
                break;
            }
        }
        // The process opens something else, which gets a number that is free.
        let secrets: Vec<_> = (0..4).map(|_| File::open(dir.join("secret")).unwrap()).collect();
        assert_eq!(reader.join().unwrap() as u64, place);
        drop(secrets);
    });
    domain.instance.read(place + LONG, &mut found).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    assert_eq!(found, [0; 6], "{}", String::from_utf8_lossy(&found));
}
