#!/bin/sh
# Compiles Rust's `core` and `alloc` for fault domains, from the sources that belong to the compiler: make.sh DIRECTORY PEBBLE-SFI RUSTC LEVEL
# DIRECTORY/rust/LEVEL becomes a sysroot with what the compiler must know of them, and librust.a with their code. One at a time.
set -eu
here=$(dirname "$(realpath "$0")")
place=$1 tool=$2 rustc=$3 level=$4
say() { echo "pebble sfi rustc: $*" >&2; }
source=$("$rustc" --print sysroot)/lib/rustlib/src/rust/library
[ -e "$source/core/src/lib.rs" ] || { say "no sources of core in $source: install rust-web-src, or rustup's rust-src"; exit 1; }
mkdir -p "$place/rust"
place=$(realpath "$place")/rust
exec 9>"$place/lock"
flock 9
out=$place/$level
made=$({ cat "$here/make.sh" "$here/builtins.rs" "$tool"; "$rustc" -vV; } | sha256sum)
[ "$(cat "$out/made" 2>/dev/null)" = "$made" ] && exit
say "compiling core and alloc for level $level (once; a minute or so)"
new=$out.new
rm -rf "$new"
crates=$new/lib/rustlib/x86_64-unknown-linux-gnu/lib
mkdir -p "$crates"
# crate NAME SOURCE
crate() {
    env -u PEBBLE_SFI_RUST -u PEBBLE_SFI_LEVEL -u RUSTFLAGS PEBBLE_RUSTC="$rustc" RUSTC_BOOTSTRAP=1 "$tool" rustc \
        --edition 2024 --crate-name "$1" --crate-type rlib "$2" --sysroot "$new" --cap-lints allow -C opt-level=3 \
        "-fpbl-level=$level" --emit="metadata=$crates/lib$1.rmeta" -c -o "$new/$1.o" >"$new/log" 2>&1 ||
        { tail -n 20 "$new/log" >&2; say "$1 does not compile"; exit 1; }
}
crate core "$source/core/src/lib.rs"
crate compiler_builtins "$here/builtins.rs"
crate alloc "$source/alloc/src/lib.rs"
"$tool" ar rcs "$new/librust.a" "$new/core.o" "$new/alloc.o" "$new/compiler_builtins.o"
rm "$new"/*.o "$new/log"
echo "$made" >"$new/made"
rm -rf "$out"
mv "$new" "$out"
