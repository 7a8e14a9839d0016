import Foundation
import GattherdHistory
import GattherdModel
import GattherdOutputs
import TestKit
import Testing

@testable import GattherdPostgres

extension CentralHistoryTests {
    /// Copies the files of the closed history, as the image of a disk has them.
    private func copyFiles(from source: String, to target: String) throws {
        for suffix in ["", "-seq"] {
            try? FileManager.default.removeItem(atPath: folder.file(target + suffix))
            try FileManager.default.copyItem(atPath: folder.file(source + suffix), toPath: folder.file(target + suffix))
        }
    }

    /// The clock of a gateway that is started at a round.
    private func clock(at round: Int) -> SlowClock {
        let clock = SlowClock()
        clock.synchronise()
        clock.pass(.seconds(100 * (round + 1)))
        return clock
    }

    /// Runs a gateway that stores rounds without the centre.
    private func keep(_ rounds: Range<Int>) async throws {
        let clock = clock(at: rounds.lowerBound)
        let history = try await open(clock.clock)
        for round in rounds { try await store(round, history, at: clock.clock.now()) }
        try await history.close()
    }

    /// Runs a gateway that stores rounds, and delivers them together with all others.
    private func run(_ rounds: Range<Int>, _ centre: Centre, isLate: Bool = false) async throws {
        let clock = clock(at: rounds.lowerBound)
        let history = try await open(clock.clock)
        let output = Self.output(history, try await centre.sink(of: "attic"))
        for round in rounds where isLate { try await store(round, history, at: clock.clock.now()) }
        let running = Task { await output.run() }
        for round in rounds where !isLate { try await store(round, history, at: clock.clock.now()) }
        try await eventually { output.status.cursor == history.newestSeq && output.status.backlog == 0 }
        await output.stop(within: .seconds(5))
        await running.value
        try await history.close()
    }

    @Test(arguments: [false, true])
    func `an older image of a gateway's disk loses and repeats nothing, however late it reaches the centre`(
        isLate: Bool
    ) async throws {
        let centre = try await Centre()
        try await run(0..<3, centre)
        try copyFiles(from: "gattherd.db", to: "image.db")
        try await run(3..<6, centre)
        try copyFiles(from: "image.db", to: "gattherd.db")
        // More entries than the image lacks, or less.
        try await run(isLate ? 6..<12 : 6..<7, centre, isLate: isLate)
        try await expectEachEntryOnce(centre, rounds: isLate ? 12 : 7)
    }

    @Test func `an image from before the first contact with the centre loses and repeats nothing`() async throws {
        let centre = try await Centre()
        try await keep(0..<3)
        try copyFiles(from: "gattherd.db", to: "image.db")
        try await run(3..<6, centre)
        try copyFiles(from: "image.db", to: "gattherd.db")
        try await keep(6..<12)
        try await run(12..<13, centre)
        try await expectEachEntryOnce(centre, rounds: 13)
    }

    /// Compares the history of the image with the two epochs at the centre.
    private func expectEachEntryOnce(_ centre: Centre, rounds: Int) async throws {
        let epochs = try await centre.rows("SELECT epoch, cursor FROM gattherd.journal ORDER BY id")
        try #require(epochs.count == 2)
        let gaps = try await centre.rows("SELECT epoch, after, through FROM gattherd.gaps")
        try #require(gaps.count == 1)
        #expect(gaps[0][0] == epochs[1][0] && gaps[0][1] == "0")
        let shell = SQLiteShell(folder.file("gattherd.db"))
        let all = "SELECT seq, ts, device, metric, element, coalesce(label, value::text) FROM gattherd.history"
        for (epoch, condition) in zip(epochs.map { $0[0] }, ["seq <= \(gaps[0][2])", "seq > \(gaps[0][2])"]) {
            let found = try await centre.rows("\(all) WHERE epoch = '\(epoch)' AND \(condition)")
            #expect(found.count == Int(try await shell.value("SELECT count(*) FROM history WHERE \(condition)")))
            #expect(!found.isEmpty && Set(found).count == found.count)
        }
        let rejects = try await centre.value("SELECT count(*) FROM gattherd.rejects")
        #expect(rejects == "\(rounds)", "one of each round")
        #expect(try await centre.rows("SELECT epoch FROM gattherd.gateways") == [[epochs[1][0]]])
    }
}
