//! Prints `pebble.h`.

fn main() {
    print!("{}", pebble_header::header());
}
