import GattherdLog
import GattherdMQTT
import GattherdMachines
import GattherdModel
import GattherdSync
import Testing

@testable import GattherdSparkplug

/// All packets of an output over one run, with two connections, decoded from the wire.
///
/// The run: the primary host is offline, then online; a strap and a lamp are there; a host asks for a rebirth and sets
/// a control; the strap goes out of range; the primary host goes offline and returns; the output stops.
struct WireCapture: Sendable {
    /// CONNECT.
    struct Connect: Sendable {
        let flags: UInt8
        let willTopic: String
        let will: [UInt8]
    }

    /// PUBLISH.
    struct Publish: Sendable {
        let connection: Int
        /// The number of the packet in the run.
        let position: Int
        let topic: String
        let qos: Int
        let isRetained: Bool
        let bytes: [UInt8]
        let payload: SparkplugPayload

        var levels: [String] { topic.split(separator: "/", omittingEmptySubsequences: false).map(String.init) }
        var type: String { levels.count > 2 ? levels[2] : "" }
        var device: String? { levels.count > 4 ? levels[4] : nil }
    }

    static let group = "Plant 1"
    static let node = "lab"

    let version: MQTTVersion
    private(set) var connects: [Connect] = []
    private(set) var subscriptions: [(connection: Int, position: Int, filter: String, options: UInt8)] = []
    private(set) var publishes: [Publish] = []
    /// The bodies of DISCONNECT, by connection.
    private(set) var disconnects: [(connection: Int, position: Int, body: [UInt8])] = []
    /// The controls that were set.
    let controls: [ControlRequest]
    /// The packets before the host's STATE messages and the commands were sent.
    let marks: Marks

    struct Marks: Sendable {
        var hostOnline = 0
        var rebirth = 0
        var strapLost = 0
        var hostOffline = 0
    }

    private init(
        _ packets: [RecordingBroker.Packet],
        _ version: MQTTVersion,
        _ controls: [ControlRequest],
        _ marks: Marks
    )
        throws
    {
        self.version = version
        self.controls = controls
        self.marks = marks
        for (position, packet) in packets.enumerated() { try add(packet, at: position) }
    }

    private mutating func add(_ packet: RecordingBroker.Packet, at position: Int) throws {
        var rest = packet.body[...]
        switch packet.type {
        case 1:
            rest = rest.dropFirst(7)
            let flags = rest.popFirst() ?? 0
            rest = rest.dropFirst(2)
            if packet.isVersion5 { Self.skipProperties(&rest) }
            _ = Self.field(&rest)
            if packet.isVersion5 { Self.skipProperties(&rest) }
            let topic = String(decoding: Self.field(&rest), as: UTF8.self)
            connects.append(Connect(flags: flags, willTopic: topic, will: Self.field(&rest)))
        case 3:
            let topic = String(decoding: Self.field(&rest), as: UTF8.self)
            if packet.qos > 0 { rest = rest.dropFirst(2) }
            if packet.isVersion5 { Self.skipProperties(&rest) }
            publishes.append(
                Publish(
                    connection: packet.connection,
                    position: position,
                    topic: topic,
                    qos: packet.qos,
                    isRetained: packet.isRetained,
                    bytes: Array(rest),
                    payload: try SparkplugPayload(decoding: rest)
                )
            )
        case 8:
            rest = rest.dropFirst(packet.isVersion5 ? 3 : 2)
            let filter = String(decoding: Self.field(&rest), as: UTF8.self)
            subscriptions.append((packet.connection, position, filter, rest.first ?? 0))
        case 14: disconnects.append((packet.connection, position, packet.body))
        default: break
        }
    }

    private static func skipProperties(_ rest: inout ArraySlice<UInt8>) {
        let length = Int(rest.popFirst() ?? 0)
        rest = rest.dropFirst(length)
    }

    private static func field(_ rest: inout ArraySlice<UInt8>) -> [UInt8] {
        let length = rest.prefix(2).reduce(0) { $0 << 8 | Int($1) }
        defer { rest = rest.dropFirst(2 + length) }
        return Array(rest.dropFirst(2).prefix(length))
    }
}

/// The captured run, once for each version.
extension WireCapture {
    private static let runs = [MQTTVersion.v311: Run(.v311), .v5: Run(.v5)]

    /// The capture of a version, which all tests share.
    static func shared(_ version: MQTTVersion) async throws -> WireCapture {
        try await #require(runs[version]).capture
    }

    private final class Run: Sendable {
        private let task: Task<WireCapture, any Error>

        init(_ version: MQTTVersion) {
            task = Task { try await WireCapture.record(version) }
        }

        var capture: WireCapture {
            get async throws { try await task.value }
        }
    }

    static func settings(_ port: Int, _ version: MQTTVersion) -> SparkplugOptions {
        var settings = SparkplugOptions(
            host: "127.0.0.1",
            port: UInt16(port),
            clientID: "edge",
            group: group,
            node: node
        )
        settings.version = version
        settings.primaryHost = "scada"
        settings.softwareVersion = "1.2.3"
        settings.options.deathDelay = .milliseconds(1)
        settings.options.hostGrace = .zero
        settings.options.backoff = Backoff(minimum: .milliseconds(1), maximum: .milliseconds(2))
        return settings
    }

    private static func record(_ version: MQTTVersion) async throws -> WireCapture {
        let broker = try RecordingBroker(version)
        let journal = MemoryJournal()
        let controls = Locked<[ControlRequest]>([])
        let output = SparkplugDelivery(
            settings(broker.port, version),
            journal: journal,
            log: .silent,
            setControl: { request in
                controls.withLock { $0.append(request) }
                return .success(request.value)
            },
            permissions: {
                var permissions = ControlPermissions()
                permissions.devices["lamp"] = ["level", "flash"]
                return permissions
            },
            record: { _ in }
        )
        var marks = Marks()
        async let end: Void = output.run()
        output.describe(Devices.strap)
        output.update(Devices.link("strap", .ready))
        await broker.wait { $0.filter { $0.type == 8 }.count == 3 }
        broker.send(#"{"online":false,"timestamp":1000}"#.utf8, to: "spBv1.0/STATE/scada", isRetained: true)
        broker.send(#"{"online":true,"timestamp":9000}"#.utf8, to: "spBv1.0/STATE/other")
        marks.hostOnline = broker.packets.count
        broker.send(#"{"online":true,"timestamp":2000}"#.utf8, to: "spBv1.0/STATE/scada")
        await broker.wait { $0.contains(where: Self.type("DBIRTH")) }
        output.describe(Devices.lamp)
        output.update(Devices.link("lamp", .ready))
        journal.commit(Devices.heartRate, .integer(60), .integer(1), at: 1)
        journal.commit(Devices.contact, .boolean(true), at: 2)
        journal.commit(Devices.intervals, .real(0.8), .real(0.9), at: 3)
        for second in Int64(4)..<300 { journal.commit(Devices.heartRate, .integer(second), .null, at: second) }
        await journal.waitForCursor(299)
        marks.rebirth = broker.packets.count
        broker.send(command("Node Control/Rebirth", .boolean(true)), to: "spBv1.0/\(group)/NCMD/\(node)")
        await broker.wait { $0.filter(Self.type("NBIRTH")).count == 2 }
        broker.send(command("Device Control/level", .long(50)), to: "spBv1.0/\(group)/DCMD/\(node)/lamp")
        broker.send(command("Device Control/scene", .string("day")), to: "spBv1.0/\(group)/DCMD/\(node)/lamp")
        broker.send(command("Device Control/flash", .boolean(true)), to: "spBv1.0/\(group)/DCMD/\(node)/lamp")
        await broker.wait { $0.filter(Self.type("DDATA", "lamp")).count == 2 }
        marks.strapLost = broker.packets.count
        output.update(Devices.link("strap", .backingOff))
        await broker.wait { $0.contains(where: Self.type("DDEATH")) }
        marks.hostOffline = broker.packets.count
        broker.send(#"{"online":false,"timestamp":2001}"#.utf8, to: "spBv1.0/STATE/scada")
        await broker.wait { $0.filter { $0.connection == 1 && $0.type == 8 }.count == 3 }
        journal.commit(Devices.brightness, .integer(5), at: 400)
        journal.commit(Devices.brightness, .integer(6), at: 401)
        broker.send(#"{"online":true,"timestamp":2002}"#.utf8, to: "spBv1.0/STATE/scada")
        await journal.waitForCursor(301)
        await output.stop(within: .seconds(5))
        await end
        await broker.wait { $0.contains { $0.connection == 1 && $0.type == 14 } }
        return try WireCapture(broker.packets, version, controls.withLock { $0 }, marks)
    }

    private static func command(_ name: String, _ value: SparkplugMetric.Value) -> [UInt8] {
        SparkplugPayload(timestamp: 1, metrics: [SparkplugMetric(name: name, value: value)]).encoded
    }

    private static func type(_ type: String, _ device: String = "") -> (RecordingBroker.Packet) -> Bool {
        let topic = Array("spBv1.0/\(group)/\(type)/\(node)\(device.isEmpty ? "" : "/")\(device)".utf8)
        return { $0.type == 3 && $0.body.dropFirst(2).starts(with: topic) }
    }
}
