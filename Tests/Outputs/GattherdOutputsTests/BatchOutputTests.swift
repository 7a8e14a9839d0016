import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdOutputs
import GattherdSync
import Testing

@Suite(.timeLimit(.minutes(1))) struct BatchOutputTests {
    /// An output with its journal, its sink and its records.
    struct Fixture {
        let journal = FakeJournal()
        let sink: ScriptedSink
        let output: BatchOutput
        private let records: Locked<[String]>
        private let lines: Locked<[LogEntry]>

        init(_ script: [ScriptedSink.Answer] = [], _ change: (inout BatchOptions) -> Void = { _ in }) {
            var options = BatchOptions()
            options.interval = .zero
            (options.backoff, options.misconfiguredBackoff) = (Self.pause, Self.pause)
            (options.journalPause, options.saveInterval) = (.milliseconds(1), .milliseconds(1))
            change(&options)
            let (records, lines) = (Locked<[String]>([]), Locked<[LogEntry]>([]))
            (sink, self.records, self.lines) = (ScriptedSink(script), records, lines)
            let context = OutputContext(
                name: "test",
                kind: "test",
                gateway: "g",
                journal: journal,
                log: Log(threshold: .debug) { entry in lines.withLock { $0.append(entry) } },
                record: { members in
                    let words = members.compactMap { $0.value.map { "\($0)" } }.joined(separator: " ")
                    records.withLock { $0.append(words) }
                },
                readSecret: { (path, _) throws(OutputError) in throw OutputError(path) }
            )
            output = BatchOutput(context, target: "receiver", sink: sink, options: options)
        }

        private static let pause = Backoff(minimum: .milliseconds(1), maximum: .milliseconds(2))

        var events: [String] { records.withLock { $0 } }
        /// The events about skipped entries.
        var skips: [String] { events.filter { $0.contains("skipped") } }
        var log: [String] { lines.withLock { $0.map(\.message) } }

        /// Runs the output while `body` runs, and stops it.
        func run(_ body: @Sendable (Fixture) async throws -> Void) async throws {
            async let running: Void = output.run()
            try await body(self)
            await output.stop(within: .seconds(5))
            await running
            #expect(output.status.state == .stopped)
        }
    }

    @Test func `entries from memory and from the file arrive in order`() async throws {
        let fixture = Fixture()
        try await fixture.run { fixture in
            for _ in 1...20 {
                fixture.journal.commit(500)
                await fixture.journal.waitForCursor(fixture.sink.calls.last?.last ?? 1)
            }
            await fixture.journal.waitForCursor(10_000)
        }
        #expect(fixture.sink.calls.flatMap(\.self) == Array(1...10_000))
        #expect(fixture.sink.maximumRunning == 1 && fixture.sink.isClosed)
        #expect(fixture.output.status.delivered == 10_000 && fixture.output.status.cursor == 10_000)
    }

    @Test func `joined gaps are reported at the end, although no other gap follows`() async throws {
        let fixture = Fixture()
        try await fixture.run { fixture in
            for number in 0..<22 as Range<Int64> {
                fixture.journal.delete(through: 2 * number + 1)
                fixture.journal.commit([.text(seq: 2 * number + 2)])
                await fixture.journal.waitForCursor(2 * number + 2)
            }
        }
        let gaps = fixture.events.filter { $0.contains("gap") }
        #expect(gaps.count == 21 && gaps.last?.contains("43") == true)
    }

    @Test func `a failure and a recovery are one event and one line each`() async throws {
        let down = ScriptedSink.Answer.fail(OutputFault(.unavailable, "no route"))
        let fixture = Fixture([.accept, down, down, down, down])
        try await fixture.run { fixture in
            fixture.journal.commit(1)
            await fixture.journal.waitForCursor(1)
            fixture.journal.commit(1)
            await fixture.journal.waitForCursor(2)
        }
        #expect(fixture.sink.calls == [[1], [2], [2], [2], [2], [2]])
        #expect(fixture.output.status.errors == 4)
        #expect(fixture.events.count == 3)
        #expect(fixture.events[1].contains("unavailable") && fixture.events[1].contains("no route"))
        #expect(fixture.events[2].contains("connected"))
        let line = "an output accepts no entries, which wait"
        #expect(fixture.log == ["output connected", line, "output connected"])
    }

    @Test func `the status of a failing output has the problem, the backlog and the next attempt`() async throws {
        let fixture = Fixture([.fail(OutputFault(.misconfigured, "set the token", retryAfter: .seconds(3600)))])
        fixture.journal.commit(3)
        async let running: Void = fixture.output.run()
        while fixture.output.status.problem == nil { await Task.yield() }
        let status = fixture.output.status
        #expect(status.state == .waiting && status.target == "receiver")
        #expect(status.problem == "set the token" && status.backlog == 3)
        #expect(status.errors > 0)
        #expect(status.waitingSince == Timestamp(microseconds: 1_000_000))
        #expect(status.nextTry.map { $0 > Timestamp(microseconds: 1_700_000_000_000_000) } == true)
        await fixture.output.stop(within: .seconds(5))
        await running
        #expect(fixture.journal.cursor.state == 0)
    }

    @Test func `an old record waits since its arrival`() async throws {
        let fault = OutputFault(.misconfigured, "set the token", retryAfter: .seconds(3600))
        let fixture = Fixture([.accept, .fail(fault)])
        fixture.journal.commit(1)
        async let running: Void = fixture.output.run()
        await fixture.journal.waitForCursor(1)
        fixture.journal.commit(1)
        while fixture.output.status.problem == nil { await Task.yield() }
        let since = fixture.output.status.waitingSince
        #expect(since.map { $0 > Timestamp(microseconds: 1_700_000_000_000_000) } == true)
        await fixture.output.stop(within: .seconds(5))
        await running
    }

    @Test func `entries whose times are corrected while they wait are written with the right times`() async throws {
        let fixture = Fixture()
        let journal = fixture.journal
        fixture.sink.setScript([.failAfter({ journal.correctTimes(by: 3600) }, OutputFault(.unavailable, "down"))])
        try await fixture.run { fixture in
            fixture.journal.commit(3)
            await fixture.journal.waitForCursor(3)
        }
        #expect(fixture.sink.calls.dropFirst().flatMap(\.self) == [1, 2, 3])
        let times = fixture.sink.times.dropFirst().flatMap(\.self)
        #expect(times == [3601, 3602, 3603].map { Timestamp(microseconds: $0 * 1_000_000) })
    }

    @Test func `a failing journal is asked again`() async throws {
        let fixture = Fixture()
        fixture.journal.fail(5)
        try await fixture.run { fixture in
            fixture.journal.commit(3)
            await fixture.journal.waitForCursor(3)
        }
        #expect(fixture.sink.calls.flatMap(\.self) == [1, 2, 3])
        #expect(fixture.log.filter { $0 == "the journal cannot be read or saved; retrying" }.count == 1)
    }

    @Test func `a sink that hangs is cancelled and counts as unavailable`() async throws {
        let fixture = Fixture([.hang]) { $0.writeTimeout = .milliseconds(10) }
        try await fixture.run { fixture in
            fixture.journal.commit(3)
            await fixture.journal.waitForCursor(3)
        }
        // The next batches grow only while the system is fast.
        #expect(fixture.sink.calls.prefix(2) == [[1, 2, 3], [1]])
        #expect(fixture.sink.calls.flatMap(\.self) == [1, 2, 3, 1, 2, 3])
        #expect(fixture.sink.maximumRunning == 1)
        #expect(fixture.events.first?.contains("unavailable") == true)
    }

    @Test func `a sink that ignores its cancellation delays neither the round trip nor the end`() async throws {
        let fixture = Fixture([.hangForEver]) { options in
            (options.writeTimeout, options.stopLimit) = (.milliseconds(10), .milliseconds(10))
        }
        try await fixture.run { fixture in
            fixture.journal.commit(3)
            while fixture.output.status.problem == nil { await Task.yield() }
            await fixture.output.roundTrip()
        }
        #expect(fixture.sink.calls == [[1, 2, 3]] && fixture.journal.cursor.state == 0)
    }

    @Test func `a stop delivers the last entries before it closes the sink`() async throws {
        let fixture = Fixture { $0.interval = .seconds(3600) }
        try await fixture.run { fixture in
            fixture.journal.commit(3)
            while fixture.output.status.cursor == nil { await Task.yield() }
        }
        #expect(fixture.sink.calls == [[1, 2, 3]] && fixture.sink.isClosed)
        #expect(fixture.journal.cursor.state == 3)
    }

    @Test func `a cancelled task ends the output, and its sink is closed`() async throws {
        let fixture = Fixture([.hang])
        fixture.journal.commit(1)
        let task = Task { await fixture.output.run() }
        await fixture.sink.waitForCalls(1)
        task.cancel()
        await task.value
        #expect(fixture.sink.isClosed && fixture.output.status.state == .stopped)
    }

    @Test func `skipped entries are recorded once a minute and at the end, with number and device`() async throws {
        let refusal = ScriptedSink.Answer.fail(OutputFault(.refused, "not a number"))
        let fixture = Fixture([refusal, refusal, refusal]) { $0.entries = 1 }
        try await fixture.run { fixture in
            fixture.journal.commit(4)
            await fixture.journal.waitForCursor(4)
            #expect(fixture.skips.count == 1)
        }
        #expect(fixture.output.status.skipped == 3 && fixture.output.status.delivered == 1)
        #expect(fixture.skips.map { $0.contains("\(SampleValue.integer(1))") } == [true, false])
        #expect(fixture.skips.last?.contains("\(SampleValue.integer(2))") == true)
        #expect(fixture.skips.allSatisfy { $0.contains("strap") && $0.contains("not a number") })
    }

    @Test func `a refused event about outputs causes no further event`() async throws {
        let event = LifecycleEvent(time: Timestamp(microseconds: 1), kind: "output", ["state": .text("skipped")])
        let fixture = Fixture([.fail(OutputFault(.refused, "no"))])
        try await fixture.run { fixture in
            fixture.journal.commit([.event(event, seq: 1)])
            await fixture.journal.waitForCursor(1)
        }
        #expect(fixture.skips.isEmpty)
        #expect(fixture.output.status.skipped == 1)
    }

    @Test func `a refused event about outputs does not hide refused readings`() async throws {
        let event = LifecycleEvent(time: Timestamp(microseconds: 1), kind: "output", ["state": .text("skipped")])
        let refusal = ScriptedSink.Answer.fail(OutputFault(.refused, "no"))
        let fixture = Fixture([refusal, refusal, refusal]) { $0.entries = 1 }
        try await fixture.run { fixture in
            fixture.journal.commit([.text(seq: 1), .text(seq: 2), .event(event, seq: 3)])
            await fixture.journal.waitForCursor(3)
        }
        #expect(fixture.skips.count == 2)
    }
}
