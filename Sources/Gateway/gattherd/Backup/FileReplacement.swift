import CLinux
import FoundationEssentials
import GattherdModel
import Glibc

/// The user and group that own the files of the daemon.
struct FileAccount {
    let user: uid_t
    let group: gid_t

    /// Takes the owner of a folder.
    init(folder: String) {
        var status = stat()
        let isThere = unsafe stat(folder, &status) == 0
        (user, group) = isThere ? (status.st_uid, status.st_gid) : (geteuid(), getegid())
    }
}

/// Replaces files and keeps the old ones.
struct FileReplacement {
    private let stamp: String
    private let account: FileAccount

    init(_ time: Timestamp, _ account: FileAccount) {
        stamp = String(time.rfc3339.prefix(19).filter { $0 != "-" && $0 != ":" }) + "Z"
        self.account = account
    }

    /// Puts a copy of `source` in the place of `target`, with the permissions of `source`.
    ///
    /// - Parameters:
    ///   - target: The path, whose folder is made if it is missing.
    ///   - source: The new content; nothing happens if it is the old one.
    ///   - isOwned: True if the daemon's user owns the file; else only its group can have access.
    ///   - keepsOld: False for files whose folder must have no others.
    /// - Throws: ``CommandFailure`` if the file cannot be written.
    func replace(_ target: String, by source: String, isOwned: Bool, keepsOld: Bool = true) throws(CommandFailure) {
        do {
            let content = try Data(contentsOf: URL(filePath: source))
            guard FileManager.default.contents(atPath: target) != content else { return }
            try FileManager.default.createDirectory(atPath: target.folderPath, withIntermediateDirectories: true)
            let draft = target + ".restore"
            try content.write(to: URL(filePath: draft))
            setAccess(of: draft, like: source, isOwned)
            if keepsOld { keep(target) }
            guard unsafe rename(draft, target) == 0 else { throw CocoaError(.fileWriteUnknown) }
        } catch {
            let isWritable = unsafe access(target.folderPath, W_OK) == 0
            let reason = isWritable ? "\(error)" : unsafe String(cString: strerror(errno))
            throw CommandFailure(.cannotCreate, "gattherd restore: cannot write \(target): \(reason)")
        }
    }

    private func setAccess(of path: String, like source: String, _ isOwned: Bool) {
        var status = stat()
        if unsafe stat(source, &status) == 0 { unsafe chmod(path, status.st_mode & 0o777) }
        if geteuid() == 0 { unsafe chown(path, isOwned ? account.user : 0, account.group) }
    }

    private func keep(_ path: String) {
        guard FileManager.default.fileExists(atPath: path) else { return }
        unsafe rename(path, "\(path).replaced-\(stamp)")
    }
}
