import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdProcess
import TestKit
import Testing

@testable import GattherdGateway

@Suite(.timeLimit(.minutes(1)))
struct OutputSummaryTests {
    private struct FakeOutput: Output {
        let name = "influx"
        var status = OutputStatus(target: "http://i:8086")

        func run() async {}
        func roundTrip() async {}
        func stop(within limit: Duration) async {}
    }

    private static let stream = StreamDefinition(
        device: "strap",
        profile: "battery",
        stream: "battery",
        metrics: [MetricDescriptor(name: "battery_level", unit: "%")]
    )

    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func open(_ folder: TemporaryFolder, longest: Int64? = nil) async throws -> ReadingHistory {
        let consumer = JournalConsumerOptions(name: "influx", longestBacklog: longest)
        let clock = GatewayClock(now: { Timestamp(microseconds: 1_795_231_205_123_456) })
        return try await ReadingHistory.open(
            HistoryOptions(path: folder.file("gattherd.db"), consumers: [consumer], clock: clock),
            log: .silent
        )
    }

    private func append(_ count: Int, to history: ReadingHistory) async throws {
        var batch = ReadingBatch()
        batch.samples = (0..<count).map { Sample(metric: 0, value: .integer(Int64($0))) }
        batch.readings = (0..<count).map { index in
            let time = Timestamp(microseconds: 1_795_231_205_000_000 + Int64(index))
            return Reading(stream: Self.stream, time: time, source: .read, samples: index..<index + 1)
        }
        try await history.append(batch)
    }

    @Test func `numbers that a crash has left out do not count as backlog of an output`() async throws {
        let crashed = try TemporaryFolder()
        let former = try await open(folder)
        try await append(3, to: former)
        for suffix in ["", "-wal", "-seq"] {
            let names = [folder, crashed].map { $0.file("gattherd.db") + suffix }
            #expect(await (try ChildProcess("cp", names)).wait() == .exited(0))
        }
        try await former.close()
        let history = try await open(crashed)
        try await append(2, to: history)
        var output = FakeOutput()
        output.status.backlog = history.newestSeq
        #expect(history.newestSeq > 1000)
        #expect(history.summary(of: output).backlog == 5)
        try await history.close()
    }

    @Test func `entries that history has skipped for an output count as skipped by it`() async throws {
        let history = try await open(folder, longest: 10)
        try await append(100, to: history)
        for await notice in history.notices {
            if case .skipped(_, _, _, 90) = notice { break }
        }
        var output = FakeOutput()
        output.status.skipped = 1
        #expect(history.summary(of: output).skipped == 91)
        try await history.close()
    }
}
