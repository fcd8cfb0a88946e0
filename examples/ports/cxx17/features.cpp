// What of C++17 programs use every day: printed here, and by the same program on the host.
#include <algorithm>
#include <any>
#include <array>
#include <atomic>
#include <bitset>
#include <charconv>
#include <chrono>
#include <complex>
#include <deque>
#include <fstream>
#include <functional>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <memory_resource>
#include <numeric>
#include <optional>
#include <random>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <typeinfo>
#include <unordered_map>
#include <valarray>
#include <variant>
#include <vector>

struct Base {
    virtual ~Base() { std::cout << "~Base\n"; }
    virtual std::string name() const { return "Base"; }
};
struct Other {
    virtual ~Other() = default;
    int other = 7;
};
struct Derived : virtual Base, Other {
    std::string name() const override { return "Derived"; }
};

struct Early {
    const char *what;
    explicit Early(const char *what) : what(what) { std::cout << "constructed " << what << '\n'; }
    ~Early() { std::cout << "destroyed " << what << '\n'; }
};
Early global("before main");
thread_local int of_thread = 6;

Early &local() {
    static Early only("when first used");
    return only;
}

template <class... Ts> struct Overloaded : Ts... { using Ts::operator()...; };
template <class... Ts> Overloaded(Ts...) -> Overloaded<Ts...>;

template <class T> std::string kind() {
    if constexpr (std::is_integral_v<T>)
        return "integral";
    else
        return "not integral";
}

static void containers() {
    std::vector<int> v(10);
    std::iota(v.begin(), v.end(), 1);
    std::reverse(v.begin(), v.end());
    std::sort(v.begin(), v.end(), [](int a, int b) { return a % 3 != b % 3 ? a % 3 < b % 3 : a < b; });
    for (int i : v)
        std::cout << i << ' ';
    std::map<std::string, std::vector<int>> groups;
    for (auto word : {"one", "two", "three", "four", "one"})
        groups[word].push_back(static_cast<int>(groups.size()));
    for (const auto &[word, places] : groups)
        std::cout << word << '=' << places.size() << ' ';
    std::unordered_map<std::string_view, int> counted;
    for (auto word : {"a", "b", "a"})
        ++counted[word];
    std::set<int> set(v.begin(), v.end());
    std::deque<int> deque(set.lower_bound(4), set.end());
    deque.push_front(0);
    std::cout << counted["a"] << counted["b"] << ' ' << std::accumulate(deque.begin(), deque.end(), 0) << '\n';
    std::array<std::byte, 512> room;
    std::pmr::monotonic_buffer_resource resource(room.data(), room.size());
    std::pmr::vector<std::pmr::string> texts(&resource);
    texts.emplace_back("a text that is too long to be kept in the string itself");
    std::cout << texts.front().size() << ' ' << std::bitset<8>(0xa5) << ' ' << std::valarray<int>{1, 2, 3}.sum() << '\n';
}

static void vocabulary() {
    std::variant<int, std::string, double> variant = "text";
    auto show = Overloaded{[](int i) { return "int " + std::to_string(i); }, [](const std::string &s) { return "string " + s; },
                           [](double d) { return "double " + std::to_string(d); }};
    std::cout << std::visit(show, variant) << ", ";
    variant = 0.5;
    std::cout << std::visit(show, variant) << ", " << std::optional<int>().value_or(3) << ", ";
    std::any any = std::string("any");
    std::cout << std::any_cast<std::string &>(any) << ", " << (std::any_cast<int>(&any) == nullptr) << '\n';
    auto shared = std::make_shared<Derived>();
    std::weak_ptr<Base> weak = shared;
    std::cout << shared.use_count() << weak.lock()->name() << weak.lock().use_count() << '\n';
    std::unique_ptr<Base> base = std::make_unique<Derived>();
    Base *plain = base.get();
    std::cout << (dynamic_cast<Derived *>(plain) != nullptr) << dynamic_cast<Other *>(plain)->other << (typeid(*plain) == typeid(Derived))
              << (dynamic_cast<Early *>(plain) == nullptr) << kind<long>() << kind<float>() << '\n';
    std::function<int(int)> f = std::bind([](int a, int b) { return a - b; }, 10, std::placeholders::_1);
    auto [x, y] = std::tuple(f(3), std::string_view("view").substr(1));
    std::cout << x << y << ' ' << std::apply([](auto... n) { return (n + ...); }, std::tuple(1, 2, 3)) << '\n';
}

static void streams() {
    std::cout << std::hex << std::showbase << 255 << ' ' << std::oct << 8 << std::dec << std::noshowbase << ' ' << std::setw(8) << std::setfill('*')
              << 42 << std::setfill(' ') << ' ' << std::fixed << std::setprecision(3) << 3.14159 << ' ' << std::scientific << 12345.678 << ' '
              << std::defaultfloat << std::setprecision(17) << 0.1 << std::setprecision(6) << ' ' << std::boolalpha << true << ' '
              << std::complex<double>(1, -2) << ' ' << std::quoted("a \"b\"") << '\n';
    std::istringstream in("12 0x1f 3.5e2 word\nthe rest of it");
    int a = 0, b = 0;
    double c = 0;
    std::string word, rest;
    in >> a >> std::hex >> b >> c >> word >> std::ws;
    std::getline(in, rest);
    std::cout << a << ' ' << b << ' ' << c << ' ' << word << " [" << rest << "] " << in.eof() << '\n';
    in.clear();
    in.str("x");
    in >> a;
    std::cout << in.fail() << ' ' << a << '\n';
}

static void files(const std::string &path) {
    {
        std::ofstream out(path);
        for (int i = 0; i < 1000; ++i)
            out << "line " << i << '\n';
    }
    std::fstream file(path, std::ios::in | std::ios::out);
    file.seekg(-9, std::ios::end);
    std::string last;
    std::getline(file, last);
    file.clear();
    file.seekp(0);
    file << "LINE" << std::flush;
    file.seekg(0);
    std::string first;
    std::getline(file, first);
    std::cout << last << ", " << first << ", " << std::ifstream("/none").is_open() << '\n';
}

static void numbers() {
    char text[32];
    auto end = std::to_chars(text, text + sizeof text, 1.0 / 3).ptr;
    std::string_view digits = "77x";
    int parsed = 0;
    auto [rest, error] = std::from_chars(digits.data(), digits.data() + digits.size(), parsed);
    std::cout << std::string_view(text, static_cast<std::size_t>(end - text)) << ' ' << parsed << (error == std::errc()) << *rest << ' '
              << std::stod("0x1p-3") << ' ' << std::stoi("z", nullptr, 36) << ' ' << std::gcd(12, 18) << '\n';
    std::mt19937_64 random(42);
    random.discard(9999);
    std::cout << random() << ' ' << std::minstd_rand(1)() << '\n';
    using namespace std::chrono_literals;
    std::cout << std::chrono::duration_cast<std::chrono::minutes>(3h + 90s).count() << ' '
              << (std::chrono::steady_clock::now() >= std::chrono::steady_clock::time_point()) << '\n';
    std::atomic<int> atomic = 5;
    std::cout << atomic.fetch_add(2) << atomic << '\n';
    std::string line = "key = value; other=thing";
    std::regex pair(R"((\w+)\s*=\s*(\w+))");
    for (std::sregex_iterator at(line.begin(), line.end(), pair), none; at != none; ++at)
        std::cout << (*at)[1] << ':' << (*at)[2] << ' ';
    std::cout << std::regex_replace(line, pair, "$2<-$1") << '\n';
}

int main(int argc, char **argv) {
    containers();
    vocabulary();
    streams();
    if (argc > 1)
        files(argv[1]);
    numbers();
    local();
    std::cout << local().what << ' ' << of_thread << '\n';
    std::cerr << "to standard error" << std::endl;
    return 3;
}
