package import Glibc

/// A failed system call on a file.
package struct FileError: Error, Hashable, Sendable, CustomStringConvertible {
    package let code: Int32
    package let path: String

    package init(_ code: Int32, _ path: String) {
        (self.code, self.path) = (code, path)
    }

    /// The message of the system, without the path.
    package var reason: String { SystemError(code).description }

    package var description: String { "\(path): \(reason)" }
}

/// The new content of a file; the draft is renamed to the file when it is complete and synced.
///
/// The draft is a new file beside its target. Only its owner can read it until ``setAccess(user:group:mode:)``, and
/// symbolic links in its place are removed, not followed. An unfinished draft is removed with the object.
package final class FileDraft {
    package let target: String
    /// The open file.
    package let descriptor: Int32
    private let path: String
    private var isPlaced = false

    /// Creates the draft, and replaces one that a killed process left.
    ///
    /// - Parameters:
    ///   - target: The path of the file.
    ///   - prefix: The start of the draft's name, for folders whose readers skip such names.
    ///   - suffix: The end of the draft's name.
    /// - Throws: ``FileError`` if the file cannot be created.
    package init(of target: String, prefix: String = "", suffix: String = ".part") throws(FileError) {
        self.target = target
        path = "\(Self.folder(of: target))\(prefix)\(Self.name(of: target))\(suffix)"
        unsafe unlink(path)
        descriptor = unsafe open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw FileError(errno, path) }
    }

    deinit {
        if !isPlaced, descriptor >= 0, isCurrent { unsafe unlink(path) }
        if descriptor >= 0 { close(descriptor) }
    }

    package func write(_ bytes: [UInt8]) throws(FileError) {
        guard writeAll(bytes, to: descriptor) else { throw FileError(errno, path) }
    }

    /// Changes the owner, the group and the permissions.
    package func setAccess(user: uid_t, group: gid_t, mode: mode_t) throws(FileError) {
        // A change of the owner may clear permissions.
        guard fchown(descriptor, user, group) == 0 else { throw FileError(errno, path) }
        try setMode(mode)
    }

    package func setMode(_ mode: mode_t) throws(FileError) {
        guard fchmod(descriptor, mode) == 0 else { throw FileError(errno, path) }
    }

    /// Waits until the content is on the disk.
    package func sync() throws(FileError) {
        guard fsync(descriptor) == 0 else { throw FileError(errno, path) }
    }

    /// Renames the draft to the target, replaces an older file, and syncs the folder.
    package func replace() throws(FileError) {
        try sync()
        try expectCurrent()
        guard unsafe rename(path, target) == 0 else { throw FileError(errno, target) }
        isPlaced = true
        try Self.syncFolder(of: target)
    }

    /// Renames the draft to the target, and syncs the folder.
    ///
    /// - Throws: ``FileError``, with the code `EEXIST` if there is such a file.
    package func create() throws(FileError) {
        try sync()
        try expectCurrent()
        try link()
        isPlaced = true
        try Self.syncFolder(of: target)
    }

    /// Gives the draft its second name, then removes the first; without hard links, renames it.
    private func link() throws(FileError) {
        if unsafe Glibc.link(path, target) == 0 {
            unsafe unlink(path)
            return
        }
        guard errno == EPERM || errno == EOPNOTSUPP else { throw FileError(errno, target) }
        var status = stat()
        guard unsafe lstat(target, &status) != 0 else { throw FileError(EEXIST, target) }
        guard unsafe rename(path, target) == 0 else { throw FileError(errno, target) }
    }

    /// True if the draft's name leads to the open file: another process may have put its own draft there.
    private var isCurrent: Bool {
        var (own, other) = (stat(), stat())
        guard unsafe fstat(descriptor, &own) == 0, unsafe lstat(path, &other) == 0 else { return false }
        return own.st_ino == other.st_ino && own.st_dev == other.st_dev
    }

    private func expectCurrent() throws(FileError) {
        guard isCurrent else { throw FileError(EEXIST, path) }
    }

    /// Waits until the names in the folder of `path` are on the disk.
    package static func syncFolder(of path: String) throws(FileError) {
        let folder = "\(folder(of: path))."
        let descriptor = unsafe open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        guard descriptor >= 0 else { throw FileError(errno, folder) }
        defer { close(descriptor) }
        guard fsync(descriptor) == 0 else { throw FileError(errno, folder) }
    }

    /// The path up to the last slash.
    private static func folder(of path: String) -> Substring {
        path.lastIndex(of: "/").map { path[...$0] } ?? ""
    }

    private static func name(of path: String) -> Substring {
        path.lastIndex(of: "/").map { path[path.index(after: $0)...] } ?? path[...]
    }
}
