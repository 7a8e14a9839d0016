import GattherdModel
import Glibc

/// Excludes a second daemon from the same history until the lock is released.
///
/// The lock has its own file: closing any descriptor of the database file would drop SQLite's locks. The kernel
/// releases the lock when the process ends for any reason; the file stays.
final class FileLock {
    private let descriptor: Int32

    /// Acquires the lock on a database by a file beside it, which is created if necessary.
    ///
    /// - Throws: ``StoreFault`` if another process has the lock, or the file cannot be created.
    init(database: String) throws(StoreFault) {
        let path = database + "-lock"
        descriptor = unsafe open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            guard errno != ENOENT else {
                throw StoreFault(
                    "\(database): the folder of history.path does not exist; create it, or correct the path"
                )
            }
            throw StoreFault(errno: errno, "cannot make the lock file", path: path)
        }
        try? FileOwner(database: database).adopt(path)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            let code = errno
            close(descriptor)
            guard code == EWOULDBLOCK else { throw StoreFault(errno: code, "cannot lock", path: path) }
            throw StoreFault(
                "\(path): another gattherd uses this history; stop it, or choose another history.path",
                .inUse
            )
        }
    }

    deinit {
        close(descriptor)
    }
}
