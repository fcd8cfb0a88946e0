/* What C++ programs use of their library: containers, strings, virtual functions, static variables, closures, pointers that own. */
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

struct Shape {
    virtual double area() const = 0;
    virtual const char *name() const { return "shape"; }
    virtual ~Shape() { std::printf("gone: a shape\n"); }
};
struct Square : Shape {
    double side;
    explicit Square(double s) : side(s) {}
    double area() const override { return side * side; }
    const char *name() const override { return "square"; }
};
struct Disc : Shape {
    double r;
    explicit Disc(double r) : r(r) {}
    double area() const override { return 3 * r * r; }
    ~Disc() override { std::printf("gone: a disc\n"); }
};
struct Said {
    std::string text;
    explicit Said(const char *t) : text(t) { std::printf("made: %s\n", t); }
    ~Said() { std::printf("gone: %s\n", text.c_str()); }
};
static Said global("global");
struct alignas(128) Wide { char c[128]; };
Said &once() { static Said local("a static local variable"); return local; }

int main() {
    std::vector<std::unique_ptr<Shape>> shapes;
    for (int i = 1; i < 5; i++) {
        if (i & 1) shapes.push_back(std::make_unique<Square>(i));
        else shapes.push_back(std::make_unique<Disc>(i));
    }
    for (auto &s : shapes) std::printf("%s %g\n", s->name(), s->area());
    once(); once().text += ", changed and long enough to need memory of its own";

    std::map<std::string, int> words;
    std::unordered_map<std::string, int> hashed;
    std::string text = "the quick brown fox jumps over the lazy dog and the other fox";
    for (size_t at = 0; at < text.size();) {
        size_t end = std::min(text.find(' ', at), text.size());
        words[text.substr(at, end - at)]++;
        hashed[text.substr(at, end - at)] += 2;
        at = end + 1;
    }
    for (auto &[word, n] : words) std::printf("%s:%d:%d ", word.c_str(), n, hashed[word]);
    std::printf("%zu\n", words.size());

    // Insertions and removals in every order that a generator gives, compared with a sorted vector.
    std::multimap<unsigned, unsigned> tree; std::vector<unsigned> plain; unsigned seed = 1;
    for (int i = 0; i < 20000; i++) {
        seed = seed * 1664525 + 1013904223; unsigned key = seed >> 22;
        if (seed & 0x10000 || plain.empty()) { tree.emplace(key, i); plain.insert(std::upper_bound(plain.begin(), plain.end(), key), key); }
        else {
            auto at = tree.lower_bound(key); if (at == tree.end()) at = tree.begin();
            plain.erase(std::lower_bound(plain.begin(), plain.end(), at->first)); tree.erase(at);
        }
        if (i % 500 == 0) {
            bool same = tree.size() == plain.size() && std::equal(tree.begin(), tree.end(), plain.begin(), [](auto &a, unsigned b) { return a.first == b; });
            bool back = std::equal(tree.rbegin(), tree.rend(), plain.rbegin(), [](auto &a, unsigned b) { return a.first == b; });
            if (!same || !back) { std::printf("tree differs at %d\n", i); return 1; }
        }
    }
    std::printf("tree: %zu, %u..%u\n", tree.size(), tree.begin()->first, tree.rbegin()->first);

    std::unordered_map<long, long> numbers;
    for (long i = 0; i < 50000; i++) numbers[i * 7919 % 100003] += i;
    for (long i = 0; i < 50000; i += 3) numbers.erase(i * 7919 % 100003);
    long sum = 0; for (auto &[k, v] : numbers) sum += k ^ v;
    std::printf("%zu %ld %zu\n", numbers.size(), sum, std::hash<std::string>()("a text of some length"));

    std::list<int> list{5, 3, 9, 1}; list.sort(); list.reverse(); list.splice(list.begin(), std::list<int>{7, 8});
    for (int n : list) std::printf("%d ", n);
    std::set<std::string_view> set{"c", "a", "b"}; for (auto s : set) std::printf("%.*s", (int)s.size(), s.data());
    int base = 10; std::function<int(int)> add = [&base](int n) { return base += n; }; add(5);
    std::vector<int> v(100); std::iota(v.begin(), v.end(), 0); std::stable_sort(v.begin(), v.end(), [](int a, int b) { return a % 7 < b % 7; });
    std::printf(" %d %d %d %s\n", add(1), v[0], v[99], std::to_string(1234567 + v[50]).c_str());
    std::variant<int, std::string> either = "text"; std::optional<double> maybe = 1.5;
    auto shared = std::make_shared<Said>("shared"); std::shared_ptr<Said> other = shared; std::weak_ptr<Said> weak = shared;
    std::printf("%zu %g %ld %d\n", either.index(), *maybe, shared.use_count(), !weak.expired());
    auto wide = std::make_unique<Wide>(); auto many = new Wide[3]; std::printf("%d %d\n", (int)((size_t)wide.get() % 128), (int)((size_t)many % 128)); delete[] many;
    std::atexit([] { std::printf("at exit\n"); });
    return 7;
}
