import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdOutputs
import GattherdSync
import Testing

/// ``BatchOutput`` with a receiver that keeps the cursor itself.
@Suite(.timeLimit(.minutes(1))) struct CursorKeepingOutputTests {
    /// A receiver with transactions, which fails by a script and can be restored.
    final class Receiver: CursorKeepingSink {
        struct Content: Hashable, Sendable {
            var cursor: Int64 = 0
            var rows: [Int64] = []
            var gaps: [JournalGap] = []
            var epochs: Set<JournalEpoch> = []
            /// The epoch of the last question for the cursor.
            var epoch: JournalEpoch?
            /// The rows written since that question.
            var rowsOfEpoch: [Int64] = []
            /// The outcomes of the next calls; true commits and loses the answer, false fails.
            var script: [Bool] = []
        }

        private static let fault = OutputFault(.unavailable, "connection reset")
        let content = LatestValue(Content())

        func cursor(in epoch: JournalEpoch) async throws(OutputFault) -> Int64 {
            content.update { content in
                content.epochs.insert(epoch)
                if content.epoch != epoch { (content.epoch, content.rowsOfEpoch) = (epoch, []) }
            }
            return content.state.cursor
        }

        func write(_ entries: [JournalEntry], after: Int64, through: Int64) async throws(OutputFault) {
            let outcome = nextOutcome()
            guard outcome != false, content.state.cursor == after else { throw Self.fault }
            content.update { content in
                (content.cursor, content.rows) = (through, content.rows + entries.map(\.seq))
                content.rowsOfEpoch += entries.map(\.seq)
            }
            if outcome == true { throw Self.fault }
        }

        func record(_ gap: JournalGap) async throws(OutputFault) {
            content.update { content in
                (content.cursor, content.gaps) = (gap.through, content.gaps + [gap])
            }
        }

        private func nextOutcome() -> Bool? {
            guard let first = content.state.script.first else { return nil }
            content.update { $0.script.removeFirst() }
            return first
        }

        func close() async {}

        func waitForCursor(_ seq: Int64) async {
            for await content in content.watch() where content.cursor >= seq { return }
        }
    }

    private let journal = FakeJournal()
    private let receiver = Receiver()

    private func run(_ body: @Sendable () async throws -> Void) async throws -> [String] {
        var options = BatchOptions()
        (options.interval, options.entries) = (.zero, 10)
        options.backoff = Backoff(minimum: .milliseconds(1), maximum: .milliseconds(2))
        (options.journalPause, options.saveInterval) = (.milliseconds(1), .milliseconds(1))
        let events = Locked<[String]>([])
        let context = OutputContext(
            name: "test",
            kind: "test",
            gateway: "g",
            journal: journal,
            log: .silent,
            record: { members in
                let words = members.compactMap { $0.value.map { "\($0)" } }.joined(separator: " ")
                events.withLock { $0.append(words) }
            },
            readSecret: { (path, _) throws(OutputError) in throw OutputError(path) }
        )
        let output = BatchOutput(context, target: "receiver", sink: receiver, options: options)
        async let running: Void = output.run()
        try await body()
        await output.stop(within: .seconds(5))
        await running
        return events.withLock { $0 }
    }

    @Test func `failed transactions and lost answers change nothing about exactly once`() async throws {
        receiver.content.update { $0.script = [true, false, true, true, false] }
        journal.fail(3)
        _ = try await run {
            for _ in 0..<10 {
                journal.commit(17)
                await receiver.waitForCursor(1)
            }
            await receiver.waitForCursor(170)
            await journal.waitForCursor(170)
        }
        #expect(receiver.content.state.rows == Array(1...170))
        #expect(receiver.content.state.epochs.count == 1)
    }

    @Test func `a restored receiver gets what it lost, and a gap for what is deleted`() async throws {
        let events = try await run {
            journal.commit(50)
            await journal.waitForCursor(50)
            journal.delete(through: 30)
            receiver.content.update { content in
                (content.cursor, content.rows, content.script) = (20, Array(1...20), [false])
            }
            journal.commit(1)
            await receiver.waitForCursor(51)
            await journal.waitForCursor(51)
        }
        #expect(receiver.content.state.rows == Array(1...20) + Array(31...51))
        #expect(receiver.content.state.gaps == [JournalGap(after: 20, through: 30, reason: "deleted")])
        #expect(events.contains { $0.contains("gap") })
    }

    @Test func `nothing of a file that was replaced is written before the receiver knows its epoch`() async throws {
        let digits = (old: String(repeating: "0", count: 32), new: String(repeating: "1", count: 32))
        let epoch = JournalEpoch(digits.new, earlier: [digits.old], after: 20)
        _ = try await run {
            journal.commit(20)
            await journal.waitForCursor(20)
            journal.startEpoch(epoch)
            journal.commit(10)
            await journal.waitForCursor(30)
        }
        #expect(receiver.content.state.rows == Array(1...30))
        #expect(receiver.content.state.epoch == epoch && receiver.content.state.rowsOfEpoch == Array(21...30))
    }
}
