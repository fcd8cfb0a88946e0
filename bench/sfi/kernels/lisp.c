/* li-like: an interpreter of Lisp with cells, symbols and a marking collector runs queens and a sort. */
#include "bench.h"

#define CELLS 60000
#define SYMBOLS 128
#define ROOTS 4096

enum kind { FREE, NUMBER, SYMBOL, PAIR, BUILTIN, LAMBDA };

struct cell;
typedef struct cell *builtin(struct cell *);

struct cell {
    uint8_t kind, marked;
    union {
        long number;
        struct {
            struct cell *car, *cdr;
        };
        struct {
            const char *name;
            struct cell *value;
        };
        builtin *code;
    };
};

static struct cell *cells, *spare, *symbols[SYMBOLS], *roots[ROOTS];
static int symbol_count, root_count;
static struct cell nil_cell = {SYMBOL, 1, {0}};
#define nil (&nil_cell)
static struct cell *truth, *quote, *when, *lambda, *define;

static void mark(struct cell *c) {
    while (!c->marked) {
        c->marked = 1;
        if (c->kind == SYMBOL) {
            c = c->value;
        } else if (c->kind == PAIR || c->kind == LAMBDA) {
            mark(c->car);
            c = c->cdr;
        }
    }
}

static void collect(void) {
    for (int i = 0; i < symbol_count; i++)
        mark(symbols[i]);
    for (int i = 0; i < root_count; i++)
        mark(roots[i]);
    for (struct cell *c = cells; c < cells + CELLS; c++) {
        if (!c->marked) {
            c->kind = FREE;
            c->cdr = spare;
            spare = c;
        }
        c->marked = 0;
    }
    bench_check(spare != NULL, "a free cell");
}

static struct cell *push(struct cell *c) {
    bench_check(root_count < ROOTS, "depth");
    return roots[root_count++] = c;
}

static struct cell *new_cell(enum kind kind) {
    if (!spare)
        collect();
    struct cell *c = spare;
    spare = c->cdr;
    c->kind = (uint8_t)kind;
    return c;
}

static struct cell *number(long n) {
    struct cell *c = new_cell(NUMBER);
    c->number = n;
    return c;
}

static struct cell *pair_of(enum kind kind, struct cell *car, struct cell *cdr) {
    int depth = root_count;
    push(car), push(cdr);
    struct cell *c = new_cell(kind);
    root_count = depth;
    c->car = car, c->cdr = cdr;
    return c;
}

static struct cell *cons(struct cell *car, struct cell *cdr) { return pair_of(PAIR, car, cdr); }

static struct cell *symbol(const char *name, size_t length) {
    if (length == 3 && memcmp(name, "nil", 3) == 0)
        return nil;
    for (int i = 0; i < symbol_count; i++)
        if (strlen(symbols[i]->name) == length && memcmp(symbols[i]->name, name, length) == 0)
            return symbols[i];
    struct cell *c = new_cell(SYMBOL);
    char *copy = bench_alloc(length + 1);
    memcpy(copy, name, length);
    copy[length] = 0;
    c->name = copy, c->value = nil;
    bench_check(symbol_count < SYMBOLS, "room for symbols");
    return symbols[symbol_count++] = c;
}

static struct cell *parse(const char **text) {
    while (**text == ' ' || **text == '\n')
        ++*text;
    if (**text == '(') {
        struct cell *first = nil, *last = nil;
        int depth = root_count;
        for (++*text; **text != ')';) {
            struct cell *item = cons(parse(text), nil);
            if (first == nil)
                first = last = push(item);
            else
                last->cdr = item, last = item;
            while (**text == ' ' || **text == '\n')
                ++*text;
        }
        ++*text;
        root_count = depth;
        return first;
    }
    if (**text >= '0' && **text <= '9')
        return number(strtol(*text, (char **)text, 10));
    const char *begin = *text;
    while (**text && **text != ' ' && **text != '\n' && **text != ')' && **text != '(')
        ++*text;
    return symbol(begin, (size_t)(*text - begin));
}

/* Variables are a list of pairs, the innermost first; what is not there is global. */
static struct cell *find(struct cell *name, struct cell *scope) {
    for (; scope != nil; scope = scope->cdr)
        if (scope->car->car == name)
            return scope->car->cdr;
    return name->value;
}

static struct cell *evaluate(struct cell *form, struct cell *scope);

static struct cell *evaluate_all(struct cell *forms, struct cell *scope) {
    if (forms == nil)
        return nil;
    int depth = root_count;
    struct cell *head = push(evaluate(forms->car, scope)), *tail = evaluate_all(forms->cdr, scope);
    root_count = depth;
    return cons(head, tail);
}

static struct cell *evaluate(struct cell *form, struct cell *scope) {
    int depth = root_count;
    for (;;) {
        root_count = depth;
        if (form->kind == SYMBOL)
            return form == nil || form == truth ? form : find(form, scope);
        if (form->kind != PAIR)
            return form;
        push(form), push(scope);
        struct cell *head = form->car, *rest = form->cdr;
        if (head == quote) {
            root_count = depth;
            return rest->car;
        }
        if (head == when) {
            form = evaluate(rest->car, scope) != nil ? rest->cdr->car : rest->cdr->cdr->car;
            continue;
        }
        if (head == lambda) {
            struct cell *made = pair_of(LAMBDA, rest, scope);
            root_count = depth;
            return made;
        }
        if (head == define) {
            struct cell *made = evaluate(rest->cdr->car, scope);
            rest->car->value = made;
            root_count = depth;
            return rest->car;
        }
        struct cell *function = push(evaluate(head, scope)), *given = push(evaluate_all(rest, scope));
        if (function->kind == BUILTIN) {
            struct cell *result = function->code(given);
            root_count = depth;
            return result;
        }
        bench_check(function->kind == LAMBDA, "a function");
        scope = function->cdr;
        for (struct cell *name = function->car->car; name != nil; name = name->cdr, given = given->cdr) {
            scope = cons(push(cons(name->car, given->car)), scope);
            push(scope);
        }
        form = function->car->cdr->car;
    }
}

#define SECOND(list) ((list)->cdr->car)
static struct cell *add(struct cell *l) { return number(l->car->number + SECOND(l)->number); }
static struct cell *subtract(struct cell *l) { return number(l->car->number - SECOND(l)->number); }
static struct cell *multiply(struct cell *l) { return number(l->car->number * SECOND(l)->number); }
static struct cell *modulo(struct cell *l) { return number(l->car->number % SECOND(l)->number); }
static struct cell *less(struct cell *l) { return l->car->number < SECOND(l)->number ? truth : nil; }
static struct cell *equal(struct cell *l) { return l->car->number == SECOND(l)->number ? truth : nil; }
static struct cell *first(struct cell *l) { return l->car->car; }
static struct cell *others(struct cell *l) { return l->car->cdr; }
static struct cell *join(struct cell *l) { return cons(l->car, SECOND(l)); }
static struct cell *empty(struct cell *l) { return l->car == nil ? truth : nil; }

static void builtin_named(const char *name, builtin *code) {
    struct cell *c = new_cell(BUILTIN);
    c->code = code;
    symbol(name, strlen(name))->value = c;
}

static const char script[] =
    "(define safe (lambda (q d list) (if (empty list) t (if (= q (first list)) nil"
    "  (if (= q (+ (first list) d)) nil (if (= q (- (first list) d)) nil (safe q (+ d 1) (rest list))))))))"
    "(define try (lambda (n q list) (if (= q n) 0 (+ (if (safe q 1 list) (queens n (join q list)) 0) (try n (+ q 1) list)))))"
    "(define length (lambda (l) (if (empty l) 0 (+ 1 (length (rest l))))))"
    "(define queens (lambda (n list) (if (= (length list) n) 1 (try n 0 list))))"
    "(define random (lambda (n seed) (if (= n 0) nil (join seed (random (- n 1) (% (+ (* seed 421) 17117) 81000))))))"
    "(define insert (lambda (x l) (if (empty l) (join x nil) (if (< x (first l)) (join x l) (join (first l) (insert x (rest l)))))))"
    "(define sort (lambda (l) (if (empty l) nil (insert (first l) (sort (rest l))))))"
    "(define fold (lambda (f l a) (if (empty l) a (fold f (rest l) (f a (first l))))))"
    "(define last (fold (lambda (a x) (% (+ (* a 31) x) 65521)) (sort (random 150 7)) 1))"
    "(+ (* (queens 6 nil) 100000) last)";

static void prepare(void) {
    cells = bench_alloc(CELLS * sizeof *cells);
    memset(cells, 0, CELLS * sizeof *cells);
    nil_cell.car = nil_cell.cdr = nil;
    collect();
    truth = symbol("t", 1), quote = symbol("quote", 5), when = symbol("if", 2);
    lambda = symbol("lambda", 6), define = symbol("define", 6);
    builtin_named("+", add), builtin_named("-", subtract), builtin_named("*", multiply), builtin_named("%", modulo);
    builtin_named("<", less), builtin_named("=", equal), builtin_named("first", first), builtin_named("rest", others);
    builtin_named("join", join), builtin_named("empty", empty);
}

static void work(void) {
    const char *text = script;
    long last = 0;
    while (*text) {
        struct cell *form = push(parse(&text)), *result = evaluate(form, nil);
        last = result->kind == NUMBER ? result->number : 0;
        root_count = 0;
    }
    bench_add((uint64_t)last);
}

BENCH_MAIN("lisp", prepare, work)
