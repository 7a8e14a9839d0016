import GattherdModel
import Glibc

/// A database that cannot be used any more; it is moved aside and never deleted.
struct DamagedFile {
    let path: String

    /// Renames the database and what belongs to it.
    ///
    /// - Parameter time: Becomes part of the name.
    /// - Returns: The database's new path.
    /// - Throws: ``StoreFault`` when the directory cannot be written.
    func moveAside(at time: Timestamp) throws(StoreFault) -> String {
        let target = freePath(stamped: time)
        // The write-ahead log first: without its database it is nobody's, but the next one would take it for its own.
        for suffix in ["-wal", "-shm", ""] { try rename(suffix, to: target) }
        return target
    }

    private func rename(_ suffix: String, to target: String) throws(StoreFault) {
        guard unsafe Glibc.rename(path + suffix, target + suffix) != 0, errno != ENOENT else { return }
        throw StoreFault(errno: errno, "cannot move the damaged file aside", path: path + suffix)
    }

    private func freePath(stamped time: Timestamp) -> String {
        let stamp = time.rfc3339.prefix { $0 != "." }.filter { $0 != "-" && $0 != ":" }
        let wanted = "\(path).corrupt-\(stamp)Z"
        return ([wanted] + (2...99).map { "\(wanted)-\($0)" }).first { unsafe access($0, F_OK) != 0 } ?? wanted
    }
}
