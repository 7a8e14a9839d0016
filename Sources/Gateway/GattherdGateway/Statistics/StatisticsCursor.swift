import FoundationEssentials
import GattherdModel
import GattherdSync

/// The file with the hours that are imported.
///
/// Calls block.
struct StatisticsCursor: Sendable {
    /// The starts of two hours.
    struct Hours: Hashable {
        /// The first hour that is not imported yet.
        var next: Timestamp
        /// The first hour that this gateway imports; earlier hours belong to Home Assistant.
        var first: Timestamp
    }

    /// The name of the file, beside the history.
    static let name = "home-assistant-statistics"

    let path: String

    /// Reads the file; `nil` if it is missing or damaged.
    func read() -> Hours? {
        guard let data = FileManager.default.contents(atPath: path), data.count < 100 else { return nil }
        let hours = data.split(separator: UInt8(ascii: "\n")).map { line in
            Timestamp(rfc3339: line).map { StatisticsImporter.hourStart($0) }
        }
        guard let next = hours.first ?? nil else { return nil }
        return Hours(next: next, first: min(next, hours.dropFirst().first.flatMap(\.self) ?? next))
    }

    func write(_ hours: Hours) throws(FileError) {
        let draft = try FileDraft(of: path)
        try draft.write(Array("\(hours.next.rfc3339)\n\(hours.first.rfc3339)\n".utf8))
        try draft.setMode(0o640)
        try draft.replace()
    }
}
