import CSQLite
import Foundation
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdHistory

/// The events that start a new epoch, and those that do not.
@Suite(.timeLimit(.minutes(2)))
struct EpochTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    /// Runs a daemon that stores readings; returns its epoch.
    @discardableResult
    private func run(_ count: Int = 1, _ work: (HistoryFile) throws -> Void = { _ in }) throws -> JournalEpoch {
        let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
        let time = Fixture.epoch.advanced(by: .seconds(Int(file.sequence.last)))
        try file.append(.plain((0..<count).map { .integer(Int64($0)) }, at: time))
        try work(file)
        let epoch = try file.epoch()
        try file.close()
        return epoch
    }

    private func copy(_ from: String, to other: String) throws {
        try? FileManager.default.removeItem(atPath: other)
        try FileManager.default.copyItem(atPath: from, toPath: other)
    }

    @Test func `an epoch has 32 hexadecimal digits and survives restarts`() throws {
        let first = try run()
        #expect(first.text.count == 32 && first.text.allSatisfy { $0.isHexDigit && !$0.isUppercase })
        #expect(first.earlier.isEmpty && first.after == 0)
        for _ in 0..<3 { #expect(try run() == first) }
    }

    @Test func `two files have different epochs`() throws {
        #expect(try run() != EpochTests().run())
    }

    @Test func `an epoch survives a kill, also one between the links of the two files`() throws {
        let first = try run()
        var file: HistoryFile? = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
        file?.connection.keepsWALOnClose(true)
        file = nil
        #expect(try run() == first)
        // The database has a new link, the sequence file still the one before.
        let sequence = try Data(contentsOf: URL(filePath: folder.database + "-seq"))
        file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
        file?.connection.keepsWALOnClose(true)
        file = nil
        try sequence.write(to: URL(filePath: folder.database + "-seq"))
        #expect(try run() == first)
    }

    @Test func `a new file in place of a lost one starts a new epoch`() throws {
        let first = try run(10)
        try FileManager.default.removeItem(atPath: folder.database)
        let second = try run()
        #expect(second.text != first.text && second.earlier.isEmpty && second.after == 10)
        #expect(try run() == second)
    }

    @Test func `a new file in place of a damaged one starts an epoch that continues the one before`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<10))
        let first = try await history.consumer("mqtt").epoch()
        let damage = StoreFault("damaged", .damaged)
        for _ in 0..<2 {
            await history.recordFailure(damage)
            while history.status.fault != nil { await Task.yield() }
        }
        let second = try await history.consumer("mqtt").epoch()
        #expect(second.text != first.text && second.earlier == [first.text] && second.after == 10)
        let gap = JournalGap(after: 7, through: 10, reason: "another file")
        #expect(try await history.consumer("mqtt").entries(after: 7, limit: 9) == JournalBatch(missing: gap))
        #expect(try await history.consumer("mqtt").entries(after: 10, limit: 9) == JournalBatch([], through: 10))
        try await history.append(.plain(integers: 0..<10))
        #expect(try await history.readings(after: 10, limit: 9).map(\.seq) == Array(11...19))
        try await history.close()
    }

    @Test func `a replacement of a damaged file repeats no number if it is lost as well`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<10))
        for _ in 0..<2 {
            await history.recordFailure(StoreFault("damaged", .damaged))
            while history.status.fault != nil { await Task.yield() }
        }
        try await history.append(.plain(integers: 0..<10))
        let mark = try #require(Int64(try await folder.shell.value("SELECT value FROM state WHERE key = 'seq'")))
        #expect(mark >= history.newestSeq)
        let other = try TemporaryFolder()
        try copy(folder.database + "-seq", to: other.database + "-seq")
        let next = try await ReadingHistory.open(other)
        try await next.append(.plain(integers: 0..<1))
        #expect(next.newestSeq > history.newestSeq)
        try await history.close()
        try await next.close()
    }

    @Test func `a restored backup starts an epoch that continues the one before`() throws {
        let backup = folder.file("backup.db")
        let first = try run(10) { _ in try HistoryReader(path: folder.database).backUp(to: backup) }
        try run(5)
        _ = try Restore(RestoreSource(backup), to: folder.database, at: Fixture.epoch)
        let second = try run()
        #expect(second.text != first.text && second.earlier == [first.text] && second.after >= 15)
        #expect(try run() == second)
    }

    @Test func `a history that was restored twice names all earlier epochs`() throws {
        let backups = [folder.file("1.db"), folder.file("2.db")]
        let first = try run(10) { _ in try HistoryReader(path: folder.database).backUp(to: backups[0]) }
        _ = try Restore(RestoreSource(backups[0]), to: folder.database, at: Fixture.epoch)
        let second = try run(10) { _ in try HistoryReader(path: folder.database).backUp(to: backups[1]) }
        _ = try Restore(RestoreSource(backups[1]), to: folder.database, at: Fixture.epoch.advanced(by: .seconds(1)))
        #expect(try run().earlier == [second.text, first.text])
    }

    @Test(arguments: [true, false]) func `a restored older copy starts a new epoch`(isBackup: Bool) throws {
        let old = folder.file("old.db")
        let first = try run(10) { _ in
            if isBackup { try HistoryReader(path: folder.database).backUp(to: old) }
        }
        if !isBackup { try copy(folder.database, to: old) }
        try run(5)
        try copy(old, to: folder.database)
        let second = try run()
        #expect(second.text != first.text && second.earlier == [first.text])
        #expect(try run() == second)
    }

    @Test func `a copy of a live file on another gateway starts a new epoch`() throws {
        let other = try EpochTests()
        let first = try run { file in
            file.checkpointIfDue()
            file.connection.checkpoint(SQLITE_CHECKPOINT_TRUNCATE)
            try copy(folder.database, to: other.folder.database)
        }
        #expect(try other.run().text != first.text)
        #expect(try run() == first)
    }

    @Test func `a file that was moved aside and comes back is a new epoch`() throws {
        try run()
        let aside = folder.file("aside.db")
        try FileManager.default.moveItem(atPath: folder.database, toPath: aside)
        let second = try run()
        try copy(aside, to: folder.database)
        let third = try run()
        #expect(third.text != second.text)
    }

    @Test func `all files of a closed history keep their epoch on another machine`() throws {
        let first = try run()
        let other = try EpochTests()
        for suffix in ["", "-seq"] { try copy(folder.database + suffix, to: other.folder.database + suffix) }
        #expect(try other.run() == first)
    }

    @Test func `compaction and import start no new epoch`() throws {
        let first = try run(100)
        _ = try Compaction(path: folder.database)
        try HistoryImport(path: folder.database).finish()
        #expect(try run() == first)
    }

    @Test func `a receiver with numbers that the file never had starts an epoch without a predecessor`() async throws {
        let history = try await ReadingHistory.open(folder)
        try await history.append(.plain(integers: 0..<10))
        let consumer = history.consumer("mqtt")
        let first = try await consumer.epoch()
        await #expect { _ = try await consumer.rewind(to: 11) } throws: { ($0 as? StoreFault)?.kind == .busy }
        let second = try await consumer.epoch()
        #expect(second.text != first.text && second.earlier.isEmpty && second.after == 0)
        try await consumer.rewind(to: 0)
        #expect(try await consumer.entries(after: 0, limit: 100).readings.count == 10)
        try await history.close()
        var notices: [HistoryNotice] = []
        for await notice in history.notices { notices.append(notice) }
        #expect(notices.filter { $0 == .olderCopy(output: "mqtt", through: 11) }.count == 1)
    }

    @Test func `a receiver whose cursor is always too high starts one epoch only`() throws {
        let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
        #expect(throws: StoreFault.self) { try file.rewind("mqtt", to: 11) }
        let second = try file.epoch()
        for seq in [11, Int64.max] {
            let fault = #expect(throws: StoreFault.self) { try file.rewind("mqtt", to: seq) }
            #expect(fault?.kind == .busy)
        }
        #expect(try file.epoch() == second)
        try file.rewind("mqtt", to: 0)
        try file.close()
    }

    /// The files of a closed history, as the image of a disk has them.
    private func copyFiles(to image: String, from source: String) throws {
        for suffix in ["", "-seq"] { try copy(source + suffix, to: image + suffix) }
    }

    @Test func `an older copy of both files starts a new epoch however late its receiver answers`() throws {
        let image = folder.file("image.db")
        let first = try run(10)
        try copyFiles(to: image, from: folder.database)
        try run(5)
        try copyFiles(to: folder.database, from: image)
        let file = try HistoryFile(path: folder.database, consumers: .one, log: .silent)
        #expect(try file.epoch() == first)
        try file.append(.plain(integers: 0..<10))
        #expect(throws: StoreFault.self) { try file.rewind("mqtt", to: 15) }
        let second = try file.epoch()
        #expect(second.text != first.text && second.earlier.isEmpty)
        try file.rewind("mqtt", to: 0)
        #expect(try file.entries(after: 0, limit: 100, for: "mqtt").readings.map(\.seq) == Array(1...20))
        try file.close()
    }

    @Test func `an older copy of both files names its origin, and the last number that its receivers know`() throws {
        let image = folder.file("image.db")
        let first = try run(10) { file in try file.rewind("mqtt", to: 0) }
        try copyFiles(to: image, from: folder.database)
        try run(5)
        try copyFiles(to: folder.database, from: image)
        // The first run of the copy does not reach the receiver.
        try run(3)
        let second = try run { file in
            #expect(throws: StoreFault.self) { try file.rewind("mqtt", to: 15) }
            try file.rewind("mqtt", to: 10)
            #expect(try file.entries(after: 10, limit: 100, for: "mqtt").readings.map(\.seq) == Array(11...14))
        }
        #expect(second.earlier.isEmpty && second.after == 0)
        #expect(second.origin == JournalEpoch.Origin(first.text, through: 10))
        #expect(try run() == second)
    }

    @Test func `an older copy whose receivers were never reached has its first run in common with them`() throws {
        let first = try run(10)
        try run(5)
        let second = try run { file in
            let fault = #expect(throws: StoreFault.self) { try file.rewind("mqtt", to: 100) }
            #expect(fault?.kind == .busy)
            try file.rewind("mqtt", to: 10)
            #expect(try file.entries(after: 10, limit: 100, for: "mqtt").readings.map(\.seq) == Array(11...16))
        }
        #expect(second.origin == JournalEpoch.Origin(first.text, through: 10))
    }

    @Test func `an older copy of both files is noticed also after its consumer has skipped entries`() throws {
        let image = folder.file("image.db")
        try run(10)
        try copyFiles(to: image, from: folder.database)
        try run(5)
        try copyFiles(to: folder.database, from: image)
        let consumers = [JournalConsumerOptions(name: "mqtt", longestBacklog: 5)]
        let file = try HistoryFile(path: folder.database, consumers: consumers, log: .silent)
        try file.append(.plain(integers: 0..<20))
        _ = try file.journal?.skip(head: file.head)
        #expect(file.journal?.cursor(of: "mqtt") == 25)
        #expect(throws: StoreFault.self) { try file.rewind("mqtt", to: 15) }
        try file.close()
    }

    @Test func `a receiver has numbers of this run after its first contact, or after an acknowledgement`() throws {
        let consumers = [JournalConsumerOptions(name: "mqtt"), JournalConsumerOptions(name: "copy")]
        let file = try HistoryFile(path: folder.database, consumers: consumers, log: .silent)
        let first = try file.epoch()
        try file.rewind("mqtt", to: 0)
        try file.append(.plain(integers: 0..<10))
        try file.rewind("mqtt", to: 10)
        file.journal?.acknowledge(through: 5, by: "copy")
        try file.rewind("copy", to: 7)
        #expect(try file.epoch() == first)
        try file.close()
    }
}
