import Dispatch
import GattherdLog
import GattherdMQTT
import GattherdModel
import GattherdSync
import TestKit
import Testing

@testable import GattherdSparkplug

/// The refusals of a broker, and the controls that hosts may set.
@Suite(.timeLimit(.minutes(1)))
struct SparkplugPermissionTests {
    @Test func `a session that ends together with its CONNACK ends for the broker's reason`() async throws {
        let broker = try RecordingBroker(.v5)
        // DISCONNECT with "quota exceeded".
        broker.greet(with: [0xE0, 1, 0x97])
        var options = WireCapture.settings(broker.port, .v5)
        options.primaryHost = nil
        let output = SparkplugDelivery(
            options,
            journal: MemoryJournal(),
            log: .silent,
            setControl: { .success($0.value) },
            permissions: { ControlPermissions() },
            record: { _ in }
        )
        async let end: Void = output.run()
        try await eventually { output.status.problem != nil }
        #expect(output.status.problem?.contains("quota exceeded") == true)
        await output.stop(within: .zero)
        await end
    }

    @Test func `other controls of the configuration are a birth, and hosts can set them`() async throws {
        let broker = try Broker()
        try await broker.start()
        let subscriber = try await Subscriber(broker, to: "spBv1.0/+/DBIRTH/#")
        let (allowed, controls) = (Locked<Set<String>>(["level"]), Locked<[String]>([]))
        var options = WireCapture.settings(broker.port, .v5)
        (options.host, options.primaryHost) = ("localhost", nil)
        let output = SparkplugDelivery(
            options,
            journal: MemoryJournal(),
            log: .silent,
            setControl: { request in
                controls.withLock { $0.append(request.control) }
                return .success(request.value)
            },
            permissions: {
                var permissions = ControlPermissions()
                permissions.devices["lamp"] = allowed.withLock(\.self)
                return permissions
            },
            record: { _ in }
        )
        async let end: Void = output.run()
        output.describe(Devices.lamp)
        output.update(Devices.link("lamp", .ready))
        await subscriber.messages { $0.count == 1 }
        allowed.withLock { $0 = ["scene"] }
        output.updatePermissions()
        await subscriber.messages { $0.count == 2 }
        let scene = SparkplugMetric(name: "Device Control/scene", value: .string("day"))
        let command = SparkplugPayload(timestamp: 1, metrics: [scene]).encoded
        try await broker.publish(command, to: "spBv1.0/Plant 1/DCMD/lab/lamp")
        try await eventually { controls.withLock { $0 == ["scene"] } }
        await output.stop(within: .zero)
        await end
    }

    @Test func `permissions that were replaced while they were read are not published`() async throws {
        let broker = try RecordingBroker(.v311)
        var options = WireCapture.settings(broker.port, .v311)
        options.primaryHost = nil
        let allowed = Locked<Set<String>>(["level"])
        let (isHeld, hasRead, gate) = (Locked(false), LatestValue(false), DispatchSemaphore(value: 0))
        let output = SparkplugDelivery(
            options,
            journal: MemoryJournal(),
            log: .silent,
            setControl: { .success($0.value) },
            permissions: {
                var permissions = ControlPermissions()
                permissions.devices["lamp"] = allowed.withLock(\.self)
                let mustWait = isHeld.withLock { isHeld in
                    defer { isHeld = false }
                    return isHeld
                }
                guard mustWait else { return permissions }
                hasRead.set(true)
                gate.wait()
                return permissions
            },
            record: { _ in }
        )
        async let end: Void = output.run()
        output.describe(Devices.lamp)
        output.update(Devices.link("lamp", .ready))
        await broker.wait { packets in packets.contains { $0.isBirth(of: "lamp") } }
        isHeld.withLock { $0 = true }
        let hasReturned = LatestValue(false)
        _ = NamedThread(name: "reader") {
            output.updatePermissions()
            hasReturned.set(true)
        }
        for await isRead in hasRead.watch() where isRead { break }
        allowed.withLock { $0 = ["scene"] }
        output.updatePermissions()
        gate.signal()
        for await isOver in hasReturned.watch() where isOver { break }
        await output.stop(within: .zero)
        await end
        // DISCONNECT is the last packet.
        await broker.wait { packets in packets.contains { $0.type == 14 } }
        let last = broker.packets.last { $0.isBirth(of: "lamp") }
        #expect(last?.text.contains("Device Control/scene") == true)
    }

    @Test func `a device of another gateway is offline, also if its link and its lease come at once`() async throws {
        let broker = try RecordingBroker(.v311)
        var options = WireCapture.settings(broker.port, .v311)
        options.primaryHost = nil
        let output = SparkplugDelivery(
            options,
            journal: MemoryJournal(),
            log: .silent,
            setControl: { .success($0.value) },
            record: { _ in }
        )
        async let end: Void = output.run()
        for await state in output.states where state == .connected { break }
        let devices = (0..<200).map { "tag-\($0)" }
        for device in devices { output.describe(DeviceDescription(device: device, address: "", streams: [])) }
        await withDiscardingTaskGroup { group in
            for device in devices {
                let lease = DeviceLease(device: device, state: "standby", owner: "east", epoch: 1, isPublisher: false)
                group.addTask { output.update(Devices.link(device, .ready)) }
                group.addTask { output.update(lease) }
            }
        }
        await output.stop(within: .zero)
        await end
        await broker.wait { packets in packets.contains { $0.type == 14 } }
        let counts = try broker.packets.filter { $0.text.contains("/NDATA/") }.compactMap { packet in
            try SparkplugPayload(decoding: packet.payload).metrics.first?.value
        }
        #expect(counts.last ?? .long(0) == .long(0))
    }
}

extension RecordingBroker.Packet {
    /// The body as text; octets that are no text are replaced.
    fileprivate var text: String { String(decoding: body, as: UTF8.self) }

    /// The payload of a PUBLISH with QoS 0 in MQTT 3.1.1.
    fileprivate var payload: ArraySlice<UInt8> {
        body.dropFirst(2 + body.prefix(2).reduce(0) { $0 << 8 | Int($1) })
    }

    fileprivate func isBirth(of device: String) -> Bool { type == 3 && text.contains("/DBIRTH/lab/\(device)") }
}
