import CLinux
import FoundationEssentials
import GattherdModel
import GattherdSync
import Glibc

/// Replaces several files: all new ones are on the disk before the first is renamed into place.
struct FileReplacement {
    private let stamp: String
    private let writer: FileAccount
    private var drafts: [FileDraft] = []

    /// - Parameters:
    ///   - time: The time in the names of replaced files.
    ///   - writer: The account that writes: root takes its rights for each operation.
    init(_ time: Timestamp, as writer: FileAccount = .current) {
        self.writer = writer
        stamp = String(time.rfc3339.prefix(19).filter { $0 != "-" && $0 != ":" }) + "Z"
    }

    /// Writes a new file beside its target.
    ///
    /// - Parameters:
    ///   - target: The path, whose folder is made if it is missing.
    ///   - content: The content.
    ///   - owner: The owner; root only can give files away.
    ///   - mode: The permissions.
    /// - Throws: ``FileError`` if the file cannot be written.
    mutating func add(_ target: String, _ content: [UInt8], owner: FileAccount, mode: mode_t) throws(FileError) {
        let draft = try writer.run { () throws(FileError) in try Self.draft(target, content, owner: owner, mode: mode) }
        if let draft { drafts.append(draft) }
    }

    /// Writes the draft of a file; `nil` if the file has the content.
    private static func draft(
        _ target: String,
        _ content: [UInt8],
        owner: FileAccount,
        mode: mode_t
    ) throws(FileError) -> FileDraft? {
        if hasContent(target, content) {
            try setAccess(target, owner, mode)
            return nil
        }
        try makeFolder(target.parentFolder)
        let draft = try FileDraft(of: target, suffix: ".restore")
        try draft.write(content)
        if geteuid() == 0 {
            try draft.setAccess(user: owner.user, group: owner.group, mode: mode)
        } else {
            try draft.setMode(mode)
        }
        try draft.sync()
        return draft
    }

    /// Renames the files into place; replaced files that are kept get another name.
    ///
    /// After a crash in between, each file is the old one or the new one.
    mutating func finish(keepsOld: Bool = true) throws(FileError) {
        try writer.run { () throws(FileError) in
            for draft in drafts {
                if keepsOld { try keep(draft.target) }
                try draft.replace()
            }
        }
        drafts.removeAll()
    }

    /// Creates a folder that every user can enter, like those of the package.
    static func makeFolder(_ path: String, hasParent: Bool = false) throws(FileError) {
        if unsafe mkdir(path, 0o755) == 0 {
            guard unsafe chmod(path, 0o755) == 0 else { throw FileError(errno, path) }
            return
        }
        switch errno {
        case EEXIST: return
        case ENOENT where !hasParent && path != path.parentFolder:
            try makeFolder(path.parentFolder)
            // Some file systems return this error in any case.
            try makeFolder(path, hasParent: true)
        default: throw FileError(errno, path)
        }
    }

    private static func hasContent(_ path: String, _ content: [UInt8]) -> Bool {
        var status = stat()
        // A file with further names may be another file's second name.
        guard unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1 else {
            return false
        }
        return FileManager.default.contents(atPath: path) == Data(content)
    }

    private static func setAccess(_ path: String, _ owner: FileAccount, _ mode: mode_t) throws(FileError) {
        // Without root, owners stay as they are.
        guard geteuid() == 0 else { return }
        let descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileError(errno, path) }
        defer { close(descriptor) }
        guard fchown(descriptor, owner.user, owner.group) == 0, fchmod(descriptor, mode) == 0 else {
            throw FileError(errno, path)
        }
    }

    /// Gives a file a second name, before another file gets the first one.
    private func keep(_ path: String) throws(FileError) {
        let wanted = "\(path).replaced-\(stamp)"
        for name in [wanted] + (2...99).map({ "\(wanted)-\($0)" }) {
            if unsafe link(path, name) == 0 { return }
            switch errno {
            case EEXIST: continue
            case ENOENT: return
            case EPERM, EOPNOTSUPP:
                // The file system has no hard links, or the kernel allows none to files of others.
                return try copy(path, as: name)
            default: throw FileError(errno, name)
            }
        }
        throw FileError(EEXIST, wanted)
    }

    private func copy(_ path: String, as name: String) throws(FileError) {
        var status = stat()
        guard unsafe stat(path, &status) == 0, let content = FileManager.default.contents(atPath: path) else {
            throw FileError(errno, path)
        }
        let draft = try FileDraft(of: name)
        try draft.write(Array(content))
        try draft.setMode(status.st_mode & 0o777)
        try draft.create()
    }
}
