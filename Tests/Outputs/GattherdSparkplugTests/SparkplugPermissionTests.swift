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
}
