/* What compiles at one standard of C++ must at each later one: pointers that share, locks, clocks, complex numbers, memory resources. */
#include <atomic>
#include <chrono>
#include <complex>
#include <cstdio>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <vector>
#if __cplusplus >= 201703L
#include <memory_resource>
#include <shared_mutex>
#endif

struct Node : std::enable_shared_from_this<Node> {
    int value;
    std::weak_ptr<Node> parent;
    std::vector<std::shared_ptr<Node>> children;
    explicit Node(int v) : value(v) {}
    ~Node() { std::printf("gone: %d\n", value); }
};

static void pointers() {
    auto root = std::make_shared<Node>(1);
    for (int i = 2; i < 5; i++) {
        root->children.push_back(std::make_shared<Node>(i));
        root->children.back()->parent = root->shared_from_this();
    }
    std::weak_ptr<Node> child = root->children[1];
    std::printf("%d of %d\n", child.lock()->value, child.lock()->parent.lock()->value);
    std::printf("%ld\n", root.use_count());
    std::unique_ptr<std::string> own(new std::string("owned"));
    std::unique_ptr<std::string> taken = std::move(own);
    std::printf("%s %d\n", taken->c_str(), own == nullptr);
    std::shared_ptr<int> shown = std::make_shared<int>(5), next = std::make_shared<int>(6);
    std::atomic_store(&shown, next);
    std::printf("%d\n", *std::atomic_load(&shown));
    root.reset();
    std::printf("%d\n", child.expired());
}

static std::mutex one, two;
static std::recursive_mutex again;
static std::once_flag once;
static std::atomic<int> count{0};

static int deep(int n) {
    std::lock_guard<std::recursive_mutex> held(again);
    return n ? n + deep(n - 1) : 0;
}

static void locks() {
    for (int i = 0; i < 3; i++) {
        std::lock_guard<std::mutex> held(one);
        std::call_once(once, [] { std::printf("once\n"); });
        count += i;
    }
    std::unique_lock<std::mutex> first(one, std::defer_lock), second(two, std::defer_lock);
    std::lock(first, second);
    std::printf("%d %d %d %d\n", count.load(), first.owns_lock(), second.owns_lock(), deep(4));
}

static void numbers() {
    std::complex<double> z(3, 4), w = std::polar(2.0, 1.0);
    std::complex<double> product = z * w, root = std::sqrt(z), power = std::exp(std::complex<double>(0, 1));
    std::printf("%.12g %.12g %.12g\n", std::abs(z), std::arg(w), std::norm(product));
    std::printf("%.12g %.12g %.12g %.12g\n", root.real(), root.imag(), power.real(), (z / w).imag());
}

static void errors() {
    auto begun = std::chrono::steady_clock::now();
    auto passed = std::chrono::steady_clock::now() - begun;
    auto today = std::chrono::system_clock::now().time_since_epoch();
    std::printf("%d %d\n", passed >= passed.zero(), std::chrono::duration_cast<std::chrono::hours>(today).count() > 400000);
    std::error_code code = std::make_error_code(std::errc::no_such_file_or_directory);
    std::error_code own(2, std::system_category());
    std::printf("%s %s %d %d\n", code.category().name(), code.message().c_str(), own == code, own == std::errc::no_such_file_or_directory);
}

#if __cplusplus >= 201703L
struct Counting : std::pmr::memory_resource {
    long out = 0, calls = 0;
    void *do_allocate(size_t bytes, size_t align) override {
        out += bytes, calls++;
        return std::pmr::new_delete_resource()->allocate(bytes, align);
    }
    void do_deallocate(void *p, size_t bytes, size_t align) override {
        out -= bytes;
        std::pmr::new_delete_resource()->deallocate(p, bytes, align);
    }
    bool do_is_equal(const memory_resource &other) const noexcept override { return this == &other; }
};

template <class Resource> static void filled(const char *name) {
    Counting counting;
    {
        Resource resource(&counting);
        std::pmr::vector<std::pmr::string> words(&resource);
        for (int i = 0; i < 100; i++) words.emplace_back("a word that is too long to lie in its string itself");
        void *wide = resource.allocate(100, 256);
        std::printf("%s %zu %d %d\n", name, words[99].size(), counting.calls > 0, (size_t)wide % 256 == 0);
        resource.deallocate(wide, 100, 256);
        words.erase(words.begin() + 10, words.begin() + 50);
        (void)resource.allocate(1000);
    }
    std::printf("%s kept %ld\n", name, counting.out);
}

static void resources() {
    filled<std::pmr::monotonic_buffer_resource>("monotonic");
    filled<std::pmr::unsynchronized_pool_resource>("pool");
    filled<std::pmr::synchronized_pool_resource>("shared pool");
    char buffer[256];
    std::pmr::monotonic_buffer_resource small(buffer, sizeof buffer, std::pmr::null_memory_resource());
    std::pmr::memory_resource *before = std::pmr::set_default_resource(&small);
    std::pmr::string text("in the buffer, since the default resource is that");
    std::printf("%d %d\n", text.data() >= buffer && text.data() < buffer + 256, before == std::pmr::new_delete_resource());
    std::pmr::set_default_resource(nullptr);
    std::shared_mutex many;
    std::shared_lock<std::shared_mutex> reads(many), reads_too(many);
    std::printf("%d\n", reads.owns_lock() && reads_too.owns_lock());
}
#else
static void resources() {}
#endif

int main() {
    pointers();
    locks();
    numbers();
    errors();
    resources();
    return 3;
}
