import GattherdDBus
import GattherdSync
import TestKit
import Testing

/// A handler's view of one signal.
private struct Seen: Hashable, Sendable {
    var bytes: [UInt8]?
    var isAlone: Bool?
    var label: String?
    var isFromSender = false
}

@Suite(.timeLimit(.minutes(3))) struct DBusSignalTests {
    private static let interface = "org.bluez.GattCharacteristic1"
    private static let path = "/org/bluez/hci0/dev_C0_FF_EE_00_00_01/service0001/char0002"

    /// Sends signals over a real bus and returns a handler's view of each.
    private func observe(_ signals: [(path: String, member: String, arguments: [DBusValue])]) async throws -> [Seen] {
        let bus = try PrivateBus()
        let loop = EventLoop(name: "test")
        let sender = try await DBusConnection.open(.address(bus.address), on: loop)
        let receiver = try await DBusConnection.open(.address(bus.address), on: loop)
        try await receiver.addMatch("type='signal',path_namespace='/org/bluez'")
        let name = await sender.uniqueName
        let (stream, found) = AsyncStream.makeStream(of: Seen.self, bufferingPolicy: .bufferingOldest(1000))
        loop.execute {
            var table = DBusPathTable<String>()
            table[Self.path] = "ours"
            receiver.onSignal { signal in
                guard !signal.isSignal("org.freedesktop.DBus", "NameAcquired") else { return }
                var seen = Seen()
                if let change = signal.changedBytes("Value", of: Self.interface) {
                    seen.bytes = change.bytes.indices.map { change.bytes[$0] }
                    seen.isAlone = change.isAlone
                }
                seen.label = table.value(for: signal)
                seen.isFromSender = signal.isFrom(name)
                found.yield(seen)
            }
            for signal in signals {
                do {
                    try sender.emit(signal.path, "org.freedesktop.DBus.Properties", signal.member, signal.arguments)
                } catch {
                    Issue.record(error)
                }
            }
        }
        let all = await stream.prefix(signals.count).reduce(into: []) { $0.append($1) }
        await receiver.close()
        await sender.close()
        loop.stop()
        return all
    }

    private func changed(
        _ properties: KeyValuePairs<String, DBusValue>,
        of interface: String = interface,
        at path: String = path
    ) -> (path: String, member: String, arguments: [DBusValue]) {
        (path, "PropertiesChanged", [.string(interface), .properties(properties), .strings([])])
    }

    @Test func `the bytes of a changed value are found in place`() async throws {
        let seen = try await observe([
            changed(["Value": .bytes([1, 2, 3])]),
            changed(["Notifying": .boolean(true), "Value": .bytes([])]),
            changed(["Value": .bytes([5]), "Notifying": .boolean(true)]),
            changed(["Notifying": .boolean(true)]),
            changed(["Value": .bytes([9])], of: "org.bluez.GattDescriptor1"),
            changed(["Value": .bytes([4])], at: Self.path + "0"),
        ])
        #expect(seen.map(\.bytes) == [[1, 2, 3], [], [5], nil, nil, [4]])
        #expect(seen.map(\.isAlone) == [true, false, false, nil, nil, true])
        #expect(seen.map(\.label) == ["ours", "ours", "ours", "ours", "ours", nil])
        #expect(seen.map(\.isFromSender) == Array(repeating: true, count: 6))
    }

    @Test func `a signal of another form contains no changed value`() async throws {
        let seen = try await observe([
            changed(["Value": .string("text")]),
            changed(["Value": .strings(["text"])]),
            (Self.path, "PropertiesChanged", []),
            (Self.path, "PropertiesChanged", [.string(Self.interface)]),
            (Self.path, "PropertiesChanged", [.properties(["Value": .bytes([1])]), .string(Self.interface)]),
            (Self.path, "Other", [.string(Self.interface), .properties(["Value": .bytes([1])]), .strings([])]),
        ])
        #expect(seen.map(\.bytes) == Array(repeating: nil, count: 6))
    }

    @Test func `a path removed from the table is not found`() {
        var table = DBusPathTable<Int>()
        for number in 0..<100 { table["/\(number)"] = number }
        table["/7"] = nil
        table["/8"] = 80
        #expect(table["/7"] == nil)
        #expect(table["/8"] == 80)
        #expect(table["/99"] == 99)
        for number in 0..<100 { table["/\(number)"] = nil }
        #expect(table.isEmpty)
    }
}
