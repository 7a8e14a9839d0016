import GattherdModel
import Glibc

/// The user and group that a history's files should belong to.
///
/// A command that root runs must not leave files behind that the daemon's user cannot write.
struct FileOwner {
    let user: uid_t
    private let group: gid_t

    /// Returns the owner of the directory; if that is root, of the database; without a database, this process's user.
    init(database path: String) {
        let directory = Self.status(path.directoryPath)
        let owner = [directory, Self.status(path)].compactMap(\.self).first { $0.st_uid != 0 } ?? directory
        user = owner?.st_uid ?? geteuid()
        group = owner?.st_gid ?? getegid()
    }

    /// True if this process may write files for the owner.
    var isReachable: Bool { geteuid() == 0 || geteuid() == user }

    /// Changes the owner of the database's files that belong to another user.
    func adopt(_ path: String, suffixes: [String] = [""]) throws(StoreFault) {
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
