import CSQLite
import GattherdModel
import GattherdSync
import Glibc

extension StoreFault {
    /// Creates the fault that corresponds to SQLite's extended result `code`.
    ///
    /// SQLite documentation, "Result and Error Codes".
    ///
    /// - Parameters:
    ///   - code: SQLite's result.
    ///   - system: The `errno` of the failure, if any.
    ///   - message: SQLite's message.
    ///   - sql: The failed statement.
    ///   - path: The file.
    init(sqlite code: Int32, errno system: Int32 = 0, _ message: String, _ sql: String, path: String) {
        let action = sql.prefix { $0 != "\n" && $0 != "(" }
        let known = Self.isNoRoom(code, system) ? Self.meanings[SQLITE_FULL] : Self.meanings[code & 0xFF]
        let remedy = known.map { "; " + $0.remedy } ?? ""
        let text = Self.words[code & 0xFF].map { "\($0): \(message)" } ?? message
        self.init("\(path): \(text) (SQLite \(code), \(action))\(remedy)", known?.kind ?? .refused)
    }

    /// Returns true if a file cannot be created or extended for lack of space, which is no I/O error to the user.
    private static func isNoRoom(_ code: Int32, _ system: Int32) -> Bool {
        [SQLITE_IOERR, SQLITE_CANTOPEN].contains(code & 0xFF) && Kind(errno: system) == .full
    }

    private static let meanings: [Int32: (kind: Kind, remedy: String)] = [
        SQLITE_BUSY: (.busy, "another program keeps the file locked"),
        SQLITE_LOCKED: (.busy, "another statement keeps the table locked"),
        SQLITE_NOMEM: (.busy, "free some memory"),
        SQLITE_INTERRUPT: (.busy, "it will be tried again"),
        SQLITE_IOERR: (.disk, "check the disk and the kernel's log"),
        SQLITE_FULL: (.full, "free some space on the disk"),
        SQLITE_READONLY: (.disk, "make the file, its directory and the file system writable"),
        SQLITE_CANTOPEN: (.refused, "check that the directory exists and that this user may read and write it"),
        SQLITE_PERM: (.refused, "check who may read and write the file"),
        SQLITE_CORRUPT: (.damaged, "'sqlite3 FILE .recover' saves what can be saved"),
        SQLITE_NOTADB: (
            .damaged,
            "'gattherd db restore FILE' replaces it by a backup; for another program's file choose another history.path"
        ),
    ]

    /// Explanations of messages that only SQLite's authors understand.
    private static let words: [Int32: String] = [
        SQLITE_CORRUPT: "the file is damaged", SQLITE_NOTADB: "the beginning of the file is damaged",
    ]
}

extension StoreFault {
    /// Creates the fault of a system call that failed with `errno`.
    init(errno code: Int32, _ action: String, path: String) {
        let remedy =
            switch code {
            case ENOENT, ENOTDIR: "; create the directory, or choose another history.path"
            case EACCES, EPERM: "; let this user write to the directory, or choose another history.path"
            case EROFS: "; mount the file system writable, or choose another history.path"
            case ENOSPC, EDQUOT: "; free some space on the disk"
            default: ""
            }
        self.init("\(path): \(action): \(SystemError(code))\(remedy)", Kind(errno: code))
    }
}

extension StoreFault.Kind {
    init(errno code: Int32) {
        self =
            switch code {
            case ENOSPC, EDQUOT: .full
            case EIO, EROFS: .disk
            case EINTR, ENFILE, EMFILE, ENOMEM: .busy
            default: .refused
            }
    }
}
