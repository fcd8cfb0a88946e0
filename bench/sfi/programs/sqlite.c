/* SQLite: a database in memory is filled, indexed, queried, changed and checked. */
#include "bench.h"
#include "sqlite3.h"

static sqlite3 *db;

/* No file system: the only files are those that SQLite keeps in memory itself. */
static int vfs_open(sqlite3_vfs *vfs, const char *name, sqlite3_file *file, int flags, int *out) {
    (void)vfs, (void)name, (void)flags, (void)out;
    file->pMethods = NULL;
    return SQLITE_CANTOPEN;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *name, int sync) {
    (void)vfs, (void)name, (void)sync;
    return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *vfs, const char *name, int flags, int *out) {
    (void)vfs, (void)name, (void)flags;
    *out = 0;
    return SQLITE_OK;
}

static int vfs_path(sqlite3_vfs *vfs, const char *name, int room, char *out) {
    (void)vfs;
    sqlite3_snprintf(room, out, "%s", name);
    return SQLITE_OK;
}

static int vfs_random(sqlite3_vfs *vfs, int room, char *out) {
    (void)vfs;
    memset(out, 7, (size_t)room);
    return room;
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds) {
    (void)vfs;
    return microseconds;
}

static int vfs_time(sqlite3_vfs *vfs, double *out) {
    (void)vfs;
    *out = 2449000.5;
    return SQLITE_OK;
}

static int vfs_error(sqlite3_vfs *vfs, int room, char *out) {
    (void)vfs, (void)room, (void)out;
    return 0;
}

static sqlite3_vfs vfs = {.iVersion = 1,
                          .szOsFile = sizeof(sqlite3_file),
                          .mxPathname = 64,
                          .zName = "none",
                          .xOpen = vfs_open,
                          .xDelete = vfs_delete,
                          .xAccess = vfs_access,
                          .xFullPathname = vfs_path,
                          .xRandomness = vfs_random,
                          .xSleep = vfs_sleep,
                          .xCurrentTime = vfs_time,
                          .xGetLastError = vfs_error};

int sqlite3_os_init(void) { return sqlite3_vfs_register(&vfs, 1); }
int sqlite3_os_end(void) { return SQLITE_OK; }

static void fail(void) {
    printf("failed: %s\n", sqlite3_errmsg(db));
    exit(1);
}

static void run(const char *sql) {
    if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
        fail();
}

static sqlite3_stmt *compile(const char *sql) {
    sqlite3_stmt *statement;
    if (sqlite3_prepare_v2(db, sql, -1, &statement, NULL) != SQLITE_OK)
        fail();
    return statement;
}

/* Takes all rows of a query into the checksum. */
static void query(const char *sql) {
    sqlite3_stmt *statement = compile(sql);
    int state;
    while ((state = sqlite3_step(statement)) == SQLITE_ROW) {
        for (int c = 0; c < sqlite3_column_count(statement); c++) {
            const unsigned char *text = sqlite3_column_text(statement, c);
            bench_add_bytes(text, (size_t)sqlite3_column_bytes(statement, c));
        }
    }
    if (state != SQLITE_DONE)
        fail();
    sqlite3_finalize(statement);
}

static void fill(void) {
    static char text[4096];
    bench_text(text, sizeof text);
    sqlite3_stmt *statement = compile("INSERT INTO part VALUES (?, ?, ?, ?)");
    for (int i = 0; i < 6000; i++) {
        sqlite3_bind_int(statement, 1, i);
        sqlite3_bind_int(statement, 2, (int)(bench_random() % 97));
        sqlite3_bind_double(statement, 3, (double)(bench_random() % 10000) / 16);
        sqlite3_bind_text(statement, 4, text + bench_random() % 4000, 12 + (int)(bench_random() % 40), SQLITE_STATIC);
        if (sqlite3_step(statement) != SQLITE_DONE)
            fail();
        sqlite3_reset(statement);
    }
    sqlite3_finalize(statement);
}

static void prepare(void) {}

static void work(void) {
    if (sqlite3_open(":memory:", &db) != SQLITE_OK)
        fail();
    run("CREATE TABLE maker (id INTEGER PRIMARY KEY, name TEXT);"
        "CREATE TABLE part (id INTEGER PRIMARY KEY, maker INTEGER, price REAL, note TEXT);"
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 96)"
        " INSERT INTO maker SELECT i, 'maker ' || (i * 7919 % 97) FROM n;"
        "BEGIN");
    fill();
    run("COMMIT; CREATE INDEX by_maker ON part (maker, price); CREATE INDEX by_note ON part (note)");
    query("SELECT name, count(*), sum(price), max(note) FROM part JOIN maker ON maker.id = part.maker"
          " GROUP BY name ORDER BY 3 DESC");
    query("SELECT note, price FROM part WHERE note BETWEEN 'm' AND 'n' ORDER BY price, note LIMIT 300");
    query("SELECT a.id, b.id FROM part a JOIN part b ON a.maker = b.maker AND a.price = b.price AND a.id < b.id"
          " ORDER BY a.id");
    query("SELECT count(*) FROM part WHERE note LIKE '%lo%' AND length(note) > 20");
    run("BEGIN; UPDATE part SET price = price * 1.5 WHERE maker % 3 = 0; DELETE FROM part WHERE id % 5 = 2; COMMIT");
    query("SELECT maker, group_concat(id) FROM (SELECT * FROM part ORDER BY id) WHERE price > 500 GROUP BY maker");
    query("PRAGMA integrity_check");
    sqlite3_close(db);
}

BENCH_MAIN("sqlite", prepare, work)
