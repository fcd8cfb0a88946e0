/* Runs the statements of a file on a database and prints every row and error: golden DATABASE FILE. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sqlite3.h"

static int print(void *unused, int columns, char **values, char **names) {
    (void)unused, (void)names;
    for (int i = 0; i < columns; i++)
        printf("%s%s", i ? "|" : "", values[i] ? values[i] : "NULL");
    putchar('\n');
    return 0;
}

int main(int argc, char **argv) {
    static char text[65536];
    sqlite3 *db;
    FILE *file = argc > 2 ? fopen(argv[2], "r") : NULL;
    if (!file)
        return 2;
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    remove(argv[1]);
    if (sqlite3_open(argv[1], &db) != SQLITE_OK)
        return 3;
    for (char *next = text; *next;) {
        sqlite3_stmt *statement;
        const char *rest;
        if (sqlite3_prepare_v2(db, next, -1, &statement, &rest) != SQLITE_OK) {
            printf("error: %s\n", sqlite3_errmsg(db));
            char *end = strchr(next, '\n');
            next = end ? end + 1 : next + strlen(next);
            continue;
        }
        if (statement) {
            char *sql = sqlite3_expanded_sql(statement), *why = NULL;
            if (sqlite3_exec(db, sql, print, NULL, &why) != SQLITE_OK)
                printf("error: %s\n", why);
            sqlite3_free(why);
            sqlite3_free(sql);
        }
        sqlite3_finalize(statement);
        next += rest - next;
    }
    sqlite3_close(db);
    return 0;
}
