import GattherdGATT
import GattherdLog
import GattherdModel
import GattherdSync
import Synchronization
import TestKit
import Testing

@testable import GattherdDaemon

/// The buffer of values that wait for decoding.
struct IntakeTests {
    @Test func `a buffer keeps its usual capacity and frees the rest after a stall`() {
        var buffer = Intake.Buffer()
        buffer.bytes = Array(repeating: 0, count: 10_000)
        buffer.removeAll()
        #expect(buffer.bytes.capacity >= 10_000)
        buffer.bytes = Array(repeating: 0, count: 1 << 20)
        buffer.removeAll()
        #expect(buffer.bytes.capacity < 1 << 20)
    }
}

/// Reports of payloads that do not decode.
struct UndecodableTests {
    private let intake = Intake()
    private let meter = DeviceMeter()
    private var decoder = BatchDecoder()
    private let bindings: [StreamBinding]

    init() {
        let meter = meter
        bindings = ["one", "two"].enumerated().map { decoder, name in
            let profile = OctetProfile(name, service: 0xAAAA, characteristic: 0xBBBB)
            let metrics = profile.characteristics[0].metrics
            return StreamBinding(
                stream: StreamDefinition(device: "dial", profile: name, stream: name, metrics: metrics),
                profile: profile,
                characteristic: 0,
                decoder: decoder,
                source: .notify,
                meter: meter,
                echo: nil
            )
        }
    }

    /// Returns the reported rejects after these payloads, at the given seconds.
    private mutating func reports(_ payloads: [(seconds: Int64, octets: [UInt8])], stream: Int = 0) -> [String] {
        for (seconds, octets) in payloads {
            intake.receive(octets, for: bindings[stream], at: Timestamp(microseconds: seconds * 1_000_000))
        }
        var buffer = Intake.Buffer()
        var batch = ReadingBatch()
        intake.drain(into: &buffer)
        decoder.decode(buffer.entries[...], of: buffer.bytes, into: &batch)
        return decoder.removeUndecodable().map(\.reason)
    }

    @Test func `waiting values are bounded in bytes, and further ones are counted`() {
        let intake = Intake(capacity: 100, capacityInBytes: 1000)
        for _ in 0..<3 {
            intake.receive([UInt8](repeating: 1, count: 400), for: bindings[0], at: Timestamp(microseconds: 0))
        }
        #expect(intake.count == 2)
        #expect(intake.dropped.value == 1)
        intake.receive([UInt8](repeating: 1, count: 200), for: bindings[0], at: Timestamp(microseconds: 0))
        #expect(intake.count == 3)
    }

    @Test func `values without room count as received for the silence watch`() {
        let intake = Intake(capacity: 2)
        for _ in 0..<5 { intake.receive([7], for: bindings[0], at: Timestamp(microseconds: 0)) }
        #expect(intake.dropped.value == 3)
        #expect(bindings[0].values.load(ordering: .relaxed) == 5)
    }

    private static let reason = "truncated: a field at offset 0 needs 1 byte, 0 left"

    @Test mutating func `an undecodable stream is reported once, and a single reject is not`() {
        #expect(reports([(1, []), (2, []), (3, [7]), (4, []), (5, [])]) == [])
        #expect(meter.undecodable.isEmpty)
        #expect(reports([(6, []), (7, []), (8, [])]) == [Self.reason])
        #expect(reports((9...1000).map { ($0, []) }) == [])
        #expect(meter.undecodable.map(\.stream) == ["one"] && meter.undecodable.map(\.reason) == [Self.reason])
        #expect(meter.rejects == 999)
    }

    @Test mutating func `a reading ends the report, and an unstable stream is reported once an hour`() {
        let all: [(Int64, [UInt8])] = [(1, []), (2, []), (3, []), (4, [7])]
        #expect(reports(all) == [Self.reason])
        #expect(meter.undecodable.isEmpty)
        #expect(reports(all.map { ($0.0 + 60, $0.1) }) == [])
        #expect(reports(all.map { ($0.0 + 3700, $0.1) }) == [Self.reason])
    }

    @Test mutating func `each stream is counted separately`() {
        #expect(reports([(1, []), (2, [])], stream: 0) == [])
        #expect(reports([(3, [7])], stream: 1) == [])
        #expect(reports([(4, [])], stream: 0) == [Self.reason])
        #expect(reports([(5, []), (6, []), (7, [])], stream: 1) == [Self.reason])
        #expect(meter.undecodable.map(\.stream) == ["one", "two"])
    }
}

/// Messages over several notifications while the gateway's clock is set.
struct MessagePauseTests {
    @Test(arguments: [7200, -7200])
    func `a step of the gateway's clock cuts no message`(seconds: Int) {
        var profile = OctetProfile("one", service: 0xAAAA, characteristic: 0xBBBB)
        profile.characteristics[0].messages = MessageRule(extent: .fixed(2))
        let binding = StreamBinding(
            stream: StreamDefinition(
                device: "dial",
                profile: "one",
                stream: "one",
                metrics: profile.characteristics[0].metrics
            ),
            profile: profile,
            characteristic: 0,
            decoder: 1,
            source: .notify,
            meter: DeviceMeter(),
            echo: nil
        )
        let clock = Locked(Timestamp(microseconds: 1_750_000_000_000_000))
        let now: @Sendable () -> Timestamp = { clock.withLock { $0 } }
        var decoder = BatchDecoder(clock: RecordClock(boot: "a", now: now, uptime: { .seconds(100) }))
        var batch = ReadingBatch()
        for octet: UInt8 in [7, 8] {
            let entry = Intake.Buffer.Entry(binding: binding, time: now(), bytes: 0..<1)
            decoder.decode([entry], of: [octet], into: &batch)
            clock.withLock { $0 = $0.advanced(by: .seconds(seconds)) }
        }
        #expect(batch.readings.count == 1)
        #expect(batch.rejects.isEmpty)
    }
}
