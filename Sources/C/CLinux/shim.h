#pragma once
// Functions of the C library that Swift's Glibc overlay lacks, or imports in a form that is hard to use.
#include <malloc.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <sys/wait.h>

// prctl is variadic, which Swift cannot call.
static inline int clinux_name_thread(const char *name) { return prctl(PR_SET_NAME, name, 0, 0, 0); }

#include <sys/ioctl.h>

// Returns the size of a terminal, or zeros for other files. ioctl is variadic, which Swift cannot call.
struct clinux_terminal_size { int columns, rows; };
static inline struct clinux_terminal_size clinux_terminal_size(int terminal) {
    struct winsize size = {0};
    ioctl(terminal, TIOCGWINSZ, &size);
    return (struct clinux_terminal_size){size.ws_col, size.ws_row};
}

#include <stdbool.h>
#include <sys/timex.h>

// True if a program, such as an NTP client, has told the kernel that the wall clock is right. Any user may call it.
static inline bool clinux_is_clock_synchronised(void) {
    struct timex state = {0};
    return adjtimex(&state) >= 0 && !(state.status & STA_UNSYNC);
}

#include <fcntl.h>

// Accepts a connection that neither blocks nor is inherited by child processes; accept4 is hidden from Swift.
static inline int clinux_accept(int listener) {
    int connection = accept(listener, 0, 0);
    if (connection < 0) return connection;
    fcntl(connection, F_SETFD, FD_CLOEXEC);
    fcntl(connection, F_SETFL, O_NONBLOCK);
    return connection;
}

// The user at the other end of a Unix socket when it connected; false if the kernel does not say. `struct ucred` is
// hidden from Swift.
static inline bool clinux_peer_user(int socket, uid_t *user) {
    struct { pid_t process; uid_t user; gid_t group; } peer;
    socklen_t length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || length != sizeof peer) return false;
    *user = peer.user;
    return true;
}

#include <linux/close_range.h>
#include <signal.h>
#include <unistd.h>

// A handler may only do what is safe in a signal: it writes the number into a pipe, which a thread reads.
static int clinux_signal_pipe = -1;
static void clinux_note_signal(int number) {
    unsigned char octet = (unsigned char)number;
    ssize_t ignored = write(clinux_signal_pipe, &octet, 1);
    (void)ignored;
}
static inline int clinux_catch_signal(int number, int pipe) {
    struct sigaction action = {0};
    clinux_signal_pipe = pipe;
    action.sa_handler = clinux_note_signal;
    action.sa_flags = SA_RESTART;
    return sigaction(number, &action, 0);
}

#include <errno.h>

// Starts a child that the kernel ends (SIGTERM) when the thread that started it is gone, for example because this
// process was killed. posix_spawn cannot express that. The child leads a process group and has no signal blocked;
// output and errors become its descriptors 1 and 2. Returns 0, or the error number of the call that failed.
extern char **environ;
static inline int clinux_spawn(
    pid_t *pid, const char *program, char *const *arguments, char **environment, int output, int errors) {
    int report[2];
    int code = 0;
    pid_t parent = getpid();
    if (pipe(report) != 0) return errno;
    fcntl(report[0], F_SETFD, FD_CLOEXEC);
    fcntl(report[1], F_SETFD, FD_CLOEXEC);
    *pid = fork();
    if (*pid == 0) {
        sigset_t none;
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        prctl(PR_SET_PDEATHSIG, SIGTERM, 0, 0, 0);
        if (getppid() != parent) _exit(127);
        setpgid(0, 0);
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, 0);
        if (null < 0 || dup2(null, 0) < 0 || dup2(output < 0 ? null : output, 1) < 0 ||
            dup2(errors < 0 ? null : errors, 2) < 0) code = errno;
        // A socket that a library opened without O_CLOEXEC would stay open for the child's life.
        close_range(3, ~0U, CLOSE_RANGE_CLOEXEC);
        environ = environment;
        if (code == 0) { execvp(program, arguments); code = errno; }
        ssize_t ignored = write(report[1], &code, sizeof code);
        (void)ignored;
        _exit(127);
    }
    if (*pid < 0) code = errno;
    close(report[1]);
    if (*pid > 0 && read(report[0], &code, sizeof code) == sizeof code) waitpid(*pid, 0, 0);
    close(report[0]);
    return code;
}

#include <sys/vfs.h>

// A function and a type are both called statfs, which Swift mixes up.
struct clinux_file_system { unsigned long type; unsigned long long free, total; };
static inline int clinux_file_system(const char *path, struct clinux_file_system *answer) {
    struct statfs status;
    if (statfs(path, &status) != 0) return errno;
    answer->type = (unsigned long)status.f_type & 0xFFFFFFFF;
    answer->free = (unsigned long long)status.f_bavail * status.f_bsize;
    answer->total = (unsigned long long)status.f_blocks * status.f_bsize;
    return 0;
}

#include <errno.h>
#include <stdint.h>
#include <time.h>

// epoll_wait with a timeout in nanoseconds, -1 for no limit. A kernel before 5.11 rounds it up to milliseconds.
static inline int clinux_epoll_wait(int poll, struct epoll_event *events, int capacity, int64_t nanoseconds) {
    struct timespec limit = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    int count = epoll_pwait2(poll, events, capacity, nanoseconds < 0 ? NULL : &limit, NULL);
    if (count >= 0 || errno != ENOSYS) return count;
    int64_t milliseconds = nanoseconds < 0 ? -1 : (nanoseconds + 999999) / 1000000;
    return epoll_wait(poll, events, capacity, milliseconds > INT32_MAX ? INT32_MAX : (int)milliseconds);
}

#include <string.h>
#include <sys/uio.h>

// The maximum number of descriptors that the kernel sends with one message.
enum { clinux_descriptor_limit = 253 };

// Sends bytes with descriptors, see unix(7); the CMSG macros are hidden from Swift. Neither blocks nor raises SIGPIPE.
static inline ssize_t clinux_send(int socket, const void *octets, size_t length, const int *descriptors, int count) {
    _Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(int) * clinux_descriptor_limit)] = {0};
    struct iovec part = {(void *)octets, length};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > clinux_descriptor_limit) return errno = EINVAL, -1;
    if (count > 0) {
        struct cmsghdr *header = (struct cmsghdr *)space;
        *header = (struct cmsghdr){CMSG_LEN(sizeof(int) * count), SOL_SOCKET, SCM_RIGHTS};
        memcpy(CMSG_DATA(header), descriptors, sizeof(int) * count);
        message.msg_control = space;
        message.msg_controllen = CMSG_SPACE(sizeof(int) * count);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// Receives bytes with descriptors. `descriptors` has room for clinux_descriptor_limit. The error is EMFILE if more
// descriptors came than this process may have.
static inline ssize_t clinux_receive(int socket, void *octets, size_t capacity, int *descriptors, int *count) {
    _Alignas(struct cmsghdr) char space[CMSG_SPACE(sizeof(int) * clinux_descriptor_limit)];
    struct iovec part = {octets, capacity};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
    ssize_t length = recvmsg(socket, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    *count = 0;
    if (length < 0) return length;
    for (struct cmsghdr *header = CMSG_FIRSTHDR(&message); header; header = CMSG_NXTHDR(&message, header)) {
        if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
        *count = (int)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(descriptors, CMSG_DATA(header), sizeof(int) * *count);
    }
    if (!(message.msg_flags & MSG_CTRUNC)) return length;
    for (int index = 0; index < *count; index++) close(descriptors[index]);
    *count = 0;
    return errno = EMFILE, -1;
}
