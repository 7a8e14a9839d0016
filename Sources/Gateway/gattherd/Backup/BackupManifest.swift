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

    init(gateway: String, main: String, created: String, elsewhere: [String]) {
        (self.gateway, self.main, self.created, self.elsewhere) = (gateway, main, created, elsewhere)
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
        guard case .array(let elsewhere)? = values["elsewhere"] else { throw Self.failure }
        self.elsewhere = elsewhere.compactMap { if case .string(let path) = $0 { path } else { nil } }
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
            writer.key("elsewhere")
            writer.array(elsewhere) { $0.string($1) }
            writer.endObject()
        }
    }
}
