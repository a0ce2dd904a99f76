/* A disk that fails, for one program (LD_PRELOAD): a change of something below the folder FAIL_BELOW ends with the error number
   FAIL_WITH. The changes are counted in the file FAIL_COUNT; the one numbered FAIL_AT fails, with FAIL_EVER all after it too. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_below(int folder, const char *path) {
    char link[64], place[PATH_MAX] = "";
    if (path == NULL || path[0] != '/') {
        snprintf(link, sizeof link, folder == AT_FDCWD ? "/proc/self/cwd" : "/proc/self/fd/%d", folder);
        if (readlink(link, place, sizeof place - 1) < 0) return 0;
    }
    const char *top = getenv("FAIL_BELOW"), *whole = path && path[0] == '/' ? path : place;
    return top && strncmp(whole, top, strlen(top)) == 0;
}

static int fails(int folder, const char *path) {
    static long *count;
    if (!is_below(folder, path)) return 0;
    if (!count) {
        int file = open(getenv("FAIL_COUNT"), O_RDWR | O_CLOEXEC);
        count = mmap(NULL, sizeof *count, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        close(file);
    }
    long number = __atomic_add_fetch(count, 1, __ATOMIC_SEQ_CST), at = atol(getenv("FAIL_AT"));
    if (at == 0 || number < at || (number > at && !getenv("FAIL_EVER"))) return 0;
    errno = atoi(getenv("FAIL_WITH"));
    return 1;
}

/* A function of the C library that fails, or else does what it does. */
#define CHANGE(type, name, declared, passed, folder, path) \
    type name declared { \
        static type (*next) declared; \
        if (fails(folder, path)) return -1; \
        if (!next) next = dlsym(RTLD_NEXT, #name); \
        return next passed; \
    }
#define OPEN(name, declared, passed, folder, path) \
    int name declared { \
        static int (*next)(); \
        va_list more; \
        va_start(more, flags); \
        int mode = va_arg(more, int); \
        va_end(more); \
        if (flags & (O_WRONLY | O_RDWR | O_CREAT) && fails(folder, path)) return -1; \
        if (!next) next = dlsym(RTLD_NEXT, #name); \
        return next passed; \
    }

OPEN(open, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD, path)
OPEN(open64, (const char *path, int flags, ...), (path, flags, mode), AT_FDCWD, path)
OPEN(openat, (int in, const char *path, int flags, ...), (in, path, flags, mode), in, path)
OPEN(openat64, (int in, const char *path, int flags, ...), (in, path, flags, mode), in, path)
CHANGE(ssize_t, write, (int file, const void *data, size_t size), (file, data, size), file, NULL)
CHANGE(int, fsync, (int file), (file), file, NULL)
CHANGE(int, syncfs, (int file), (file), file, NULL)
CHANGE(int, fchmod, (int file, mode_t mode), (file, mode), file, NULL)
CHANGE(int, futimens, (int file, const struct timespec *times), (file, times), file, NULL)
CHANGE(int, chmod, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
CHANGE(int, mkdir, (const char *path, mode_t mode), (path, mode), AT_FDCWD, path)
CHANGE(int, mkdirat, (int in, const char *path, mode_t mode), (in, path, mode), in, path)
CHANGE(int, rmdir, (const char *path), (path), AT_FDCWD, path)
CHANGE(int, unlink, (const char *path), (path), AT_FDCWD, path)
CHANGE(int, unlinkat, (int in, const char *path, int flags), (in, path, flags), in, path)
CHANGE(int, rename, (const char *path, const char *to), (path, to), AT_FDCWD, path)
CHANGE(int, symlink, (const char *to, const char *path), (to, path), AT_FDCWD, path)
CHANGE(int, link, (const char *from, const char *path), (from, path), AT_FDCWD, path)
CHANGE(int, utimensat, (int in, const char *path, const struct timespec *times, int flags), (in, path, times, flags), in, path)
CHANGE(ssize_t, sendfile64, (int to, int from, off64_t *at, size_t size), (to, from, at, size), to, NULL)
CHANGE(ssize_t, copy_file_range, (int from, off64_t *a, int to, off64_t *b, size_t n, unsigned f), (from, a, to, b, n, f), to, NULL)
