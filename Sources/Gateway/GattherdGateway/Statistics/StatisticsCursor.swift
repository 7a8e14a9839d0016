import FoundationEssentials
import GattherdModel
import GattherdSync

/// The file with the start of the first hour that is not imported yet.
///
/// Calls block.
struct StatisticsCursor: Sendable {
    /// The name of the file, beside the history.
    static let name = "home-assistant-statistics"

    let path: String

    /// Reads the file; `nil` if it is missing or damaged.
    func read() -> Timestamp? {
        guard let data = FileManager.default.contents(atPath: path), data.count < 100 else { return nil }
        return Timestamp(rfc3339: data.prefix { $0 != UInt8(ascii: "\n") })
            .map { StatisticsImporter.hourStart($0) }
    }

    func write(_ hour: Timestamp) throws(FileError) {
        let draft = try FileDraft(of: path)
        try draft.write(Array("\(hour.rfc3339)\n".utf8))
        try draft.setMode(0o640)
        try draft.replace()
    }
}
