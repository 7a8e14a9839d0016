import GattherdMachines
import Testing

@testable import GattherdMQTT

/// The rules of an MQTT session, without a connection.
@Suite(.timeLimit(.minutes(1)))
struct MQTTSessionTests {
    private static func session(
        _ version: MQTTVersion = .v5,
        properties: [UInt8] = []
    ) throws -> MQTTSession {
        var session = try MQTTSession(MQTTOptions(version, clientID: "c"))
        session.didSend(session.outbound.unsent.count)
        var events: [MQTTEvent] = []
        let rest = version == .v5 ? [UInt8(properties.count)] + properties : []
        try session.receive(([0x20, UInt8(2 + rest.count), 0, 0] + rest)[...], &events)
        #expect(session.isConnected)
        return session
    }

    private static func message(_ payload: [UInt8] = []) -> PublishPacket {
        PublishPacket(topic: "a", payload: payload[...], isRetained: false, properties: .init(isJSON: false))
    }

    private func receive(_ session: inout MQTTSession, _ octets: [UInt8]) throws(MQTTViolation) -> [MQTTEvent] {
        var events: [MQTTEvent] = []
        try session.receive(octets[...], &events)
        return events
    }

    @Test(
        arguments: [[0x40, 2, 0, 1], [0xD0, 0], [0x30, 4, 0, 1, 0x61, 0], [0x90, 4, 0, 1, 0, 0], [0xE0, 0]] as [[UInt8]]
    )
    func `a packet before CONNACK is a violation`(octets: [UInt8]) throws {
        var session = try MQTTSession(MQTTOptions(.v5, clientID: "c"))
        #expect(throws: MQTTViolation.protocolError("a packet before CONNACK")) {
            _ = try receive(&session, octets)
        }
    }

    @Test func `a violation ends the session with its reason, and earlier events are valid`() throws {
        var session = try Self.session()
        let identifier = try session.publish(Self.message(), qos: 1)
        session.didSend(session.outbound.unsent.count)
        var events: [MQTTEvent] = []
        #expect(throws: MQTTViolation.self) {
            try session.receive([0x40, 2, 0, UInt8(identifier), 0x20, 3, 0, 0, 0][...], &events)
        }
        #expect(events == [.acknowledged(identifier: identifier, .success)])
        #expect(Array(session.outbound.unsent) == [0xE0, 1, 0x82])
        #expect(throws: MQTTRefusal.notConnected) { _ = try session.publish(Self.message(), qos: 0) }
        #expect(try receive(&session, [1, 2, 3]).isEmpty)
    }

    @Test func `a filter too long for the broker's largest packet is refused, and frees its packet identifier`() throws
    {
        // Maximum packet size 20.
        var session = try Self.session(properties: [0x27, 0, 0, 0, 20])
        let (good, bad) = (String(repeating: "a", count: 12), String(repeating: "a", count: 14))
        #expect(throws: MQTTRefusal.tooLarge(22, limit: 20)) { try session.subscribe(to: bad, .init()) }
        #expect(throws: MQTTRefusal.tooLarge(21, limit: 20)) { try session.unsubscribe(from: bad) }
        #expect(session.outbound.isEmpty)
        _ = try session.subscribe(to: good, .init())
        #expect(session.outbound.unsent.count == 20)
        #expect(try receive(&session, [0x90, 4, 0, 1, 0, 0]).isEmpty)
        #expect(try receive(&session, [0x90, 4, 0, 3, 0, 0]).count == 1)
    }

    @Test func `a violation in MQTT 3.1.1 sends no DISCONNECT, which would discard the will`() throws {
        var session = try Self.session(.v311)
        #expect(throws: MQTTViolation.self) { _ = try receive(&session, [0xE0, 0]) }
        #expect(session.outbound.isEmpty)
        session = try Self.session(.v311)
        session.disconnect()
        #expect(Array(session.outbound.unsent) == [0xE0, 0])
    }

    @Test func `a refused session ends, and nothing can be sent in it`() throws {
        var session = try MQTTSession(MQTTOptions(.v5, clientID: "c"))
        #expect(
            try receive(&session, [0x20, 3, 0, 0x87, 0]) == [.connected(.notAuthorized, text: nil, BrokerLimits())]
        )
        #expect(!session.isConnected)
        #expect(throws: MQTTRefusal.notConnected) { _ = try session.subscribe(to: "a", SubscriptionOptions()) }
    }

    @Test func `messages of QoS 1 are acknowledged when they are complete`() throws {
        var session = try Self.session()
        #expect(try receive(&session, [0x32, 7, 0, 1, 0x61, 1, 2, 0]).isEmpty)
        #expect(session.outbound.isEmpty)
        #expect(try receive(&session, [7]).count == 1)
        #expect(Array(session.outbound.unsent) == [0x40, 2, 1, 2])
        #expect(try receive(&session, [0x30, 5, 0, 1, 0x61, 0, 7]).count == 1)
        #expect(Array(session.outbound.unsent) == [0x40, 2, 1, 2])
    }

    @Test func `messages in flight never exceed the broker's receive maximum, and keep their order`() throws {
        var session = try Self.session(properties: [0x21, 0, 2])
        let identifiers = try (1...5).map { try session.publish(Self.message([UInt8($0)]), qos: 1) }
        #expect(identifiers == [1, 2, 3, 4, 5])
        func packets(_ numbers: ClosedRange<UInt8>) -> [UInt8] {
            numbers.flatMap { [0x32, 7, 0, 1, 0x61, 0, $0, 0, $0] }
        }
        #expect(Array(session.outbound.unsent) == packets(1...2))
        session.didSend(session.outbound.unsent.count)
        _ = try receive(&session, [0x40, 2, 0, 2])
        #expect(Array(session.outbound.unsent) == packets(3...3))
        _ = try receive(&session, [0x40, 2, 0, 1, 0x40, 2, 0, 3])
        #expect(Array(session.outbound.unsent) == packets(3...5))
        #expect(session.outbound.appended - session.outbound.sent == packets(3...5).count)
    }

    @Test func `messages that never stop waiting take no more memory with time`() throws {
        var session = try Self.session(properties: [0x21, 0, 1])
        for _ in 1...2 { _ = try session.publish(Self.message(), qos: 1) }
        for number in 1...10_000 as ClosedRange<UInt16> {
            _ = try session.publish(Self.message(), qos: 1)
            #expect(try receive(&session, [0x40, 2, UInt8(number >> 8), UInt8(number & 0xFF)]).count == 1)
            session.didSend(session.outbound.unsent.count)
        }
        #expect(session.waitingPlaces < 1000)
    }

    @Test func `an acknowledgement of a message that waits is a violation`() throws {
        var session = try Self.session(properties: [0x21, 0, 1])
        for _ in 1...2 { _ = try session.publish(Self.message(), qos: 1) }
        #expect(throws: MQTTViolation.self) { _ = try receive(&session, [0x40, 2, 0, 2]) }
    }

    @Test func `a message of QoS 0 waits behind messages of QoS 1, and counts as sent when it is`() throws {
        var session = try Self.session(properties: [0x21, 0, 1])
        for (payload, qos) in [(1, 1), (2, 1), (3, 0)] as [(UInt8, Int)] {
            _ = try session.publish(Self.message([payload]), qos: qos)
        }
        session.didSend(session.outbound.unsent.count)
        #expect(session.drainSentCount() == 0)
        _ = try receive(&session, [0x40, 2, 0, 1])
        #expect(Array(session.outbound.unsent) == [0x32, 7, 0, 1, 0x61, 0, 2, 0, 2, 0x30, 5, 0, 1, 0x61, 0, 3])
        session.didSend(15)
        #expect(session.drainSentCount() == 0)
        session.didSend(1)
        #expect(session.drainSentCount() == 1)
        #expect(session.drainSentCount() == 0)
    }

    @Test func `sent messages of QoS 0 take no memory, also if nobody asks for their number`() throws {
        var session = try Self.session()
        for _ in 1...3 {
            _ = try session.publish(Self.message(), qos: 0)
            #expect(session.unsentCount == 1)
            session.didSend(session.outbound.unsent.count)
            #expect(session.unsentCount == 0)
        }
        #expect(session.drainSentCount() == 3)
    }

    @Test func `a message too long for the broker is refused and leaves nothing behind`() throws {
        var session = try Self.session(properties: [0x27, 0, 0, 0, 20])
        let long = Self.message(Array(repeating: 0, count: 30))
        for qos in [0, 1] {
            #expect(throws: MQTTRefusal.self) { _ = try session.publish(long, qos: qos) }
        }
        #expect(session.outbound.isEmpty)
        #expect(session.outbound.appended == session.outbound.sent)
        #expect(try session.publish(Self.message([1]), qos: 1) == 2)
    }

    @Test func `a broker that leaves acknowledgements unread is not read from`() throws {
        var session = try Self.session()
        let message: [UInt8] = [0x32, 6, 0, 1, 0x61, 0, 1, 0]
        for _ in 0..<100_000 where !session.isCongested { _ = try receive(&session, message) }
        #expect(session.isCongested)
        #expect(session.outbound.unsent.count < 300_000)
        session.didSend(session.outbound.unsent.count)
        #expect(!session.isCongested)
        _ = try receive(&session, message)
        #expect(!session.isCongested)
    }

    @Test func `the waiting octets are whole packets after random operations`() throws {
        var random = SplitMix64(seed: 5)
        for _ in 0..<200 {
            var session = try Self.session(properties: [0x21, 0, 3])
            var sent: [UInt8] = []
            for _ in 0..<60 {
                switch Int.random(in: 0..<5, using: &random) {
                case 0: _ = try session.publish(Self.message([1, 2]), qos: 1)
                case 1: _ = try session.publish(Self.message([3]), qos: 0)
                case 2: _ = try? receive(&session, [0x40, 2, 0, .random(in: 1...9, using: &random)])
                case 3: _ = try? session.subscribe(to: "b", SubscriptionOptions())
                default:
                    let count = Int.random(in: 0...session.outbound.unsent.count, using: &random)
                    sent += session.outbound.unsent.prefix(count)
                    session.didSend(count)
                }
                guard session.isConnected else { break }
            }
            sent += session.outbound.unsent
            #expect(Self.areWholePackets(sent))
        }
    }

    private static func areWholePackets(_ octets: [UInt8]) -> Bool {
        var rest = octets[...]
        while rest.count >= 2 {
            let length = Int(rest[rest.startIndex + 1])
            guard [0x30, 0x32, 0x82, 0xE0].contains(rest[rest.startIndex]), rest.count >= 2 + length else {
                return false
            }
            rest = rest.dropFirst(2 + length)
        }
        return rest.isEmpty
    }

    @Test func `a silent broker gets a ping; a missing PINGRESP and a stalled broker are detected`() {
        var keepalive = Keepalive(interval: .seconds(10), timeout: .seconds(10), at: .zero)
        #expect(keepalive.deadline(isClear: true) == .seconds(10))
        keepalive.received(at: .seconds(5))
        #expect(keepalive.verdict(isClear: true, at: .seconds(9)) == .alive)
        #expect(keepalive.verdict(isClear: true, at: .seconds(10)) == .ping)
        keepalive.sent(at: .seconds(10))
        keepalive.pinged(at: .seconds(10))
        #expect(keepalive.verdict(isClear: true, at: .seconds(19)) == .alive)
        #expect(keepalive.verdict(isClear: true, at: .seconds(20)) == .silent)
        keepalive.answered()
        keepalive.received(at: .seconds(19))
        #expect(keepalive.verdict(isClear: true, at: .seconds(20)) == .ping)
        #expect(keepalive.verdict(isClear: false, at: .seconds(20)) == .stalled)
        keepalive.sent(at: .seconds(20))
        #expect(keepalive.deadline(isClear: false) == .seconds(30))
    }

    @Test(arguments: [true, false])
    func `a broker with a keepalive below the wait for its answers hears from the client in time`(answers: Bool) {
        var keepalive = Keepalive(interval: .seconds(4), timeout: .seconds(10), at: .zero)
        for time in [Duration.seconds(4), .seconds(8), .seconds(12)] {
            #expect(keepalive.deadline(isClear: true) == time)
            #expect(keepalive.verdict(isClear: true, at: time) == .ping)
            keepalive.pinged(at: time)
            keepalive.sent(at: time)
            if answers {
                keepalive.received(at: time)
                keepalive.answered()
            }
        }
        #expect(keepalive.deadline(isClear: true) == (answers ? .seconds(16) : .seconds(14)))
        #expect(keepalive.verdict(isClear: true, at: .seconds(16)) == (answers ? .ping : .silent))
    }

    @Test func `a broker that sends bytes and answers no ping is silent`() {
        var keepalive = Keepalive(interval: .seconds(10), timeout: .seconds(10), at: .zero)
        for second in 1...19 {
            let now = Duration.seconds(second)
            keepalive.received(at: now)
            #expect(keepalive.verdict(isClear: true, at: now) == (second == 10 ? .ping : .alive))
            guard second == 10 else { continue }
            keepalive.pinged(at: now)
            keepalive.sent(at: now)
        }
        #expect(keepalive.verdict(isClear: true, at: .seconds(20)) == .silent)
    }

    @Test func `a broker with a keepalive of one second has ten seconds to answer a ping`() {
        var keepalive = Keepalive(interval: .seconds(1), timeout: .seconds(10), at: .zero)
        #expect(keepalive.verdict(isClear: true, at: .seconds(1)) == .ping)
        keepalive.sent(at: .seconds(1))
        keepalive.pinged(at: .seconds(1))
        #expect(keepalive.verdict(isClear: true, at: .seconds(10)) == .ping)
        #expect(keepalive.verdict(isClear: true, at: .seconds(11)) == .silent)
        #expect(keepalive.verdict(isClear: false, at: .seconds(10)) == .alive)
    }
}
