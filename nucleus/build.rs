//! Links the nucleus with its own script.
fn main() {
    let dir = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:rustc-link-arg-bins=-T{dir}/src/arch/riscv64/nucleus.ld");
    println!("cargo:rerun-if-changed=src/arch/riscv64/nucleus.ld");
}
