/* What else the templates of libstdc++ call out of line: clocks, call_once, error categories, atomic shared pointers, memory resources. */
#include <chrono>
#include <cstring>
#include <ctime>
#include <memory>
#include <memory_resource>
#include <mutex>
#include <system_error>

namespace {
std::chrono::nanoseconds now(clockid_t clock) {
    timespec t;
    clock_gettime(clock, &t);
    return std::chrono::seconds(t.tv_sec) + std::chrono::nanoseconds(t.tv_nsec);
}
}

namespace std {
namespace chrono {
inline namespace _V2 {
system_clock::time_point system_clock::now() noexcept { return time_point(duration_cast<duration>(::now(CLOCK_REALTIME))); }
steady_clock::time_point steady_clock::now() noexcept { return time_point(::now(CLOCK_MONOTONIC)); }
}
}

__thread void *__once_callable;
__thread void (*__once_call)();
extern "C" void __once_proxy() { __once_call(); }

/* One lock for all: whoever holds it only copies a pointer. */
static char pointers;
_Sp_locker::_Sp_locker(const void *at) noexcept : _Sp_locker(at, at) {}
_Sp_locker::_Sp_locker(const void *, const void *) noexcept : _M_key1(0), _M_key2(0) {
    while (__atomic_exchange_n(&pointers, 1, __ATOMIC_ACQUIRE)) __builtin_ia32_pause();
}
_Sp_locker::~_Sp_locker() { __atomic_store_n(&pointers, 0, __ATOMIC_RELEASE); }

inline namespace _V2 {
error_category::~error_category() = default;
/* Of the ABI before C++11: nobody can ask for it. */
__cow_string error_category::_M_message(int) const { __throw_logic_error("a message of the old kind"); }
error_condition error_category::default_error_condition(int i) const noexcept { return error_condition(i, *this); }
bool error_category::equivalent(int i, const error_condition &c) const noexcept { return default_error_condition(i) == c; }
bool error_category::equivalent(const error_code &c, int i) const noexcept { return *this == c.category() && c.value() == i; }

namespace {
struct Errors : error_category {
    const char *called;
    explicit Errors(const char *name) : called(name) {}
    const char *name() const noexcept override { return called; }
    string message(int i) const override { return strerror(i); }
    error_condition default_error_condition(int i) const noexcept override { return error_condition(i, generic_category()); }
};
}
/* Never destroyed: destructors of others may ask. */
const error_category &generic_category() noexcept {
    static const Errors &errors = *new Errors("generic");
    return errors;
}
const error_category &system_category() noexcept {
    static const Errors &errors = *new Errors("system");
    return errors;
}
}

namespace pmr {
namespace {
struct Heap final : memory_resource {
    void *do_allocate(size_t bytes, size_t align) override { return ::operator new(bytes, align_val_t(align)); }
    void do_deallocate(void *p, size_t bytes, size_t align) override { ::operator delete(p, bytes, align_val_t(align)); }
    bool do_is_equal(const memory_resource &other) const noexcept override { return this == &other; }
};
struct Nothing final : memory_resource {
    void *do_allocate(size_t, size_t) override { __throw_bad_alloc(); }
    void do_deallocate(void *, size_t, size_t) override {}
    bool do_is_equal(const memory_resource &other) const noexcept override { return this == &other; }
};
memory_resource *standard;

/* Pools are lists of what they have given out: each block lies behind a node, which knows what to give back. */
template <class Node> size_t offset(size_t align) {
    size_t least = alignof(max_align_t) > align ? alignof(max_align_t) : align;
    return (sizeof(Node) + least - 1) & ~(least - 1);
}
template <class Node> void *take(Node *&first, memory_resource *from, size_t bytes, size_t align) {
    size_t before = offset<Node>(align), least = align > alignof(Node) ? align : alignof(Node);
    if (bytes > size_t(-1) - before) __throw_bad_alloc();
    char *begin = static_cast<char *>(from->allocate(before + bytes, least));
    Node *node = ::new (begin + before - sizeof(Node)) Node{first, &first, before, bytes, least};
    if (first) first->link = &node->next;
    first = node;
    return begin + before;
}
template <class Node> void give(Node *node, memory_resource *to) {
    *node->link = node->next;
    if (node->next) node->next->link = node->link;
    char *begin = reinterpret_cast<char *>(node + 1) - node->before;
    to->deallocate(begin, node->before + node->bytes, node->align);
}
}

memory_resource::~memory_resource() = default;
memory_resource *new_delete_resource() noexcept {
    static Heap *heap = new Heap;
    return heap;
}
memory_resource *null_memory_resource() noexcept {
    static Nothing *nothing = new Nothing;
    return nothing;
}
memory_resource *get_default_resource() noexcept {
    memory_resource *set = __atomic_load_n(&standard, __ATOMIC_ACQUIRE);
    return set ? set : new_delete_resource();
}
memory_resource *set_default_resource(memory_resource *r) noexcept {
    memory_resource *old = __atomic_exchange_n(&standard, r, __ATOMIC_ACQ_REL);
    return old ? old : new_delete_resource();
}

class monotonic_buffer_resource::_Chunk {
public:
    _Chunk *next;
    size_t bytes, align;
};
monotonic_buffer_resource::~monotonic_buffer_resource() { release(); }
void monotonic_buffer_resource::_M_new_buffer(size_t bytes, size_t align) {
    size_t room = bytes > _M_next_bufsiz ? bytes : _M_next_bufsiz, before = offset<_Chunk>(align);
    size_t least = align > alignof(_Chunk) ? align : alignof(_Chunk);
    if (room > size_t(-1) - before) __throw_bad_alloc();
    char *begin = static_cast<char *>(_M_upstream->allocate(before + room, least));
    _M_head = ::new (begin) _Chunk{_M_head, before + room, least};
    _M_current_buf = begin + before;
    _M_avail = room;
    _M_next_bufsiz = size_t(_M_next_bufsiz * _S_growth_factor);
}
void monotonic_buffer_resource::_M_release_buffers() noexcept {
    while (_Chunk *chunk = _M_head) {
        _M_head = chunk->next;
        _M_upstream->deallocate(chunk, chunk->bytes, chunk->align);
    }
}

struct __pool_resource::_Pool {
    _Pool *next, **link;
    size_t before, bytes, align;
};
struct __pool_resource::_BigBlock {};
__pool_resource::__pool_resource(const pool_options &o, memory_resource *up) : _M_opts(o), _M_unpooled(up), _M_npools(0) {}
__pool_resource::~__pool_resource() = default;

unsynchronized_pool_resource::unsynchronized_pool_resource(const pool_options &o, memory_resource *up) : _M_impl(o, up) {}
unsynchronized_pool_resource::~unsynchronized_pool_resource() { release(); }
void unsynchronized_pool_resource::release() {
    while (_M_pools) give(_M_pools, upstream_resource());
}
void *unsynchronized_pool_resource::do_allocate(size_t bytes, size_t align) {
    return take(_M_pools, upstream_resource(), bytes, align);
}
void unsynchronized_pool_resource::do_deallocate(void *p, size_t, size_t) {
    give(static_cast<_Pool *>(p) - 1, upstream_resource());
}

struct synchronized_pool_resource::_TPools {
    _TPools *next, **link;
    size_t before, bytes, align;
};
synchronized_pool_resource::synchronized_pool_resource(const pool_options &o, memory_resource *up) : _M_impl(o, up), _M_key(0) {}
synchronized_pool_resource::~synchronized_pool_resource() { release(); }
void synchronized_pool_resource::release() {
    lock_guard<shared_mutex> locked(_M_mx);
    while (_M_tpools) give(_M_tpools, upstream_resource());
}
void *synchronized_pool_resource::do_allocate(size_t bytes, size_t align) {
    lock_guard<shared_mutex> locked(_M_mx);
    return take(_M_tpools, upstream_resource(), bytes, align);
}
void synchronized_pool_resource::do_deallocate(void *p, size_t, size_t) {
    lock_guard<shared_mutex> locked(_M_mx);
    give(static_cast<_TPools *>(p) - 1, upstream_resource());
}
}
}
