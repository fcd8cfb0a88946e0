//! Hostile code outside the segment, behind the second fence: native code of this process, as if it had
//! broken out. It opens no file that is not the policy's, touches no other process, makes nothing executable.

mod common;

use pebble_sfi_runtime::{Imports, Module, Policy, run_module};
use std::ffi::CString;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Number and words of a system call.
type Words = (libc::c_long, [u64; 6]);

fn ask((number, w): Words) -> i64 {
    // SAFETY: what is asked for is refused, or harmless in a process that ends right afterwards.
    match unsafe { libc::syscall(number, w[0], w[1], w[2], w[3], w[4], w[5]) } {
        -1 => -i64::from(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
        done => done,
    }
}

/// The test's own capturing is the parent's.
fn say(text: String) {
    use std::io::Write;
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A text for the kernel, for ever.
fn path(text: &str) -> u64 {
    CString::new(text).unwrap().into_raw() as u64
}

/// `open_how`.
fn how(flags: i32, mode: u64) -> u64 {
    Box::into_raw(Box::new([flags as u64, mode, 0])) as u64
}

const HERE: u64 = libc::AT_FDCWD as u64;

fn attack(number: libc::c_long, words: &[u64]) -> Words {
    let mut all = [0; 6];
    all[..words.len()].copy_from_slice(words);
    (number, all)
}

/// A child that runs a program under the policy, in which `act` is what has broken out. What it says; or the
/// signal that has ended it, negated.
fn broken_out(policy: &dyn Fn() -> Policy, act: &(dyn Fn() -> u64 + Sync)) -> i32 {
    let module = FILE.with(Clone::clone);
    // SAFETY: the child goes on in this function, with copies of everything, and ends in it.
    match unsafe { libc::fork() } {
        0 => {
            let module = Module::load("escape", module).unwrap_or_else(|e| panic!("{e}"));
            let mut imports = Imports::new();
            imports.system_calls().unwrap();
            // SAFETY: nothing that it points to goes before the process.
            let act: &'static (dyn Fn() -> u64 + Sync) = unsafe { std::mem::transmute(act) };
            imports.closure("host0", move |_, _| act());
            let _linked = imports.link(&module);
            CODE.store(writable_code(), Ordering::Relaxed);
            let time = Some(Duration::from_secs(60));
            let code = run_module(&module, &imports, &["escape"], policy().fence(), time);
            let code = code.unwrap_or_else(|error| {
                say(error.to_string());
                99
            });
            // SAFETY: ends the child at once.
            unsafe { libc::_exit(code) }
        }
        child => {
            let mut status = 0;
            // SAFETY: waits for the child that has just been made.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { -libc::WTERMSIG(status) }
        }
    }
}

thread_local! {
    static FILE: Vec<u8> = common::build("escape", 1);
}

/// Where portal code is written, before the fence is raised.
static CODE: AtomicU64 = AtomicU64::new(0);

fn writable_code() -> u64 {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let line = maps.lines().find(|line| line.contains("pebble-sfi-portals") && line.contains("rw-s"));
    line.map_or(0, |line| u64::from_str_radix(line.split('-').next().unwrap(), 16).unwrap())
}

/// Tries all; those that are not refused are named.
fn refused(policy: &dyn Fn() -> Policy, what: &str, attacks: &(dyn Fn() -> Vec<Words> + Sync)) {
    let act = || {
        let done = attacks().into_iter().filter(|words| ask(*words) >= 0);
        done.inspect(|words| say(format!("{what}: {words:x?} was done"))).count() as u64
    };
    assert_eq!(broken_out(policy, &act), 0, "{what}");
}

fn nothing() -> Policy {
    Policy::default()
}

#[test]
fn files() {
    use libc::*;
    let place = std::env::temp_dir().join(format!("pebble-sfi-fence-{}", std::process::id()));
    std::fs::create_dir_all(place.join("own")).unwrap();
    std::fs::write(place.join("own/file"), "text").unwrap();
    std::fs::write(place.join("secret"), "text").unwrap();
    let name = |of: &str| path(&place.join(of).display().to_string());
    let (secret, new, inside) = (name("secret"), name("new"), name("own/file"));
    let attacks = || {
        let mut all = Vec::new();
        for file in [path("/etc/passwd"), path("/proc/self/mem"), path("/dev/null"), path("/"), secret] {
            for flags in [O_RDONLY, O_WRONLY, O_RDWR, O_TRUNC] {
                all.push(attack(SYS_open, &[file, flags as u64]));
                all.push(attack(SYS_openat, &[HERE, file, flags as u64]));
                all.push(attack(SYS_openat2, &[HERE, file, how(flags, 0), 24]));
            }
            all.push(attack(SYS_truncate, &[file, 0]));
            all.push(attack(SYS_unlink, &[file]));
            all.push(attack(SYS_unlinkat, &[HERE, file, 0]));
            all.push(attack(SYS_rename, &[file, new]));
            all.push(attack(SYS_renameat, &[HERE, file, HERE, new]));
            all.push(attack(SYS_link, &[file, new]));
            all.push(attack(SYS_chmod, &[file, 0o777]));
            all.push(attack(SYS_stat, &[file, Box::into_raw(Box::new([0u64; 32])) as u64]));
            all.push(attack(SYS_access, &[file, 0]));
            all.push(attack(SYS_execve, &[file, 0, 0]));
            all.push(attack(SYS_chdir, &[file]));
        }
        all.extend([
            attack(SYS_creat, &[new, 0o600]),
            attack(SYS_openat2, &[HERE, new, how(O_CREAT | O_WRONLY, 0o600), 24]),
            attack(SYS_mkdir, &[new, 0o700]),
            attack(SYS_mkdirat, &[HERE, new, 0o700]),
            attack(SYS_symlink, &[secret, new]),
            attack(SYS_mknod, &[new, 0o600 | u64::from(S_IFREG), 0]),
            attack(SYS_mount, &[path("none"), path("/tmp"), path("tmpfs"), 0, 0]),
            attack(SYS_chroot, &[path("/tmp")]),
            attack(SYS_execve, &[path("/bin/true"), 0, 0]),
        ]);
        all
    };
    refused(&nothing, "without directories", &attacks);
    let own = || Policy::default().directory("/own", &place.join("own"), true).unwrap();
    refused(&own, "with a directory", &attacks);
    let read_only = || Policy::default().directory("/own", &place.join("own"), false).unwrap();
    let open = |flags| attack(SYS_openat2, &[HERE, inside, how(flags, 0), 24]);
    refused(&read_only, "writing what may be read", &|| vec![open(O_RDWR), open(O_RDONLY | O_TRUNC)]);
    // What the policy gives is still there.
    assert_eq!(broken_out(&own, &|| (ask(open(O_RDWR)) >= 0).into()), 1);
    assert_eq!(broken_out(&read_only, &|| (ask(open(O_RDONLY)) >= 0).into()), 1);
    assert_eq!(std::fs::read(place.join("secret")).unwrap(), b"text");
    assert!(!place.join("new").exists());
    std::fs::remove_dir_all(place).unwrap();
}

#[test]
fn processes() {
    use libc::*;
    let word = || Box::into_raw(Box::new([0u64; 64])) as u64;
    let vector = || Box::into_raw(Box::new([word(), 8])) as u64;
    let parent = u64::from(std::process::id());
    let attacks = || {
        let mut all = vec![
            attack(SYS_fork, &[]),
            attack(SYS_vfork, &[]),
            attack(SYS_clone, &[SIGCHLD as u64]),
            attack(SYS_clone, &[(CLONE_VM | SIGCHLD) as u64]),
            attack(SYS_clone3, &[word(), 88]),
            attack(SYS_unshare, &[CLONE_NEWUSER as u64]),
            attack(SYS_ptrace, &[PTRACE_TRACEME as u64]),
            attack(SYS_execve, &[path("/proc/self/exe"), 0, 0]),
            attack(SYS_execveat, &[HERE, path("/bin/true"), 0, 0, 0]),
        ];
        for process in [parent, 1] {
            all.extend([
                attack(SYS_kill, &[process, 0]),
                attack(SYS_tkill, &[process, 0]),
                attack(SYS_tgkill, &[process, process, 0]),
                attack(SYS_rt_sigqueueinfo, &[process, 0, word()]),
                attack(SYS_pidfd_open, &[process, 0]),
                attack(SYS_ptrace, &[PTRACE_SEIZE as u64, process, 0, 0]),
                attack(SYS_process_vm_readv, &[process, vector(), 1, vector(), 1, 0]),
                attack(SYS_process_vm_writev, &[process, vector(), 1, vector(), 1, 0]),
                attack(SYS_prlimit64, &[process, 0, 0, word()]),
                attack(SYS_sched_setaffinity, &[process, 8, word()]),
                attack(SYS_sched_getaffinity, &[process, 512, word()]),
                attack(SYS_setpriority, &[0, process, 0]),
                attack(SYS_getpgid, &[process]),
                attack(SYS_kcmp, &[process, process, 0]),
                attack(SYS_clock_gettime, &[u64::from(!(process as u32) << 3 | 2), word()]),
            ]);
        }
        // Limits of its own, which it may only read.
        all.push(attack(SYS_prlimit64, &[0, RLIMIT_CPU as u64, word(), 0]));
        all
    };
    refused(&nothing, "processes", &attacks);
}

#[test]
fn executable_memory() {
    use libc::*;
    const PAGE: u64 = 4096;
    let attacks = || {
        let private = (MAP_PRIVATE | MAP_ANONYMOUS) as u64;
        // SAFETY: memory of its own.
        let own =
            unsafe { mmap(std::ptr::null_mut(), 4096, PROT_READ | PROT_WRITE, private as i32, -1, 0) } as u64;
        let file = ask(attack(SYS_memfd_create, &[path("code"), 3])) as u64;
        ask(attack(SYS_ftruncate, &[file, PAGE]));
        let mut all = Vec::new();
        for prot in [PROT_EXEC, PROT_READ | PROT_EXEC, PROT_READ | PROT_WRITE | PROT_EXEC] {
            all.extend([
                attack(SYS_mmap, &[0, PAGE, prot as u64, private, !0, 0]),
                attack(SYS_mmap, &[0, PAGE, prot as u64, MAP_SHARED as u64, file, 0]),
                attack(SYS_mmap, &[0, PAGE, prot as u64 | 1 << 32, private, !0, 0]),
                attack(SYS_mprotect, &[own, PAGE, prot as u64]),
                attack(SYS_mprotect, &[refused as *const () as u64 & !4095, PAGE, prot as u64]),
                attack(SYS_pkey_mprotect, &[own, PAGE, prot as u64, !0]),
            ]);
        }
        all.extend([
            attack(SYS_personality, &[0x0040_0000]),
            attack(SYS_execveat, &[file, path(""), 0, 0, AT_EMPTY_PATH as u64]),
            attack(SYS_shmget, &[0, PAGE, 0o1600]),
            attack(SYS_remap_file_pages, &[own, PAGE, 0, 0, 0]),
            attack(SYS_memfd_create, &[path("code"), 0x10]),
            attack(SYS_mremap, &[refused as *const () as u64 & !4095, PAGE, 0, 0]),
        ]);
        all
    };
    refused(&nothing, "executable memory", &attacks);
    // Where portal code was written there is nothing any more.
    let write = || {
        let at = CODE.load(Ordering::Relaxed);
        let (byte, own) = ([0xcc_u8], std::process::id());
        let from = [byte.as_ptr() as u64, 1];
        let done = ask(attack(
            SYS_process_vm_writev,
            &[own.into(), from.as_ptr() as u64, 1, [at, 1].as_ptr() as u64, 1],
        ));
        if at == 0 { 98 } else { (done >= 0).into() }
    };
    assert_eq!(broken_out(&nothing, &write), 0);
}

/// Sockets, and what belongs to nobody in particular.
#[test]
fn sockets() {
    use libc::*;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = |l: &std::net::TcpListener| l.local_addr().unwrap().port();
    let (given, not_given) = (port(&listener), port(&other));
    let address = |port: u16| {
        let [high, low] = port.to_be_bytes();
        Box::into_raw(Box::new([2, 0, high, low, 127, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0u8])) as u64
    };
    let every = || {
        let families = 0..46;
        let kinds = [SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_RDM];
        families
            .flat_map(move |family| kinds.map(|kind| attack(SYS_socket, &[family, kind as u64, 0])))
            .collect()
    };
    refused(&nothing, "sockets without addresses", &every);
    let policy = || Policy::default().allow(&format!("connect=127.0.0.1:{given}")).unwrap();
    let attacks = || {
        let streams = [AF_INET, AF_INET6].map(|family| family as u64);
        let mut all: Vec<Words> = every();
        all.retain(|(_, words)| !streams.contains(&words[0]) || words[1] != SOCK_STREAM as u64);
        let new = || ask(attack(SYS_socket, &[AF_INET as u64, SOCK_STREAM as u64, 0])) as u64;
        all.extend([
            attack(SYS_socket, &[AF_INET as u64, SOCK_STREAM as u64, IPPROTO_MPTCP as u64]),
            attack(SYS_connect, &[new(), address(not_given), 16]),
            attack(SYS_bind, &[new(), address(0), 16]),
            attack(SYS_listen, &[new(), 1]),
            attack(SYS_sendto, &[new(), address(0), 4, MSG_FASTOPEN as u64, address(not_given), 16]),
            attack(SYS_sendto, &[new(), address(0), 4, 0, address(not_given), 16]),
            attack(SYS_sendmsg, &[new(), address(0), 0]),
            attack(SYS_socketpair, &[AF_UNIX as u64, SOCK_STREAM as u64, 0, address(0)]),
            attack(SYS_ioctl, &[new(), 0x8910, address(0)]),
        ]);
        all
    };
    refused(&policy, "sockets", &attacks);
    let connect = || {
        let socket = ask(attack(SYS_socket, &[AF_INET as u64, SOCK_STREAM as u64, 0])) as u64;
        (ask(attack(SYS_connect, &[socket, address(given), 16])) >= 0).into()
    };
    assert_eq!(broken_out(&policy, &connect), 1);
}

/// Every other system call there is: each is refused before the kernel looks at what it wants.
#[test]
fn all_other_calls() {
    use libc::*;
    let known = [
        SYS_read,
        SYS_write,
        SYS_close,
        SYS_fstat,
        SYS_poll,
        SYS_lseek,
        SYS_mmap,
        SYS_mprotect,
        SYS_munmap,
        SYS_brk,
        SYS_rt_sigaction,
        SYS_rt_sigprocmask,
        SYS_rt_sigreturn,
        SYS_pread64,
        SYS_pwrite64,
        SYS_readv,
        SYS_writev,
        SYS_sched_yield,
        SYS_nanosleep,
        SYS_getpid,
        SYS_exit,
        SYS_fsync,
        SYS_fdatasync,
        SYS_ftruncate,
        SYS_gettimeofday,
        SYS_sigaltstack,
        SYS_gettid,
        SYS_futex,
        SYS_set_tid_address,
        SYS_restart_syscall,
        SYS_clock_gettime,
        SYS_clock_getres,
        SYS_clock_nanosleep,
        SYS_exit_group,
        SYS_set_robust_list,
        SYS_prlimit64,
        SYS_getrandom,
        SYS_membarrier,
        SYS_rseq,
    ];
    // The second half are numbers of another convention, with 32-bit pointers.
    let act = || {
        // 335 and 336 are the kernel's own, for probes, and pass every filter.
        let numbers = (0..600).chain(0x4000_0000..0x4000_0258);
        let numbers = numbers.filter(|n| !known.contains(n) && !(335..=336).contains(n));
        let refused = |number: &c_long| matches!(-ask((*number, [0; 6])) as i32, EPERM | ENOSYS);
        let done: Vec<c_long> = numbers.filter(|n| !refused(n)).collect();
        say(format!("not refused: {done:?}"));
        done.len() as u64
    };
    assert_eq!(broken_out(&nothing, &act), 0);
    // Calls by the 32-bit door end the process.
    let old = || {
        // SAFETY: `getpid` there, `writev` here.
        unsafe { std::arch::asm!("int 0x80", inlateout("rax") 20_u64 => _) };
        1
    };
    assert_eq!(broken_out(&nothing, &old), -SIGSYS);
}

/// As on a kernel that has not got it: what needs no Landlock is fenced, the rest refused.
#[test]
fn without_landlock() {
    use libc::*;
    let hide = || {
        let s = |code: u32, jf, k| sock_filter { code: code as u16, jt: 0, jf, k };
        let number = SYS_landlock_create_ruleset as u32;
        let mut filter = [
            s(BPF_LD | BPF_W | BPF_ABS, 0, 0),
            s(BPF_JMP | BPF_JEQ | BPF_K, 1, number),
            s(BPF_RET | BPF_K, 0, SECCOMP_RET_ERRNO | ENOSYS as u32),
            s(BPF_RET | BPF_K, 0, SECCOMP_RET_ALLOW),
        ];
        let program = sock_fprog { len: 4, filter: filter.as_mut_ptr() };
        // SAFETY: a whole program, in a child that ends soon.
        unsafe {
            assert_eq!(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
            assert_eq!(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
        }
        Policy::default()
    };
    let open = || (ask(attack(SYS_openat2, &[HERE, path("/etc/passwd"), how(O_RDONLY, 0), 24])) >= 0).into();
    assert_eq!(broken_out(&hide, &open), 0);
    let some_files = || hide().directory("/own", "/tmp".as_ref(), true).unwrap();
    let one_port = || hide().allow("connect=127.0.0.1:1").unwrap();
    assert_eq!((broken_out(&some_files, &open), broken_out(&one_port, &open)), (99, 99));
}
