//! Links the nucleus with the processor's own script.
fn main() {
    let variable = |name| std::env::var(name).unwrap_or_default();
    let folder = format!("{}/src/arch/{}", variable("CARGO_MANIFEST_DIR"), variable("CARGO_CFG_TARGET_ARCH"));
    println!("cargo:rustc-link-arg-bins=-T{folder}/nucleus.ld");
    println!("cargo:rustc-link-arg-bin=nucleus-mips64=-eharness");
    println!("cargo:rerun-if-changed={folder}/nucleus.ld");
}
