package import GattherdModel
import GattherdSync
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
        descriptor = unsafe open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else {
            guard errno != ENOENT else {
                throw StoreFault(
                    "\(database): the folder of history.path does not exist; create it, or correct the path"
                )
            }
            throw StoreFault(errno: errno, "cannot create the lock file", path: path)
        }
        try? FileOwner(database: database).apply(to: path)
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
            // `deinit` closes the descriptor, also after an error.
            let code = errno
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

/// Excludes the daemon from a history during work on the files beside it.
package final class HistoryLock {
    let lock: FileLock

    /// - Throws: ``StoreFault``: `inUse` if another process has the history.
    package init(database path: String) throws(StoreFault) {
        lock = try FileLock(database: DatabaseName.resolved(path))
    }
}

/// The user and group that a history's files should belong to.
///
/// A command of root must not create files that the daemon's user cannot write.
struct FileOwner {
    let user: uid_t
    private let group: gid_t

    /// Returns the owner of the directory; if that is root, of the database; without a database, this process's user.
    init(database path: String) {
        let directory = Self.status(path.parentFolder)
        let owner = [directory, Self.status(path)].compactMap(\.self).first { $0.st_uid != 0 } ?? directory
        user = owner?.st_uid ?? geteuid()
        group = owner?.st_gid ?? getegid()
    }

    /// True if this process may write files for the owner.
    var isReachable: Bool { geteuid() == 0 || geteuid() == user }

    /// Changes the owner of the database's files that belong to another user.
    func apply(to path: String, suffixes: [String] = [""]) throws(StoreFault) {
        guard geteuid() == 0 else { return }
        for suffix in suffixes {
            let file = path + suffix
            guard let status = Self.status(file), status.st_uid != user || status.st_gid != group else { continue }
            guard unsafe lchown(file, user, group) == 0 else {
                throw StoreFault(errno: errno, "cannot change the owner", path: file)
            }
        }
    }

    private static func status(_ path: String) -> stat? {
        var status = stat()
        return unsafe stat(path, &status) == 0 ? status : nil
    }
}

/// Waits until written data is on the disk.
enum FileSync {
    static func file(_ path: String) throws(StoreFault) {
        try sync(path, flags: O_RDONLY)
    }

    /// Syncs the directory of `path`, so that its file names are durable.
    static func directory(of path: String) throws(StoreFault) {
        try sync(path.parentFolder, flags: O_RDONLY | O_DIRECTORY)
    }

    private static func sync(_ path: String, flags: Int32) throws(StoreFault) {
        let descriptor = unsafe open(path, flags | O_CLOEXEC)
        guard descriptor >= 0 else { throw StoreFault(errno: errno, "cannot open", path: path) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw StoreFault(errno: errno, "cannot sync", path: path) }
    }
}
