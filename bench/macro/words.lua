-- Counts the words of a file, and prints the ten that are there most often, and how many there are.
local many, all = {}, 0
for line in io.lines(arg[1]) do
    for word in line:gmatch("%a+") do
        many[word] = (many[word] or 0) + 1
        all = all + 1
    end
end
local words = {}
for word in pairs(many) do words[#words + 1] = word end
table.sort(words, function(a, b) return many[a] > many[b] or many[a] == many[b] and a < b end)
for n = 1, 10 do print(words[n], many[words[n]]) end
print(#words, all)
