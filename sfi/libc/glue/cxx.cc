/* What C++ programs need beside headers, without exceptions and run-time types: memory, static variables, and those parts of Debian's
 * libstdc++ that its templates (vector, string, map, list, unordered_map, function, ...) call out of line. What would be thrown ends the
 * domain with a message. Streams and locales are not among them. The rest is in `cxx_library.cc`. */
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <memory>
#include <new>
#include <string>
#include <unordered_map>

extern "C" {
__attribute__((visibility("hidden"))) void *__dso_handle;

[[noreturn]] void __cxa_pure_virtual() { std::fputs("pure virtual function called\n", stderr); std::abort(); }
[[noreturn]] void __cxa_deleted_virtual() { std::fputs("deleted virtual function called\n", stderr); std::abort(); }

/* A guard's first byte says that the variable is there, the second that somebody is making it. */
int __cxa_guard_acquire(char *guard) {
    while (!__atomic_load_n(guard, __ATOMIC_ACQUIRE)) {
        if (!__atomic_exchange_n(guard + 1, 1, __ATOMIC_ACQUIRE)) {
            if (!__atomic_load_n(guard, __ATOMIC_ACQUIRE)) return 1;
            __atomic_store_n(guard + 1, 0, __ATOMIC_RELEASE);
        }
        __builtin_ia32_pause();
    }
    return 0;
}
void __cxa_guard_release(char *guard) {
    __atomic_store_n(guard, 1, __ATOMIC_RELEASE);
    __atomic_store_n(guard + 1, 0, __ATOMIC_RELEASE);
}
void __cxa_guard_abort(char *guard) { __atomic_store_n(guard + 1, 0, __ATOMIC_RELEASE); }
}

namespace {
[[noreturn]] void thrown(const char *what) {
    std::fprintf(stderr, "exception in a fault domain, which has none: %s\n", what);
    std::abort();
}
void *take(std::size_t bytes) {
    if (void *at = std::malloc(bytes ? bytes : 1)) return at;
    thrown("std::bad_alloc");
}
void *take(std::size_t bytes, std::align_val_t align) {
    void *at;
    std::size_t least = (std::size_t)align < sizeof(void *) ? sizeof(void *) : (std::size_t)align;
    if (posix_memalign(&at, least, bytes ? bytes : 1) == 0) return at;
    thrown("std::bad_alloc");
}
}

const std::nothrow_t std::nothrow{};
void *operator new(std::size_t n) { return take(n); }
void *operator new[](std::size_t n) { return take(n); }
void *operator new(std::size_t n, const std::nothrow_t &) noexcept { return std::malloc(n ? n : 1); }
void *operator new[](std::size_t n, const std::nothrow_t &) noexcept { return std::malloc(n ? n : 1); }
void *operator new(std::size_t n, std::align_val_t a) { return take(n, a); }
void *operator new[](std::size_t n, std::align_val_t a) { return take(n, a); }
void operator delete(void *p) noexcept { std::free(p); }
void operator delete[](void *p) noexcept { std::free(p); }
void operator delete(void *p, std::size_t) noexcept { std::free(p); }
void operator delete[](void *p, std::size_t) noexcept { std::free(p); }
void operator delete(void *p, const std::nothrow_t &) noexcept { std::free(p); }
void operator delete[](void *p, const std::nothrow_t &) noexcept { std::free(p); }
void operator delete(void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void *p, std::align_val_t) noexcept { std::free(p); }
void operator delete(void *p, std::size_t, std::align_val_t) noexcept { std::free(p); }
void operator delete[](void *p, std::size_t, std::align_val_t) noexcept { std::free(p); }

namespace std {
void terminate() noexcept { std::fputs("std::terminate\n", stderr); std::abort(); }
exception::~exception() noexcept {}
const char *exception::what() const noexcept { return "std::exception"; }

void __throw_bad_exception() { thrown("std::bad_exception"); }
void __throw_bad_alloc() { thrown("std::bad_alloc"); }
void __throw_bad_array_new_length() { thrown("std::bad_array_new_length"); }
void __throw_bad_cast() { thrown("std::bad_cast"); }
void __throw_bad_typeid() { thrown("std::bad_typeid"); }
void __throw_bad_function_call() { thrown("std::bad_function_call"); }
void __throw_logic_error(const char *s) { thrown(s); }
void __throw_domain_error(const char *s) { thrown(s); }
void __throw_invalid_argument(const char *s) { thrown(s); }
void __throw_length_error(const char *s) { thrown(s); }
void __throw_out_of_range(const char *s) { thrown(s); }
void __throw_runtime_error(const char *s) { thrown(s); }
void __throw_range_error(const char *s) { thrown(s); }
void __throw_overflow_error(const char *s) { thrown(s); }
void __throw_underflow_error(const char *s) { thrown(s); }
void __throw_system_error(int number) { thrown(strerror(number)); }
void __throw_out_of_range_fmt(const char *format, ...) {
    char text[256];
    va_list list;
    va_start(list, format);
    std::vsnprintf(text, sizeof text, format, list);
    thrown(text);
}

template class allocator<char>;
template class allocator<wchar_t>;
template class basic_string<char>;
template class basic_string<wchar_t>;
/* Without run-time types its address is compared before this is asked. */
bool _Sp_make_shared_tag::_S_eq(const type_info &) noexcept { return false; }

/* Red-black trees. The header's parent is the root, its children the first and the last node; it is red, and the root is not. */
using Node = _Rb_tree_node_base;

_GLIBCXX_PURE Node *_Rb_tree_increment(Node *x) throw() {
    if (x->_M_right) return Node::_S_minimum(x->_M_right);
    Node *up = x->_M_parent;
    for (; x == up->_M_right; up = up->_M_parent) x = up;
    return x->_M_right != up ? up : x;
}
_GLIBCXX_PURE const Node *_Rb_tree_increment(const Node *x) throw() { return _Rb_tree_increment(const_cast<Node *>(x)); }
_GLIBCXX_PURE Node *_Rb_tree_decrement(Node *x) throw() {
    if (x->_M_color == _S_red && x->_M_parent->_M_parent == x) return x->_M_right;
    if (x->_M_left) return Node::_S_maximum(x->_M_left);
    Node *up = x->_M_parent;
    for (; x == up->_M_left; up = up->_M_parent) x = up;
    return up;
}
_GLIBCXX_PURE const Node *_Rb_tree_decrement(const Node *x) throw() { return _Rb_tree_decrement(const_cast<Node *>(x)); }

/* Puts `by` where `x` hangs. */
static void replace(Node *x, Node *by, Node *&root) {
    if (x == root) root = by;
    else (x == x->_M_parent->_M_left ? x->_M_parent->_M_left : x->_M_parent->_M_right) = by;
    if (by) by->_M_parent = x->_M_parent;
}
/* Child `up` on the one side takes the place of `x`, which becomes its child on the other. */
static void rotate(Node *x, Node *Node::*one, Node *Node::*other, Node *&root) {
    Node *up = x->*one, *between = up->*other;
    replace(x, up, root);
    x->*one = between;
    if (between) between->_M_parent = x;
    up->*other = x;
    x->_M_parent = up;
}

void _Rb_tree_insert_and_rebalance(const bool left, Node *x, Node *p, Node &header) throw() {
    Node *&root = header._M_parent;
    x->_M_parent = p;
    x->_M_left = x->_M_right = nullptr;
    x->_M_color = _S_red;
    if (left) {
        p->_M_left = x;  // The header's left, too, if it is the parent.
        if (p == &header) header._M_parent = header._M_right = x;
        else if (p == header._M_left) header._M_left = x;
    } else {
        p->_M_right = x;
        if (p == header._M_right) header._M_right = x;
    }
    while (x != root && x->_M_parent->_M_color == _S_red) {
        Node *up = x->_M_parent, *top = up->_M_parent;
        bool on_left = up == top->_M_left;
        Node *Node::*near = on_left ? &Node::_M_left : &Node::_M_right, *Node::*far = on_left ? &Node::_M_right : &Node::_M_left;
        Node *uncle = top->*far;
        if (uncle && uncle->_M_color == _S_red) {
            up->_M_color = uncle->_M_color = _S_black;
            top->_M_color = _S_red;
            x = top;
            continue;
        }
        if (x == up->*far) {
            x = up;
            rotate(x, far, near, root);
            up = x->_M_parent;
        }
        up->_M_color = _S_black;
        top->_M_color = _S_red;
        rotate(top, near, far, root);
    }
    root->_M_color = _S_black;
}

/* The paths through `x`, a child of `p` or nothing, have one black node too few. */
static void rebalance(Node *x, Node *p, Node *&root) {
    while (x != root && (!x || x->_M_color == _S_black)) {
        bool on_left = x == p->_M_left;
        Node *Node::*near = on_left ? &Node::_M_left : &Node::_M_right, *Node::*far = on_left ? &Node::_M_right : &Node::_M_left;
        Node *w = p->*far;
        auto black = [](Node *n) { return !n || n->_M_color == _S_black; };
        if (!black(w)) {
            w->_M_color = _S_black;
            p->_M_color = _S_red;
            rotate(p, far, near, root);
            w = p->*far;
        }
        if (black(w->_M_left) && black(w->_M_right)) {
            w->_M_color = _S_red;
            x = p;
            p = p->_M_parent;
            continue;
        }
        if (black(w->*far)) {
            (w->*near)->_M_color = _S_black;
            w->_M_color = _S_red;
            rotate(w, near, far, root);
            w = p->*far;
        }
        w->_M_color = p->_M_color;
        p->_M_color = _S_black;
        (w->*far)->_M_color = _S_black;
        rotate(p, far, near, root);
        break;
    }
    if (x) x->_M_color = _S_black;
}

Node *_Rb_tree_rebalance_for_erase(Node *const z, Node &header) throw() {
    Node *&root = header._M_parent;
    if (header._M_left == z) header._M_left = z->_M_right ? Node::_S_minimum(z->_M_right) : z->_M_parent;
    if (header._M_right == z) header._M_right = z->_M_left ? Node::_S_maximum(z->_M_left) : z->_M_parent;
    Node *y = z->_M_left && z->_M_right ? Node::_S_minimum(z->_M_right) : z;
    Node *x = y->_M_left ? y->_M_left : y->_M_right, *p = y->_M_parent;
    replace(y, x, root);
    auto lost = y->_M_color;
    if (y != z) {
        // The next node takes its place and colour.
        if (p == z) p = y;
        replace(z, y, root);
        y->_M_color = z->_M_color;
        y->_M_left = z->_M_left;
        y->_M_right = z->_M_right;
        y->_M_left->_M_parent = y;
        if (y->_M_right) y->_M_right->_M_parent = y;
    }
    if (lost == _S_black) rebalance(x, p, root);
    return z;
}

namespace __detail {
void _List_node_base::_M_hook(_List_node_base *const at) noexcept {
    _M_next = at;
    _M_prev = at->_M_prev;
    at->_M_prev->_M_next = this;
    at->_M_prev = this;
}
void _List_node_base::_M_unhook() noexcept {
    _M_prev->_M_next = _M_next;
    _M_next->_M_prev = _M_prev;
}
void _List_node_base::_M_transfer(_List_node_base *const first, _List_node_base *const last) noexcept {
    if (this == last) return;
    last->_M_prev->_M_next = this;
    first->_M_prev->_M_next = last;
    _M_prev->_M_next = first;
    _List_node_base *const before = _M_prev;
    _M_prev = last->_M_prev;
    last->_M_prev = first->_M_prev;
    first->_M_prev = before;
}
void _List_node_base::_M_reverse() noexcept {
    _List_node_base *at = this;
    do {
        std::swap(at->_M_next, at->_M_prev);
        at = at->_M_prev;
    } while (at != this);
}
void _List_node_base::swap(_List_node_base &a, _List_node_base &b) noexcept {
    bool full_a = a._M_next != &a, full_b = b._M_next != &b;
    std::swap(a._M_next, b._M_next);
    std::swap(a._M_prev, b._M_prev);
    auto settle = [](_List_node_base &to, bool full) {
        if (full) to._M_next->_M_prev = to._M_prev->_M_next = &to;
        else to._M_next = to._M_prev = &to;
    };
    settle(a, full_b);
    settle(b, full_a);
}

/* Numbers of buckets: odd, without small factors, each about twice the last. */
size_t _Prime_rehash_policy::_M_next_bkt(size_t n) const {
    auto prime = [](size_t k) {
        for (size_t d = 3; d * d <= k; d += 2)
            if (k % d == 0) return false;
        return k & 1 || k == 2;
    };
    size_t k = n < 2 ? 2 : n;
    if (n < 2) {
        _M_next_resize = n == 0 ? 0 : (size_t)_M_max_load_factor;
        return 1;
    }
    while (!prime(k)) k++;
    _M_next_resize = (size_t)__builtin_floor(k * (double)_M_max_load_factor);
    return k;
}
pair<bool, size_t> _Prime_rehash_policy::_M_need_rehash(size_t buckets, size_t elements, size_t more) const {
    if (elements + more <= _M_next_resize) return {false, 0};
    double least = (elements + more > (_M_next_resize ? 0 : 11) ? elements + more : 11) / (double)_M_max_load_factor;
    if (least < buckets) {
        _M_next_resize = (size_t)__builtin_floor(buckets * (double)_M_max_load_factor);
        return {false, 0};
    }
    size_t wanted = (size_t)__builtin_floor(least) + 1;
    return {true, _M_next_bkt(wanted > buckets * 2 ? wanted : buckets * 2)};
}
}

/* MurmurHash2 for 64 bits, as libstdc++ has it. */
size_t _Hash_bytes(const void *from, size_t length, size_t seed) {
    const size_t mul = 0xc6a4a7935bd1e995;
    const char *at = static_cast<const char *>(from), *end = at + (length & ~(size_t)7);
    size_t hash = seed ^ (length * mul), word;
    auto mix = [](size_t v) { return v ^ (v >> 47); };
    for (; at != end; at += 8) {
        memcpy(&word, at, 8);
        hash = (hash ^ mix(word * mul) * mul) * mul;
    }
    if (length & 7) {
        word = 0;
        memcpy(&word, end, length & 7);
        hash = (hash ^ word) * mul;
    }
    return mix(mix(hash) * mul);
}
}
