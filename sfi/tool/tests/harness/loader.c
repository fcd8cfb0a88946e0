/* Runs a module's t_main without verification: for tests of the rewriter only. Traps are reported as output. */
#define _GNU_SOURCE
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#define GIB (1ull << 30)
static uint64_t seg;
uint64_t host_rsp, guest_rsp, guest_rbp;

static void t_out(long v) { printf("%ld\n", v); }
static void t_text(const char *s) { printf("%s\n", s); }
static void t_double(double d) { printf("%a\n", d); }
static uint64_t brk_at;
static long sys6(long n, long a, long b, long c, long d, long e) {
    if (n == SYS_brk) return -1;
    if (n == SYS_mmap) { uint64_t r = brk_at; brk_at += (b + 4095) & ~4095ul; return r; }
    if (n == SYS_munmap || n == SYS_mremap || n == SYS_madvise || n == SYS_mprotect) return n == SYS_mremap ? -12 : 0;
    if (n == SYS_exit || n == SYS_exit_group) { fflush(0); _exit(a); }
    if (n == SYS_set_tid_address) return 1;
    long r = syscall(n, a, b, c, d, e);
    return r < 0 ? -errno : r;
}
#define CALL(n) static long w_##n(long a, long b, long c, long d, long e) { return sys6(SYS_##n, a, b, c, d, e); }
#define EACH(X) \
    X(read) X(write) X(readv) X(writev) X(open) X(close) X(lseek) X(fstat) X(newfstatat) X(ioctl) X(mmap) X(munmap) X(mremap) X(madvise) X(brk) X(clock_gettime) X(exit_group) \
    X(unlink) X(rename) X(ftruncate) X(fsync) X(getcwd) X(access) X(pread64) X(pwrite64) X(getpid) X(fcntl) X(mkdir) X(rmdir) X(stat) X(lstat) X(getrandom) X(nanosleep)
EACH(CALL)
#define ROW(n) {"pbl_sys_" #n, w_##n},
__asm__(".text\n"
        /* enter(code, arg): host callee-saved on the host stack, both stacks switched */
        ".globl enter\nenter: push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "mov %rsp, host_rsp(%rip); mov guest_rsp(%rip), %rsp; mov guest_rbp(%rip), %rbp\n"
        "mov %rdi, %rax; mov %rsi, %rdi; call *%rax\n"
        "mov host_rsp(%rip), %rsp; pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx; ret\n"
        /* an import: number in r11 by its stub, the function called on the host stack */
        ".globl import\nimport: push %rbp; push %rbx; mov %rsp, %rbx; mov host_rsp(%rip), %rsp\n"
        "and $-16, %rsp; sub $128, %rsp; call *%r11; mov %rbx, %rsp; pop %rbx; pop %rbp; ret\n"
        ".globl set_jump\nset_jump: mov (%rsp), %rax; mov %rbx, (%rdi); mov %rbp, 8(%rdi); mov %r12, 16(%rdi)\n"
        "mov %r13, 24(%rdi); mov %r14, 32(%rdi); mov %r15, 40(%rdi); lea 8(%rsp), %rdx; mov %rdx, 48(%rdi)\n"
        "mov %rax, 56(%rdi); xor %eax, %eax; ret\n"
        ".globl long_jump\nlong_jump: mov %esi, %eax; test %eax, %eax; jne 1f; inc %eax; 1: mov (%rdi), %rbx\n"
        "mov 8(%rdi), %rbp; mov 16(%rdi), %r12; mov 24(%rdi), %r13; mov 32(%rdi), %r14; mov 40(%rdi), %r15\n"
        "mov 48(%rdi), %rsp; jmp *56(%rdi)\n");
long enter(uint64_t, uint64_t);
void import(void), set_jump(void), long_jump(void);

static void trap(int s, siginfo_t *i, void *c) {
    ucontext_t *u = c;
    dprintf(1, "trap %d at %llx address %llx\n", s, (unsigned long long)u->uc_mcontext.gregs[REG_RIP] - seg,
            (unsigned long long)i->si_addr - seg);
    _exit(99);
}

int main(int argc, char **argv) {
    setvbuf(stdout, 0, _IOFBF, 1 << 16);
    int fd = open(argv[1], O_RDONLY);
    long size = lseek(fd, 0, SEEK_END);
    unsigned char *f = mmap(0, size, PROT_READ, MAP_PRIVATE, fd, 0);
    char *r = mmap(0, 24 * GIB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    seg = ((uint64_t)r + 8 * GIB) & ~(4 * GIB - 1);
    Elf64_Ehdr *h = (void *)f;
    Elf64_Phdr *ph = (void *)(f + h->e_phoff);
    Elf64_Shdr *sh = (void *)(f + h->e_shoff);
    const char *names = (char *)f + sh[h->e_shstrndx].sh_offset;
    for (int i = 0; i < h->e_phnum; i++)
        if (ph[i].p_type == PT_LOAD && ph[i].p_memsz) {
            uint64_t a = (seg + ph[i].p_vaddr) & ~4095ull, e = (seg + ph[i].p_vaddr + ph[i].p_memsz + 4095) & ~4095ull;
            mmap((void *)a, e - a, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
            memcpy((void *)(seg + ph[i].p_vaddr), f + ph[i].p_offset, ph[i].p_filesz);
            if (e - seg > brk_at) brk_at = e - seg;
        }
    uint32_t *mod = 0;
    for (int i = 0; i < h->e_shnum; i++) {
        if (sh[i].sh_type == SHT_RELA && (sh[i].sh_flags & SHF_ALLOC)) {
            Elf64_Rela *ra = (void *)(f + sh[i].sh_offset);
            for (unsigned k = 0; k < sh[i].sh_size / sizeof *ra; k++) {
                if (ELF64_R_TYPE(ra[k].r_info) != R_X86_64_RELATIVE) { printf("bad relocation\n"); return 1; }
                *(uint64_t *)(seg + ra[k].r_offset) = seg + ra[k].r_addend;
            }
        }
        if (!strcmp(names + sh[i].sh_name, ".pbl.module")) mod = (void *)(f + sh[i].sh_offset);
    }
    for (int i = 0; i < h->e_phnum; i++)
        if (ph[i].p_type == PT_LOAD && (ph[i].p_flags & 1))
            mprotect((void *)((seg + ph[i].p_vaddr) & ~4095ull), ph[i].p_memsz + 4095, PROT_READ | PROT_EXEC);
    uint64_t *ctx = mmap((void *)(seg + 0x10000), 8192, PROT_READ | PROT_WRITE,
                         MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t top = seg + 0xff800000ull;
    mmap((void *)(top - (8 << 20) + 4096), (8 << 20) - 4096, PROT_READ | PROT_WRITE,
         MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    brk_at = seg + ((brk_at + 0xfffff) & ~0xfffffull);
    mmap((void *)brk_at, GIB, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memcpy((void *)(top - ((mod[12] + mod[13] - 1) / (mod[13] ? mod[13] : 1) * (mod[13] ? mod[13] : 1))),
           (void *)(seg + mod[10]), mod[11]);
    ctx[0] = seg;
    ctx[1] = top;
    int exports = mod[14], imports = mod[15];
    char *strings = (char *)mod;
    uint32_t *ex = mod + 16, *im = ex + 4 * exports;
    unsigned char *stub = mmap(0, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < imports; i++) {
        const char *n = strings + im[2 * i];
        void *t = 0;
        struct { const char *n; void *f; } known[] = {{"t_out", t_out}, {"t_text", t_text}, {"t_double", t_double},
            EACH(ROW)};
        for (unsigned k = 0; k < sizeof known / sizeof *known; k++)
            if (!strcmp(n, known[k].n)) t = known[k].f;
        if (!strcmp(n, "pbl_setjmp")) { ctx[32 + i] = (uint64_t)set_jump; continue; }
        if (!strcmp(n, "pbl_longjmp")) { ctx[32 + i] = (uint64_t)long_jump; continue; }
        if (!t) { printf("unknown import %s\n", n); return 1; }
        ctx[32 + i] = (uint64_t)stub;
        stub[0] = 0x49, stub[1] = 0xbb; memcpy(stub + 2, &t, 8);
        stub[10] = 0x48, stub[11] = 0xb8; void *p = import; memcpy(stub + 12, &p, 8);
        stub[20] = 0xff, stub[21] = 0xe0; stub += 32;
    }
    stack_t ss = {.ss_sp = malloc(1 << 16), .ss_size = 1 << 16};
    sigaltstack(&ss, 0);
    struct sigaction sa = {.sa_sigaction = trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    int sigs[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP};
    for (int i = 0; i < 5; i++) sigaction(sigs[i], &sa, 0);
    char *rs = mmap((void *)(seg + 8 * GIB), 4 << 20, PROT_READ | PROT_WRITE, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    guest_rsp = (uint64_t)rs + (4 << 20) - 64;
    long block = (mod[12] + 63) & ~63l;
    guest_rbp = top - block - 4096;
    /* argv for programs with _start: argc, pointers, terminators on the data stack. */
    uint64_t *av = (uint64_t *)guest_rbp, n = 0;
    char *text = (char *)guest_rbp + 1024;
    av[n++] = argc - 1;
    for (int i = 1; i < argc; i++) { strcpy(text, argv[i]); av[n++] = (uint64_t)text; text += strlen(text) + 1; }
    av[n++] = 0; av[n++] = 0; av[n++] = 6; av[n++] = 4096; av[n++] = 0; av[n++] = 0;
    syscall(SYS_arch_prctl, 0x1001 /* ARCH_SET_GS */, seg);
    for (int i = 0; i < exports; i++) {
        const char *n = strings + ex[4 * i];
        if (!strcmp(n, "t_main")) { long v = enter(seg + ex[4 * i + 1], 0); printf("result %d\n", (int)v); fflush(0); _exit(0); }
        if (!strcmp(n, "_start")) enter(seg + ex[4 * i + 1], guest_rbp);
    }
    printf("no entry\n");
    return 1;
}
