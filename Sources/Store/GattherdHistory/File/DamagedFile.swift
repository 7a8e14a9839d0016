import GattherdModel
import Glibc

/// A damaged or replaced database, which is kept under another name and never deleted.
struct DamagedFile {
    let path: String

    /// Renames the database and the files that belong to it.
    ///
    /// - Parameter time: A part of the new name.
    /// - Returns: The database's new path.
    /// - Throws: ``StoreFault`` when the directory cannot be written.
    func moveAside(at time: Timestamp) throws(StoreFault) -> String {
        let target = freePath("corrupt", stamped: time)
        // The WAL first, because the next database with this name would apply it.
        for suffix in ["-wal", "-shm", ""] { try rename(suffix, to: target) }
        return target
    }

    /// Links the database to a second name, before another file gets the first one.
    ///
    /// On a file system without hard links the database is renamed.
    ///
    /// - Parameters:
    ///   - word: A part of the name, like `time`.
    ///   - time: The time of the change.
    /// - Returns: The new name.
    /// - Throws: ``StoreFault`` when the directory cannot be written.
    func linkAside(as word: String, at time: Timestamp) throws(StoreFault) -> String {
        let target = freePath(word, stamped: time)
        for suffix in ["-wal", "-shm"] { try rename(suffix, to: target) }
        if unsafe link(path, target) != 0 { try rename("", to: target) }
        return target
    }

    private func rename(_ suffix: String, to target: String) throws(StoreFault) {
        guard unsafe Glibc.rename(path + suffix, target + suffix) != 0, errno != ENOENT else { return }
        throw StoreFault(errno: errno, "cannot move the file aside", path: path + suffix)
    }

    private func freePath(_ word: String, stamped time: Timestamp) -> String {
        let stamp = time.rfc3339.prefix { $0 != "." }.filter { $0 != "-" && $0 != ":" }
        let wanted = "\(path).\(word)-\(stamp)Z"
        return ([wanted] + (2...99).map { "\(wanted)-\($0)" }).first { unsafe access($0, F_OK) != 0 } ?? wanted
    }
}
