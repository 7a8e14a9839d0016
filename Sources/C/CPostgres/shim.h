#pragma once
#include <libpq-fe.h>

// The names of fields are character literals, which Swift does not import.
static inline const char *cpostgres_sqlstate(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_SQLSTATE);
}
static inline const char *cpostgres_message(const PGresult *result) {
    return PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
}
static inline void cpostgres_ignore(void *context, const PGresult *result) {}
// Notices of the server would be written to standard error.
static inline void cpostgres_silence(PGconn *connection) {
    PQsetNoticeReceiver(connection, cpostgres_ignore, 0);
}
