import GattherdConfig
import GattherdModel
import GattherdProfiles
import Glibc

/// The files that a daemon reads only at its start: the password and TLS files of MQTT, and native profiles.
///
/// Their content is not taken by a reload. A reload compares them with the files at the start, to name what waits for a
/// restart.
struct StartFiles: Sendable {
    private let mqtt: [String: FileStamp?]
    /// Native profiles by path; a library stays as it was when it was loaded first.
    private var libraries: [String: FileStamp?] = [:]

    init(_ configuration: Configuration, _ registry: ProfileRegistry) {
        let paths = configuration.mqtt?.files ?? []
        mqtt = Dictionary(paths.map { ($0, FileStamp($0)) }) { first, _ in first }
        _ = changedSections(registry)
    }

    /// The sections of the configuration with a file that was replaced or written since; new libraries are recorded.
    mutating func changedSections(_ registry: ProfileRegistry) -> [String] {
        var sections = mqtt.contains { FileStamp($0.key) != $0.value } ? ["mqtt"] : []
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

extension MQTTSettings {
    fileprivate var files: [String] {
        let tls = broker.usesTLS ? [tls.ca, tls.certificate, tls.key] : []
        return (tls + [passwordFile]).compactMap { $0?.value }
    }
}
