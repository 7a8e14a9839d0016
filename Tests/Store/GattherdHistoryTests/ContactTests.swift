import Foundation
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

/// Older copies of both files, and receivers that were away for several runs.
@Suite(.timeLimit(.minutes(2)))
struct ContactTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open() throws -> HistoryFile {
        try HistoryFile(path: folder.database, consumers: .one, log: .silent)
    }

    /// Runs a daemon whose receiver is at `cursor`, or away if that is `nil`, and stores readings; returns its epoch.
    @discardableResult
    private func run(_ count: Int, receiverAt cursor: Int64?) throws -> JournalEpoch {
        let file = try open()
        let time = Fixture.epoch.advanced(by: .seconds(Int(file.sequence.last)))
        try file.append(.plain((0..<count).map { .integer(Int64($0)) }, at: time))
        if let cursor { try file.rewind("mqtt", to: cursor) }
        let epoch = try file.epoch()
        try file.close()
        return epoch
    }

    private func copyFiles(to target: String, from source: String) throws {
        for suffix in ["", "-seq"] {
            try? FileManager.default.removeItem(atPath: target + suffix)
            try FileManager.default.copyItem(atPath: source + suffix, toPath: target + suffix)
        }
    }

    @Test(arguments: 1...3)
    func `an older copy of both files is noticed after runs without its receiver`(runs: Int) throws {
        let image = folder.file("image.db")
        let first = try run(10, receiverAt: 0)
        try copyFiles(to: image, from: folder.database)
        try run(5, receiverAt: 10)
        try copyFiles(to: folder.database, from: image)
        for _ in 0..<runs { #expect(try run(10, receiverAt: nil) == first) }
        let file = try open()
        #expect(throws: StoreFault.self) { try file.rewind("mqtt", to: 15) }
        #expect(try file.epoch().text != first.text)
        try file.rewind("mqtt", to: 0)
        let count = Int64(10 + runs * 10)
        #expect(try file.entries(after: 0, limit: 100, for: "mqtt").readings.map(\.seq) == Array(1...count))
        try file.close()
    }

    @Test func `a copy from before the first contact is noticed, and its later readings are delivered`() throws {
        let image = folder.file("image.db")
        let first = try run(10, receiverAt: nil)
        try copyFiles(to: image, from: folder.database)
        try run(5, receiverAt: 0)
        try copyFiles(to: folder.database, from: image)
        #expect(try run(10, receiverAt: nil) == first)
        let file = try open()
        #expect(throws: StoreFault.self) { try file.rewind("mqtt", to: 15) }
        #expect(try file.epoch().origin == JournalEpoch.Origin(first.text, through: 10))
        try file.rewind("mqtt", to: 10)
        #expect(try file.entries(after: 10, limit: 100, for: "mqtt").readings.map(\.seq) == Array(11...20))
        try file.close()
    }

    @Test func `a receiver that is reached for the first time in a later run is no older copy`() throws {
        let first = try run(10, receiverAt: nil)
        for _ in 0..<2 { try run(5, receiverAt: nil) }
        #expect(try run(5, receiverAt: 0) == first)
        // An output with another name continues at the cursor of its receiver.
        let file = try HistoryFile(
            path: folder.database,
            consumers: [JournalConsumerOptions(name: "copy")],
            log: .silent
        )
        try file.rewind("copy", to: 25)
        #expect(try file.epoch() == first)
        try file.close()
    }

    @Test func `a receiver that was away for several runs continues in the same epoch`() throws {
        let first = try run(10, receiverAt: 0)
        for _ in 0..<3 { try run(5, receiverAt: nil) }
        #expect(try run(5, receiverAt: 10) == first)
        // The last run has delivered everything.
        #expect(try run(5, receiverAt: 30) == first)
    }

    @Test func `a receiver has more than a restored backup that was made while it was away`() throws {
        let backup = folder.file("backup.db")
        let first = try run(10, receiverAt: 0)
        try run(5, receiverAt: nil)
        try HistoryReader(path: folder.database).backUp(to: backup)
        try run(5, receiverAt: 10)
        _ = try Restore(RestoreSource(backup), to: folder.database, at: Fixture.epoch)
        #expect(try run(5, receiverAt: 20).earlier == [first.text])
    }
}
