import Glibc

/// Resolves symbolic links to a database.
enum DatabaseName {
    /// The maximum number of links; opening a cycle of links then fails.
    private static let longestChain = 40

    /// Returns the real path of the database.
    ///
    /// Its lock and its sequence file lie beside it, so every alias must lead there.
    static func resolved(_ path: String) -> String {
        var path = path
        for _ in 0..<longestChain {
            guard let target = target(of: path) else { break }
            path = target.hasPrefix("/") ? target : folder(of: path) + target
        }
        return path
    }

    /// Returns the target of a symbolic link; `nil` for anything else.
    private static func target(of path: String) -> String? {
        var octets = [UInt8](repeating: 0, count: Int(PATH_MAX))
        let count = unsafe octets.withUnsafeMutableBytes { buffer in
            unsafe buffer.baseAddress.map { unsafe readlink(path, $0, buffer.count) } ?? -1
        }
        return count > 0 ? String(decoding: octets[..<count], as: UTF8.self) : nil
    }

    /// Returns the path up to and including the last slash.
    private static func folder(of path: String) -> Substring {
        path[..<(path.utf8.lastIndex(of: UInt8(ascii: "/")).map { path.utf8.index(after: $0) } ?? path.startIndex)]
    }
}
