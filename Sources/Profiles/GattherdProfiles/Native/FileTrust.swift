import Glibc

/// Owner and permissions of a file that is about to be loaded.
struct FileTrust {
    /// The path with all symbolic links resolved.
    let path: String
    let isDirectory: Bool
    let isRegular: Bool
    /// The size in bytes.
    let size: UInt64
    private let mode: mode_t
    private let owner: uid_t
    private let group: gid_t

    /// - Throws: ``FileFault`` if the path cannot be resolved or examined.
    init(_ path: String) throws(FileFault) {
        guard let resolved = unsafe realpath(path, nil) else { throw FileFault() }
        defer { unsafe free(resolved) }
        var status = stat()
        guard unsafe stat(resolved, &status) == 0 else { throw FileFault() }
        self.path = unsafe String(cString: resolved)
        mode = status.st_mode
        owner = status.st_uid
        group = status.st_gid
        size = UInt64(clamping: status.st_size)
        isDirectory = mode & S_IFMT == S_IFDIR
        isRegular = mode & S_IFMT == S_IFREG
    }

    /// The folder of the file.
    var folder: String {
        let parent = path.split(separator: "/").dropLast().joined(separator: "/")
        return "/" + parent
    }

    /// The reason why `account` must not trust the file; `nil` if only root and the account can change it.
    ///
    /// The account's own group may write: with user-private groups and a umask of 002, group members can write to
    /// every file that the account makes.
    func objection(for account: ProfileAccount) -> ProfileRefusal? {
        if mode & S_IWOTH != 0 {
            // A folder such as /tmp has to stay writable.
            let isShared = isDirectory && mode & S_ISVTX != 0
            let remedy = isShared ? "Move the profile to a folder of your own" : "Run: chmod o-w '\(path)'"
            return ProfileRefusal(path: path, reason: "everybody may write to it", remedy: remedy)
        }
        if mode & S_IWGRP != 0 && group != 0 && group != account.group {
            let reason = "group \(Self.groupName(group)), which is neither root's nor gattherd's, may write to it"
            return ProfileRefusal(path: path, reason: reason, remedy: "Run: chmod g-w '\(path)'")
        }
        if owner != 0 && owner != account.user {
            let reason =
                "it belongs to user \(ProfileAccount.name(ofUser: owner)), who is neither root nor gattherd's user"
            return ProfileRefusal(path: path, reason: reason, remedy: "Run: chown root '\(path)'")
        }
        return nil
    }

    private static func groupName(_ id: gid_t) -> String {
        unsafe getgrgid(id).map { unsafe String(cString: $0.pointee.gr_name) } ?? "\(id)"
    }
}

/// The account that loads profiles: it and root may own and write them.
package struct ProfileAccount: Hashable, Sendable {
    let user: UInt32
    let group: UInt32

    package init(user: UInt32, group: UInt32) {
        (self.user, self.group) = (user, group)
    }

    /// The account of this process.
    package static var current: Self { Self(user: geteuid(), group: getegid()) }

    /// The user's name, else its number.
    var name: String { Self.name(ofUser: user) }

    static func name(ofUser id: uid_t) -> String {
        unsafe getpwuid(id).map { unsafe String(cString: $0.pointee.pw_name) } ?? "\(id)"
    }
}
