import GattherdSync
import Glibc

/// The database files that this process has open.
///
/// If a process closes any descriptor of a file, it loses all its POSIX locks on this file, SQLite's among them. The
/// next program that closes the database would then count as the last user of the database, and delete the WAL.
enum OpenDatabases {
    /// The identity of a file, whatever its name.
    struct File: Hashable, Sendable {
        private let device: dev_t
        private let inode: ino_t

        /// Identifies a file; `nil` if it cannot be found.
        init?(_ path: String) {
            var status = stat()
            guard unsafe stat(path, &status) == 0 else { return nil }
            (device, inode) = (status.st_dev, status.st_ino)
        }
    }

    private static let counts = Locked<[File: Int]>([:])

    /// Records that SQLite has opened the file; returns it for ``remove(_:)``.
    static func add(_ path: String) -> File? {
        guard let file = File(path) else { return nil }
        counts.withLock { $0[file, default: 0] += 1 }
        return file
    }

    /// Records that SQLite has closed the file.
    static func remove(_ file: File?) {
        guard let file else { return }
        counts.withLock { counts in
            let count = counts[file, default: 0]
            counts[file] = count > 1 ? count - 1 : nil
        }
    }

    /// Runs `body`, which opens and closes the file; returns `nil` instead if it is open as a database.
    static func unlessOpen<Value: Sendable>(_ path: String, _ body: () -> Value?) -> Value? {
        counts.withLock { counts in
            if let file = File(path), counts[file] != nil { return nil }
            return body()
        }
    }
}
