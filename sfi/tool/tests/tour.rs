//! The example in `examples/sfi`: a plugin, and a host in C that calls it and survives it; and what gdb and
//! perf are told of both.

mod map;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The host and the plugin, built in a directory that goes with this.
struct Tour {
    place: PathBuf,
    libraries: PathBuf,
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(status.success(), "{command:?}");
}

impl Tour {
    fn new(name: &str) -> Tour {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let exe = std::env::current_exe().expect("this test");
        let libraries = exe.parent().expect("its directory").to_path_buf();
        let place = std::env::temp_dir().join(format!("pebble-sfi-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&place).expect("a directory");
        run(Command::new(env!("CARGO_BIN_EXE_pebble-sfi"))
            .args(["cc", "-g", "-O2", "-nostdlib", "-isystem"])
            .arg(root.join("sfi/libc/include"))
            .arg(root.join("examples/sfi/plugin.c"))
            .arg("-o")
            .arg(place.join("plugin.pbl")));
        run(Command::new("clang-19")
            .args(["-Wall", "-Wextra", "-Werror", "-g", "-I"])
            .arg(root.join("sfi/runtime/include"))
            .arg(root.join("examples/sfi/host.c"))
            .arg(libraries.join("libpebble_sfi_runtime.so"))
            .arg("-o")
            .arg(place.join("host")));
        Tour { place, libraries }
    }

    /// A command about the host and its argument, the plugin.
    fn command(&self, program: &str, options: &[&str]) -> Command {
        let mut command = Command::new(program);
        command.args(options).arg(self.place.join("host")).arg(self.place.join("plugin.pbl"));
        command.env("LD_LIBRARY_PATH", &self.libraries);
        command
    }
}

impl Drop for Tour {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.place);
    }
}

#[test]
fn a_host_survives_its_plugin() {
    survives(Tour::new("tour").command("env", &[]).output().expect("the host"));
}

/// valgrind's processor has no FSGSBASE: the kernel sets the base of the only instance.
#[test]
fn a_host_under_valgrind_survives_its_plugin() {
    let tour = Tour::new("valgrind");
    let output = tour.command("valgrind", &["--tool=none"]).output().expect("valgrind (Debian: valgrind)");
    survives(output);
}

fn survives(output: Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    let wanted = [
        "sum of squares: 385",
        "a pixel: 150",
        "crash survived: cause 1 in crash at plugin.c:",
        "poisoned: yes",
        "hang survived: cause 6 in hang at plugin.c:",
        "as good as new: 385",
    ];
    assert_eq!(said.lines().count(), wanted.len(), "{output:?}");
    for (line, wanted) in said.lines().zip(wanted) {
        assert!(line.starts_with(wanted), "{line:?} is not {wanted:?}");
    }
}

/// The line of the plugin that has this text.
fn line(text: &str) -> usize {
    let source = include_str!("../../../examples/sfi/plugin.c");
    source.lines().position(|line| line.contains(text)).expect("a line of the plugin") + 1
}

/// At a fault in the domain gdb knows function, file and line, as it does outside.
#[test]
fn gdb_and_perf_know_the_plugins_code() {
    let tour = Tour::new("gdb");
    let commands = "set debuginfod enabled off\nset confirm off\nrun\nbt\ninfo line *$pc\nlist\nkill\n";
    std::fs::write(tour.place.join("commands"), commands).unwrap();
    let script = tour.place.join("commands").display().to_string();
    let mut gdb = tour.command("gdb", &["-batch", "-nx", "-x", &script, "--args"]);
    let output = gdb.env("PEBBLE_SFI_DEBUG", "1").output().expect("gdb (Debian: gdb)");
    let said = String::from_utf8_lossy(&output.stdout);
    let here = line("= 42;");
    let frame = said.lines().find(|line| line.starts_with("#0")).unwrap_or_else(|| panic!("{output:?}"));
    assert!(frame.contains("crash (") && frame.contains(&format!("plugin.c:{here}")), "{frame}\n{output:?}");
    assert!(said.contains("*(volatile int *)where = 42;"), "the source: {said}");
    // perf's map: begin and length in hexadecimal, and the name.
    let map = map::Map::of(&said).unwrap_or_else(|| panic!("{output:?}"));
    let text = std::fs::read_to_string(&map.0).expect("perf's map");
    let known = |name: &str| text.lines().any(|line| line.ends_with(&format!("`{name}")));
    assert!(known("crash") && known("sum_of_squares"), "{text}");
}
