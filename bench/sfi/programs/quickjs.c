/* QuickJS: a script of objects, closures, typed arrays, strings and regular expressions. */
#include "bench.h"
#include "quickjs.h"

static const char script[] =
    "(function () {\n"
    "  let seed = 7;\n"
    "  const random = n => (seed = (Math.imul(seed, 1103515245) + 12345) >>> 0, (seed >>> 16) % n);\n"
    "  class Node { constructor(key) { this.key = key; this.left = this.right = null; } }\n"
    "  const insert = (n, key) => { if (!n) return new Node(key);\n"
    "    if (key < n.key) n.left = insert(n.left, key); else if (key > n.key) n.right = insert(n.right, key); return n; };\n"
    "  const depth = n => n ? 1 + Math.max(depth(n.left), depth(n.right)) : 0;\n"
    "  let root = null;\n"
    "  for (let i = 0; i < 1500; i++) root = insert(root, random(100000));\n"
    "  const sieve = new Uint8Array(20000); let primes = 0;\n"
    "  for (let i = 2; i < sieve.length; i++) { if (sieve[i]) continue; primes++;\n"
    "    for (let j = i * 2; j < sieve.length; j += i) sieve[j] = 1; }\n"
    "  const words = Array.from({ length: 1500 }, () => 'w' + random(300).toString(36));\n"
    "  const count = new Map();\n"
    "  for (const w of words) count.set(w, (count.get(w) ?? 0) + 1);\n"
    "  const top = [...count].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).slice(0, 5).join(';');\n"
    "  const found = words.join(' ').replace(/w([a-f])(\\w?)/g, '$2$1-').match(/[a-f]-/g).length;\n"
    "  let x = 0.5; for (let i = 0; i < 30000; i++) x = 3.7 * x * (1 - x);\n"
    "  const json = JSON.stringify(JSON.parse(JSON.stringify({ top, primes, list: words.slice(0, 200) }))).length;\n"
    "  return [depth(root), primes, top, found, x.toFixed(6), json].join(' ');\n"
    "})()";

static void prepare(void) {}

static void work(void) {
    JSRuntime *runtime = JS_NewRuntime();
    JSContext *context = JS_NewContext(runtime);
    JS_SetMaxStackSize(runtime, 0);
    JSValue value = JS_Eval(context, script, sizeof script - 1, "bench.js", JS_EVAL_TYPE_GLOBAL);
    if (JS_IsException(value))
        value = JS_GetException(context);
    const char *text = JS_ToCString(context, value);
    bench_check(text != NULL, "a result");
    bench_add_bytes(text, strlen(text));
    JS_FreeCString(context, text);
    JS_FreeValue(context, value);
    JS_FreeContext(context);
    JS_FreeRuntime(runtime);
}

BENCH_MAIN("quickjs", prepare, work)
