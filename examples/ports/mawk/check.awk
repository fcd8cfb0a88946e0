# mawk -f /share/mawk/check.awk /share/mawk/check.awk: what an awk program asks of the system. It says "mawk: all is well", or what is not.

function check(holds, what) {
    if (!holds) {
        failed++
        print "failed: " what
    }
}

function depth(n) { return n == 0 ? 0 : 1 + depth(n - 1) }

BEGIN {
    file = "/ram/awk"
    for (n = 1; n <= 1000; n++)
        printf "%d %s %.2f\n", n, n % 2 ? "odd" : "even", n / 4 > file
    check(close(file) == 0, "close")
    while ((status = (getline line < file)) > 0) {
        lines++
        split(line, part)
        kinds[part[2]] += part[1]
        last = part[3]
    }
    check(status == 0 && lines == 1000, "getline: " status " " lines)
    check(kinds["odd"] == 250000 && kinds["even"] == 250500 && last == "250.00", "sums")
    close(file)
    print "one more" >> file
    close(file)
    lines = 0
    while ((getline < file) > 0)
        lines++
    check(lines == 1001 && $0 == "one more" && NF == 2, "append")
    check((getline line < "/ram/awk-none") == -1, "no such file")

    check(sprintf("%5.1f|%-5s|%05d|%x|%c|%e|%g", 2.25, "ab", 42, 255, 65, 12345.678, 1e-10) == \
        "  2.2|ab   |00042|ff|A|1.234568e+04|1e-10", "sprintf")
    text = "the quick brown fox"
    check(gsub(/[aeiou]/, "<&>", text) == 5 && text == "th<e> q<u><i>ck br<o>wn f<o>x", "gsub: " text)
    check(match("foo123bar", /[0-9]+/) == 4 && RSTART == 4 && RLENGTH == 3, "match")
    check(substr("hello", 2, 3) toupper("x") index("abc", "c") length("four") == "ellX34", "strings")
    check("10" + 0 == 10 && "3x" + 4 == 7 && 2 ^ 10 == 1024 && -7 % 3 == -1 && int(-2.7) == -2, "numbers")
    check(log(0) == "-inf" && exp(1) ~ /^2\.71828$/ && atan2(0, -1) ~ /^3\.14159$/, "functions")
    srand(1); first = rand(); srand(1)
    check(first == rand() && first < 1, "rand")
    check(depth(100) == 100, "recursion")
    for (n = 0; n < 20000; n++)
        table[n % 5000 "," n] = n
    for (key in table)
        keys++
    check(keys == 20000 && (4999 "," 4999) in table, "table of " keys)
    delete table
    for (key in table)
        check(0, "deleted")
    while (length(long) < 100000)
        long = long "0123456789"
    check(length(long) == 100000, "long string")
    check(strftime("%Y", 86400) == "1970" && systime() > 1600000000, "time")
    check(ENVIRON["NOTHING"] == "" && ARGC == 2 && ARGV[1] == "/share/mawk/check.awk", "arguments")
}

NR == 1 { check($2 == "mawk" && NF > 5 && FILENAME == "/share/mawk/check.awk", "fields: " $0) }
/^}/ { closed++ }
{ $1 = ""; bytes += length($0) }

END {
    check(NR == FNR && NR > 60 && closed == 3, "records: " NR ", " closed)
    if (failed)
        exit 1
    print "mawk: all is well"
}
