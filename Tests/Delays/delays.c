// Delays system calls, mutexes, new threads and the jobs of Swift's global executor at random, to find race conditions.
// `make test-delays` preloads it for all tests and the programs that they start.
//
// GATTHERD_DELAYS is the number of delayed calls per thousand. Jobs are delayed three times as often, mutexes rarely. Most
// delays are below 0.3 ms, some below 3 ms, a few below 30 ms.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

static uint64_t permille = 20;

// xorshift, a seed for each thread.
static uint64_t random_number(void) {
    static __thread uint64_t seed;
    if (!seed) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        seed = ((uint64_t)now.tv_nsec << 20 ^ (uintptr_t)&seed) | 1;
    }
    seed ^= seed << 13;
    seed ^= seed >> 7;
    return seed ^= seed << 17;
}

static bool is_chosen(uint64_t of_thousand) { return random_number() % 1000 < of_thousand; }

static struct timespec random_delay(void) {
    uint64_t kind = random_number() % 100;
    uint64_t longest = kind < 70 ? 300000 : kind < 97 ? 3000000 : 30000000;
    return (struct timespec){.tv_nsec = (long)(random_number() % longest)};
}

static void maybe_wait(void) {
    if (!is_chosen(permille)) return;
    int error = errno;
    struct timespec delay = random_delay();
    nanosleep(&delay, NULL);
    errno = error;
}

// MARK: - Calls of the C library

// Replaces the function `name`: it may wait first, and then calls the original.
#define DELAYED(result, name, parameters, arguments)                                    \
    result name parameters {                                                            \
        static result(*original) parameters;                                            \
        if (!original) *(void **)&original = dlsym(RTLD_NEXT, #name);                   \
        maybe_wait();                                                                   \
        return original arguments;                                                      \
    }

DELAYED(ssize_t, read, (int file, void *octets, size_t count), (file, octets, count))
DELAYED(ssize_t, write, (int file, const void *octets, size_t count), (file, octets, count))
DELAYED(ssize_t, writev, (int file, const struct iovec *parts, int count), (file, parts, count))
DELAYED(ssize_t, recv, (int socket, void *octets, size_t count, int flags), (socket, octets, count, flags))
DELAYED(ssize_t, send, (int socket, const void *octets, size_t count, int flags), (socket, octets, count, flags))
DELAYED(ssize_t, recvmsg, (int socket, struct msghdr *message, int flags), (socket, message, flags))
DELAYED(ssize_t, sendmsg, (int socket, const struct msghdr *message, int flags), (socket, message, flags))
DELAYED(int, close, (int file), (file))
DELAYED(int, eventfd_read, (int file, eventfd_t *value), (file, value))

// The same, but delayed after the call.
#define DELAYING(result, name, parameters, arguments)                                   \
    result name parameters {                                                            \
        static result(*original) parameters;                                            \
        if (!original) *(void **)&original = dlsym(RTLD_NEXT, #name);                   \
        result value = original arguments;                                              \
        maybe_wait();                                                                   \
        return value;                                                                   \
    }

DELAYING(int, poll, (struct pollfd *files, nfds_t count, int timeout), (files, count, timeout))
DELAYING(int, epoll_wait, (int poll, struct epoll_event *events, int count, int timeout), (poll, events, count, timeout))
DELAYING(
    int,
    epoll_pwait2,
    (int poll, struct epoll_event *events, int count, const struct timespec *timeout, const sigset_t *signals),
    (poll, events, count, timeout, signals)
)

// Mutexes are frequent, so one in twenty is delayed.
int pthread_mutex_unlock(pthread_mutex_t *mutex) {
    static int (*original)(pthread_mutex_t *);
    if (!original) *(void **)&original = dlsym(RTLD_NEXT, "pthread_mutex_unlock");
    int error = original(mutex);
    if (is_chosen(50)) maybe_wait();
    return error;
}

// libdispatch wakes up the main queue even if its thread has ended and its descriptor is closed.
static bool is_dispatch(const void *caller) {
    Dl_info place;
    return dladdr(caller, &place) && place.dli_fname && strstr(place.dli_fname, "libdispatch");
}

// A late wake-up could write eight bytes to a descriptor that was reused meanwhile.
int eventfd_write(int file, eventfd_t value) {
    static int (*original)(int, eventfd_t);
    if (!original) *(void **)&original = dlsym(RTLD_NEXT, "eventfd_write");
    maybe_wait();
    if (is_dispatch(__builtin_return_address(0))) return original(file, value);
    char path[64], target[64] = "";
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    if (readlink(path, target, sizeof target - 1) < 0 || !strstr(target, "eventfd")) {
        dprintf(STDERR_FILENO, "delays: a wake-up for descriptor %d, which is '%s'\n", file, target);
        abort();
    }
    return original(file, value);
}

// MARK: - New threads

struct beginning {
    void *(*body)(void *);
    void *argument;
};

static void *begin_late(void *pointer) {
    struct beginning beginning = *(struct beginning *)pointer;
    free(pointer);
    maybe_wait();
    return beginning.body(beginning.argument);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    static int (*original)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (!original) *(void **)&original = dlsym(RTLD_NEXT, "pthread_create");
    struct beginning *beginning = malloc(sizeof *beginning);
    *beginning = (struct beginning){body, argument};
    return original(thread, attributes, begin_late, beginning);
}

// MARK: - Jobs of Swift's global executor

#define SWIFT_CALL __attribute__((swiftcall))
typedef SWIFT_CALL void (*enqueue)(void *job);

struct late_job {
    void *job;
    enqueue enqueue;
};

static void *enqueue_late(void *pointer) {
    struct late_job late = *(struct late_job *)pointer;
    free(pointer);
    struct timespec delay = random_delay();
    nanosleep(&delay, NULL);
    late.enqueue(late.job);
    return NULL;
}

static SWIFT_CALL void maybe_enqueue_late(void *job, enqueue enqueue) {
    pthread_t thread;
    struct late_job *late = is_chosen(3 * permille) ? malloc(sizeof *late) : NULL;
    if (!late) return enqueue(job);
    *late = (struct late_job){job, enqueue};
    if (pthread_create(&thread, NULL, enqueue_late, late)) {
        free(late);
        enqueue(job);
    } else {
        pthread_detach(thread);
    }
}

__attribute__((constructor)) static void begin(void) {
    const char *setting = getenv("GATTHERD_DELAYS");
    if (setting) permille = strtoull(setting, NULL, 10);
    // A variable of Swift's runtime for custom executors. Programs without Swift do not have it.
    void **hook = dlsym(RTLD_DEFAULT, "swift_task_enqueueGlobal_hook");
    if (hook) *hook = maybe_enqueue_late;
}
