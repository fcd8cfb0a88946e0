/* What a policy lets a program do: policy WHAT ARGUMENT says `ok` or the error's name. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static int said(int failed) {
    printf("%s\n", failed ? strerror(errno) : "ok");
    return failed;
}

static void *nothing(void *argument) { return argument; }

static struct sockaddr_in here(const char *port) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((unsigned short)atoi(port))};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return address;
}

/* Sends a word, and prints what comes back. */
static int ask(const char *port) {
    struct sockaddr_in address = here(port), peer;
    socklen_t length = sizeof peer;
    char text[16] = "";
    int one = 1, file = socket(AF_INET, SOCK_STREAM, 0);
    if (file < 0 || connect(file, (struct sockaddr *)&address, sizeof address))
        return said(1);
    struct pollfd wait = {.fd = file, .events = POLLIN};
    int failed = setsockopt(file, IPPROTO_TCP, 1, &one, sizeof one) || getpeername(file, (struct sockaddr *)&peer, &length) ||
                 peer.sin_port != address.sin_port || send(file, "ping", 4, 0) != 4 || poll(&wait, 1, 5000) != 1 ||
                 recv(file, text, 4, MSG_WAITALL) != 4 || shutdown(file, SHUT_RDWR) || close(file);
    printf("%s\n", failed ? strerror(errno) : text);
    return failed;
}

static int offer(const char *port) {
    struct sockaddr_in address = here(port);
    int one = 1, file = socket(AF_INET, SOCK_STREAM, 0);
    return said(file < 0 || setsockopt(file, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
                bind(file, (struct sockaddr *)&address, sizeof address) || listen(file, 1));
}

int main(int argc, char **argv) {
    const char *what = argc > 1 ? argv[1] : "", *argument = argc > 2 ? argv[2] : "";
    struct timespec pause = {0, 1000000}, now;
    if (!strcmp(what, "read"))
        return said(open(argument, O_RDONLY) < 0);
    if (!strcmp(what, "write"))
        return said(open(argument, O_WRONLY | O_CREAT, 0600) < 0);
    if (!strcmp(what, "connect"))
        return ask(argument);
    if (!strcmp(what, "listen"))
        return offer(argument);
    if (!strcmp(what, "datagram"))
        return said(socket(AF_INET, SOCK_DGRAM, 0) < 0);
    if (!strcmp(what, "local"))
        return said(socket(AF_UNIX, SOCK_STREAM, 0) < 0);
    if (!strcmp(what, "sleep"))
        return said(nanosleep(&pause, NULL));
    if (!strcmp(what, "endless"))
        for (volatile long n = 0;; n++) {}
    if (!strcmp(what, "clock"))
        return said(clock_gettime(CLOCK_REALTIME, &now) || now.tv_sec < 1000000000);
    if (!strcmp(what, "memory")) {
        /* The compiler would know the answer. */
        void *volatile block = malloc((size_t)atoi(argument) << 20);
        return said(!block);
    }
    if (!strcmp(what, "process"))
        return said(fork() < 0);
    if (!strcmp(what, "thread")) {
        pthread_t thread;
        errno = pthread_create(&thread, NULL, nothing, NULL);
        return said(errno);
    }
    if (!strcmp(what, "variable"))
        return said(!getenv(argument));
    return 2;
}
