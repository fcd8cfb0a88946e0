//! A kernel that refuses memory: at any request, once or from then on; and limits of a process that are too
//! small. Nothing breaks, and the messages say what failed and what to do.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

struct Place {
    place: PathBuf,
    libraries: PathBuf,
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(status.success(), "{command:?}");
}

impl Place {
    /// The example's plugin, and a host.
    fn new(name: &str, host: &str, options: &[&str]) -> Place {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let exe = std::env::current_exe().expect("this test");
        let libraries = exe.parent().expect("its directory").to_path_buf();
        let place = std::env::temp_dir().join(format!("pebble-sfi-refusals-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&place).expect("a directory");
        run(Command::new(env!("CARGO_BIN_EXE_pebble-sfi"))
            .args(["cc", "-O1", "-nostdlib", "-isystem"])
            .arg(root.join("sfi/libc/include"))
            .arg(root.join("examples/sfi/plugin.c"))
            .arg("-o")
            .arg(place.join("plugin.pbl")));
        run(Command::new("clang-19")
            .args(["-Wall", "-Werror", "-pthread", "-I"])
            .arg(root.join("sfi/runtime/include"))
            .args(options)
            .arg(root.join(host))
            .arg(libraries.join("libpebble_sfi_runtime.so"))
            .arg("-o")
            .arg(place.join("host")));
        Place { place, libraries }
    }

    /// The host under a shell's command, which ends with `exec "$@"`.
    fn host(&self, shell: &str, arguments: &[&str]) -> Output {
        let mut command = Command::new("sh");
        command.args(["-c", shell, "sh"]).arg(self.place.join("host")).arg(self.place.join("plugin.pbl"));
        command.args(arguments).env("LD_LIBRARY_PATH", &self.libraries).output().expect("the host")
    }
}

#[test]
fn every_refused_request_is_an_error_and_nothing_else() {
    // What the host defines itself takes the place of the kernel's.
    let place = Place::new("requests", "sfi/tool/tests/refusals/host.c", &["-rdynamic"]);
    for (arguments, least) in [(&[][..], 15), (&["lasting"], 15)] {
        let output = place.host("exec \"$@\"", arguments);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        let failed = said.lines().filter(|line| !line.ends_with(": done"));
        let known = |line: &&str| {
            line.contains("(ulimit -v, vm.overcommit_memory") || line.contains("the kernel must have memory")
        };
        assert!(failed.clone().all(|line| known(&line)), "{said}");
        assert!(failed.count() >= least, "{said}");
    }
}

#[test]
fn small_limits_are_told_and_one_instance_takes_little() {
    let place = Place::new("limits", "examples/sfi/host.c", &["-no-pie"]);
    let output = place.host("ulimit -v 8000000; exec \"$@\"", &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(1) && said.contains("32 GiB") && said.contains("ulimit -v"),
        "{output:?}"
    );
    // 40 GiB; no randomness of addresses, and a host that is not position-independent.
    for shell in ["ulimit -v 41943040; exec \"$@\"", "exec setarch -R \"$@\"", "ulimit -s 65536; exec \"$@\""]
    {
        let output = place.host(shell, &[]);
        assert!(output.status.success(), "{shell}: {output:?}");
        assert!(
            String::from_utf8_lossy(&output.stdout).contains("as good as new: 385"),
            "{shell}: {output:?}"
        );
    }
}
