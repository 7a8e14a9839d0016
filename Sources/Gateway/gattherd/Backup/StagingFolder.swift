import CLinux
import FoundationEssentials
import GattherdProcess
import GattherdSync
import Glibc

/// A temporary folder with the content of a backup, which only this user can read.
///
/// The folder is locked while its process lives. Folders of killed processes are removed by the next one.
final class StagingFolder: Sendable {
    private static let prefix = "gattherd-backup-"

    let path: String
    private let descriptor: Int32

    /// - Parameter command: The command, for messages.
    /// - Throws: ``CommandFailure`` if the folder cannot be created.
    init(_ command: String) throws(CommandFailure) {
        // History may be too large for a /tmp in memory.
        let parent = Terminal.environment("TMPDIR") ?? "/var/tmp"
        Self.removeAbandoned(in: parent)
        var template = Array("\(parent)/\(Self.prefix)XXXXXX".utf8CString)
        guard let made = unsafe mkdtemp(&template) else {
            let reason = SystemError.current.description
            throw CommandFailure(.cannotCreate, "gattherd \(command): no folder can be created in \(parent): \(reason)")
        }
        path = unsafe String(cString: made)
        descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        flock(descriptor, LOCK_EX | LOCK_NB)
    }

    deinit {
        close(descriptor)
    }

    func remove() {
        try? FileManager.default.removeItem(atPath: path)
    }

    func file(_ name: String) -> String { path + "/" + name }

    /// The names of all files in a folder of the backup, relative to it, in order.
    func files(in folder: String) -> [String] {
        let names = (try? FileManager.default.subpathsOfDirectory(atPath: file(folder))) ?? []
        return names.sorted().filter { !Self.isFolder(file(folder + "/" + $0)) }
    }

    /// Writes a new file, whose folder is made if it is missing.
    func write(_ bytes: [UInt8], as name: String, mode: mode_t = 0o600) throws(FileError) {
        let target = file(name)
        try? FileManager.default.createDirectory(atPath: target.parentFolder, withIntermediateDirectories: true)
        let descriptor = unsafe open(target, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { throw FileError(errno, target) }
        defer { close(descriptor) }
        guard writeAll(bytes, to: descriptor), fchmod(descriptor, mode) == 0 else { throw FileError(errno, target) }
    }

    /// Lets another user read one file, and no other.
    ///
    /// - Throws: ``FileError`` if the access cannot be given.
    func share(_ name: String, with user: uid_t) throws(FileError) {
        let others = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        for other in others where other != name {
            guard unsafe lchown(file(other), geteuid(), getegid()) == 0, unsafe chmod(file(other), 0o700) == 0 else {
                throw FileError(errno, file(other))
            }
        }
        guard unsafe lchown(file(name), user, getegid()) == 0, unsafe chmod(file(name), 0o600) == 0,
            fchmod(descriptor, 0o711) == 0
        else { throw FileError(errno, file(name)) }
    }

    private static func isFolder(_ path: String) -> Bool {
        var status = stat()
        return unsafe lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
    }

    /// Removes this user's folders that no process has locked.
    private static func removeAbandoned(in parent: String) {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: parent)) ?? []
        for path in names.filter({ $0.hasPrefix(prefix) }).map({ parent + "/" + $0 }) {
            let descriptor = unsafe open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
            guard descriptor >= 0 else { continue }
            defer { close(descriptor) }
            var status = stat()
            guard unsafe fstat(descriptor, &status) == 0, status.st_uid == geteuid(), isOld(status),
                flock(descriptor, LOCK_EX | LOCK_NB) == 0
            else { continue }
            try? FileManager.default.removeItem(atPath: path)
        }
    }

    /// False for a minute, in which another process may not yet have locked its folder.
    private static func isOld(_ status: stat) -> Bool {
        abs(time(nil) - status.st_mtim.tv_sec) > 60
    }
}
