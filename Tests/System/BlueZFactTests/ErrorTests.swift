import BlueZKit
import GattherdDBus
import TestKit
import Testing

/// Names and texts of bluetoothd's errors.
@Suite(.timeLimit(.minutes(10)), .serialized) struct ErrorTests {
    /// One call and its result.
    private struct Row {
        let characteristic: String
        let member: String
        let arguments: [DBusValue]
        let outcome: String

        init(_ characteristic: String, _ member: String, _ arguments: DBusValue..., outcome: String) {
            self.characteristic = characteristic
            self.member = member
            self.arguments = arguments
            self.outcome = outcome
        }
    }

    private static let none = DBusValue.properties([:])
    private static let request = DBusValue.properties(["type": .string("request")])
    private static let command = DBusValue.properties(["type": .string("command")])
    private static let notSupported = "org.bluez.Error.NotSupported: Operation is not supported"
    private static let invalidLength = "org.bluez.Error.InvalidArguments: Invalid Length"

    private static let connected = [
        Row("fff1", "ReadValue", none, outcome: "ok"),
        Row(
            "fff1",
            "ReadValue",
            .properties(["offset": .uint16(9)]),
            outcome: "org.bluez.Error.InvalidArguments: Invalid offset"
        ),
        Row("fff4", "ReadValue", none, outcome: "ok"),
        Row("fff1", "WriteValue", .bytes([1]), request, outcome: "ok"),
        Row("fff1", "WriteValue", .bytes([1, 2, 3]), request, outcome: invalidLength),
        Row("fff1", "WriteValue", .bytes([UInt8](repeating: 0, count: 513)), request, outcome: invalidLength),
        Row(
            "fff2",
            "WriteValue",
            .bytes([1]),
            request,
            outcome: "org.bluez.Error.Failed: Operation failed with ATT error: 0x80"
        ),
        Row("fff3", "WriteValue", .bytes([1]), command, outcome: "ok"),
        Row("fff5", "WriteValue", .bytes([1]), none, outcome: notSupported),
        Row("fff5", "WriteValue", .bytes([1]), command, outcome: "ok"),
        Row("fff5", "AcquireWrite", none, outcome: notSupported),
        Row("fff5", "StartNotify", outcome: notSupported),
        Row("fff5", "AcquireNotify", none, outcome: notSupported),
        Row("fff1", "StopNotify", outcome: "org.bluez.Error.Failed: No notify session started"),
        Row("fff1", "StartNotify", outcome: "ok"),
        Row("fff1", "StartNotify", outcome: "ok"),
        Row("fff1", "AcquireNotify", none, outcome: "org.bluez.Error.InProgress: In Progress"),
        Row("fff1", "StopNotify", outcome: "ok"),
    ]

    private static let notConnected = "org.bluez.Error.Failed: Not connected"

    private static let disconnected = [
        Row("fff1", "ReadValue", none, outcome: notConnected),
        Row("fff1", "WriteValue", .bytes([1]), request, outcome: notConnected),
        Row("fff1", "AcquireNotify", none, outcome: notConnected),
        Row("fff1", "StartNotify", outcome: "ok"),
        Row("fff1", "StopNotify", outcome: "ok"),
    ]

    @Test func `calls of characteristics have known results, connected and not`() async throws {
        try await BlueZFixture.run(.thing) { fixture in
            let thing = fixture.device("thing")
            try await thing.findAndConnect()
            try await check(Self.connected, of: thing)
            try await fixture.order("drop", "thing")
            try await thing.waitForEnd()
            try await check(Self.disconnected, of: thing)
        }
    }

    @Test(.only(on: .real, because: "the simulator refuses them"))
    func `writes of a type that the properties exclude are sent all the same`() async throws {
        try await BlueZFixture.run(.thing) { fixture in
            let thing = fixture.device("thing")
            try await thing.findAndConnect()
            for type in [Self.request, Self.command] {
                let outcome = try await thing.characteristic("fff5").outcome("WriteValue", .bytes([1]), type)
                #expect(outcome == "ok")
            }
            try await eventually { try await fixture.count("write", "thing", "fff5") == 2 }
        }
    }

    private func check(_ rows: [Row], of thing: BlueZObject) async throws {
        for row in rows {
            let target = try await thing.characteristic(row.characteristic)
            let outcome = await thing.client.outcome(target.path, target.interface, row.member, row.arguments)
            #expect(outcome == row.outcome, "\(row.member) of \(row.characteristic)")
        }
    }

    @Test func `an acquired characteristic is exclusive until StopNotify`() async throws {
        try await BlueZFixture.run(.thing) { fixture in
            let thing = fixture.device("thing")
            try await thing.findAndConnect()
            let value = try await thing.characteristic("fff1")
            let socket = try await value.acquire()
            #expect(try await value.isTrue("NotifyAcquired"))
            let refusal = "org.bluez.Error.NotPermitted: Notify acquired"
            await value.expect("AcquireNotify", .properties([:]), endsIn: refusal)
            await value.expect("StartNotify", endsIn: refusal)
            let other = try await fixture.anotherClient()
            await value.through(other).expect("StartNotify", endsIn: refusal)
            await value.expect("StopNotify", endsIn: "ok")
            try await eventually { socket.isHungUp }
            socket.close()
            await other.leave()
        }
    }

    @Test func `calls of an adapter have known results, powered and not`() async throws {
        try await BlueZFixture.run(.strap()) { fixture in
            let (adapter, strap) = (fixture.client.adapter, fixture.device("strap"))
            await adapter.expect("StopDiscovery", endsIn: "org.bluez.Error.Failed: No discovery started")
            await adapter.expect("StartDiscovery", endsIn: "ok")
            #expect(
                await adapter.outcome("StartDiscovery") == "org.bluez.Error.InProgress: Operation already in progress"
            )
            await adapter.expect("StopDiscovery", endsIn: "ok")
            let stranger = DBusValue.objectPath(adapter.path + "/dev_C0_00_00_00_00_99")
            await adapter.expect("RemoveDevice", stranger, endsIn: "org.bluez.Error.DoesNotExist: Does Not Exist")
            try await strap.find()
            try await fixture.order("power", "hci0", "off")
            let notReady = "org.bluez.Error.NotReady: Resource Not Ready"
            await adapter.expect("StartDiscovery", endsIn: notReady)
            await adapter.expect("StopDiscovery", endsIn: notReady)
            await adapter.expect("SetDiscoveryFilter", .properties([:]), endsIn: notReady)
        }
    }

    @Test func `Connect with the adapter off is an input/output error`() async throws {
        try await BlueZFixture.run(.strap()) { fixture in
            let strap = fixture.device("strap")
            try await strap.findAndConnect()
            try await fixture.order("power", "hci0", "off")
            try await strap.waitForEnd()
            await strap.expect("Connect", endsIn: "org.bluez.Error.Failed: Input/output error")
        }
    }

    @Test func `a removed object has no methods`() async throws {
        try await BlueZFixture.run(.strap()) { fixture in
            let strap = fixture.device("strap")
            let text = #"Method "Connect" with signature "" on interface "org.bluez.Device1" doesn't exist"# + "\n"
            await strap.expect("Connect", endsIn: "org.freedesktop.DBus.Error.UnknownObject: \(text)")
        }
    }

    @Test func `calls fail at once while bluetoothd is away`() async throws {
        try await BlueZFixture.run(.strap()) { fixture in
            fixture.client.removeEvents()
            async let restart: Void = fixture.order("restart-daemon", "5000ms")
            try await fixture.client.waitForEvents { $0.contains(.daemon(isRunning: false)) }
            let outcome = await fixture.client.adapter.outcome("StartDiscovery")
            #expect(outcome == #"org.freedesktop.DBus.Error.NameHasNoOwner: Name "org.bluez" does not exist"#)
            try await restart
            try await fixture.client.waitForEvents { $0.contains(.daemon(isRunning: true)) }
        }
    }
}
