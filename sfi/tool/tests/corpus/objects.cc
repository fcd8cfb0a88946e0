extern "C" void __cxa_pure_virtual() {}
extern "C" { void t_out(long); int t_main(void); }
struct V { virtual long f(long x) = 0; virtual ~V() {} };
struct P : V { long k; P(long k) : k(k) {} long f(long x) override { return x * k; } ~P() { t_out(k); } };
struct Q : P { Q(long k) : P(k + 1) {} long f(long x) override { return P::f(x) - k; } };
void operator delete(void *, unsigned long) noexcept {}
template <class T, int N> struct Arr { T d[N]; T &operator[](int i) { return d[i]; } template <class F> void each(F f) { for (auto &x : d) f(x); } };
static long twice(V &v, long x) { return v.f(v.f(x)); }
__attribute__((noinline)) long use(V *const *v, int n) { long s = 0; for (int i = 0; i < n; i++) s += twice(*v[i], i + 2); return s; }
long (P::*volatile pm)(long) = &P::f;
int t_main() { Q q(5); P p(3); V *v[] = {&p, &q, &p}; t_out(use(v, 3)); Arr<long, 9> a; for (int i = 0; i < 9; i++) a[i] = i * i; long s = 0; a.each([&](long &x) { x += s; s = x; }); t_out(s); t_out((q.*pm)(11)); return 6; }
