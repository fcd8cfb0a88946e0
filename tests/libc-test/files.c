/* open and its kin: what is made, cut, appended to, refused; what files are. */
#include "check.h"
#include <sys/ioctl.h>
#include <sys/stat.h>

static long size(const char *path) {
    struct stat about;
    return stat(path, &about) < 0 ? -1 : (long)about.st_size;
}

void put(const char *path, int flags, const char *text) {
    int fd = open(path, flags, 0666);
    CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

static void opened(void) {
    unlink("/ram/f");
    FAILS(open("/ram/f", O_RDONLY), ENOENT);
    FAILS(open("/ram/f", O_WRONLY | O_TRUNC), ENOENT);
    FAILS(open("", O_RDONLY), ENOENT);
    FAILS(open(NULL, O_RDONLY), EFAULT);
    put("/ram/f", O_WRONLY | O_CREAT, "0123456789");
    put("/ram/f", O_WRONLY | O_CREAT, "ab");
    CHECK(size("/ram/f") == 10);
    put("/ram/f", O_WRONLY | O_APPEND, "a line that does not fit into one call of the server");
    CHECK(size("/ram/f") == 62);
    FAILS(open("/ram/f", O_RDWR | O_CREAT | O_EXCL), EEXIST);
    FAILS(open("/etc/supervisor", O_WRONLY | O_CREAT | O_EXCL), EEXIST);
    FAILS(open("/etc/supervisor", O_WRONLY), EROFS);
    FAILS(open("/etc/supervisor", O_RDWR | O_TRUNC), EROFS);
    FAILS(open("/etc/none", O_WRONLY | O_CREAT), EROFS);
    FAILS(open("/ram", O_WRONLY), EISDIR);
    FAILS(open("/ram/none/f", O_WRONLY | O_CREAT), ENOENT);
    FAILS(open("/etc", O_RDWR), EISDIR);
    int fd = open("/ram/f", O_RDONLY);
    char c;
    FAILS(write(fd, "x", 1), EBADF);
    CHECK(read(fd, &c, 1) == 1 && c == 'a' && close(fd) == 0);
    fd = open("/ram/f", O_WRONLY);
    FAILS(read(fd, &c, 1), EBADF);
    FAILS(lseek(fd, 0, 4), EINVAL);
    CHECK(close(fd) == 0);
    fd = open("/ram/f", O_RDWR | O_APPEND | O_TRUNC);
    CHECK(write(fd, "end", 3) == 3 && lseek(fd, 0, SEEK_SET) == 0 && write(fd, "s", 1) == 1 && size("/ram/f") == 4);
    CHECK(ftruncate(fd, 2) == 0 && size("/ram/f") == 2);
    FAILS(ftruncate(fd, -1), EINVAL);
    CHECK(ftruncate(fd, 4) == 0 && size("/ram/f") == 4);
    close(fd);
    FAILS(close(fd), EBADF);
    put("/ram/f", O_WRONLY | O_CREAT | O_TRUNC, "");
    CHECK(size("/ram/f") == 0);
}

/* A file is as long as its last byte says, and what was not written is zero. */
static void behind(void) {
    char bytes[1100];
    int fd = open("/ram/f", O_RDWR | O_CREAT | O_TRUNC), other = open("/ram/f", O_RDWR);
    CHECK(write(fd, "abc", 3) == 3 && lseek(fd, 1000, SEEK_SET) == 1000 && lseek(fd, 0, SEEK_CUR) == 1000);
    CHECK(read(fd, bytes, 9) == 0 && lseek(fd, 24, SEEK_CUR) == 1024 && size("/ram/f") == 3);
    CHECK(write(fd, "d", 1) == 1 && size("/ram/f") == 1025 && lseek(fd, 0, SEEK_CUR) == 1025);
    CHECK(lseek(fd, 0, SEEK_SET) == 0 && read(fd, bytes, sizeof bytes) == 1025 && memcmp(bytes, "abc\0", 4) == 0);
    CHECK(bytes[1023] == 0 && bytes[1024] == 'd' && lseek(fd, -25, SEEK_END) == 1000 && lseek(fd, 1, SEEK_END) == 1026);
    CHECK(write(other, "A", 1) == 1 && lseek(other, 0, SEEK_END) == 1025 && write(other, "wxyz", 4) == 4);
    CHECK(read(fd, bytes, 9) == 3 && memcmp(bytes, "xyz", 3) == 0); /* somebody has made it longer meanwhile */
    FAILS(lseek(fd, -1, SEEK_SET), EINVAL);
    CHECK(lseek(fd, 2, SEEK_SET) == 2 && ftruncate(fd, 2000) == 0 && size("/ram/f") == 2000 && lseek(fd, 0, SEEK_CUR) == 2);
    CHECK(read(fd, bytes, 2) == 2 && bytes[0] == 'c' && truncate("/ram/f", 1) == 0 && size("/ram/f") == 1);
    CHECK(lseek(fd, 1L << 40, SEEK_SET) == 1L << 40 && write(fd, "", 0) == 0 && size("/ram/f") == 1);
    CHECK(lseek(fd, 5, SEEK_SET) == 5 && close(fd) == 0 && close(other) == 0);
    fd = open("/etc/supervisor", O_RDONLY);
    CHECK(lseek(fd, 1L << 20, SEEK_SET) == 1L << 20 && read(fd, bytes, 9) == 0 && lseek(fd, 0, SEEK_SET) == 0);
    FAILS(ftruncate(fd, 1), EBADF);
    close(fd);
}

/* Calls that have one answer here. */
static void fixed(void) {
    char path[9];
    int fd = open("/ram/f", O_RDWR | O_APPEND);
    CHECK(fsync(fd) == 0 && fdatasync(fd) == 0 && fcntl(fd, F_GETFL) == (O_RDWR | O_APPEND) && fcntl(fd, F_SETFL, O_APPEND) == 0);
    FAILS(fcntl(fd, F_SETFL, 0), EINVAL);
    struct flock all = {.l_type = F_WRLCK};
    FAILS(fcntl(fd, F_SETLK, &all), ENOLCK);
    FAILS(ioctl(fd, 0), ENOTTY);
    FAILS(fchmod(fd, 0600), EPERM);
    CHECK(close(fd) == 0);
    FAILS(fsync(fd), EBADF);
    FAILS(chmod("/ram/none", 0), ENOENT);
    FAILS(mkdir("/ram/d", 0777), EPERM);
    FAILS(mkdir("/ram", 0777), EEXIST);
    FAILS(rmdir("/ram/f"), ENOTDIR);
    FAILS(readlink("/ram/f", path, sizeof path), EINVAL);
    FAILS(symlink("/ram/f", "/ram/g"), EPERM);
    FAILS(chdir("/ram"), EACCES);
    CHECK(chdir("/") == 0 && getcwd(path, sizeof path) == path && strcmp(path, "/") == 0);
    CHECK(getcwd(path, 1) == NULL && errno == ERANGE && geteuid() == 0 && chown("/ram/f", 0, 0) == 0);
}

static void moved(void) {
    put("/ram/from", O_WRONLY | O_CREAT | O_TRUNC, "moved");
    put("/ram/to", O_WRONLY | O_CREAT | O_TRUNC, "in the way");
    CHECK(rename("/ram/from", "/ram/to") == 0 && size("/ram/to") == 5);
    FAILS(open("/ram/from", O_RDONLY), ENOENT);
    FAILS(rename("/ram/from", "/ram/to"), ENOENT);
    FAILS(rename("/ram/to", "/etc/to"), EROFS);
    FAILS(rename("/etc/supervisor", "/ram/x"), EROFS);
    CHECK(rename("/ram/to", "/ram/to") == 0 && remove("/ram/to") == 0);
    FAILS(unlink("/ram/to"), ENOENT);
    FAILS(unlink("/etc/supervisor"), EROFS);
    FAILS(unlink("/ram"), EROFS);
}

/* Records at every place in a word, in memory and in the file. */
static void uneven(void) {
    enum { SIZE = 5001 };
    static unsigned char from[SIZE + 8], to[SIZE + 8];
    int fd = open("/ram/f", O_RDWR | O_CREAT | O_TRUNC);
    bool same = true;
    for (int n = 0; n < 64; n++) {
        for (int at = 0; at < SIZE + 8; at++)
            from[at] = (unsigned char)(at * 5 + n + at / 256);
        size_t size = (size_t)(SIZE - n * 70);
        same = same && pwrite(fd, from + n % 8, size, n / 8) == (ssize_t)size;
        same = same && pread(fd, to + n / 3 % 8, size, n / 8) == (ssize_t)size && memcmp(from + n % 8, to + n / 3 % 8, size) == 0;
    }
    CHECK(fd >= 0 && same && close(fd) == 0 && unlink("/ram/f") == 0);
}

static void described(void) {
    struct stat about;
    put("/ram/f", O_WRONLY | O_CREAT | O_TRUNC, "12345");
    CHECK(stat("/ram/f", &about) == 0 && S_ISREG(about.st_mode) && about.st_size == 5 && about.st_mode & S_IWUSR);
    CHECK(stat("/etc/supervisor", &about) == 0 && S_ISREG(about.st_mode) && !(about.st_mode & S_IWUSR) && about.st_size > 0);
    CHECK(stat("/etc", &about) == 0 && S_ISDIR(about.st_mode));
    CHECK(stat("/ram/", &about) == 0 && S_ISDIR(about.st_mode));
    FAILS(stat("/ram/none", &about), ENOENT);
    FAILS(fstat(3, &about), EBADF);
    int fd = open("/dev/console", O_RDWR);
    CHECK(fstat(fd, &about) == 0 && S_ISCHR(about.st_mode) && isatty(fd) == 1);
    FAILS(lseek(fd, 0, SEEK_SET), ESPIPE);
    close(fd);
    CHECK(isatty(fd) == 0);
    fd = open("/ram/f", O_RDONLY);
    CHECK(isatty(fd) == 0 && lseek(fd, 2, SEEK_SET) == 2 && fstat(fd, &about) == 0 && lseek(fd, 0, SEEK_CUR) == 2);
    close(fd);
    CHECK(access("/ram/f", R_OK | W_OK | X_OK) == 0 && access("/etc/supervisor", R_OK) == 0);
    FAILS(access("/etc/supervisor", W_OK), EROFS);
    FAILS(access("/none", F_OK), ENOENT);
}

void test_files(void) {
    opened();
    behind();
    fixed();
    moved();
    uneven();
    described();
}
