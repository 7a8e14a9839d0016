import GattherdGATT
import GattherdLog
import GattherdMachines
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdDaemon

/// Stored records between the decoder and the batch that is committed.
struct RecordDecoderTests {
    /// Decodes the first octet as a number and further octets as values.
    private final class ListSession: PayloadDecoder {
        func decode(_ payload: Span<UInt8>, characteristic: Int, into samples: inout [Sample]) throws(PayloadError) {
            var cursor = PayloadCursor(payload)
            samples.append(Sample(metric: 0, value: .integer(Int64(try cursor.u8()))))
            while cursor.left > 0 { samples.append(Sample(metric: 1, value: .integer(Int64(try cursor.u8())))) }
        }
    }

    private struct ListProfile: Profile {
        let name = "list"
        let title = "A number and values"
        let services: [BluetoothUUID] = [0xAAAA]
        let characteristics: [CharacteristicDescriptor]
        let controls: [ControlDescriptor] = []
        let origin = "test"

        func makeDecoder() -> any PayloadDecoder { ListSession() }
        func encode(control: Int, value: ControlValue) throws(ControlError) -> [UInt8] { [] }
    }

    /// The decoder of one stream, and the batches that it filled.
    private struct Bench {
        let records: RecordStream
        let values: StreamBinding
        let messages: StreamBinding
        var decoder = BatchDecoder()
        var batch = ReadingBatch()
        static let now = Timestamp(microseconds: 1_750_000_000_000_000)

        init(_ rule: RecordRule, stream: String = "list", end: BytePattern? = nil) {
            let metrics = [MetricDescriptor(name: "number"), MetricDescriptor(name: "value"), .timeUncertain]
            let descriptor = CharacteristicDescriptor(uuid: 0xBBBB, stream: stream, metrics: metrics)
            let definition = StreamDefinition(device: "box", profile: "list", stream: stream, metrics: metrics)
            let records = RecordStream(
                key: RecordCursor.Key(device: "box", profile: "list", stream: stream),
                address: "C0:FF:EE:00:00:01",
                rule: rule,
                end: end
            )
            func binding(isMessage: Bool) -> StreamBinding {
                StreamBinding(
                    stream: definition,
                    profile: ListProfile(characteristics: [descriptor]),
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

        mutating func receive(_ octets: [UInt8], by other: StreamBinding? = nil, at time: Timestamp = Self.now) {
            let entry = Intake.Buffer.Entry(binding: other ?? values, time: time, bytes: 0..<octets.count)
            decoder.decode([entry], of: octets, into: &batch)
        }

        mutating func post(_ message: RecordStream.Message) {
            let intake = Intake()
            records.post(message, through: intake, messages, at: Self.now)
            receive([], by: messages)
        }

        var numbers: [SampleValue] {
            batch.readings.compactMap { reading in batch.samples[reading.samples].first { $0.metric == 0 }?.value }
        }
    }

    private static func rule(_ change: (inout RecordRule) -> Void = { _ in }) -> RecordRule {
        var rule = RecordRule(doubt: 2)
        rule.number = 0
        change(&rule)
        return rule
    }

    @Test func `a record is one reading however often it comes`() {
        var bench = Bench(Self.rule())
        bench.receive([7, 1])
        bench.post(.begin(.all, .new))
        for number: UInt8 in [6, 7, 8] { bench.receive([number, 1]) }
        bench.post(.complete)
        bench.receive([8, 1])
        #expect(bench.numbers == [.integer(7), .integer(6), .integer(8)])
        #expect(bench.batch.cursors[bench.records.key]?.number == 8)
    }

    @Test func `a payload with several records gives several readings`() {
        var bench = Bench(Self.rule { $0.repeated = [1] })
        bench.post(.begin(.all, .new))
        bench.receive([7, 10, 11, 12])
        bench.receive([8, 11, 12, 13])
        #expect(bench.numbers == [.integer(7), .integer(8), .integer(9), .integer(10)])
        let values = bench.batch.samples.filter { $0.metric == 1 }.map(\.value)
        #expect(values == [.integer(10), .integer(11), .integer(12), .integer(13)])
    }

    @Test func `a numbered record that comes again in another block is stored once`() {
        var bench = Bench(Self.rule { $0.repeated = [1] })
        bench.post(.begin(.all, .new))
        bench.receive([7, 10, 11, 12])
        bench.post(.complete)
        bench.post(.begin(.from(9), .new))
        bench.receive([9, 12, 13])
        #expect(bench.numbers == [.integer(7), .integer(8), .integer(9), .integer(10)])
        #expect(bench.decoder.records.removeFindings().isEmpty)
    }

    @Test func `a changed record rule applies from the next record on`() {
        var bench = Bench(Self.rule())
        bench.post(.begin(.all, .new))
        for number: UInt8 in [1, 2] { bench.receive([number, 1]) }
        bench.post(.complete)
        var changed = Bench(Self.rule { $0.isDense = false })
        (changed.decoder, changed.batch) = (bench.decoder, bench.batch)
        changed.post(.begin(.from(2), .new))
        for number: UInt8 in [2, 9] { changed.receive([number, 1]) }
        changed.post(.complete)
        #expect(changed.numbers == [.integer(1), .integer(2), .integer(9)])
        #expect(changed.decoder.records.removeFindings().isEmpty)
    }

    @Test(arguments: [false, true])
    func `a step of the gateway's clock moves the newest record, and values from before it`(isLate: Bool) {
        let step = Locked<Duration>(.zero)
        let now: @Sendable () -> Timestamp = { Bench.now.advanced(by: step.withLock { $0 }) }
        var bench = Bench(Self.rule { ($0.number, $0.time) = (nil, .age(.init(metric: 1, unit: .seconds(1)))) })
        bench.decoder = BatchDecoder(clock: RecordClock(boot: "a", now: now, uptime: { .seconds(100) }))
        bench.decoder.records.load([])
        bench.post(.begin(.all, .new))
        bench.receive([0, 60])
        bench.post(.complete)
        step.withLock { $0 = .seconds(7200) }
        bench.post(.begin(.all, .new))
        bench.receive([0, 60], at: isLate ? Bench.now.advanced(by: .seconds(-1)) : now())
        #expect(bench.batch.readings.count == 1)
    }

    @Test func `a message without room in the intake is not executed in the place of another one`() {
        var bench = Bench(Self.rule())
        #expect(!bench.records.post(.complete, through: Intake(capacity: 0), bench.messages, at: Bench.now))
        #expect(bench.records.removeMessage().map { _ in true } == nil)
        bench.post(.close)
        #expect(bench.records.removeMessage().map { _ in true } == nil)
    }

    @Test func `the value that marks the end of the records is not a record`() {
        var bench = Bench(Self.rule(), end: BytePattern("FF FF"))
        bench.receive([255, 255])
        #expect(bench.batch.isEmpty)
        bench.receive([255, 1])
        #expect(bench.numbers == [.integer(255)])
    }

    @Test func `a cursor continues after a restart, for the same address only`() throws {
        var bench = Bench(Self.rule())
        bench.post(.begin(.all, .new))
        for number: UInt8 in 1...5 { bench.receive([number, 1]) }
        let cursor = try #require(bench.batch.cursors[bench.records.key])
        for (address, count) in [(cursor.address, 1), ("C0:FF:EE:00:00:02", 6)] {
            var next = Bench(Self.rule())
            var stored = cursor
            stored.address = address
            next.decoder.records.load([stored])
            next.post(.begin(.from(4), .new))
            for number: UInt8 in 1...6 { next.receive([number, 1]) }
            #expect(next.numbers.count == count)
        }
    }

    @Test func `a companion record has the time of its record and is stored once`() {
        var main = Bench(Self.rule { $0.time = .clock(.init(metric: 1, unit: .seconds(1))) }, stream: "main")
        let other = Bench(Self.rule { $0.companion = "main" }, stream: "other")
        main.post(.begin(.all, .new))
        main.receive([3, 9])
        main.receive([3, 1], by: other.values)
        main.receive([3, 9])
        main.receive([3, 1], by: other.values)
        #expect(main.numbers == [.integer(3), .integer(3)])
        #expect(main.batch.readings.map(\.time.microseconds) == [9_000_000, 9_000_000])
    }

    @Test func `a companion of a live record before the first download is stored once, and a late one has its time`() {
        let rule = Self.rule { ($0.time, $0.wrapBits) = (.clock(.init(metric: 1, unit: .seconds(1))), 8) }
        var main = Bench(rule, stream: "main")
        let other = Bench(Self.rule { $0.companion = "main" }, stream: "other")
        main.receive([5, 9])
        main.receive([5, 1], by: other.values)
        main.receive([6, 10])
        main.post(.begin(.all, .new))
        for number: UInt8 in [4, 5, 6] {
            main.receive([number, number + 4])
            main.receive([number, 1], by: other.values)
        }
        #expect(main.numbers == [5, 5, 6, 4, 4, 6].map(SampleValue.integer))
        #expect(main.batch.readings.last?.time == Timestamp(microseconds: 10_000_000))
    }

    @Test func `a companion of a known record with an age has the time of that record`() {
        var main = Bench(Self.rule { $0.time = .age(.init(metric: 1, unit: .seconds(1))) }, stream: "main")
        let other = Bench(Self.rule { $0.companion = "main" }, stream: "other")
        main.receive([3, 200])
        main.receive([4, 100])
        main.receive([3, 200])
        main.receive([3, 1], by: other.values)
        #expect(main.numbers == [3, 4, 3].map(SampleValue.integer))
        #expect(main.batch.readings.last?.time == Bench.now.advanced(by: .seconds(-200)))
    }

    @Test(arguments: [(nil, 9_000_000), (.integer(60), 69_000_000), (.null, nil)] as [(SampleValue?, Int64?)])
    func `a record without an offset has its time, and one with an unknown offset has none`(
        offset: SampleValue?,
        reading: Int64?
    ) {
        let rule = Self.rule {
            ($0.time, $0.offset) = (.clock(.init(metric: 1, unit: .seconds(1))), .init(metric: 2, unit: .seconds(1)))
        }
        var samples = [Sample(metric: 0, value: .integer(1)), Sample(metric: 1, value: .integer(9))]
        if let offset { samples.append(Sample(metric: 2, value: offset)) }
        let octets: [UInt8] = [1]
        #expect(RecordPayload(samples, rule, octets.span, at: Bench.now).record(0).reading == reading)
    }

    @Test func `without the stored cursors nothing is left out and nothing moves`() {
        var bench = Bench(Self.rule())
        bench.decoder = BatchDecoder()
        bench.post(.begin(.all, .new))
        bench.receive([7, 1])
        bench.receive([7, 1])
        #expect(bench.numbers.count == 2)
        #expect(bench.batch.cursors.isEmpty)
        #expect(!bench.records.facts.isLoaded)
    }

    // MARK: - Batches that are not stored

    private static func ingest(_ intake: Intake, _ store: FakeStore) -> Ingest {
        let recorder = EventRecorder(now: { Bench.now })
        return Ingest(intake: intake, store: store, commitInterval: .zero, recorder: recorder, log: .silent)
    }

    @Test(.timeLimit(.minutes(1)))
    func `a download that history does not store is given up, and continues later from the stored position`() async {
        let (bench, intake, store) = (Bench(Self.rule()), Intake(), FakeStore())
        let (records, messages, values, key) = (bench.records, bench.messages, bench.values, bench.records.key)
        let ingest = Self.ingest(intake, store)
        func post(_ message: RecordStream.Message) {
            records.post(message, through: intake, messages, at: Bench.now)
        }
        func receive(_ number: UInt8) { intake.receive([number], for: values, at: Bench.now) }
        async let ingesting: Void = ingest.run()
        for message in [.open, .begin(.all, .new)] as [RecordStream.Message] { post(message) }
        receive(1)
        post(.complete)
        await store.wait { $0.cursors[key]?.number == 1 }
        await store.setFull(true)
        post(.begin(.from(1), .new))
        receive(2)
        await store.wait { $0.unstored > 0 }
        await store.setFull(false)
        let commits = await store.commits
        receive(3)
        post(.complete)
        post(.open)
        await store.wait { $0.commits > commits }
        for message in [.open, .begin(.from(1), .new)] as [RecordStream.Message] { post(message) }
        for number: UInt8 in 1...3 { receive(number) }
        post(.complete)
        await store.wait { $0.cursors[key]?.number == 3 }
        intake.finish()
        await ingesting
        #expect(await store.readings.compactMap(\.values.first) == [1, 2, 3].map(SampleValue.integer))
    }

    @Test func `no request begins while history stores nothing`() {
        var bench = Bench(Self.rule())
        bench.decoder.records.suspend()
        bench.post(.open)
        bench.post(.begin(.all, .new))
        bench.receive([1, 1])
        #expect(bench.numbers.isEmpty)
        #expect(!bench.records.facts.isLoaded)
        bench.decoder.records.resume()
        bench.post(.open)
        bench.post(.begin(.all, .new))
        bench.receive([1, 1])
        #expect(bench.numbers == [.integer(1)])
    }

    @Test func `a download does not count the records of the one before, which was given up`() {
        var bench = Bench(Self.rule())
        let start = RecordStatus(state: .downloading, since: Bench.now)
        bench.records.setStatus(start)
        for message in [.open, .begin(.all, .new)] as [RecordStream.Message] { bench.post(message) }
        bench.receive([1, 1])
        #expect(bench.records.status?.stored == 1)
        bench.decoder.records.suspend()
        bench.post(.end)
        #expect(!bench.records.facts.isLoaded)
        bench.decoder.records.resume()
        bench.records.setStatus(start)
        bench.post(.open)
        #expect(bench.records.status?.stored == 0)
    }

    @Test func `live records after the end of a download that was given up do not move the position`() {
        var bench = Bench(Self.rule { $0.isDense = false })
        bench.post(.begin(.all, .new))
        bench.receive([1, 1])
        bench.decoder.records.suspend()
        bench.receive([2, 1])
        bench.post(.complete)
        bench.decoder.records.resume()
        for number: UInt8 in [3, 4] { bench.receive([number, 1]) }
        bench.post(.open)
        #expect(bench.records.facts.resumption == nil)
        bench.post(.begin(.all, .new))
        for number: UInt8 in 1...4 { bench.receive([number, 1]) }
        #expect(bench.numbers == [1, 3, 4, 2].map(SampleValue.integer))
    }

    @Test func `live records are delivered while history stores nothing, and stored when they come again`() {
        var bench = Bench(Self.rule())
        bench.receive([5, 1])
        bench.decoder.records.suspend()
        bench.decoder.records.revert([bench.records.key], to: [])
        bench.receive([6, 1])
        bench.decoder.records.revert([bench.records.key], to: [])
        #expect(bench.numbers == [.integer(5), .integer(6)])
        bench.decoder.records.resume()
        bench.post(.open)
        bench.post(.begin(.all, .new))
        for number: UInt8 in [5, 6] { bench.receive([number, 1]) }
        #expect(bench.numbers == [5, 6, 5, 6].map(SampleValue.integer))
    }

    @Test(.timeLimit(.minutes(1)))
    func `no cursor covers the records of a batch that was lost at the end`() async {
        let (bench, intake, store) = (Bench(Self.rule()), Intake(), FakeStore())
        await store.failNext(1)
        bench.records.post(.begin(.all, .new), through: intake, bench.messages, at: Bench.now)
        // The second batch begins after 2048 values.
        for _ in 0..<2048 { intake.receive([1], for: bench.values, at: Bench.now) }
        intake.receive([2], for: bench.values, at: Bench.now)
        bench.records.post(.complete, through: intake, bench.messages, at: Bench.now)
        intake.finish()
        let ingest = Self.ingest(intake, store)
        let run = Task { await ingest.run() }
        // Ends the retries.
        run.cancel()
        await run.value
        #expect(await store.cursors.isEmpty)
        #expect(await store.readings.isEmpty)
    }
}

/// Readings of the clocks of devices with stored records.
struct DeviceClockReadingTests {
    /// 2026-03-14 15:09:26.
    private static let date: [UInt8] = [0xEA, 0x07, 3, 14, 15, 9, 26]

    @Test(arguments: [([], 0), ([6, 0x80, 1], 500_000)] as [([UInt8], Int64)])
    func `the fraction of the Current Time counts`(rest: [UInt8], fraction: Int64) throws {
        let clock = DownloadDescriptor.Clock(characteristic: 0x2A2B)
        let time = try #require(Timestamp(rfc3339: "2026-03-14T15:09:26Z".utf8))
        #expect(clock.reading(of: Self.date + rest, at: 0) == time.microseconds + fraction)
    }

    @Test(arguments: [([], 0), ([0x80, 0xFF], 0), ([4, 4], 2), ([4, 4, 0x12, 0x34], 2)] as [([UInt8], Int64)])
    func `a start has a zone, also with a checksum after it`(rest: [UInt8], hours: Int64) throws {
        let clock = DownloadDescriptor.Clock(characteristic: 0x2AAA, isStart: true)
        let time = try #require(Timestamp(rfc3339: "2026-03-14T15:09:26Z".utf8))
        #expect(clock.reading(of: Self.date + rest, at: time.microseconds) == hours * 3_600_000_000)
    }
}
