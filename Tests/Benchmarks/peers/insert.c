// One INSERT for each message, as bridges from MQTT to PostgreSQL do that do not batch.
//
//     insert URL COUNT NUMBER
//
// Prints the CPU time in seconds.
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

int main(int argc, char **argv) {
    if (argc != 4) return 64;
    PGconn *connection = PQconnectdb(argv[1]);
    if (PQstatus(connection) != CONNECTION_OK) {
        fputs(PQerrorMessage(connection), stderr);
        return 69;
    }
    const char *sql = "INSERT INTO plain (ts, device, metric, value) VALUES (to_timestamp($1), $2, $3, $4)";
    const long count = atol(argv[2]);
    const time_t start = time(NULL);
    for (long index = 0; index < count; index++) {
        char ts[32], device[48], value[32];
        snprintf(ts, sizeof ts, "%.6f", (double)start + index * 0.02);
        snprintf(device, sizeof device, "device-%ld-%s", index % 50, argv[3]);
        snprintf(value, sizeof value, "%.2f", (double)(index * 7919 % 10000) / 100);
        const char *values[] = {ts, device, "value", value};
        PGresult *result = PQexecParams(connection, sql, 4, NULL, values, NULL, NULL, 0);
        if (PQresultStatus(result) != PGRES_COMMAND_OK) {
            fputs(PQerrorMessage(connection), stderr);
            return 74;
        }
        PQclear(result);
    }
    PQfinish(connection);
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%.6f\n", usage.ru_utime.tv_sec + usage.ru_stime.tv_sec
        + (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6);
    return 0;
}
