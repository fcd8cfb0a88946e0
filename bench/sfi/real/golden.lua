-- What Lua itself must be able to do: errors and their jumps, coroutines, patterns, closures, collection, numbers as text.
local function check(name, ...) print(name, ...) end

check("error", pcall(error, { code = 7 }) == false, select(2, pcall(error, "caught", 0)))
check("nested", pcall(function() local ok, why = pcall(error, "in", 0) error("out of " .. why, 0) end))
check("handler", xpcall(function() local x = nil; return x.y end, function(m) return #m > 0 end))
local co = coroutine.wrap(function(a) for i = 1, 3 do a = a + coroutine.yield(a * i) end return "end" end)
check("coroutine", co(1), co(2), co(3), co(4))
check("close", coroutine.close(coroutine.create(function() end)))
check("pattern", ("key = value, k2 = v2"):gsub("(%w+) = (%w+)", "%2=%1"))
check("format", ("%5.2f|%-6s|%x|%q|%g"):format(math.pi, "ab", 255, "a\nb", 1e100))
check("integer", math.maxinteger // 3, 7 // -2, 7 % -2, 2 ^ 53, 1 << 62, "10" + 5, math.tointeger(3.0))
check("goto", (function() local n = 0 ::again:: n = n + 1 if n < 10 then goto again end return n end)())
check("vararg", select("#", table.unpack({ 1, nil, 3 }, 1, 3)), (function(...) return ... end)(1, 2, 3))
local weak = setmetatable({}, { __mode = "k" })
for i = 1, 100 do weak[{}] = i end
collectgarbage()
check("weak", next(weak))
check("sort", table.concat((function(t) table.sort(t, function(a, b) return a > b end) return t end)({ 3, 1, 4, 1, 5, 9, 2, 6 }), " "))
check("meta", setmetatable({}, { __index = function(_, k) return k .. "!" end, __call = function(_, a) return a + 1 end })(41))
check("load", load("return 1 +"))
check("utf8", utf8.char(72, 228, 8364), utf8.len("häß"))
check("deep", pcall(function() local function f() return 1 + f() end return f() end) == false)
check("pack", string.pack("<i4z", 7, "x"):byte(1, -1))
