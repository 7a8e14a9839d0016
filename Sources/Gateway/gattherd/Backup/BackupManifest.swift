import FoundationEssentials
import GattherdGateway
import GattherdModel

/// The description of a backup, in its file `manifest.json`.
struct BackupManifest: Equatable {
    private static let format: Int64 = 1

    var gateway: String
    /// The name of the main file in the archive.
    var main: String
    var created: String
    /// Files that the configuration names and the backup does not have.
    var elsewhere: [String]
    /// The names of all other files in the archive; empty in backups of early versions.
    var files: [String]

    init(gateway: String, main: String, created: String, elsewhere: [String], files: [String]) {
        (self.gateway, self.main, self.created) = (gateway, main, created)
        (self.elsewhere, self.files) = (elsewhere, files)
    }

    /// - Throws: ``CommandFailure`` if the text describes no backup that this version can read.
    init(_ json: [UInt8]) throws(CommandFailure) {
        guard case .object(let members)? = try? JSONReader.value(of: json) else { throw Self.failure }
        let values = Dictionary(members.map { ($0.name, $0.value) }) { first, _ in first }
        guard values["format"] == .integer(Self.format), case .string(let gateway)? = values["gateway"],
            case .string(let main)? = values["main"], case .string(let created)? = values["created"],
            main.hasPrefix(BackupPlan.configuration + "/")
        else { throw Self.failure }
        (self.gateway, self.main, self.created) = (gateway, main, created)
        guard let elsewhere = Self.texts(values["elsewhere"]) else { throw Self.failure }
        self.elsewhere = elsewhere
        files = Self.texts(values["files"]) ?? []
    }

    private static func texts(_ value: JSONValue?) -> [String]? {
        guard case .array(let values)? = value else { return nil }
        return values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }

    /// Reads the manifest of an archive, and checks that no file of it is missing.
    ///
    /// An archive that was cut between two files is a valid one for tar.
    ///
    /// - Throws: ``CommandFailure`` if this is no whole backup that this version can read.
    static func read(from folder: StagingFolder, _ archive: String) throws(CommandFailure) -> BackupManifest {
        guard let json = FileManager.default.contents(atPath: folder.file(BackupPlan.manifest)) else {
            throw Self.loss(of: BackupPlan.manifest, "\(archive) is not a backup, or is damaged")
        }
        let manifest = try BackupManifest(Array(json))
        for name in manifest.files where !FileManager.default.fileExists(atPath: folder.file(name)) {
            throw Self.loss(of: name, "\(archive) is damaged")
        }
        return manifest
    }

    private static func loss(of name: String, _ problem: String) -> CommandFailure {
        CommandFailure(.data, "gattherd restore: \(problem): it has no '\(name)'; \(remedy)")
    }

    private static let failure = CommandFailure(
        .data,
        "gattherd restore: this is not a backup of this version; \(remedy)"
    )

    /// The advice if a backup cannot be restored.
    static let remedy = "name a file that 'gattherd backup' has written"

    var json: [UInt8] {
        JSONWriter.bytes { writer in
            writer.beginObject()
            writer.key("format")
            writer.integer(Self.format)
            for (key, text) in [
                ("gattherd", GattherdVersion.current), ("created", created), ("gateway", gateway), ("main", main),
            ] {
                writer.key(key)
                writer.string(text)
            }
            for (key, texts) in [("elsewhere", elsewhere), ("files", files)] {
                writer.key(key)
                writer.array(texts) { $0.string($1) }
            }
            writer.endObject()
        }
    }
}
