/* Streams that are closed, closed twice, opened anew, left to exit. */
#include "check.h"

static char content[64];

static const char *contents(const char *path) {
    FILE *file = fopen(path, "r");
    size_t count = file == NULL ? 0 : fread(content, 1, sizeof content - 1, file);
    content[count] = 0;
    if (file != NULL)
        fclose(file);
    return content;
}

/* All blocks are distinct from the streams, and from each other. */
static void memory_is_sound(void) {
    char *blocks[100];
    for (int i = 0; i < 100; i++) {
        blocks[i] = malloc(16 + i * 8);
        CHECK(blocks[i] != NULL && blocks[i] != (char *)stdin && blocks[i] != (char *)stdout && blocks[i] != (char *)stderr);
        memset(blocks[i], i, 16 + i * 8);
    }
    for (int i = 0; i < 100; i++) {
        CHECK(blocks[i][0] == i && blocks[i][15 + i * 8] == i);
        free(blocks[i]);
    }
}

/* Nothing of what is read or written is lost on the way. */
static void buffers_keep_what_they_have(void) {
    char line[16];
    FILE *file = fopen("/ram/stream", "w+");
    CHECK(fputs("first\nsecond\nthe end", file) >= 0 && ftell(file) == 20 && fseek(file, 0, SEEK_SET) == 0);
    /* The last line has no newline; a longer one comes in pieces. */
    SAME(fgets(line, sizeof line, file), "first\n");
    SAME(fgets(line, 5, file), "seco");
    SAME(fgets(line, sizeof line, file), "nd\n");
    SAME(fgets(line, sizeof line, file), "the end");
    CHECK(feof(file) && !ferror(file) && fgets(line, sizeof line, file) == NULL);
    /* The end is told again, although there is more by then, until it is asked anew. */
    put("/ram/stream", O_WRONLY | O_APPEND, "!");
    CHECK(getc(file) == EOF);
    clearerr(file);
    CHECK(getc(file) == '!' && ungetc('?', file) == '?' && ftell(file) == 20 && getc(file) == '?' && ftell(file) == 21);
    /* From the place where the program is, whatever has been read ahead or put back. */
    rewind(file);
    CHECK(getc(file) == 'f' && fseek(file, 4, SEEK_CUR) == 0 && getc(file) == '\n' && ungetc('x', file) == 'x');
    CHECK(fseek(file, 0, SEEK_CUR) == 0 && getc(file) == '\n');
    FAILS(fseek(file, -100, SEEK_CUR), EINVAL);
    CHECK(getc(file) == 's' && fseek(file, 0, SEEK_CUR) == 0 && fputs("EC", file) >= 0 && fseek(file, -3, SEEK_CUR) == 0);
    SAME(fgets(line, sizeof line, file), "sECond\n");
    /* From reading to writing, and back, in the middle of a buffer; another buffer in the middle of either. */
    CHECK(fputs("T", file) >= 0 && setvbuf(file, NULL, _IOFBF, 1000) == 0 && fflush(file) == 0 && getc(file) == 'h');
    CHECK(setvbuf(file, NULL, _IONBF, 0) == 0 && getc(file) == 'e' && fclose(file) == 0);
    SAME(contents("/ram/stream"), "first\nsECond\nThe end!");
    file = fdopen(open("/ram/stream", O_RDWR | O_APPEND), "a+");
    CHECK(fputs("1", file) >= 0 && ftell(file) == 22 && fseek(file, 1, SEEK_SET) == 0 && getc(file) == 'i' && fclose(file) == 0);
    int fd = open("/ram/stream", O_RDWR);
    CHECK(lseek(fd, 6, SEEK_SET) == 6 && (file = fdopen(fd, "r+")) != NULL && getc(file) == 's' && fputs("ec", file) >= 0);
    CHECK(fseek(file, 6, SEEK_SET) == 0);
    SAME(fgets(line, sizeof line, file), "second\n");
    fclose(file);
    /* What cannot be written, or read, is an error, and no end. */
    file = fdopen(open("/ram/stream", O_RDONLY), "w");
    CHECK(fputs("lost", file) >= 0 && fflush(file) == EOF && errno == EBADF && ferror(file) && !feof(file));
    fclose(file);
    file = fdopen(open("/ram/stream", O_WRONLY), "r");
    CHECK(getc(file) == EOF && errno == EBADF && ferror(file) && !feof(file));
    fclose(file);
    unlink("/ram/stream");
}

static char letter(long at) { return at % 61 == 60 ? '\n' : (char)('a' + at % 23 + at / 1000 % 3); }

/* Much, in pieces of every size, over the ends of a small buffer and of a large one. */
static void pieces_are_all_there(void) {
    enum { ALL = 30000 };
    char piece[700];
    bool same = true;
    FILE *file = fopen("/ram/stream", "w+");
    for (long at = 0, size = 1; at < ALL; at += size, size = (size * 5 + 1) % 640) {
        for (long n = 0; n < size; n++)
            piece[n] = letter(at + n);
        same = same && fwrite(piece, 1, (size_t)size, file) == (size_t)size && ftell(file) == at + size;
        same = same && (size % 3 != 0 || putc(letter(at + size), file) == letter(at + size));
        size += size % 3 == 0;
    }
    long all = ftell(file);
    CHECK(same && all >= ALL && fseek(file, 0, SEEK_SET) == 0);
    for (long at = 0, size = 1; at < all; at += size, size = (size * 7 + 3) % 690) {
        if (size % 5 == 0)
            same = same && getc(file) == letter(at) && ungetc(letter(at), file) == letter(at);
        if (size % 4 == 0)
            size = fgets(piece, 100, file) == NULL ? 0 : (long)strlen(piece);
        else
            size = (long)fread(piece, 1, (size_t)size + 1, file);
        same = same && size > 0 && ftell(file) == at + size;
        for (long n = 0; n < size; n++)
            same = same && piece[n] == letter(at + n);
        if (size == 0)
            break;
    }
    CHECK(same && getc(file) == EOF && feof(file) && fclose(file) == 0 && unlink("/ram/stream") == 0);
}

/* Files for a while: with names that are free, and gone with the stream. */
static void temporaries_go(void) {
    char name[L_tmpnam], line[16];
    CHECK(tmpnam(name) == name && access(name, F_OK) < 0 && tmpnam(NULL) != NULL);
    FILE *one = tmpfile(), *two = tmpfile();
    CHECK(one != NULL && two != NULL && fputs("one", one) >= 0 && fputs("two", two) >= 0 && fseek(one, 0, SEEK_SET) == 0);
    SAME(fgets(line, sizeof line, one), "one");
    int fd = fileno(two);
    CHECK(fd >= 0 && fflush(two) == 0 && lseek(fd, 0, SEEK_END) == 3 && fclose(one) == 0 && fclose(two) == 0);
    fputs("left", tmpfile());
}

static void leave_unflushed(void) { fputs("printed by a handler of exit", fopen("/ram/at-exit", "w")); }

static int constructed;
__attribute__((constructor)) static void construct(void) { constructed++; }

void test_streams(void) {
    CHECK(constructed == 1); /* before main */
    char own[100];
    atexit(leave_unflushed);
    buffers_keep_what_they_have();
    pieces_are_all_there();
    temporaries_go();
    /* Closed twice: an error, and no block of memory. */
    FILE *first = fopen("/ram/stream", "w");
    CHECK(first != NULL && fputs("one", first) >= 0 && fclose(first) == 0);
    FAILS(fclose(first), EBADF);
    CHECK(fputc('x', first) == EOF && fflush(first) == 0);
    memory_is_sound();
    SAME(contents("/ram/stream"), "one");
    /* What a second one has written stays its own. */
    FILE *second = fopen("/ram/stream", "a");
    CHECK(setvbuf(second, own, _IOFBF, sizeof own) == 0 && fputs(" two", second) >= 0 && fclose(second) == 0);
    SAME(contents("/ram/stream"), "one two");
    second = fopen("/ram/stream", "w");
    CHECK(setvbuf(second, NULL, _IOFBF, 2000) == 0 && fputs("three", second) >= 0 && fclose(second) == 0);
    memory_is_sound();
    SAME(contents("/ram/stream"), "three");
    CHECK(fopen("/ram/stream", "q") == NULL && errno == EINVAL);
    CHECK(fopen("/ram/none", "r") == NULL && errno == ENOENT);
    CHECK(fopen("/ram/stream", "wx") == NULL && errno == EEXIST);
    CHECK(fdopen(open("/ram/stream", O_RDONLY), "r") != NULL);
    /* As many as there may be files, again and again. */
    for (int round = 0; round < 3; round++) {
        FILE *many[40];
        for (int i = 0; i < 40; i++)
            CHECK((many[i] = fopen("/ram/stream", "r")) != NULL);
        for (int i = 0; i < 40; i++)
            CHECK(fgetc(many[i]) == 't' && fclose(many[i]) == 0);
    }
    /* All that is open is written out. */
    FILE *both[2] = {fopen("/ram/a", "w"), fopen("/ram/b", "w+")};
    CHECK(fputs("a", both[0]) >= 0 && fputs("b", both[1]) >= 0 && fflush(NULL) == 0);
    SAME(contents("/ram/a"), "a");
    SAME(contents("/ram/b"), "b");
    rewind(both[1]);
    CHECK(fgetc(both[1]) == 'b' && fclose(both[1]) == 0 && fclose(both[0]) == 0);
    /* Standard streams, made another file's, and closed. */
    CHECK(setvbuf(stdout, NULL, _IOFBF, 700) == 0 && freopen("/ram/out", "w", stdout) == stdout);
    printf("to a file");
    CHECK(fclose(stdout) == 0);
    SAME(contents("/ram/out"), "to a file");
    FAILS(printf("nowhere"), errno);
    FAILS(fclose(stdout), EBADF);
    CHECK(freopen("/ram/again", "w", stdout) == stdout && fputs("again", stdout) >= 0 && fflush(stdout) == 0);
    SAME(contents("/ram/again"), "again");
    CHECK(freopen("/nowhere", "r", stdout) == NULL && errno == ENOENT);
    CHECK(fputc('x', stdout) == EOF);
    CHECK(fclose(stdin) == 0 && getchar() == EOF);
    memory_is_sound();
    fputs("left to exit", fopen("/ram/left", "w"));
}
