//! What gdb's `bt` shows at a fault: every function of the module that has been called, and the host's,
//! through portals in both directions.

mod map;

use std::path::{Path, PathBuf};
use std::process::Command;

struct Place(PathBuf);

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(status.success(), "{command:?}");
}

/// The host, and the plugin by each compiler and optimisation.
fn place() -> (Place, PathBuf) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let libraries =
        std::env::current_exe().expect("this test").parent().expect("its directory").to_path_buf();
    let place = Place(std::env::temp_dir().join(format!("pebble-sfi-unwind-{}", std::process::id())));
    std::fs::create_dir_all(&place.0).expect("a directory");
    run(Command::new("clang-19")
        .args(["-g", "-Wall", "-Werror", "-I"])
        .arg(root.join("sfi/runtime/include"))
        .arg(root.join("sfi/tool/tests/unwind/host.c"))
        .arg(libraries.join("libpebble_sfi_runtime.so"))
        .arg("-o")
        .arg(place.0.join("host")));
    (place, libraries)
}

/// Names of the functions in `bt` at the first fault, the innermost first.
fn frames(place: &Path, libraries: &Path, which: &str) -> Vec<String> {
    std::fs::write(place.join("commands"), "set debuginfod enabled off\nset confirm off\nrun\nbt\nkill\n")
        .unwrap();
    let mut gdb = Command::new("gdb");
    gdb.args(["-batch", "-nx", "-x"]).arg(place.join("commands")).arg("--args").arg(place.join("host"));
    gdb.arg(place.join("plugin.pbl")).arg(which);
    gdb.env("PEBBLE_SFI_DEBUG", "1").env("LD_LIBRARY_PATH", libraries);
    let output = gdb.output().expect("gdb (Debian: gdb)");
    let said = String::from_utf8_lossy(&output.stdout);
    let map = map::Map::of(&said).unwrap_or_else(|| panic!("{output:?}"));
    assert!(map.0.exists(), "{}", map.0.display());
    let lines = said.lines().filter(|line| line.starts_with('#'));
    let found: Vec<String> = lines.map(name).collect();
    assert!(!found.is_empty(), "{output:?}");
    found
}

/// `#1  0x… in NAME (…) at FILE`, `#0  NAME (…) at FILE`, `#2  <signal handler called>`.
fn name(line: &str) -> String {
    let rest = line.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim());
    let rest = rest.split_once(" in ").filter(|(at, _)| at.starts_with("0x")).map_or(rest, |(_, rest)| rest);
    rest.split(" (").next().unwrap_or_default().to_string()
}

#[test]
fn a_backtrace_goes_on_to_the_host() {
    let (place, libraries) = place();
    const PORTAL: &str = "<signal handler called>";
    let inner = ["leaf", "saves", "large", "moved", "again", "again", "again", "enter", PORTAL, "outer"];
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/unwind/plugin.c");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../libc/include");
    for (compiler, options) in [("clang", "-O0"), ("clang", "-O1"), ("gcc", "-O0"), ("gcc", "-O1")] {
        run(Command::new(env!("CARGO_BIN_EXE_pebble-sfi"))
            .args(["cc", "--compiler", compiler, "-g", options, "-fno-optimize-sibling-calls"])
            .args(["-nostdlib", "-isystem"])
            .arg(&include)
            .arg(&source)
            .arg("-o")
            .arg(place.0.join("plugin.pbl")));
        let direct = [&inner[..], &["main"]].concat();
        assert_eq!(frames(&place.0, &libraries, "enter"), direct, "{compiler} {options}");
        let astray = ["??", "call", "astray", PORTAL, "outer", "main"];
        assert_eq!(frames(&place.0, &libraries, "astray"), astray, "{compiler} {options}");
        let nested = [&inner[..], &["called_back", PORTAL, "out", PORTAL, "outer", "main"]].concat();
        assert_eq!(frames(&place.0, &libraries, "out"), nested, "{compiler} {options}");
    }
}
