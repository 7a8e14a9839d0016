import CLinux
import FoundationEssentials
import GattherdConfig
import GattherdGateway
import GattherdSync
import Glibc

/// The small files that outputs keep beside the history.
///
/// The folder belongs to the daemon's user. A command of root must not follow links there, nor take other files.
enum StateFiles {
    /// The maximum size in bytes.
    private static let longest = 1 << 16

    /// The names that a configuration gives.
    static func names(_ configuration: Configuration) -> [String] {
        ["mqtt-base-topics"] + configuration.outputs.map { "\($0.name)-bdseq" }
    }

    /// Returns the content of a file; `nil` without such a file.
    ///
    /// - Throws: ``FileError`` if it is a link, or belongs to another user than its folder.
    static func read(_ path: String) throws(FileError) -> [UInt8]? {
        let descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw FileError(errno, path)
        }
        defer { close(descriptor) }
        var (status, folder) = (stat(), stat())
        guard unsafe fstat(descriptor, &status) == 0, unsafe stat(path.folderPath, &folder) == 0 else {
            throw FileError(errno, path)
        }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == folder.st_uid else { throw FileError(EPERM, path) }
        guard status.st_size <= longest else { throw FileError(EFBIG, path) }
        var bytes = [UInt8](repeating: 0, count: longest)
        let count = unsafe Glibc.read(descriptor, &bytes, bytes.count)
        guard count >= 0 else { throw FileError(errno, path) }
        return Array(bytes.prefix(count))
    }
}
