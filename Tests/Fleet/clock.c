// Shifts the wall clock of a program by the seconds in a file, which may change at any time.
//
// CLOCK_OFFSET names the file: a signed number of 64 bits. The kernel's own opinion, whether the clock is synchronised,
// is replaced by the second number of the file.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

static const int64_t *numbers;

__attribute__((constructor)) static void start(void) {
    const char *path = getenv("CLOCK_OFFSET");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0) return;
    void *map = mmap(NULL, 16, PROT_READ, MAP_SHARED, file, 0);
    if (map != MAP_FAILED) numbers = map;
    close(file);
}

static int64_t offset(void) { return numbers ? __atomic_load_n(numbers, __ATOMIC_RELAXED) : 0; }

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += offset();
    return result;
}

int gettimeofday(struct timeval *now, void *zone) {
    struct timespec time;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &time);
    now->tv_sec = time.tv_sec;
    now->tv_usec = time.tv_nsec / 1000;
    return 0;
}

time_t time(time_t *now) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    if (now) *now = time.tv_sec;
    return time.tv_sec;
}

int adjtimex(struct timex *state) {
    state->status = numbers && !__atomic_load_n(numbers + 1, __ATOMIC_RELAXED) ? STA_UNSYNC : 0;
    return TIME_OK;
}
