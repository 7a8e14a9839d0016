#pragma once
#include <sqlite3.h>

/// `sqlite3_db_config` is variadic, which Swift does not import.
static inline int gattherd_sqlite3_no_checkpoint_on_close(sqlite3 *db, int isOn) {
    return sqlite3_db_config(db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, isOn, (int *)0);
}
