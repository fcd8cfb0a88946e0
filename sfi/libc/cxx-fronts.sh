#!/bin/sh
# Headers in front of libstdc++'s: fronts.sh DIRECTORY
# What a domain has not got says so in one line; what only names a stream gets its declaration.
set -eu
place=$1
refuse() {
    why=$1; shift
    for header; do
        printf '#ifdef PBL_STREAMS_NAMED\n#include_next <%s>\n#else\n#error "<%s>: %s"\n#endif\n' \
            "$header" "$header" "$why" >"$place/$header"
    done
}
refuse "a fault domain has no streams; use <cstdio> and <string>" \
    fstream iomanip ios iostream istream ostream spanstream sstream streambuf syncstream
refuse "a fault domain has no locales; use <cstring>, <cwchar> and <cctype>" codecvt locale
refuse "a fault domain has no locales, which regular expressions want; use <regex.h> of the C library" regex
refuse "a fault domain has no threads, so nobody would be waited for" \
    barrier condition_variable future latch semaphore stop_token thread
refuse "there are no exceptions to report errors of files with; use <cstdio>, <dirent.h> and <unistd.h>" filesystem
for header in chrono complex execution memory bits/streambuf_iterator.h; do
    {
        printf '#pragma push_macro("PBL_STREAMS_NAMED")\n#define PBL_STREAMS_NAMED\n'
        printf '#include_next <%s>\n#pragma pop_macro("PBL_STREAMS_NAMED")\n' "$header"
    } >"$place/$header"
done
