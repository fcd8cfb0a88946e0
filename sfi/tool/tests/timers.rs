//! `-fpbl-no-timer`: whoever reads a clock of the processor's is refused, by the compiler with its line and
//! by the linker whoever has compiled it.

use std::path::Path;
use std::process::Command;

const SOURCE: &str =
    "extern unsigned long other(void);\nunsigned long now(void) {\n    return __builtin_ia32_rdtsc();\n}\n";

fn cc(place: &Path, args: &[&str]) -> Result<(), String> {
    let mut cc = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"));
    let done =
        cc.arg("cc").args(["-O1", "-nostdlib"]).args(args).current_dir(place).output().expect("pebble-sfi");
    if done.status.success() { Ok(()) } else { Err(String::from_utf8_lossy(&done.stderr).into_owned()) }
}

#[test]
fn no_timer_means_none() {
    let place = std::env::temp_dir().join(format!("pebble-sfi-timers-{}", std::process::id()));
    std::fs::create_dir_all(&place).unwrap();
    std::fs::write(place.join("now.c"), SOURCE).unwrap();
    std::fs::write(place.join("plain.c"), "unsigned long plain(unsigned long n) { return n + 1; }\n")
        .unwrap();
    let export = ["--export", "now"];
    cc(&place, &["now.c", "-o", "now.pbl", export[0], export[1]]).unwrap();
    let refused = cc(&place, &["-fpbl-no-timer", "now.c", "-o", "no.pbl", export[0], export[1]]).unwrap_err();
    assert!(
        refused.contains("now.c:3") && refused.contains("rdtsc") && refused.contains("-fpbl-no-timer"),
        "{refused}"
    );
    // Compiled without the option, or by who knows what.
    cc(&place, &["-c", "now.c", "-o", "now.o"]).unwrap();
    let refused = cc(&place, &["-fpbl-no-timer", "now.o", "-o", "no.pbl", export[0], export[1]]).unwrap_err();
    assert!(refused.contains("clock of the processor's") && refused.contains("in now+"), "{refused}");
    assert!(!place.join("no.pbl").exists());
    cc(&place, &["-fpbl-no-timer", "plain.c", "-o", "plain.pbl", "--export", "plain"]).unwrap();
    let verify = Command::new(env!("CARGO_BIN_EXE_pebble-sfi"))
        .args(["verify", "now.pbl", "plain.pbl"])
        .current_dir(&place)
        .output();
    let said = String::from_utf8(verify.unwrap().stdout).unwrap();
    let lines: Vec<bool> = said.lines().map(|line| line.ends_with("; reads a timer")).collect();
    assert_eq!(lines, [true, false], "{said}");
    std::fs::remove_dir_all(place).unwrap();
}
