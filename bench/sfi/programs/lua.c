/* Lua: a script of calls, closures, tables, strings and sorting. */
#include "bench.h"
#include "lua.h"
#include "lauxlib.h"
#include "lualib.h"

static const char script[] =
    "local function fib(n) if n < 2 then return n end return fib(n - 1) + fib(n - 2) end\n"
    "local seed = 42\n"
    "local function random(n) seed = (seed * 1103515245 + 12345) % 2147483648; return seed // 65536 % n end\n"
    "local function queens(n)\n"
    "  local count, rows, up, down = 0, {}, {}, {}\n"
    "  local function place(r)\n"
    "    if r > n then count = count + 1 return end\n"
    "    for c = 1, n do\n"
    "      if not rows[c] and not up[r + c] and not down[r - c + n] then\n"
    "        rows[c], up[r + c], down[r - c + n] = true, true, true\n"
    "        place(r + 1)\n"
    "        rows[c], up[r + c], down[r - c + n] = nil, nil, nil\n"
    "      end\n"
    "    end\n"
    "  end\n"
    "  place(1) return count\n"
    "end\n"
    "local function words()\n"
    "  local t, seen = {}, {}\n"
    "  for i = 1, 4000 do t[#t + 1] = string.format('w%03d', random(700)) end\n"
    "  for word in table.concat(t, ' '):gmatch('%a%d+') do seen[word] = (seen[word] or 0) + 1 end\n"
    "  local list = {}\n"
    "  for word, n in pairs(seen) do list[#list + 1] = { word = word, n = n } end\n"
    "  table.sort(list, function(a, b) if a.n ~= b.n then return a.n > b.n end return a.word < b.word end)\n"
    "  return list[1].n * 1000 + list[#list].n, list[1].word:upper()\n"
    "end\n"
    "local function matrix(n)\n"
    "  local a, sum = {}, 0.0\n"
    "  for i = 1, n do a[i] = {} for j = 1, n do a[i][j] = i * 0.5 - j * 0.25 end end\n"
    "  for i = 1, n do for j = 1, n do local s = 0.0 for k = 1, n do s = s + a[i][k] * a[k][j] end sum = sum + s end end\n"
    "  return math.floor(sum)\n"
    "end\n"
    "local function account()\n"
    "  local A = {} A.__index = A\n"
    "  function A.new(b) return setmetatable({ b = b }, A) end\n"
    "  function A:add(n) self.b = self.b + n return self end\n"
    "  local all = {}\n"
    "  for i = 1, 2000 do all[i] = A.new(i) end\n"
    "  for r = 1, 10 do for i = 1, #all do all[i]:add(i % 7):add(-1) end end\n"
    "  return all[#all].b\n"
    "end\n"
    "local n, word = words()\n"
    "return string.format('%d %d %d %s %d %d', fib(22), queens(7), n, word, matrix(40), account())\n";

static void prepare(void) {}

static void work(void) {
    lua_State *lua = luaL_newstate();
    bench_check(lua != NULL, "luaL_newstate");
    luaL_requiref(lua, "_G", luaopen_base, 1);
    luaL_requiref(lua, "string", luaopen_string, 1);
    luaL_requiref(lua, "table", luaopen_table, 1);
    luaL_requiref(lua, "math", luaopen_math, 1);
    if (luaL_loadstring(lua, script) || lua_pcall(lua, 0, 1, 0)) {
        puts(lua_tostring(lua, -1));
        exit(1);
    }
    const char *result = lua_tostring(lua, -1);
    bench_add_bytes(result, strlen(result));
    lua_close(lua);
}

BENCH_MAIN("lua", prepare, work)
