#!/bin/sh
# Builds the C library of fault domains from an unpacked musl source tree: build.sh MUSL OUT PEBBLE-SFI [LEVEL]
# The sources are used as they are, with an architecture directory of our own; musl, because it is small, maintained, and
# keeps everything that knows the processor in one place.
set -eu
musl=$(realpath "$1"); out=$2; tool=$(realpath "$3"); level=${4:-full}
here=$(dirname "$(realpath "$0")"); glue=$here/glue
rm -rf "$out"; mkdir -p "$out"; out=$(realpath "$out")
cp -r "$musl/." "$out/"; cd "$out"
cp -r arch/x86_64 arch/pebble
cp "$glue"/*_arch.h arch/pebble/
rm -f src/env/__init_tls.c
mkdir -p src/env src/math/pebble src/string/pebble src/pbl
cp "$glue/tls.c" src/env/__init_tls.c
cp "$glue/libc.c" src/internal/libc.c
cp "$glue/fenv.c" src/fenv/fenv.c
cp "$glue/syscall.c" "$glue/builtins.c" "$glue/formats.c" "$glue/cpu.c" "$glue/atomic.c" src/pbl/
cp src/math/x86_64/* src/math/pebble/
rm -f src/math/pebble/exp2l.s src/math/pebble/expl.s src/math/pebble/expm1l.s # these call local labels
cp src/string/x86_64/memcpy.s src/string/x86_64/memset.s src/string/pebble/
mkdir -p src/setjmp/pebble; cp "$glue/setjmp.s" src/setjmp/pebble/setjmp.s; : > src/setjmp/pebble/longjmp.s
cat > config.mak <<EOF
ARCH = pebble
SUBARCH =
ASMSUBARCH =
srcdir = .
prefix = $out/install
exec_prefix = \$(prefix)
bindir = \$(prefix)/bin
libdir = \$(prefix)/lib
includedir = \$(prefix)/include
syslibdir = /lib
CC = $tool cc -fpbl-level=$level
AR = $tool ar
RANLIB = $tool ranlib
CFLAGS = -O2 -w
CFLAGS_C99FSE = -std=c99 -ffreestanding -nostdinc
CFLAGS_AUTO = -fno-builtin
OPTIMIZE_GLOBS = internal/*.c malloc/*.c string/*.c
MALLOC_DIR = mallocng
EOF
make -k -j"${JOBS:-2}" lib/libc.a lib/crt1.o install-headers install-libs SHARED_LIBS= >build.log 2>&1 || { tail -30 build.log; exit 1; }

# The C++ runtime, if the system has the headers of libstdc++: what lies in front of those, and what they call.
if [ -e /usr/include/c++ ]; then
    front=install/include/c++
    mkdir -p root; ln -s "$out" "root/$level"
    cp -r "$here/cxx" "$front"; sh "$here/cxx-fronts.sh" "$front"
    for file in cxx cxx_library; do
        PEBBLE_SFI_LIBC=$out/root "$tool" c++ -fpbl-level="$level" -std=c++17 -O2 -c "$glue/$file.cc" -o "$file.o"
    done
    "$tool" ar rcs install/lib/libstdc++.a cxx.o cxx_library.o
fi
