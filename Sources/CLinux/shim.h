#pragma once
// What Swift's Glibc overlay leaves out, or imports in a form that is hard to use.
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

#include <fcntl.h>

// accept4 is hidden from Swift: a new connection that neither blocks nor is inherited.
static inline int clinux_accept(int listener) {
    int connection = accept(listener, 0, 0);
    if (connection < 0) return connection;
    fcntl(connection, F_SETFD, FD_CLOEXEC);
    fcntl(connection, F_SETFL, O_NONBLOCK);
    return connection;
}

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
