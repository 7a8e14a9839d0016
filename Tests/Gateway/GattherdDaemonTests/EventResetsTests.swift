import GattherdBluetooth
import GattherdGATT
import GattherdLog
import GattherdModel
import TestKit
import Testing

@testable import GattherdDaemon

/// Events that fall back a while after their last reading.
@Suite(.timeLimit(.minutes(1))) struct EventResetsTests {
    private let start = SuspendingClock.now
    private let binding: StreamBinding

    init() {
        binding = Self.binding(reset: .seconds(60))
    }

    private static func binding(reset: Duration, decoder: Int = 1) -> StreamBinding {
        let metrics = [
            MetricDescriptor(name: "octet", reset: MetricReset(after: reset, value: .integer(0))),
            MetricDescriptor(name: "motion", reset: MetricReset(after: reset, value: .boolean(false))),
            MetricDescriptor(name: "other"),
        ]
        return StreamBinding(
            stream: StreamDefinition(device: "dial", profile: "p", stream: "events", metrics: metrics),
            profile: OctetProfile("p", service: 0xAAAA, characteristic: 0xBBBB),
            characteristic: 0,
            decoder: decoder,
            source: .advert,
            meter: DeviceMeter(),
            echo: nil
        )
    }

    private func time(_ seconds: Int) -> Timestamp { Timestamp(microseconds: Int64(seconds) * 1_000_000) }

    private func record(_ resets: inout EventResets, _ seconds: Int, _ samples: (Int, SampleValue)...) {
        let samples = samples.map { Sample(metric: $0.0, value: $0.1) }
        resets.record(samples[...], of: binding, at: time(seconds), now: start + .seconds(seconds))
    }

    @Test func `an event falls back to its rest value after the holding time, once`() {
        var resets = EventResets()
        record(&resets, 0, (1, .boolean(true)), (2, .integer(5)))
        #expect(resets.next == start + .seconds(60))
        #expect(resets.removeDue(at: start + .seconds(59)).isEmpty)
        let due = resets.removeDue(at: start + .seconds(60))
        #expect(due.map(\.samples) == [[Sample(metric: 1, value: .boolean(false))]])
        #expect(due.map(\.time) == [time(60)])
        #expect(resets.next == nil)
        #expect(resets.removeDue(at: start + .seconds(600)).isEmpty)
    }

    @Test func `a further event restarts the holding time, and another value ends it`() {
        var resets = EventResets()
        record(&resets, 0, (1, .boolean(true)))
        record(&resets, 30, (1, .boolean(true)))
        #expect(resets.removeDue(at: start + .seconds(60)).isEmpty)
        #expect(resets.next == start + .seconds(90))
        record(&resets, 70, (2, .integer(1)))
        #expect(resets.next == start + .seconds(90))
        record(&resets, 80, (1, .boolean(false)))
        #expect(resets.next == nil)
        record(&resets, 80, (1, .null))
        #expect(resets.next == nil)
    }

    @Test func `a real number at the value of the fall-back is no event`() {
        var resets = EventResets()
        record(&resets, 0, (0, .real(0)))
        #expect(resets.next == nil)
        record(&resets, 0, (0, .real(0.5)))
        #expect(resets.next == start + .seconds(60))
        record(&resets, 10, (0, .real(0)))
        #expect(resets.next == nil)
    }

    @Test func `an event of a replaced subscription starts the time again`() {
        var resets = EventResets()
        record(&resets, 0, (1, .boolean(true)))
        let samples = [Sample(metric: 1, value: .boolean(true))]
        let replaced = Self.binding(reset: .seconds(60))
        resets.record(samples[...], of: replaced, at: time(30), now: start + .seconds(30))
        #expect(resets.removeDue(at: start + .seconds(60)).isEmpty)
        #expect(resets.next == start + .seconds(90))
    }

    @Test func `events of one time are one reading`() {
        var resets = EventResets()
        record(&resets, 0, (1, .boolean(true)), (0, .integer(7)))
        let due = resets.removeDue(at: start + .seconds(61))
        let samples = [Sample(metric: 0, value: .integer(0)), Sample(metric: 1, value: .boolean(false))]
        #expect(due.map(\.samples) == [samples])
    }

    @Test func `events of a decoder that has ended do not fall back`() {
        var resets = EventResets()
        record(&resets, 0, (1, .boolean(true)))
        resets.remove(decoders: [2])
        #expect(resets.next != nil)
        resets.remove(decoders: [1])
        #expect(resets.next == nil)
    }

    // MARK: - Repeated advertisements

    /// Returns the readings after these payloads, with the fall-backs of all events.
    private func readings(of payloads: [(seconds: Int, octets: [UInt8], isRepetition: Bool)]) -> [Int64] {
        var decoder = BatchDecoder()
        var batch = ReadingBatch()
        for payload in payloads {
            var entry = Intake.Buffer.Entry(
                binding: binding,
                time: time(payload.seconds),
                bytes: 0..<payload.octets.count
            )
            entry.isRepetition = payload.isRepetition
            decoder.decode([entry], of: payload.octets, into: &batch)
        }
        #expect(batch.rejects.isEmpty)
        decoder.resetEvents(at: .now.advanced(by: .seconds(3600)), into: &batch)
        return batch.readings.map { $0.time.microseconds / 1_000_000 }
    }

    @Test func `a repeated advertisement starts the time of its events again and is no reading`() {
        #expect(readings(of: [(0, [7], false)]) == [0, 60])
        #expect(readings(of: [(0, [7], false), (30, [7], true), (50, [7], true)]) == [0, 110])
    }

    @Test func `a repeated advertisement starts no event that is over, and makes no reject`() {
        #expect(readings(of: [(0, [0], false), (30, [7], true)]) == [0])
        #expect(readings(of: [(0, [7], false), (30, [], true)]) == [0, 60])
    }

    /// Returns the times at which payloads of a sensor that always sends the same are decoded.
    private func decodings(isCounted: Bool) throws -> [(seconds: Int, isRepetition: Bool)] {
        var frame = AdvertisementDescriptor(
            source: .serviceData(0xFCD2),
            stream: "motion",
            metrics: [MetricDescriptor(name: "octet", reset: MetricReset(after: .seconds(40), value: .integer(0)))]
        )
        frame.isCounted = isCounted
        var profile = OctetProfile("p", service: 0xAAAA, characteristic: 0xBBBB)
        profile.advertisements = [frame]
        let id = PeripheralID(adapter: BluetoothAddress(value: 1), address: BluetoothAddress(value: 2))
        let device = SupervisedDevice(
            name: "dial",
            address: id.address,
            profileNames: ["p"],
            listening: .init(silence: nil)
        )
        let made = Sensor(device, [profile], makeDecoderID: { 1 }, describe: { _ in })
        let sensor = try #require(made)
        var presence = SensorPresence()
        let parts = [HeardAdvertisement.Frame(.serviceData(0xFCD2), [7])]
        return stride(from: 0, through: 80, by: 5).flatMap { seconds -> [(seconds: Int, isRepetition: Bool)] in
            let heard = HeardAdvertisement(peripheral: id, name: nil, rssi: -70, frames: parts)
            let payloads = presence.record(heard, of: sensor, now: start + .seconds(seconds))
            return payloads.map { (seconds: seconds, isRepetition: $0.isRepetition) }
        }
    }

    @Test func `repetitions of an event are decoded every quarter of its time`() throws {
        let payloads = try decodings(isCounted: false)
        #expect(payloads.map(\.seconds) == [0, 10, 20, 30, 40, 50, 60, 70, 80])
        #expect(payloads.filter { !$0.isRepetition }.map(\.seconds) == [0, 60])
    }

    @Test func `repetitions of a counted event are not decoded`() throws {
        #expect(try decodings(isCounted: true).map(\.seconds) == [0, 60])
    }

    @Test func `the fall-back is stored like a value of the device`() async {
        let (intake, store) = (Intake(), FakeStore())
        let recorder = EventRecorder(now: { Timestamp(microseconds: 1) })
        let ingest = Ingest(intake: intake, store: store, commitInterval: .zero, recorder: recorder, log: .silent)
        let binding = Self.binding(reset: .milliseconds(20))
        async let ingesting: Void = ingest.run()
        intake.receive([7], for: binding, at: time(1))
        await store.wait { $0.readings.count == 2 }
        intake.finish()
        await ingesting
        #expect(await store.readings.map(\.values) == [[.integer(7)], [.integer(0)]])
        #expect(await store.readings.map(\.source) == [.advert, .advert])
        #expect(binding.meter.readings == 2)
    }
}
