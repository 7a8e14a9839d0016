import GattherdBluetooth
import GattherdDBus
import GattherdGATT
import Testing

@testable import GattherdBlueZ

/// Sizes at which work that grows with the square of the number of objects does not end within the limit.
@Suite(.timeLimit(.minutes(1))) struct ManyObjectsTests {
    private static let adapterPath = "/org/bluez/hci0"

    private func interfaces(_ name: String, _ properties: KeyValuePairs<String, DBusValue>) -> DBusValue {
        .dictionary(key: "s", value: "a{sv}", [DBusEntry(.string(name), .properties(properties))])
    }

    private func tree() -> ObjectTree {
        var tree = ObjectTree()
        _ = tree.add(
            Self.adapterPath,
            interfaces("org.bluez.Adapter1", ["Address": .string("00:00:5E:00:53:01"), "Powered": .boolean(true)])
        )
        return tree
    }

    private func id(_ number: Int) throws -> PeripheralID {
        let adapter = try #require(BluetoothAddress("00:00:5E:00:53:01"))
        return PeripheralID(adapter: adapter, address: BluetoothAddress(value: 0xC000_0000_0000 + UInt64(number)))
    }

    private func path(_ id: PeripheralID) -> String {
        Self.adapterPath + "/dev_" + id.address.description.split(separator: ":").joined(separator: "_")
    }

    private func addTable(_ tree: inout ObjectTree, _ device: String, count: Int) -> [ObjectTree.Change] {
        let service = device + "/service0001"
        var changes = tree.add(service, interfaces("org.bluez.GattService1", ["UUID": .string("180d")]))
        for number in 1...count {
            let characteristic = interfaces("org.bluez.GattCharacteristic1", ["UUID": .string("2a37")])
            changes += tree.add(service + "/char\(100_000 + number)", characteristic)
        }
        return changes
    }

    @Test func `fifty thousand advertising devices are found one by one`() throws {
        var tree = tree()
        for number in 0..<50_000 {
            let id = try id(number)
            _ = tree.add(path(id), interfaces("org.bluez.Device1", ["RSSI": .int16(-50)]))
            #expect(tree.devicePath(id) == path(id))
        }
        #expect(tree.announcements().count == 50_001)
        let last = try id(49_999)
        #expect(tree.remove(path(last), ["org.bluez.Device1"]) == [.event(.peripheralRemoved(last))])
        #expect(tree.devicePath(last) == nil)
    }

    @Test func `a GATT table is cut at the most attributes of one device, and others are not affected`() throws {
        var tree = tree()
        let (long, short) = (try id(1), try id(2))
        for id in [long, short] {
            _ = tree.add(path(id), interfaces("org.bluez.Device1", ["Connected": .boolean(true)]))
        }
        _ = addTable(&tree, path(long), count: 60_000)
        _ = addTable(&tree, path(short), count: 2)
        #expect(tree.table(of: long).count == AttributeTables.most - 1)
        #expect(tree.services(of: long).first?.characteristics.count == AttributeTables.most - 1)
        #expect(tree.ignoredAttributes(of: long) == 60_001 - AttributeTables.most)
        #expect(tree.table(of: short).count == 2)
        #expect(tree.ignoredAttributes(of: short) == 0)
    }

    @Test func `the removal of a device frees the room of its long table`() throws {
        var tree = tree()
        let ids = try (1...8).map(id)
        for id in ids {
            _ = tree.add(path(id), interfaces("org.bluez.Device1", ["Connected": .boolean(true)]))
            _ = addTable(&tree, path(id), count: AttributeTables.most - 1)
        }
        #expect(ids.allSatisfy { tree.table(of: $0).count == AttributeTables.most - 1 })
        let removed = tree.remove(path(ids[0]) + "/service0001", ["org.bluez.GattService1"])
        let gone = removed.count { if case .characteristicRemoved = $0 { true } else { false } }
        #expect(gone == AttributeTables.most - 1)
        for id in ids { _ = tree.remove(path(id), ["org.bluez.Device1"]) }
        #expect(tree.attributes.characteristics.isEmpty)
        #expect(tree.attributes.services.isEmpty)
        // Room is free again.
        _ = tree.add(path(ids[0]), interfaces("org.bluez.Device1", ["Connected": .boolean(true)]))
        _ = addTable(&tree, path(ids[0]), count: 3)
        #expect(tree.table(of: ids[0]).count == 3)
    }

    @Test func `two hundred thousand waiting events are read in order`() async throws {
        let queue = EventQueue()
        let count = 200_000
        for number in 0..<count { queue.push(.peripheralRemoved(try id(number))) }
        queue.finish()
        var next = 0
        for await event in queue.stream {
            #expect(event == .peripheralRemoved(try id(next)))
            next += 1
        }
        #expect(next == count)
    }
}
