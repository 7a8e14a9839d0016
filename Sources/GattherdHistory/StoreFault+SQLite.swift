import CSQLite
import GattherdModel

extension StoreFault {
    /// What SQLite's extended result `code` means for us.
    ///
    /// SQLite documentation, "Result and Error Codes".
    init(sqlite code: Int32, _ message: String, _ sql: String, path: String) {
        let action = sql.prefix { $0 != "\n" && $0 != "(" }
        let known = Self.meanings[code & 0xFF]
        let remedy = known.map { "; " + $0.remedy } ?? ""
        self.init("\(path): \(message) (SQLite \(code), \(action))\(remedy)", isTransient: known?.isTransient ?? false)
    }

    private static let meanings: [Int32: (isTransient: Bool, remedy: String)] = [
        SQLITE_BUSY: (true, "another program keeps the file locked"),
        SQLITE_LOCKED: (true, "another statement keeps the table locked"),
        SQLITE_NOMEM: (true, "free some memory"),
        SQLITE_INTERRUPT: (true, "it will be tried again"),
        SQLITE_IOERR: (true, "check the disk and the kernel's log"),
        SQLITE_FULL: (true, "free some space on the disk"),
        SQLITE_READONLY: (true, "make the file, its directory and the file system writable"),
        SQLITE_CANTOPEN: (false, "check that the directory exists and that this user may read and write it"),
        SQLITE_PERM: (false, "check who may read and write the file"),
        SQLITE_CORRUPT: (false, "move the file aside and start again; 'sqlite3 FILE .recover' saves what can be saved"),
        SQLITE_NOTADB: (false, "it is not a SQLite database: choose another history.path, or move the file aside"),
    ]
}
