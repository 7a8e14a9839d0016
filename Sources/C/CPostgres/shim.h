#pragma once
#include <libpq-fe.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <sys/socket.h>

// Fields of an error have character literals as names, which Swift does not import.
static inline const char *cpostgres_sqlstate(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_SQLSTATE);
}
static inline const char *cpostgres_message(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
}
static inline void cpostgres_ignore(void *context, const PGresult *result) {}
// Discards notices of the server, which libpq would write to standard error.
static inline void cpostgres_silence(PGconn *connection) {
    PQsetNoticeReceiver(connection, cpostgres_ignore, 0);
}
// The bytes that a TCP connection has received; 0 for other sockets. The C library's tcp_info lacks the newer fields.
static inline uint64_t cpostgres_received(int descriptor) {
    struct {
        struct tcp_info info;
        uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
    } all = {0};
    socklen_t size = sizeof all;
    return getsockopt(descriptor, IPPROTO_TCP, TCP_INFO, &all, &size) == 0 ? all.bytes_received : 0;
}
