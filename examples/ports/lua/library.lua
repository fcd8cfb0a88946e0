-- What every function of Lua's standard library says: printed here, and by the same Lua on the host.
local function show(name, ...)
    local words = table.pack(...)
    for i = 1, words.n do
        local word = words[i]
        words[i] = math.type(word) == "float" and string.format("%.14g", word) or tostring(word)
        if type(word) == "table" then
            local parts = {}
            for key, value in pairs(word) do parts[#parts + 1] = tostring(key) .. "=" .. tostring(value) end
            table.sort(parts)
            words[i] = "{" .. table.concat(parts, " ") .. "}"
        end
        words[i] = words[i]:gsub("0x%x+", "ADDRESS")
    end
    print(name, table.concat(words, "  "))
end
-- Calls it, and shows results or error.
local function call(name, ...)
    local f = _G
    for part in name:gmatch("[^.]+") do f = f[part] end
    show(name, pcall(f, ...))
end

-- Which functions there are.
for _, name in ipairs { "_G", "string", "table", "math", "utf8", "coroutine", "os", "io", "debug", "package" } do
    local names = {}
    for key, value in pairs(_G[name]) do names[#names + 1] = key .. ":" .. type(value) end
    table.sort(names)
    print(name, table.concat(names, " "))
end

-- Base.
call("assert", false, "said") call("assert", nil) call("error", { "thrown" }) call("tonumber", "0x1p4") call("tonumber", "z", 36)
call("tonumber", "  12  ") call("tonumber", "1e") call("tonumber", "7", 2) call("tostring", 1e15) call("tostring", -0.0) call("tostring", 2^63)
call("type", nil) call("type") call("rawequal", "a", "a") call("rawlen", { 1, 2 }) call("rawget", { a = 1 }, "a") call("rawset", {}, 1, 2)
call("select", "#", 1, nil) call("select", -1, 1, 2) call("select", 0) call("next", {}) call("load", "return 1 +") call("load", "return ...")
call("setmetatable", 1, {}) call("getmetatable", "") call("ipairs", {}) call("collectgarbage", "isrunning") call("dofile", "/none")
show("load", load("local a <const> = 5; return a // 2, a % -3, a / 0, -a // 0, 7 // 0.0, a & 4, a ~ 1, ~a, 1 << 62, 1 << 64, 3 .. 4")())
show("goto", load("for i = 1, 3 do for j = 1, 3 do if j == 2 then goto next end end ::next:: end return 'done'")())
show("close", pcall(load("local log = {}; do local x <close> = setmetatable({}, {__close = function() log[1] = 'closed' end}) end return log[1]")))
show("xpcall", xpcall(function() local x = nil; return x.y end, function(m) return "handled: " .. m end))
show("compare", pcall(function() return {} < {} end))
show("arith", pcall(function() return {} + 1 end))
show("meta", tostring(setmetatable({}, { __tostring = function() return "mine" end })), #setmetatable({}, { __len = function() return 42 end }))

-- Strings.
call("string.byte", "abc", 1, -1) call("string.char", 72, 105) call("string.char", 256) call("string.rep", "ab", 3, ",") call("string.reverse", "abc")
call("string.lower", "ÄBC") call("string.upper", "abc") call("string.len", "a\0b") call("string.sub", "hello", -3, -2) call("string.find", "a.b", ".", 1, true)
call("string.find", "hello", "(l)(l)") call("string.match", "key = value", "^(%w+)%s*=%s*(%w+)$") call("string.match", "x", "[") call("string.match", "THE (quick) fox", "%((%a+)%)")
call("string.match", "f(a(b)c)d", "%b()") call("string.match", "THE (quick) fox", "%f[%a]%a+", 5) call("string.gsub", "hello world", "o", "0", 1)
call("string.gsub", "$name is $age", "%$(%w+)", { name = "Lua", age = 30 }) call("string.gsub", "abc", "%w", "%0%0") call("string.gsub", "abc", "b", "%2")
call("string.format", "%5d|%-5d|%05d|%+d|%x|%X|%o|%c|%%", 42, 42, 42, 42, 255, 255, 8, 65) call("string.format", "%q", "a\n\0\"\\") call("string.format", "%q", 1 / 3)
call("string.format", "%.3f|%10.2e|%g|%g|%a", 3.14159, 31415.9, 1e20, 0.1, 1.0) call("string.format", "%s|%10s|%-10s|%.2s", "a", "b", "c", "defg") call("string.format", "%d", 1.5)
call("string.format", "%i %u", 3, 4) call("string.pack", ">I2 z s1", 258, "ab", "c") call("string.unpack", "<i4", "\255\255\255\127") call("string.packsize", "<i8 d j")
call("string.unpack", "<d", string.pack("<d", 0.1)) call("string.unpack", "i4", "ab") call("string.pack", "i17", 1) call("string.dump", print)
for word, n in ("one 1 two 2"):gmatch("(%a+) (%d)") do show("gmatch", word, n) end
show("dump", load(string.dump(function(a, b) return a * b end))(6, 7))

-- Tables.
call("table.concat", { 1, 2, "x" }, "-", 2) call("table.concat", { {} }) call("table.insert", { 1 }, 5, 1) call("table.remove", {}) call("table.unpack", { 1, 2, 3 }, 2)
call("table.pack", 1, nil) call("table.move", { 1, 2, 3 }, 2, 3, 1) call("table.sort", { 1, "x" })
local many, seed = {}, 42
for i = 1, 500 do seed = (seed * 1103515245 + 12345) % 2147483648; many[i] = seed end
table.sort(many, function(a, b) return a > b end)
show("sort", many[1], many[250], many[500], #many)
call("table.sort", { 3, 1, 2, 5, 4 }, function() return true end)

-- Numbers.
for _, x in ipairs { 0.5, -1.5, 2, 1e300, 1e-300 } do
    show("math", math.floor(x), math.ceil(x), math.sqrt(math.abs(x)), math.exp(-math.abs(x)), math.log(math.abs(x)), math.log(math.abs(x), 2), math.sin(x % 10), math.cos(x % 10),
        math.tan(x % 1), math.atan(x), math.atan(1, x), math.modf(x))
end
call("math.fmod", -7, 3) call("math.fmod", 7, 0) call("math.fmod", 7.5, -2) call("math.tointeger", 3.0) call("math.tointeger", "x") call("math.type", 1) call("math.max", 1, 2.5) call("math.min")
call("math.ult", -1, 1) call("math.abs", math.mininteger) call("math.asin", 2) call("math.acos", 0.5) call("math.rad", 180) call("math.deg", math.pi)
show("huge", math.huge, -math.huge, math.maxinteger + 1 == math.mininteger, 1e308 * 10, 0 / 0 ~= 0 / 0, 2^53 == 2^53 + 1, 5 // -2, -5 % 3, 5.3 % -2)
math.randomseed(42) show("random", math.random(1000), math.random(1000), math.random(10, 20), math.random(0), math.random())
show("parse", 0x.8p1, 1e2, 0xffffffffffffffffff, 9223372036854775807, 9223372036854775808, tonumber("1e400"), tonumber("0x"), "10" + 5, "0x10" * 1)

-- UTF-8, coroutines.
call("utf8.char", 228, 8364, 128512) call("utf8.codepoint", "ä€", 1, -1) call("utf8.len", "ä€x") call("utf8.len", "\xff") call("utf8.offset", "ä€x", 3) call("utf8.codepoint", "\xff")
for at, code in utf8.codes("aä€") do show("codes", at, code) end
local co = coroutine.create(function(a) local b = coroutine.yield(a + 1); error("in it " .. b) end)
show("coroutine", coroutine.resume(co, 1)) show("status", coroutine.status(co)) show("coroutine", coroutine.resume(co, "now")) show("status", coroutine.status(co)) show("dead", coroutine.resume(co))
show("wrap", pcall(coroutine.wrap(function() error({ 1 }) end))) show("isyieldable", coroutine.isyieldable()) call("coroutine.yield") show("closed", coroutine.close(coroutine.create(print)))
local function permute(a, n) if n == 0 then coroutine.yield(table.concat(a)) else for i = 1, n do a[n], a[i] = a[i], a[n]; permute(a, n - 1); a[n], a[i] = a[i], a[n] end end end
for p in coroutine.wrap(function() permute({ "a", "b", "c" }, 3) end) do show("permute", p) end

-- Operating system, files.
call("os.date", "!%Y-%m-%d %H:%M:%S %j %a %B", 86400 * 365) call("os.time", { year = 2024, month = 2, day = 30, hour = 12 }) call("os.time", { year = 1 }) call("os.date", "!*t", 0)
call("os.date", "%E") call("os.difftime", 5, 3) call("os.getenv", "NO_SUCH_VARIABLE") call("os.setlocale", "C") call("os.remove", "/ram/none") call("os.rename", "/ram/none", "/ram/other")
local f = assert(io.open("/ram/file", "w"))
show("file", io.type(f), f:write("line 1\n", 2, " ", 3.5, "\n0x1F -7e2 word\nlast"), f:seek("cur"), f:setvbuf("full", 64), f:close(), io.type(f))
call("io.open", "/none") call("io.open", "/ram/file", "q") call("io.lines", "/none")
for a, b in io.lines("/ram/file", 3, "l") do show("lines", a, b) end
f = io.open("/ram/file", "r+")
show("read", f:read("l", "n", "n", "L", "n", "n", "l", "a", "a", "l", 0)) show("seek", f:seek("set", 2), f:read(4), f:seek("end"), f:write("!"), f:flush(), f:seek("set"), #f:read("a")) f:close()
show("closed", pcall(f.read, f)) show("print", tostring(f)) f = io.open("/ram/file", "a") show("append", f:write("more"), f:seek("end")) f:close() show("removed", os.remove("/ram/file"))

-- What a debugger asks, and deep calls.
local function deep(n) if n == 0 then return 0 end return 1 + deep(n - 1) end
show("deep", pcall(deep, 10000)) show("tail", (function(n) local function loop(n) if n == 0 then return "end" end return loop(n - 1) end return loop(n) end)(100000))
show("overflow", select(2, pcall(function() local function f() return 1 + f() end return f() end)):gsub("\n.*", ""))
show("string overflow", pcall(string.rep, "x", 1 << 62)) show("traceback", debug.traceback("trace", 1))
show("getinfo", debug.getinfo(1, "l").currentline, debug.getinfo(show, "u").nparams, debug.getinfo(print, "S").what) call("require", "nosuch")
