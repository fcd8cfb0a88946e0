/*
 * Calls of POSIX whose answer is always the same here. Programs that exist already call them on the way to what they want, and have a branch
 * for each answer: so they get the true one, and nothing pretends to have been done.
 *
 * There is one user, number 0, who owns every file. Files have no dates, no other names and no rights that could be changed, and there are no
 * directories to be made: who asks for that is told EPERM, as by a file system on Linux that cannot do it. Files are not locked: ENOLCK. What is
 * written is at the server when write returns, so there is nothing to be flushed.
 */
#include "internal.h"

#include <pwd.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/time.h>

static int fail(int error) {
    errno = error;
    return -1;
}

/* What cannot be done to a file, if there is such a file. */
static int not_to(const char *path) { return access(path, F_OK) < 0 ? -1 : fail(EPERM); }

static int not_to_open(int fd) { return __access_of(fd) < 0 ? -1 : fail(EPERM); }

/* What cannot be made there, if nothing is there. */
static int not_at(const char *path) {
    if (access(path, F_OK) == 0)
        return fail(EEXIST);
    return errno == ENOENT ? fail(EPERM) : -1;
}

int fsync(int fd) { return __access_of(fd) < 0 ? -1 : 0; }
int fdatasync(int fd) { return fsync(fd); }
void sync(void) {}

int lstat(const char *restrict path, struct stat *restrict about) { return stat(path, about); }

ssize_t readlink(const char *restrict path, char *restrict buffer, size_t size) {
    (void)buffer, (void)size;
    return access(path, F_OK) < 0 ? -1 : fail(EINVAL);
}

int symlink(const char *target, const char *path) {
    (void)target;
    return not_at(path);
}

int link(const char *path, const char *other) { return access(path, F_OK) < 0 ? -1 : not_at(other); }

int mkdir(const char *path, mode_t mode) {
    (void)mode;
    return not_at(path);
}

int rmdir(const char *path) {
    struct stat about;
    if (stat(path, &about) < 0)
        return -1;
    return fail(S_ISDIR(about.st_mode) ? EPERM : ENOTDIR);
}

int chmod(const char *path, mode_t mode) {
    (void)mode;
    return not_to(path);
}

int fchmod(int fd, mode_t mode) {
    (void)mode;
    return not_to_open(fd);
}

int chown(const char *path, uid_t owner, gid_t group) { return owner == 0 && group == 0 ? access(path, F_OK) : not_to(path); }
int lchown(const char *path, uid_t owner, gid_t group) { return chown(path, owner, group); }
int fchown(int fd, uid_t owner, gid_t group) { return owner == 0 && group == 0 ? fsync(fd) : not_to_open(fd); }

int utimes(const char *path, const struct timeval times[2]) {
    (void)times;
    return not_to(path);
}

/* No bit is taken from what open is asked for, as nothing comes of them. */
mode_t umask(mode_t mask) {
    (void)mask;
    return 0;
}

uid_t getuid(void) { return 0; }
uid_t geteuid(void) { return 0; }
gid_t getgid(void) { return 0; }
gid_t getegid(void) { return 0; }

static struct passwd user = {.pw_name = "root", .pw_passwd = "", .pw_gecos = "", .pw_dir = "/", .pw_shell = "/bin/shell"};

struct passwd *getpwuid(uid_t number) { return number == 0 ? &user : NULL; }
struct passwd *getpwnam(const char *name) { return strcmp(name, user.pw_name) == 0 ? &user : NULL; }

char *getcwd(char *buffer, size_t size) {
    if (size != 0 && size < sizeof "/") {
        fail(size == 0 ? EINVAL : ERANGE);
        return NULL;
    }
    if (buffer == NULL && (buffer = malloc(size != 0 ? size : sizeof "/")) == NULL)
        return NULL;
    return strcpy(buffer, "/");
}

/* Paths begin at the root, wherever a program is. */
int chdir(const char *path) {
    struct stat about;
    if (stat(path, &about) < 0)
        return -1;
    if (!S_ISDIR(about.st_mode))
        return fail(ENOTDIR);
    return path[strspn(path, "/.")] == 0 ? 0 : fail(EACCES);
}

/* The console does the terminal's work by itself, and cannot be asked or told how. */
int ioctl(int fd, unsigned long request, ...) {
    (void)request;
    return __access_of(fd) < 0 ? -1 : fail(ENOTTY);
}

/* There is no exec, so it is the same whether a descriptor would be closed by one. */
int fcntl(int fd, int command, ...) {
    int access = __access_of(fd);
    if (access < 0)
        return -1;
    va_list rest;
    va_start(rest, command);
    int flags = command == F_SETFD || command == F_SETFL ? va_arg(rest, int) : 0;
    va_end(rest);
    switch (command) {
    case F_GETFD: return FD_CLOEXEC;
    case F_SETFD: return flags & FD_CLOEXEC ? 0 : fail(EINVAL);
    case F_GETFL: return access;
    case F_SETFL: return (flags & ~O_ACCMODE) == (access & ~O_ACCMODE) ? 0 : fail(EINVAL);
    case F_GETLK:
    case F_SETLK:
    case F_SETLKW: return fail(ENOLCK);
    default: return fail(EINVAL);
    }
}
