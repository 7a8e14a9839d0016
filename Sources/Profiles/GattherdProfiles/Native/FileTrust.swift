import Glibc

/// What the file system says about something that we are about to run or believe.
struct FileTrust {
    /// With all symbolic links resolved.
    let path: String
    let isDirectory: Bool
    let isRegular: Bool
    /// In octets.
    let size: UInt64
    private let mode: mode_t
    private let owner: uid_t
    private let group: gid_t

    /// - Throws: `errno` when the path cannot be resolved or looked at.
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

    /// The folder that it is in.
    var folder: String {
        let parent = path.split(separator: "/").dropLast().joined(separator: "/")
        return "/" + parent
    }

    /// Why it must not be trusted, if so: somebody else than root and us could change it.
    ///
    /// Our own group may write: with user-private groups and a umask of 002 it can write to all that we make.
    var objection: ProfileRefusal? {
        if mode & S_IWOTH != 0 {
            return ProfileRefusal(path: path, reason: "everybody may write to it", remedy: "Run: chmod o-w '\(path)'")
        }
        if mode & S_IWGRP != 0 && group != 0 && group != getegid() {
            let reason = "group \(group), which is neither root's nor the one that gattherd runs as, may write to it"
            return ProfileRefusal(path: path, reason: reason, remedy: "Run: chmod g-w '\(path)'")
        }
        if owner != 0 && owner != geteuid() {
            let reason = "it belongs to user \(owner), who is neither root nor the one who runs gattherd"
            return ProfileRefusal(path: path, reason: reason, remedy: "Run: chown root '\(path)'")
        }
        return nil
    }
}

/// What the system said to a call that failed.
struct FileFault: Error, Hashable, CustomStringConvertible {
    let code: Int32

    init(_ code: Int32 = errno) {
        self.code = code
    }

    var description: String {
        switch code {
        case ENOENT: "there is no such file or folder"
        case EACCES: "permission denied"
        default: unsafe String(cString: strerror(code))
        }
    }
}
