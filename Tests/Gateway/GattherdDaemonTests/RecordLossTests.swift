import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import Testing

@testable import GattherdDaemon

/// Stored records that have no room in the intake.
struct RecordLossTests {
    /// A stream of records whose numbers leave out values, and an intake for four of them.
    private struct Bench {
        let intake = Intake(capacity: 4)
        let records: RecordStream
        let values: StreamBinding
        private let messages: StreamBinding
        private(set) var batch = ReadingBatch()
        private var decoder = BatchDecoder()
        private static let now = Timestamp(microseconds: 1_750_000_000_000_000)

        init(_ stream: String = "log", companion: String? = nil, losses: RecordLosses = RecordLosses()) {
            let profile = OctetProfile(stream, service: 0xAAAA, characteristic: 0xBBBB)
            let metrics = profile.characteristics[0].metrics + [.timeUncertain]
            let definition = StreamDefinition(device: "box", profile: "box", stream: stream, metrics: metrics)
            var rule = RecordRule(doubt: 1)
            (rule.number, rule.isDense, rule.companion) = (0, false, companion)
            let records = RecordStream(
                key: RecordCursor.Key(device: "box", profile: "box", stream: stream),
                address: "C0:FF:EE:00:00:01",
                rule: rule,
                end: nil,
                losses: losses
            )
            func binding(isMessage: Bool) -> StreamBinding {
                StreamBinding(
                    stream: definition,
                    profile: profile,
                    characteristic: 0,
                    decoder: 1,
                    source: .notify,
                    meter: DeviceMeter(),
                    echo: nil,
                    records: records,
                    isMessage: isMessage
                )
            }
            self.records = records
            (values, messages) = (binding(isMessage: false), binding(isMessage: true))
            decoder.records.load([])
        }

        func post(_ message: RecordStream.Message) {
            records.post(message, through: intake, messages, at: Self.now)
        }

        func receive(_ numbers: ClosedRange<UInt8>, by other: StreamBinding? = nil) {
            for number in numbers { intake.receive([number], for: other ?? values, at: Self.now) }
        }

        /// Decodes all waiting values and messages.
        mutating func decode() {
            var buffer = Intake.Buffer()
            intake.drain(into: &buffer)
            decoder.decode(buffer.entries[...], of: buffer.bytes, into: &batch)
        }

        var numbers: [SampleValue] {
            batch.readings.compactMap { reading in batch.samples[reading.samples].first { $0.metric == 0 }?.value }
        }
    }

    @Test func `records without room are stored by the next download`() {
        var bench = Bench()
        bench.post(.begin(.all, .new))
        bench.receive(1...6)
        bench.decode()
        bench.post(.drain)
        bench.decode()
        #expect(bench.records.facts.hasLosses)
        bench.post(.complete)
        bench.decode()
        #expect(bench.batch.cursors[bench.records.key]?.number == nil)
        bench.post(.begin(.all, .new))
        bench.receive(1...3)
        bench.decode()
        bench.receive(4...6)
        bench.post(.complete)
        bench.decode()
        #expect(bench.numbers == (1...6).map(SampleValue.integer))
        #expect(bench.batch.cursors[bench.records.key]?.number == 6)
        #expect(!bench.records.facts.hasLosses)
    }

    @Test func `a live record without room is stored by the next download`() {
        var bench = Bench()
        bench.post(.begin(.all, .new))
        bench.receive(1...1)
        bench.post(.complete)
        bench.decode()
        bench.receive(2...6)
        bench.decode()
        bench.receive(7...7)
        bench.decode()
        #expect(bench.batch.cursors[bench.records.key]?.number == 1)
        bench.post(.begin(.all, .new))
        bench.receive(1...3)
        bench.decode()
        bench.receive(4...7)
        bench.decode()
        bench.post(.complete)
        bench.decode()
        #expect(bench.numbers == [1, 2, 3, 4, 5, 7, 6].map(SampleValue.integer))
        #expect(bench.batch.cursors[bench.records.key]?.number == 7)
    }

    @Test func `a record without room is a loss of the stream to whose records it belongs`() {
        var main = Bench("main")
        let other = Bench("other", companion: "main", losses: main.records.losses)
        main.post(.begin(.all, .new))
        main.receive(1...3)
        main.receive(3...3, by: other.values)
        main.decode()
        main.post(.drain)
        main.decode()
        #expect(main.records.facts.hasLosses)
    }

    @Test func `a message without room is no lost record`() {
        let bench = Bench()
        bench.receive(1...4)
        bench.post(.drain)
        #expect(bench.intake.dropped.value == 1)
        #expect(bench.records.losses.count == 0)
        bench.receive(5...5)
        #expect(bench.records.losses.count == 1)
    }
}
