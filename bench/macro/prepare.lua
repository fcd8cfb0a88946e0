-- What the whole programs work on, the same on every system: /ram/text, 1 MiB of words; /ram/load.sql, 10,000
-- inserts in transactions and 1,000 queries; /ram/spawn.sh, which starts 100 programs.

local state = 1
local function below(n)
    state = (state * 1103515245 + 12345) % 2147483648
    return state // 65536 % n
end

local function write(path, text)
    local file = assert(io.open(path, "w"))
    assert(file:write(text))
    assert(file:close())
end

-- Words of two to nine letters, a few of them often, most seldom.
local words = {}
for n = 1, 5000 do
    local letters = {}
    for i = 1, 2 + below(8) do letters[i] = string.char(97 + below(26)) end
    words[n] = table.concat(letters)
end
local text, bytes = {}, 0
while bytes < 1 << 20 do
    local word = words[1 + below(1 + below(#words))]
    text[#text + 1] = word
    text[#text + 1] = #text % 20 == 19 and "\n" or " "
    bytes = bytes + #word + 1
end
write("/ram/text", table.concat(text):sub(1, 1 << 20))

local sql = { ".bail on", "create table word (id integer primary key, text text, many integer);" }
sql[#sql + 1] = "create index by_text on word (text);"
for transaction = 0, 99 do
    sql[#sql + 1] = "begin;"
    for n = 1, 100 do
        local id = transaction * 100 + n
        sql[#sql + 1] = ("insert into word values (%d, '%s%d', %d);"):format(id, words[1 + below(#words)], id, below(1000))
    end
    sql[#sql + 1] = "commit;"
end
for n = 1, 1000 do
    if n % 2 == 0 then
        sql[#sql + 1] = ("select text, many from word where id = %d;"):format(1 + below(10000))
    else
        sql[#sql + 1] = ("select count(*) from word where text between '%s' and '%s~';"):format(words[n], words[n])
    end
end
write("/ram/load.sql", table.concat(sql, "\n") .. "\n")

write("/ram/spawn.sh", ("nothing\n"):rep(100))
