import CLinux
import GattherdConfig
import GattherdModel
import GattherdSync
import Glibc

/// The content of a file of the configuration.
struct ConfigurationText: Hashable, Sendable {
    /// The maximum number of bytes of a file that is shown or written.
    static let largest = 262_144

    let bytes: [UInt8]

    /// A version string that changes with the content.
    var version: String {
        "\(bytes.count)-\(String(StableHash.fnv1a(bytes), radix: 16))"
    }
}

extension ConfigurationFile {
    /// Returns the path of a file by its name in the folder of the configuration: that of the main file, or
    /// `gattherd.d/NAME.yaml`.
    ///
    /// - Returns: The path; `nil` for any other name. A new file has letters of ASCII, digits, `-`, `_` and dots in its
    ///   name.
    func path(named name: String) -> String? {
        if let known = paths.first(where: { self.name(ofPath: $0) == name }) { return known }
        let prefix = "gattherd.d/"
        guard name.hasPrefix(prefix), name.hasSuffix(".yaml"), !name.dropFirst(prefix.count).hasPrefix(".") else {
            return nil
        }
        let own = name.dropFirst(prefix.count)
        let isPlain = own.utf8.allSatisfy { Slug.isAllowed($0) || $0 == UInt8(ascii: ".") || isUpper($0) }
        return isPlain && own.utf8.count <= 100 ? fragmentFolder + "/" + own : nil
    }

    private func isUpper(_ byte: UInt8) -> Bool { (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) }

    /// The name of the main file.
    var mainName: String { path.lastIndex(of: "/").map { String(path[path.index(after: $0)...]) } ?? path }

    /// Returns the name of a file in the folder of the configuration.
    func name(ofPath path: String) -> String {
        guard path != self.path else { return mainName }
        return path.lastIndex(of: "/").map { "gattherd.d/" + path[path.index(after: $0)...] } ?? path
    }

    /// Reads a file.
    ///
    /// - Throws: ``FileError``, with the code `EFBIG` for one that is too large to be shown.
    func text(ofPath path: String) throws(FileError) -> ConfigurationText {
        do throws(SystemError) {
            return ConfigurationText(bytes: try readFile(path, limit: ConfigurationText.largest))
        } catch {
            throw FileError(error.code, path)
        }
    }

    /// Returns the reason why this process cannot replace or create a file; `nil` if it can.
    func obstacle(toReplacing path: String) -> String? {
        var status = stat()
        if unsafe lstat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
            return "\(path) is a link; change the file that it leads to"
        }
        return obstacle(toWritingIn: Self.folder(of: path))
    }

    /// The reason why this process cannot add a file to the folder of further files; `nil` if it can.
    var obstacleToAdding: String? { obstacle(toWritingIn: fragmentFolder + "/") }

    private func obstacle(toWritingIn place: String) -> String? {
        var folder = place
        // The folder of further files is made if it is missing.
        if folder == fragmentFolder + "/", unsafe access(folder, F_OK) != 0 { folder = Self.folder(of: self.path) }
        guard unsafe access(folder, W_OK | X_OK) != 0 else { return nil }
        let reason = unsafe String(cString: strerror(errno))
        return "the daemon cannot write in \(folder): \(reason); see 'Change the configuration' in docs/operate.md"
    }

    private static func folder(of path: String) -> String {
        path.lastIndex(of: "/").map { String(path[...$0]) } ?? "."
    }

    /// Replaces a file in one step; its permissions and, if this process may set it, its owner stay.
    func replace(_ source: ConfigSource) throws(FileError) {
        let status = try Self.status(ofFile: source.name)
        let draft = try FileDraft(of: source.name, prefix: ".")
        try draft.write(source.bytes)
        // Without the right to give a file away it becomes the daemon's.
        if fchown(draft.descriptor, status.st_uid, status.st_gid) != 0 {
            _ = fchown(draft.descriptor, uid_t.max, status.st_gid)
        }
        try draft.setMode(status.st_mode & 0o777)
        try draft.replace()
    }

    /// Deletes a file.
    func remove(_ path: String) throws(FileError) {
        _ = try Self.status(ofFile: path)
        guard unsafe unlink(path) == 0 else { throw FileError(errno, path) }
        try FileDraft.syncFolder(of: path)
    }

    /// Returns the status of a file.
    ///
    /// - Throws: ``FileError``, with the code `ELOOP` for a link.
    private static func status(ofFile path: String) throws(FileError) -> stat {
        var status = stat()
        guard unsafe lstat(path, &status) == 0 else { throw FileError(errno, path) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw FileError(ELOOP, path) }
        return status
    }
}
