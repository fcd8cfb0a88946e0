-- lua /share/lua/check.lua: what a Lua program asks of the system, each with an assertion. It says "lua: all is well" or where not.

local one, two = "/ram/lua-one", "/ram/lua-two"

-- Files: written, read back in several ways, changed in the middle, appended to, renamed, gone.
local file = assert(io.open(one, "w"))
for n = 1, 1000 do assert(file:write(n, " ", n / 2, "\n")) end
assert(file:close())
local lines, sum = 0, 0
for n, half in io.lines(one, "n", "n") do
    lines, sum = lines + 1, sum + half
    assert(half == n / 2)
end
assert(lines == 1000 and sum == 250250)
file = assert(io.open(one, "r+"))
assert(file:read("l") == "1 0.5" and file:read("L") == "2 1\n" and file:read(0) == "")
assert(file:seek("set", 2) == 2 and file:write("X.5") and file:seek("set") == 0 and file:read() == "1 X.5")
local size = assert(file:seek("end"))
assert(file:read("a") == "" and file:read("l") == nil and file:read(0) == nil)
file:close()
file = assert(io.open(one, "a"))
assert(file:setvbuf("full", 64) and file:write("the end") and file:close())
file = assert(io.open(one))
assert(#file:read("a") == size + 7)
assert(io.type(file) == "file" and file:close() and io.type(file) == "closed file")
assert(os.rename(one, two) and not io.open(one) and os.remove(two))
local none, why, number = io.open(two)
assert(none == nil and why == two .. ": No such file or directory" and number == 2)
none, why = os.remove(two)
assert(none == nil and why:find("No such file", 1, true))
none, why = io.open("/etc/lua", "w")
assert(none == nil and why == "/etc/lua: Read-only file system")
file = assert(io.tmpfile())
assert(file:write("for a while") and file:seek("set") == 0 and file:read("a") == "for a while" and file:close())
local name = os.tmpname()
assert(not io.open(name) and io.open(name, "w"):close() and os.remove(name) and not io.open("/ram/none/x", "w"))
local ok = pcall(io.lines, two)
assert(not ok)
for n = 1, 300 do -- all that is open is closed by the collector
    local left = assert(io.open("/share/lua/check.lua"))
    if n % 20 == 0 then collectgarbage() end
end

-- Time.
assert(os.time() > 1600000000 and os.time({ year = 2024, month = 2, day = 29, hour = 12 }) == 1709208000)
assert(os.date("!%Y-%m-%d %H:%M:%S", 86399) == "1970-01-01 23:59:59" and os.date("*t").year >= 2020)
local before, work = os.clock(), 0
for n = 1, 100000 do work = work + n end
assert(os.clock() > before and os.difftime(5, 3) == 2.0)
assert(os.getenv("NOTHING") == nil)

-- Numbers, to strings and back.
for text, value in pairs({
    ["0.1"] = 0.1, ["3.1415926535898"] = math.pi, ["1e+15"] = 1e15, ["9.007199254741e+15"] = 2 ^ 53, ["-1.5e-300"] = -1.5e-300,
    ["inf"] = 1 / 0, ["-inf"] = -1 / 0, ["0"] = 0.0, ["-0"] = -0.0, ["5e-324"] = 5e-324,
}) do
    local told = string.format("%.14g", value)
    assert(told == text or text == "5e-324" and tonumber(told) == value, told .. " is not " .. text)
end
assert(tostring(0 / 0):find("nan") and tostring(1e100) == "1e+100" and 7 // 2 == 3 and -7 % 3 == 2)
assert(tonumber("0x1p4") == 16.0 and tonumber("  1e1  ") == 10.0 and tonumber("1e") == nil and tonumber("z", 36) == 35)
assert(string.format("%5.2f|%-6d|%06d|%x|%q|%a", 1.005, 42, 42, 255, "a\n", 1.0) == ' 1.00|42    |000042|ff|"a\\\n"|0x1p+0')
assert(string.pack("<i4d", 7, 0.5) == "\7\0\0\0" .. ("\0"):rep(6) .. "\xe0\x3f")

-- Memory: strings and tables that grow, what is too much, what is had again.
local text = ""
for n = 1, 2000 do text = text .. n .. "," end
assert(#text == 8893)
local pieces = {}
for n = 1, 100000 do pieces[n] = n end
assert(#table.concat(pieces, ",") == 588894)
pieces = nil
local function refused(pattern, f, ...)
    local ok, why = pcall(f, ...)
    assert(not ok and tostring(why):find(pattern), tostring(why))
end

-- Recursion that runs away: through Lua, C functions, patterns, the parser, coroutines, metamethods.
local function run_away() return 1 + run_away() end
local function by_pcall() return select(2, pcall(by_pcall)) end
local function by_gsub() return (("x"):gsub("x", by_gsub)) end
local function by_sort() table.sort({ 3, 2, 1 }, by_sort) end
local function by_coroutine() return assert(coroutine.wrap(by_coroutine))() end
local function by_format() return string.format("%s", setmetatable({}, { __tostring = by_format })) end
local function by_index() return setmetatable({}, { __index = by_index }).x end
local function by_dofile()
    local file = assert(io.open(one, "w"))
    file:write("return dofile('", one, "')")
    file:close()
    return dofile(one)
end
local deep = { by_gsub, by_format, by_sort, by_coroutine, by_index, by_dofile }
for _, f in pairs(deep) do refused("stack overflow", f) end
assert(by_pcall():find("stack overflow"))
for _, nested in pairs({ "return (", "return {", "do ", "function f() ", "return not -#", "f(" }) do
    local none, why = load(nested .. nested:gsub("^return ", ""):rep(1000))
    assert(none == nil and why:find("overflow"), nested .. " " .. tostring(why))
end
refused("too complex", string.find, ("a"):rep(300000), ("a?"):rep(300000) .. "b")
refused("too many results", table.unpack, {}, 1, 1e7)

-- All memory, and what is deep afterwards: there is stack for it, though the heap may be too small now.
local ok, why = pcall(run_away)
assert(not ok and (why == "not enough memory" or why:find("stack overflow")))
refused("not enough memory", string.rep, "x", 1 << 30)
refused("not enough memory", function()
    local all = {}
    for n = 1, 1 << 30 do all[n] = { n } end
end)
collectgarbage()
assert(#string.rep("x", 1 << 20) == 1 << 20 and collectgarbage("count") < 4096)
for _, f in pairs(deep) do
    local ok, why = pcall(f)
    assert(not ok and (why:find("not enough memory") or why:find("stack overflow")), why)
end
collectgarbage()

-- Errors carry a traceback.
local ok, trace = xpcall(function() error("for a reason") end, debug.traceback)
assert(not ok and trace:find("check[^:]*:%d+: for a reason\nstack traceback:\n"))

print("lua: all is well")
