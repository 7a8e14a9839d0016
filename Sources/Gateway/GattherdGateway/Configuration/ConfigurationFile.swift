import CLinux
import FoundationEssentials
package import GattherdConfig
import GattherdSync
import Glibc

/// A configuration on the disk: one file, and `gattherd.d/*.yaml` beside it.
package struct ConfigurationFile: Sendable {
    package static let standardPath = "/etc/gattherd/gattherd.yaml"
    /// The environment variable that names another file.
    package static let variable = "GATTHERD_CONFIG"

    package let path: String

    /// - Parameter path: The file; `nil` for the one that the environment names, else the standard one.
    package init(_ path: String?) {
        self.init(path, ProcessInfo.processInfo.environment)
    }

    /// - Parameters:
    ///   - path: The file; `nil` for the one that the environment names, else the standard one.
    ///   - environment: The environment variables.
    package init(_ path: String?, _ environment: [String: String]) {
        let named = environment[Self.variable] ?? ""
        self.path = path ?? (named.isEmpty ? Self.standardPath : named)
    }

    /// True if the environment names a file, or the standard one exists.
    package static var isDefaultThere: Bool {
        let path = ConfigurationFile(nil).path
        return path != standardPath || FileManager.default.fileExists(atPath: standardPath)
    }

    /// Reads and parses all files, with new ones or other contents of some.
    ///
    /// - Throws: ``ConfigErrors``, also when a file cannot be read.
    package func parsed(with changes: [ConfigSource] = []) throws(ConfigErrors) -> Configuration {
        let (configuration, errors) = parsedLeniently(with: changes)
        guard errors.isEmpty else { throw ConfigErrors(errors) }
        return configuration
    }

    /// Reads and parses all files as far as they are valid, with new ones or other contents of some.
    package func parsedLeniently(
        with changes: [ConfigSource] = []
    ) -> (configuration: Configuration, errors: [ConfigError]) {
        var sources: [ConfigSource] = []
        let (fragments, folderError) = fragmentPaths()
        var unreadable = [folderError].compactMap(\.self)
        for path in [path] + fragments {
            if let change = changes.first(where: { $0.name == path }) {
                sources.append(change)
            } else if let bytes = content(ofPath: path) {
                sources.append(ConfigSource(name: path, bytes: bytes))
            } else {
                unreadable.append(ConfigError(.unreadable(reason: unreadableReason(path)), file: path))
            }
        }
        // An empty main file keeps its place: paths are relative to its folder.
        let isMainThere = sources.first?.name == path
        let main = isMainThere ? sources : [ConfigSource(name: path, bytes: [])]
        let known = main + changes.filter { change in !main.contains { $0.name == change.name } }
        let outputs = OutputRegistry.definitions as [any OutputSectionDefinition.Type]
        let (configuration, errors) = Configuration.parseLeniently(known, in: Self.environment, outputs: outputs)
        return (configuration, unreadable.isEmpty ? errors : unreadable)
    }

    /// The maximum size of a file in MiB, more than the maximum number of values needs.
    private static let largest = 4

    /// Reads a regular file up to the maximum size; the main file may be a pipe or a device.
    private func content(ofPath path: String) -> [UInt8]? {
        var status = stat()
        if path == self.path, unsafe stat(path, &status) == 0, status.st_mode & S_IFMT != S_IFREG {
            return FileManager.default.contents(atPath: path).map { Array($0) }
        }
        return try? readFile(path, limit: Self.largest << 20)
    }

    /// Returns a configuration that is not installed yet, as far as it is valid.
    ///
    /// - Parameter sources: The main file, then the others, with the names that they will have.
    /// - Returns: The settings; mistakes in the files do not matter.
    package static func configuration(of sources: [ConfigSource]) -> Configuration {
        let outputs = OutputRegistry.definitions as [any OutputSectionDefinition.Type]
        return Configuration.parseLeniently(sources, in: environment, outputs: outputs).configuration
    }

    /// Returns the configuration that texts express in place of these files, and the kinds of its mistakes.
    ///
    /// Old names of keys make no difference.
    package func reading(_ sources: [ConfigSource], _ renames: [ConfigRename]) -> Reading {
        let outputs = OutputRegistry.definitions as [any OutputSectionDefinition.Type]
        var (configuration, errors) = Configuration.parseLeniently(
            sources,
            in: Self.environment,
            outputs: outputs,
            renames: renames
        )
        configuration.oldKeys = []
        return Reading(configuration: configuration, mistakes: errors.map(\.problem.kind))
    }

    /// The meaning of a configuration's files.
    package struct Reading: Equatable {
        package let configuration: Configuration
        /// The kinds of the mistakes.
        package let mistakes: [String]
    }

    /// The main file, then those of ``fragmentFolder`` that can be listed.
    package var paths: [String] { [path] + fragmentPaths().paths }

    /// The folder of further files; most configurations have none.
    package var fragmentFolder: String {
        (path.lastIndex(of: "/").map { String(path[...$0]) } ?? "") + "gattherd.d"
    }

    /// The files of ``fragmentFolder``, sorted by name, and an error if the folder exists and cannot be listed.
    private func fragmentPaths() -> (paths: [String], error: ConfigError?) {
        let folder = fragmentFolder
        guard let stream = unsafe opendir(folder) else {
            guard errno != ENOENT else { return ([], nil) }
            return ([], ConfigError(.unreadable(reason: Self.reason(errno)), file: folder))
        }
        unsafe closedir(stream)
        guard let names = fragmentNames else {
            return ([], ConfigError(.unreadable(reason: "the folder cannot be listed"), file: folder))
        }
        return (names.filter { $0.hasSuffix(Self.suffix) }.map { folder + "/" + $0 }, nil)
    }

    /// The end of the names of further files.
    private static let suffix = ".yaml"

    /// The visible names in ``fragmentFolder``, sorted; `nil` if it cannot be listed.
    private var fragmentNames: [String]? {
        let names = try? FileManager.default.contentsOfDirectory(atPath: fragmentFolder)
        return names?.filter { !$0.hasPrefix(".") }.sorted()
    }

    /// Warnings about files of ``fragmentFolder`` that are not read, although their names are those of YAML files.
    package var unreadFiles: [ConfigError] {
        let names = (fragmentNames ?? []).filter { name in
            [".yaml", ".yml"].contains { name.lowercased().hasSuffix($0) } && !name.hasSuffix(Self.suffix)
        }
        return names.map { name in
            let advice = "this file is not read: its name must end in \(Self.suffix); rename it"
            return ConfigError(.file(advice), file: fragmentFolder + "/" + name, severity: .warning)
        }
    }

    private func unreadableReason(_ path: String) -> String {
        var status = stat()
        guard unsafe stat(path, &status) == 0, unsafe access(path, R_OK) == 0 else {
            let code = errno
            return Self.reason(code) + (code == ENOENT ? "; create it, or name another file" : "")
        }
        switch status.st_mode & S_IFMT {
        case S_IFDIR: return "this is a folder; name the file, for example \(path)/gattherd.yaml"
        case S_IFREG where status.st_size > Self.largest << 20:
            return "the file has more than \(Self.largest) MiB; is it a configuration?"
        default: return "this is not a regular file"
        }
    }

    /// Returns the message for `errno`, with the remedy for a missing permission.
    private static func reason(_ code: Int32) -> String {
        let words = SystemError(code).description
        return code == EACCES ? words + "; run the command as root or as the daemon's user" : words
    }

    private static var environment: ConfigEnvironment {
        var name = [CChar](repeating: 0, count: 256)
        let code = unsafe gethostname(&name, name.count - 1)
        let host =
            code == 0
            ? String(decoding: name.prefix { $0 != 0 }.map { UInt8(truncatingIfNeeded: $0) }, as: UTF8.self) : ""
        return ConfigEnvironment(
            variables: ProcessInfo.processInfo.environment,
            hostName: host,
            currentFolder: FileManager.default.currentDirectoryPath
        )
    }
}
