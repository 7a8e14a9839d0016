import GattherdModel
import Glibc

/// Resolves symbolic links to a database.
package enum DatabaseName {
    /// The maximum number of links; opening a cycle of links then fails.
    private static let longestChain = 40

    /// Returns the real path of the database.
    ///
    /// Its lock and its sequence file lie beside it, so every alias must lead there.
    package static func resolved(_ path: String) -> String {
        var path = path
        for _ in 0..<longestChain {
            guard let target = target(of: path) else { break }
            path = target.hasPrefix("/") ? target : folder(of: path) + target
        }
        return path
    }

    /// Returns the target of a symbolic link; `nil` for anything else.
    private static func target(of path: String) -> String? {
        var bytes = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = unsafe bytes.withUnsafeMutableBytes { buffer in
            unsafe buffer.baseAddress.map { unsafe readlink(path, $0, buffer.count) } ?? -1
        }
        return count > 0 ? String(decoding: bytes[..<count], as: UTF8.self) : nil
    }

    /// Returns the path up to and including the last slash.
    private static func folder(of path: String) -> Substring {
        path[..<(path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) } ?? path.startIndex)]
    }
}

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

    /// Renames the files that belonged to a database that another program has deleted or replaced.
    ///
    /// The next database with this name would apply the WAL.
    ///
    /// - Parameter time: A part of the new names.
    /// - Throws: ``StoreFault`` when the directory cannot be written.
    func moveRemainsAside(at time: Timestamp) throws(StoreFault) {
        let target = freePath("replaced", stamped: time)
        for suffix in ["-wal", "-shm"] { try rename(suffix, to: target) }
    }

    private func rename(_ suffix: String, to target: String) throws(StoreFault) {
        guard unsafe Glibc.rename(path + suffix, target + suffix) != 0, errno != ENOENT else { return }
        throw StoreFault(errno: errno, "cannot move the file aside", path: path + suffix)
    }

    private func freePath(_ word: String, stamped time: Timestamp) -> String {
        let stamp = time.rfc3339.prefix { $0 != "." }.filter { $0 != "-" && $0 != ":" }
        let wanted = "\(path).\(word)-\(stamp)Z"
        let names = [wanted] + (2...99).map { "\(wanted)-\($0)" }
        return names.first { unsafe access($0, F_OK) != 0 && access($0 + "-wal", F_OK) != 0 } ?? wanted
    }
}
