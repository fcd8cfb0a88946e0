/*
 * Numbers in printf and scanf that the C library gets wrong. A long double has 113 binary digits here; the C library was built without:
 * it takes eight bytes for one, and every argument behind it is wrong. A double it rounds twice, to 17 digits and then to those that are
 * asked for: 2.675 to two places is 2.68 there, and 2.67 in truth. The linker sends calls of vfprintf and vfscanf here (`--wrap`), the C
 * library's own among them.
 *
 * A format without such a conversion goes on as it is. Another is worked off by pieces with one conversion each: a piece of the C library's
 * goes there with the argument that it takes. Digits come from decimal.c.
 */
#include "internal.h"

#include "decimal.h"
#include "stream.h"

#include <ctype.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

int __real_vfprintf(FILE *file, const char *format, va_list arguments);
int __real_vfscanf(FILE *file, const char *format, va_list arguments);

/* A conversion, as its letters say. */
struct conversion {
    const char *start, *end; /* from the % to behind the letter */
    char flags[6];
    int star;             /* printf: the width is an argument; scanf: nothing is assigned */
    int width, precision; /* -1: none; precision -2: an argument */
    char size[3], letter;
    int quad;
};

static const char *number(const char *at, int *value) {
    for (*value = 0; isdigit((unsigned char)*at); at++)
        *value = *value < 100000 ? *value * 10 + (*at - '0') : *value;
    return at;
}

/* Characters of one kind, as many as fit. */
static const char *gather(const char *at, const char *kind, char *into, size_t room) {
    for (size_t n = 0; *at != 0 && strchr(kind, *at) != NULL; at++)
        if (n < room - 1)
            into[n++] = *at;
    return at;
}

/* The first conversion of a format; 0 if there is none. `%%` is none. */
static int next(const char *format, struct conversion *c) {
    *c = (struct conversion){.width = -1, .precision = -1};
    for (; (format = strchr(format, '%')) != NULL && format[1] == '%'; format += 2)
        ;
    if (format == NULL)
        return 0;
    c->start = format;
    const char *at = gather(format + 1, "-+ #0", c->flags, sizeof c->flags);
    if (*at == '*')
        c->star = 1, at++;
    if (isdigit((unsigned char)*at))
        at = number(at, &c->width);
    if (at[0] == '.' && at[1] == '*')
        c->precision = -2, at += 2;
    else if (*at == '.')
        at = number(at + 1, &c->precision);
    at = gather(at, "hljztL", c->size, sizeof c->size);
    c->letter = *at;
    if (*at == '[') { /* scanf's set: a bracket that is its first character does not end it */
        at += at[1] == '^' ? 2 : 1;
        at = *at == 0 ? NULL : strchr(at + 1, ']');
    }
    c->end = at == NULL ? format + strlen(format) : *at == 0 ? at : at + 1;
    c->quad = c->size[0] == 'L' && c->letter != 0 && strchr("aefgAEFG", c->letter) != NULL;
    return 1;
}

/* Is it a number with a fraction? A hexadecimal double the C library prints right, and cannot read. */
static int is_ours(const struct conversion *c, const char *letters) {
    return c->quad || (c->letter != 0 && strchr(letters, c->letter) != NULL);
}
#define PRINTED "efgEFG"
#define SCANNED "aefgAEFG"

static int has_ours(const char *format, const char *letters) {
    struct conversion c;
    for (; next(format, &c); format = c.end)
        if (is_ours(&c, letters))
            return 1;
    return 0;
}

/* --- printf ------------------------------------------------------------------------------------------------ */

static int real_printf(FILE *file, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int count = __real_vfprintf(file, format, arguments);
    va_end(arguments);
    return count;
}

/* One conversion of the C library's. The value comes as a word, or as a double. */
static int plain(FILE *file, const struct conversion *c, va_list *arguments) {
    char format[24];
    int precise = c->precision >= 0;
    snprintf(format, sizeof format, "%%%s*%s%s%c", c->flags, precise ? ".*" : "", c->size, c->letter);
#define PRINT(value) (precise ? real_printf(file, format, c->width, c->precision, value) : real_printf(file, format, c->width, value))
    if (tolower((unsigned char)c->letter) == 'a') {
        double value = va_arg(*arguments, double);
        return PRINT(value);
    }
    if (strchr("spn", c->letter) != NULL || c->size[0] == 'l' || (c->size[0] != 0 && strchr("jzt", c->size[0]) != NULL)) {
        long value = va_arg(*arguments, long);
        return PRINT(value);
    }
    int value = va_arg(*arguments, int);
    return PRINT(value);
}

/* One of ours. */
static int quad(FILE *file, const struct conversion *c, long double value) {
    int upper = isupper((unsigned char)c->letter), left = strchr(c->flags, '-') != NULL;
    const char *sign = __builtin_signbit(value) ? "-" : strchr(c->flags, '+') ? "+" : strchr(c->flags, ' ') ? " " : "";
    struct decimal_out out = {.alternate = strchr(c->flags, '#') != NULL, .upper = upper};
    int zeros = !left && strchr(c->flags, '0') != NULL && __decimal_finite(value);
    int hexadecimal = __decimal_finite(value) && tolower((unsigned char)c->letter) == 'a';
    int before = (int)strlen(sign) + (hexadecimal ? 2 : 0), padding = 0;
    if (c->width > before) {
        __decimal(&out, value, (char)tolower((unsigned char)c->letter), c->precision); /* counts only: there is no file */
        padding = c->width > before + out.count ? c->width - before - out.count : 0;
    }
    for (int i = 0; i < padding && !left && !zeros; i++)
        fputc(' ', file);
    fputs(sign, file);
    if (hexadecimal)
        fputs(upper ? "0X" : "0x", file);
    for (int i = 0; i < padding && zeros; i++)
        fputc('0', file);
    out.file = file;
    __decimal(&out, value, (char)tolower((unsigned char)c->letter), c->precision);
    for (int i = 0; i < padding && left; i++)
        fputc(' ', file);
    return ferror(file) ? -1 : before + out.count + padding;
}

/* Text with no conversion in it. */
static int text(FILE *file, const char *at, const char *end) {
    int count = 0;
    for (; at < end; at += *at == '%' ? 2 : 1, count++)
        if (fputc(*at, file) == EOF)
            return -1;
    return count;
}

/* A width that is an argument can say that the value goes to the left. */
static void resolve(struct conversion *c, va_list *arguments) {
    if (c->star && (c->width = va_arg(*arguments, int)) < 0) {
        c->width = c->width == INT_MIN ? INT_MAX : -c->width;
        memmove(c->flags + 1, c->flags, sizeof c->flags - 2);
        c->flags[0] = '-';
    }
    if (c->precision == -2)
        c->precision = va_arg(*arguments, int);
    if (c->width < 0)
        c->width = 0;
}

static int print(FILE *file, const char *format, va_list given) {
    if (!has_ours(format, PRINTED))
        return __real_vfprintf(file, format, given);
    va_list arguments;
    va_copy(arguments, given);
    struct conversion c;
    int count = 0, piece = 0;
    for (; piece >= 0 && next(format, &c); format = c.end) {
        if ((piece = text(file, format, c.start)) < 0)
            break;
        count += piece;
        resolve(&c, &arguments);
        if (c.letter == 'n') {
            *va_arg(arguments, int *) = count;
            continue;
        }
        piece = c.quad                  ? quad(file, &c, va_arg(arguments, long double))
                : is_ours(&c, PRINTED) ? quad(file, &c, (long double)va_arg(arguments, double))
                                       : plain(file, &c, &arguments);
        count += piece < 0 ? 0 : piece;
    }
    va_end(arguments);
    if (piece >= 0)
        piece = text(file, format, format + strlen(format));
    return piece < 0 ? -1 : count + piece;
}

/* --- scanf ------------------------------------------------------------------------------------------------- */

static int real_scanf(FILE *file, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int assigned = __real_vfscanf(file, format, arguments);
    va_end(arguments);
    return assigned;
}

/* The characters of a number, as many as could still become one. */
struct token {
    FILE *file;
    char text[512]; /* the standard wants 509 */
    int length, most;
};

static int take(struct token *t, const char *kind) {
    if (t->length >= t->most)
        return 0;
    int ch = fgetc(t->file);
    if (ch != EOF && ch != 0 && strchr(kind, ch) != NULL) {
        t->text[t->length++] = (char)ch;
        return ch;
    }
    ungetc(ch, t->file);
    return 0;
}

static int take_word(struct token *t, const char *upper, const char *lower) {
    for (; *upper != 0; upper++, lower++)
        if (!take(t, (char[]){*upper, *lower, 0}))
            return 0;
    return 1;
}

static int take_number(struct token *t) {
    take(t, "+-");
    int start = t->length;
    if (take(t, "iI"))
        return take_word(t, "NF", "nf") && (!take(t, "iI") || take_word(t, "NITY", "nity"));
    if (take(t, "nN"))
        return take_word(t, "AN", "an");
    const char *digits = "0123456789";
    int hexadecimal = take(t, "0") && take(t, "xX");
    if (hexadecimal)
        digits = "0123456789abcdefABCDEF", start = t->length;
    while (take(t, digits))
        ;
    int found = t->length > start;
    if (take(t, "."))
        while (take(t, digits))
            found = 1;
    if (found && take(t, hexadecimal ? "pP" : "eE")) {
        take(t, "+-");
        for (found = 0; take(t, "0123456789"); found = 1)
            ;
    }
    return found;
}

static void assign(void *value, const char *size, const char *text) {
    if (*size == 'L')
        *(long double *)value = strtold(text, NULL);
    else if (*size == 'l')
        *(double *)value = strtod(text, NULL);
    else
        *(float *)value = strtof(text, NULL);
}

/* 1, or 0 for what is no number, or EOF. */
static int scan_number(FILE *file, const struct conversion *c, void *value, int *consumed) {
    struct token t = {.file = file};
    t.most = c->width > 0 && c->width < (int)sizeof t.text ? c->width : (int)sizeof t.text - 1;
    int blanks = 0, ch;
    while ((ch = fgetc(file)) != EOF && isspace(ch))
        blanks++;
    if (ch == EOF)
        return EOF;
    ungetc(ch, file);
    int found = take_number(&t);
    *consumed += blanks + t.length;
    t.text[t.length] = 0;
    if (found && value != NULL)
        assign(value, c->size, t.text);
    return found;
}

/* From `format` to the end of its conversion, which gets `value`; -2 if it went so far and assigned nothing. */
static int scan_plain(FILE *file, const char *format, const char *end, void *value, int *consumed) {
    size_t length = (size_t)(end - format);
    char part[length + 3];
    int count = -1;
    memcpy(part, format, length);
    strcpy(part + length, "%n");
    int assigned = value == NULL ? real_scanf(file, part, &count) : real_scanf(file, part, value, &count);
    *consumed += count > 0 ? count : 0;
    return assigned == 0 && count >= 0 ? -2 : assigned;
}

static int scan(FILE *file, const char *format, va_list given) {
    if (!has_ours(format, SCANNED))
        return __real_vfscanf(file, format, given);
    va_list arguments;
    va_copy(arguments, given);
    struct conversion c;
    int assigned = 0, consumed = 0, piece = 1;
    for (; next(format, &c); format = c.end) {
        void *value = c.star ? NULL : va_arg(arguments, void *);
        if (is_ours(&c, SCANNED) || c.letter == 'n') {
            piece = c.start > format ? scan_plain(file, format, c.start, NULL, &consumed) : -2;
            if (piece == -2 && c.letter == 'n')
                *(int *)value = consumed;
            else if (piece == -2)
                piece = scan_number(file, &c, value, &consumed);
        } else {
            piece = scan_plain(file, format, c.end, value, &consumed);
        }
        if (piece == 0 || piece == EOF)
            break;
        assigned += value != NULL && c.letter != 'n';
    }
    va_end(arguments);
    return piece == EOF && assigned == 0 ? EOF : assigned;
}

int __wrap_vfprintf(FILE *file, const char *format, va_list arguments) { return WHOLE(int, file, print(file, format, arguments)); }

int __wrap_vfscanf(FILE *file, const char *format, va_list arguments) { return WHOLE(int, file, scan(file, format, arguments)); }
