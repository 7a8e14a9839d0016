import FoundationEssentials
import GattherdConfig
import GattherdGateway
import GattherdProfiles
import GattherdSync
import Glibc

/// The files of a backup other than the history, with their names in it.
struct BackupPlan {
    /// A file on this host.
    struct File: Hashable {
        let path: String
        /// The name in the archive, below one of the folders.
        let name: String

        /// True for a file of bluetoothd, which root alone may read.
        var isBond: Bool { name.hasPrefix(BackupPlan.bonds + "/") }
    }

    /// The folders of the archive.
    static let (configuration, state, bonds) = ("configuration", "state", "bonds")
    /// The name of the history in the archive.
    static let history = "history.db"
    static let manifest = "manifest.json"

    /// The name of the main file in the archive.
    let main: String
    private(set) var files: [File] = []
    /// The files that outputs keep beside the history, which need not exist.
    let stateFiles: [File]
    /// Files that the configuration names outside of its folder, which are not in the backup.
    private(set) var elsewhere: [String] = []
    private let folder: String

    /// - Parameters:
    ///   - file: The configuration's files.
    ///   - configuration: Their content.
    ///   - bonds: The folder of bluetoothd; `nil` to leave out bonds.
    init(_ file: ConfigurationFile, _ configuration: Configuration, bonds: String? = nil) {
        folder = file.path.parentFolder
        main = Self.configuration + "/" + file.path.fileName
        let state = configuration.history.path.value.parentFolder
        stateFiles = StateFiles.names(configuration).map { File(path: state + "/" + $0, name: Self.state + "/" + $0) }
        for path in file.paths { add(path) }
        for path in configuration.namedFiles { add(path.value) }
        for path in Self.profiles(configuration) { add(path) }
        if let bonds { addBonds(in: bonds, configuration) }
    }

    /// Adds a file of the configuration, if it is in the configuration's folder.
    private mutating func add(_ path: String) {
        guard FileManager.default.fileExists(atPath: path), let name = path.relative(toFolder: folder) else {
            if !elsewhere.contains(path) { elsewhere.append(path) }
            return
        }
        append(path, Self.configuration + "/" + name)
    }

    private mutating func append(_ path: String, _ name: String) {
        if !files.contains(where: { $0.name == name }) { files.append(File(path: path, name: name)) }
    }

    /// The profiles that are not installed with gattherd.
    private static func profiles(_ configuration: Configuration) -> [String] {
        let places = configuration.profiles.paths?.map(\.value) ?? [InstalledProfiles.userFolder]
        let installed = InstalledProfiles.folders.filter { $0 != InstalledProfiles.userFolder }
        return places.filter { !installed.contains($0) }.flatMap { place in
            let isProfile = place.hasSuffix(".so") || place.hasSuffix(".yaml")
            let names = (try? FileManager.default.contentsOfDirectory(atPath: place)) ?? []
            let files = names.filter { $0.hasSuffix(".so") || $0.hasSuffix(".yaml") }.sorted().map { place + "/" + $0 }
            return names.isEmpty && isProfile ? [place] : files
        }
    }

    /// Adds the bonds of the configured devices with all adapters.
    private mutating func addBonds(in folder: String, _ configuration: Configuration) {
        let adapters = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        for adapter in adapters.sorted() {
            for device in configuration.devices {
                let name = "\(adapter)/\(device.address.value)/info"
                guard FileManager.default.fileExists(atPath: "\(folder)/\(name)") else { continue }
                append("\(folder)/\(name)", "\(Self.bonds)/\(name)")
            }
        }
    }
}
