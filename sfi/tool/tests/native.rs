//! A module that is started like a program of the system's own: it says what it is, or runs in a fault domain
//! if `pebble sfi install` has seen to that.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const PROGRAM: &str = "
long pbl_sys_write(long, const char *, long, long, long, long);
void pbl_sys_exit_group(long, long, long, long, long, long);
void _start(unsigned long *words) {
    for (unsigned long i = 1; i <= words[0]; i++) {
        const char *text = (const char *)words[i];
        long length = 0;
        while (text[length]) length++;
        pbl_sys_write(1, text, length, 0, 0, 0);
        pbl_sys_write(1, \"\\n\", 1, 0, 0, 0);
    }
    pbl_sys_exit_group(words[0], 0, 0, 0, 0, 0);
}";
const FUNCTIONS: &str = "int twice(int x) { return 2 * x; }";

/// A directory of this test's, which goes with it.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("pebble-sfi-native-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Place(path)
    }

    fn module(&self, name: &str, source: &str) -> String {
        let (text, made) = (self.0.join(format!("{name}.c")), self.0.join(name).display().to_string());
        std::fs::write(&text, source).unwrap();
        let mut cc = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"));
        cc.args(["cc", "-O1", "-ffreestanding", "-nostdlib"]).arg(&text).args(["-o", &made]);
        if name == "functions" {
            cc.args(["--export", "twice"]);
        }
        let output = cc.output().expect("the tool");
        assert!(output.status.success(), "{output:?}");
        made
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_module_says_what_it_is() {
    let place = Place::new("says");
    let (program, functions) = (place.module("program", PROGRAM), place.module("functions", FUNCTIONS));
    let cases = [
        (&program, format!("{program}: this is a Pebble module: run it with `pebble sfi run {program}`\n")),
        (
            &functions,
            format!(
                "{functions}: this is a Pebble module of functions: a host loads it with \
                 pbl_module_open(\"{functions}\")\n"
            ),
        ),
    ];
    for (module, wanted) in cases {
        let output = Command::new(module).arg("argument").output().expect("it may be executed");
        assert_eq!((errors(&output), output.status.code()), (wanted, Some(126)));
    }
    // The same file, where it belongs.
    let mut run = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"));
    let output = run.args(["run", &program, "argument"]).output().expect("the tool");
    assert_eq!(
        (output.stdout, output.status.code()),
        (format!("{program}\nargument\n").into_bytes(), Some(2))
    );
}

/// `script`, as root of namespaces of its own with an empty `binfmt_misc` (Linux 6.7), nothing in
/// `/usr/local/bin`, and directories of its own for `/etc`.
fn inside(script: &str) -> Output {
    const PREPARED: &str = "mount -t binfmt_misc none /proc/sys/fs/binfmt_misc || exit 99
        mount -t tmpfs none /usr/local/bin; mount -t tmpfs none /etc; mkdir /etc/binfmt.d\n";
    let tool = Path::new(env!("CARGO_BIN_EXE_pebble-sfi"));
    let mut unshare = Command::new("unshare");
    unshare.args(["-Urm", "sh", "-c", &format!("{PREPARED}{script}")]).env("TOOL", tool);
    unshare.output().expect("unshare (Debian: util-linux)")
}

#[test]
fn what_is_installed_runs_modules_and_is_removed() {
    let place = Place::new("install");
    let program = place.module("program", PROGRAM);
    if inside("").status.code() != Some(0) {
        eprintln!("note: this kernel gives no binfmt_misc to user namespaces: not installed");
        return;
    }
    // Twice, as after an update; a wrong option shows that options are taken.
    let output = inside(&format!(
        "\"$TOOL\" install >/dev/null && \"$TOOL\" install && {program} --first second; echo $?
         PEBBLE_SFI_RUN='--memory 64 --none' {program}; PEBBLE_SFI_RUN='--dir \"' {program}
         PEBBLE_SFI_RUN=$(printf '\\377') {program}
         cat /etc/binfmt.d/*; ls /usr/local/bin
         \"$TOOL\" install --remove; \"$TOOL\" install --remove
         ls /etc/binfmt.d /usr/local/bin /proc/sys/fs/binfmt_misc | grep pebble; {program}; echo $?"
    ));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let wanted = format!(
        "put a copy of this program into /usr/local/bin/pebble-sfi-run
registered it with the kernel for modules: /proc/sys/fs/binfmt_misc/pebble-sfi
wrote /etc/binfmt.d/pebble-sfi.conf, so that each boot does so again
./FILE is now as `pebble sfi run FILE`, with the options in PEBBLE_SFI_RUN; `pebble sfi install --remove` undoes it
{program}
--first
second
3
:pebble-sfi:M:0:\\x7f\\x45\\x4c\\x46\\x02\\x01\\x01\\x00\\x00\\x50\\x42\\x4c\\x4d:\\xff\\xff\\xff\\xff\\xff\\xff\\xff\\x00\\x00\\xff\\xff\\xff\\xff:/usr/local/bin/pebble-sfi-run:
pebble-sfi-run
the kernel knows modules no more: /proc/sys/fs/binfmt_misc/pebble-sfi
removed /etc/binfmt.d/pebble-sfi.conf
removed /usr/local/bin/pebble-sfi-run
nothing was installed
126
"
    );
    assert_eq!(said, wanted, "{}", errors(&output));
    for wanted in ["--none ", "a quotation does not end", "is not UTF-8"] {
        assert!(errors(&output).contains(wanted), "{wanted}: {}", errors(&output));
    }
}

#[test]
fn where_it_cannot_be_installed_it_says_so() {
    let refused = |prepared: &str| {
        let output = Command::new("unshare")
            .args(["-Urm", "sh", "-c", &format!("{prepared}\"$TOOL\" install")])
            .env("TOOL", env!("CARGO_BIN_EXE_pebble-sfi"))
            .output()
            .expect("unshare (Debian: util-linux)");
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        errors(&output)
    };
    let said = refused("mount -t tmpfs none /proc/sys/fs; ");
    assert!(said.contains("the kernel has no binfmt_misc, or nobody has mounted it"), "{said}");
    let said = refused(
        "mount -t tmpfs none /proc/sys/fs; mkdir /proc/sys/fs/binfmt_misc; : \
                        >/proc/sys/fs/binfmt_misc/register; mount -t tmpfs -o ro none /usr/local/bin; ",
    );
    assert!(said.contains("/usr/local/bin/pebble-sfi-run: "), "{said}");
}
