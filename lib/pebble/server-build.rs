//! Build script of a component with a description, `interface.toml`: its exports come from there.

#[path = "component-build.rs"]
mod component;

fn main() {
    component::main();
    pebble_interface::glue::build();
}
