import BlueZKit
import Foundation
import GattherdHistory
import GattherdLog
import GattherdModel
import GattherdProcess
import Glibc
import TestKit
import Testing

/// A broker that returns after a long outage; GATTHERD_BACKLOG is the number of waiting readings.
@Suite(.timeLimit(.minutes(60)), .serialized) struct BacklogTests {
    private static let count = ProcessInfo.processInfo.environment["GATTHERD_BACKLOG"].flatMap { Int($0) } ?? 5000

    @Test func `a backlog arrives in order, new readings follow, and memory stays bounded`() async throws {
        let gateway = try await Gateway(TestPeripherals(.init("heart-rate", "strap", "rate: 20")))
        try await fill(gateway)
        let subscriber = try await Subscriber(gateway.broker, to: "gattherd/test/strap/+")
        let daemon = try gateway.startDaemon()
        try await gateway.waitUntilReady()
        try await eventually { subscriber.messages.count >= Self.count + 20 }
        let peak = try peakMemory(of: daemon)
        try await gateway.silence()
        try await gateway.waitUntilDelivered()
        daemon.signal(SIGTERM)
        #expect(await daemon.wait() == .exited(0))
        let stored = try await gateway.database.rows("SELECT DISTINCT seq FROM history ORDER BY seq").map { Int($0[0]) }
        try await eventually { subscriber.seqs.last == stored.last }
        #expect(subscriber.seqs == stored)
        #expect(peak < 128 << 10, "\(peak) KiB")
        try await gateway.stack.stop()
    }

    /// Readings of a time when there was no broker.
    private func fill(_ gateway: Gateway) async throws {
        let options = HistoryOptions(
            path: gateway.databasePath,
            consumers: [JournalConsumerOptions(name: "mqtt")],
            clock: GatewayClock(now: { Timestamp(microseconds: 0) })
        )
        let history = try await ReadingHistory.open(options, log: .silent)
        let stream = StreamDefinition(
            device: "strap",
            profile: "test",
            stream: "past",
            metrics: [MetricDescriptor(name: "number")]
        )
        for start in stride(from: 0, to: Self.count, by: 1000) {
            var batch = ReadingBatch()
            for number in start..<min(start + 1000, Self.count) {
                let time = Timestamp(microseconds: 1_795_231_205_000_000 + Int64(number))
                batch.samples.append(Sample(metric: 0, value: .integer(Int64(number))))
                let own = batch.samples.count - 1..<batch.samples.count
                batch.readings.append(Reading(stream: stream, time: time, source: .notify, samples: own))
            }
            try await history.append(batch)
        }
        try await history.close()
    }

    /// In KiB.
    private func peakMemory(of child: ChildProcess) throws -> Int {
        let status = try String(contentsOfFile: "/proc/\(child.pid)/status", encoding: .utf8)
        return try #require(status.firstMatch(of: /VmHWM:\s+([0-9]+) kB/).flatMap { Int($0.1) })
    }
}
