import FoundationEssentials
import GattherdConfig
import GattherdGateway
import GattherdProfiles
import Glibc

/// The files that a backup has besides the history, with their names in it.
struct BackupPlan {
    /// A file on this host.
    struct File: Hashable {
        let path: String
        /// The name in the archive, below one of the folders.
        let name: String
    }

    /// The folders of the archive.
    static let (configuration, state, bonds) = ("configuration", "state", "bonds")
    /// The name of the history in the archive.
    static let history = "history.db"
    static let manifest = "manifest.json"

    /// The name of the main file in the archive.
    let main: String
    private(set) var files: [File] = []
    /// Files that the configuration names outside of its folder, which are not in the backup.
    private(set) var elsewhere: [String] = []
    private let folder: String

    /// - Parameters:
    ///   - file: The configuration's files.
    ///   - configuration: Their content.
    ///   - bonds: The folder of bluetoothd; `nil` to leave out bonds.
    init(_ file: ConfigurationFile, _ configuration: Configuration, bonds: String? = nil) {
        folder = file.path.folderPath
        main = Self.configuration + "/" + file.path.fileName
        for path in file.paths { add(path) }
        for path in configuration.namedFiles { add(path.value) }
        for path in Self.profiles(configuration, in: folder) { add(path) }
        addState(beside: configuration.history.path.value)
        if let bonds { addBonds(in: bonds, configuration) }
    }

    /// Adds a file of the configuration, if it is in the configuration's folder.
    private mutating func add(_ path: String) {
        let inside = folder + "/"
        guard path.hasPrefix(inside), !path.split(separator: "/").contains("..") else {
            if !elsewhere.contains(path) { elsewhere.append(path) }
            return
        }
        append(path, Self.configuration + "/" + path.dropFirst(inside.count))
    }

    private mutating func append(_ path: String, _ name: String) {
        guard !files.contains(where: { $0.name == name }), FileManager.default.fileExists(atPath: path) else { return }
        files.append(File(path: path, name: name))
    }

    /// The profiles that are not installed with gattherd.
    private static func profiles(_ configuration: Configuration, in folder: String) -> [String] {
        let places = configuration.profiles.paths?.map(\.value) ?? [folder + "/profiles"]
        let own = places.filter { !InstalledProfiles.folders.contains($0) || $0.hasPrefix(folder + "/") }
        return own.flatMap { place in
            let names = (try? FileManager.default.contentsOfDirectory(atPath: place)) ?? []
            let files = names.filter { $0.hasSuffix(".so") || $0.hasSuffix(".yaml") }.sorted().map { place + "/" + $0 }
            return names.isEmpty && (place.hasSuffix(".so") || place.hasSuffix(".yaml")) ? [place] : files
        }
    }

    /// Adds the small files that outputs keep beside the history.
    private mutating func addState(beside history: String) {
        let folder = history.folderPath
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for name in names.sorted() where name == "mqtt-base-topics" || name.hasSuffix("-bdseq") {
            append(folder + "/" + name, Self.state + "/" + name)
        }
    }

    /// Adds the bonds of the configured devices with all adapters.
    private mutating func addBonds(in folder: String, _ configuration: Configuration) {
        let adapters = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for adapter in adapters.sorted() {
            for device in configuration.devices {
                let name = "\(adapter)/\(device.address.value)/info"
                append("\(folder)/\(name)", "\(Self.bonds)/\(name)")
            }
        }
    }
}

extension String {
    /// The folder of a path; `.` for a bare name.
    var folderPath: String {
        guard let slash = lastIndex(of: "/") else { return "." }
        return slash == startIndex ? "/" : String(self[..<slash])
    }

    /// The last component of a path.
    var fileName: String { lastIndex(of: "/").map { String(self[index(after: $0)...]) } ?? self }
}
