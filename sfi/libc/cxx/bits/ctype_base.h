/* Classes of characters as bits of our own: glibc's are the system's. Nothing in a domain has a table of them. */
namespace std _GLIBCXX_VISIBILITY(default)
{
struct ctype_base {
    typedef const int *__to_type;
    typedef unsigned short mask;
    static const mask upper = 1 << 0, lower = 1 << 1, alpha = 1 << 2, digit = 1 << 3, xdigit = 1 << 4, space = 1 << 5;
    static const mask print = 1 << 6, cntrl = 1 << 7, punct = 1 << 8, blank = 1 << 9;
    static const mask alnum = alpha | digit, graph = alnum | punct;
};
}
