//! The stubs of `pebble::client`, from the servers' descriptions.

fn main() {
    pebble_interface::rust::build();
}
