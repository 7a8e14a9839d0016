import CLinux
import FoundationEssentials
import GattherdConfig
import GattherdGateway
import GattherdSync
import Glibc

/// The small files that outputs keep beside the history.
///
/// The folder belongs to the daemon's user. A command of root must not read or write the files of others there.
enum StateFiles {
    /// The maximum size in bytes.
    private static let longest = 1 << 16

    /// Returns the names of the files that the outputs of a configuration keep.
    static func names(_ configuration: Configuration) -> [String] {
        ["mqtt-base-topics", "home-assistant-statistics"] + configuration.outputs.map { "\($0.name)-bdseq" }
    }

    /// Returns the content of a file; `nil` without such a file.
    ///
    /// - Throws: ``FileError`` if it is a symbolic link, has further names, or is not a regular file.
    static func read(_ path: String) throws(FileError) -> [UInt8]? {
        let descriptor = unsafe open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
        guard descriptor >= 0 else {
            if errno == ENOENT { return nil }
            throw FileError(errno, path)
        }
        defer { close(descriptor) }
        var status = stat()
        guard unsafe fstat(descriptor, &status) == 0 else { throw FileError(errno, path) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_nlink == 1 else { throw FileError(EPERM, path) }
        guard status.st_size <= longest else { throw FileError(EFBIG, path) }
        var bytes = [UInt8](repeating: 0, count: longest)
        let count = unsafe Glibc.read(descriptor, &bytes, bytes.count)
        guard count >= 0 else { throw FileError(errno, path) }
        return Array(bytes.prefix(count))
    }
}
