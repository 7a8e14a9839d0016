import GattherdConfig
import GattherdModel
import GattherdProfiles
import Glibc

/// The files that a daemon reads only at its start: the password file of MQTT, and native profiles.
///
/// A reload does not read them again. It compares them with the files at the start, to name what waits for a restart.
/// TLS files are no such files: every connection to the broker reads them.
struct StartFiles: Sendable {
    private let passwordFile: (path: String, stamp: FileStamp?)?
    /// Native profiles by path; a library stays as it was when it was loaded first.
    private var libraries: [String: FileStamp?] = [:]

    init(_ configuration: Configuration, _ registry: ProfileRegistry) {
        passwordFile = configuration.mqtt?.passwordFile.map { ($0.value, FileStamp($0.value)) }
        _ = changedSections(registry)
    }

    /// The sections of the configuration with a file that was replaced or written since; new libraries are recorded.
    mutating func changedSections(_ registry: ProfileRegistry) -> [String] {
        let isPasswordNew = passwordFile.map { FileStamp($0.path) != $0.stamp } ?? false
        var sections = isPasswordNew ? ["mqtt"] : []
        let paths = registry.profiles.map(\.origin).filter { $0.hasSuffix(".so") }
        if paths.contains(where: { path in libraries[path].map { $0 != FileStamp(path) } ?? false }) {
            sections.append("profiles")
        }
        for path in paths where libraries[path] == nil { libraries[path] = .some(FileStamp(path)) }
        return sections
    }
}

/// The identity, size and time of a file's content.
private struct FileStamp: Hashable, Sendable {
    private let device: UInt64
    private let inode: UInt64
    private let size: Int64
    private let seconds: Int
    private let nanoseconds: Int

    /// `nil` for a file that cannot be found.
    init?(_ path: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else { return nil }
        (device, inode, size) = (UInt64(status.st_dev), UInt64(status.st_ino), Int64(status.st_size))
        (seconds, nanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
    }
}
