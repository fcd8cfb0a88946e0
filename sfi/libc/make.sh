#!/bin/sh
# Fetches the C library's sources with apt-get, and builds it for each level: make.sh DIRECTORY PEBBLE-SFI LEVEL...
# Lists of source packages are kept in DIRECTORY/debian, so that the system's stay as they are. One at a time.
set -eu
here=$(dirname "$(realpath "$0")")
place=$1 tool=$2
shift 2
version=1.2.3
sum=7d5b0b6062521e4627e099e4c9dc8248d32a30285e959b7eecaa780cf8cfd4a4
say() { echo "pebble sfi libc: $*" >&2; }
mkdir -p "$place"
place=$(realpath "$place")
exec 9>"$place/lock"
flock 9

archive=$place/debian/musl_$version.orig.tar.gz
source=$place/musl/musl-$version

fetch() {
    say "getting musl $version, the source package of Debian 12"
    cd "$place/debian"
    mkdir -p parts lists/partial cache/archives/partial
    for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
        case $list in *.list | *.sources) ;; *) continue ;; esac
        [ -e "$list" ] && sed -e 's/^deb /deb-src /' -e 's/^Types:.*/Types: deb-src/' "$list" >"parts/$(basename "$list")"
    done
    apt() {
        apt-get -q -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$PWD/parts" \
            -o "Dir::State::lists=$PWD/lists" -o "Dir::Cache=$PWD/cache" -o APT::Sandbox::User= "$@" >apt.log 2>&1
    }
    apt update && apt source --download-only "musl=$version-1" || {
        tail -n 5 apt.log >&2
        say "no source package; with musl-$version.tar.gz as $archive, the rest works offline"
        exit 1
    }
}

if [ ! -d "$source" ]; then
    mkdir -p "$place/debian" "$place/musl"
    [ -e "$archive" ] || (fetch)
    echo "$sum  $archive" | sha256sum --quiet --check - || { say "$archive is not what was expected"; exit 1; }
    tar -xf "$archive" -C "$place/musl"
fi
for level in "$@"; do
    out=$place/libc/$level
    # What it is made from, so that whoever waited for the lock does not make it again.
    made=$(cat "$here"/build.sh "$here"/cxx-fronts.sh "$here"/cxx/bits/* "$here"/glue/* "$tool" | sha256sum)
    if [ "$(cat "$out/made" 2>/dev/null)" = "$made" ]; then
        touch "$out/install/lib/libc.a"
        continue
    fi
    say "building for level $level (a minute or two)"
    mkdir -p "$place/libc"
    env -u PEBBLE_SFI_LIBC -u PEBBLE_SFI_LEVEL -u PEBBLE_CC -u MAKEFLAGS -u MAKELEVEL \
        sh "$here/build.sh" "$source" "$out.new" "$tool" "$level" >&2
    echo "$made" >"$out.new/made"
    rm -rf "$out"
    mv "$out.new" "$out"
done
