import GattherdBluetooth
import GattherdDBus
import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdBlueZ

@Suite struct ObjectTreeTests {
    private final class Sink: AdvertisementSink {
        func receive(_ advertisement: HeardAdvertisement, at time: Timestamp) {}
    }

    private static let adapterPath = "/org/bluez/hci0"
    private static let devicePath = "/org/bluez/hci0/dev_C0_FF_EE_00_00_01"
    private let id = Stage.peripheral

    private func interfaces(_ name: String, _ properties: KeyValuePairs<String, DBusValue>) -> DBusValue {
        .dictionary(key: "s", value: "a{sv}", [DBusEntry(.string(name), .properties(properties))])
    }

    private var adapter: DBusValue {
        interfaces("org.bluez.Adapter1", ["Address": .string("00:00:5E:00:53:01"), "Powered": .boolean(true)])
    }

    private func device(_ more: KeyValuePairs<String, DBusValue> = [:]) -> DBusValue {
        interfaces("org.bluez.Device1", more)
    }

    private var connectedTree: ObjectTree {
        var tree = ObjectTree()
        _ = tree.add(Self.adapterPath, adapter)
        _ = tree.add(Self.devicePath, device(["Connected": .boolean(true)]))
        return tree
    }

    private func status(_ change: (inout PeripheralStatus) -> Void = { _ in }) -> ObjectTree.Change {
        var status = PeripheralStatus(id: id)
        change(&status)
        return .event(.peripheralChanged(status))
    }

    @Test func `a device is found by its path`() {
        var tree = ObjectTree()
        #expect(tree.add(Self.adapterPath, adapter).count == 1)
        #expect(tree.add(Self.devicePath, device()) == [status()])
        #expect(tree.devicePath(id) == Self.devicePath)
    }

    @Test(arguments: [
        ("C0:FF:EE:00:00:01", "random", false), ("7F:FF:EE:00:00:01", "random", true),
        ("3F:FF:EE:00:00:01", "random", true), ("7F:FF:EE:00:00:01", "public", false),
    ])
    func `a random address that is not static is private`(address: String, type: String, isPrivate: Bool) throws {
        var tree = ObjectTree()
        _ = tree.add(Self.adapterPath, adapter)
        let path = "/org/bluez/hci0/dev_" + address.split(separator: ":").joined(separator: "_")
        let change = try #require(tree.add(path, device(["AddressType": .string(type)])).first)
        guard case .event(.peripheralChanged(let status)) = change else { throw Unexpected() }
        #expect(status.hasPrivateAddress == isPrivate)
    }

    private struct Unexpected: Error {}

    @Test func `a device with properties may have any path`() {
        var tree = ObjectTree()
        _ = tree.add("/bt/a", adapter)
        let properties: KeyValuePairs<String, DBusValue> = [
            "Adapter": .objectPath("/bt/a"), "Address": .string("c0:ff:ee:00:00:01"),
        ]
        #expect(tree.add("/somewhere/else", device(properties)) == [status()])
        #expect(tree.devicePath(id) == "/somewhere/else")
    }

    @Test func `objects may arrive before their parents`() {
        var tree = ObjectTree()
        #expect(tree.add(Self.devicePath, device()).isEmpty)
        let changes = tree.add(Self.adapterPath, adapter)
        #expect(changes.last == status())
        #expect(changes.count == 2)
    }

    @Test func `an adapter without a switch is on`() {
        var tree = ObjectTree()
        let changes = tree.add("/a", interfaces("org.bluez.Adapter1", ["Address": .string("00:00:5E:00:53:01")]))
        let expected = AdapterStatus(address: id.adapter, name: "a", isPowered: true, isDiscovering: false)
        #expect(changes == [.event(.adapterChanged(expected))])
    }

    @Test func `unchanged and unknown properties cause no change`() {
        var tree = connectedTree
        let properties = DBusValue.properties(["Connected": .boolean(true), "ManufacturerData": .string("?")])
        #expect(tree.change(Self.devicePath, "org.bluez.Device1", properties, ["TxPower"]).isEmpty)
        #expect(tree.change("/unknown", "org.bluez.Device1", properties, []).isEmpty)
        #expect(tree.change(Self.devicePath, "org.bluez.Battery1", properties, []).isEmpty)
    }

    @Test func `an invalidated property is removed`() {
        var tree = ObjectTree()
        _ = tree.add(Self.adapterPath, adapter)
        _ = tree.add(Self.devicePath, device(["RSSI": .int16(-60), "Name": .string("x")]))
        let changes = tree.change(Self.devicePath, "org.bluez.Device1", .properties([:]), ["RSSI"])
        #expect(
            changes == [
                status {
                    $0.name = "x"
                    $0.heard = 1
                }
            ]
        )
    }

    @Test func `a property of another type than BlueZ's is ignored`() {
        var tree = ObjectTree()
        _ = tree.add(Self.adapterPath, adapter)
        let nonsense: KeyValuePairs<String, DBusValue> = [
            "RSSI": .string("loud"), "Name": .int16(1), "UUIDs": .boolean(true), "Connected": .string("yes"),
            "Adapter": .int32(0), "Address": .bytes([1]),
        ]
        #expect(tree.add(Self.devicePath, device(nonsense)) == [status()])
    }

    @Test func `a number beyond its range is ignored`() {
        var tree = ObjectTree()
        _ = tree.add(Self.adapterPath, adapter)
        let extremes: KeyValuePairs<String, DBusValue> = ["RSSI": .int64(.min), "TxPower": .int64(.max)]
        #expect(tree.add(Self.devicePath, device(extremes)) == [status()])
        let path = Self.devicePath + "/service0001"
        _ = tree.add(path, service())
        let mtus: [(Int64, Int?)] = [(.min, nil), (22, nil), (23, 23), (65_535, 65_535), (65_536, nil)]
        for (mtu, known) in mtus {
            let properties: KeyValuePairs<String, DBusValue> = ["UUID": .string(uuid), "MTU": .int64(mtu)]
            _ = tree.add(path + "/char0002", characteristic(properties))
            #expect(tree.mtu(of: id) == known)
        }
    }

    @Test func `the end of a link is published before the status`() {
        var tree = connectedTree
        let properties = DBusValue.properties(["Connected": .boolean(false), "ServicesResolved": .boolean(false)])
        let changes = tree.change(Self.devicePath, "org.bluez.Device1", properties, [])
        #expect(changes == [.event(.disconnected(id)), status { $0.link = 1 }])
    }

    @Test func `resolved services imply a link`() {
        var tree = ObjectTree()
        _ = tree.add(Self.adapterPath, adapter)
        _ = tree.add(Self.devicePath, device(["Connected": .boolean(false)]))
        let properties = DBusValue.properties(["ServicesResolved": .boolean(true)])
        let changes = tree.change(Self.devicePath, "org.bluez.Device1", properties, [])
        #expect(
            changes == [
                status {
                    $0.isConnected = true
                    $0.link = 1
                    $0.isServicesResolved = true
                }
            ]
        )
    }

    @Test func `links are numbered across restarts of bluetoothd`() {
        var tree = connectedTree
        tree.clear()
        _ = tree.add(Self.adapterPath, adapter)
        let again = tree.add(Self.devicePath, device(["Connected": .boolean(true)]))
        #expect(
            again == [
                status {
                    $0.isConnected = true
                    $0.link = 2
                }
            ]
        )
    }

    @Test func `services of a former link are not resolved in the next`() {
        var tree = connectedTree
        let device = "org.bluez.Device1"
        _ = tree.change(Self.devicePath, device, .properties(["ServicesResolved": .boolean(true)]), [])
        _ = tree.change(Self.devicePath, device, .properties(["Connected": .boolean(false)]), [])
        let changes = tree.change(Self.devicePath, device, .properties(["Connected": .boolean(true)]), [])
        #expect(
            changes == [
                status {
                    $0.isConnected = true
                    $0.link = 2
                }
            ]
        )
    }

    @Test func `an adapter that is switched off has no links`() throws {
        var tree = connectedTree
        let properties = DBusValue.properties(["Powered": .boolean(false)])
        let changes = tree.change(Self.adapterPath, "org.bluez.Adapter1", properties, [])
        #expect(changes.dropFirst() == [.event(.disconnected(id)), status { $0.link = 1 }])
        let late = DBusValue.properties(["Connected": .boolean(false)])
        #expect(tree.change(Self.devicePath, "org.bluez.Device1", late, []).isEmpty)
    }

    @Test func `removing an adapter removes its devices`() {
        var tree = connectedTree
        #expect(
            tree.remove(Self.adapterPath, ["org.freedesktop.DBus.Properties", "org.bluez.Adapter1"]) == [
                .event(.disconnected(id)), .event(.peripheralRemoved(id)), .event(.adapterRemoved(id.adapter)),
            ]
        )
        #expect(tree.devicePath(id) == nil)
    }

    /// By several names, as a dictionary gives its keys in any order.
    @Test(arguments: 1...10)
    func `of two adapters with one address the first is used, and the other after its removal`(number: Int) {
        var tree = connectedTree
        let (twin, device) = ("/org/bluez/hci\(number)", "/org/bluez/hci\(number)/dev_C0_FF_EE_00_00_01")
        let ignored = tree.add(twin, adapter)
        #expect(ignored.count == 1 && tree.adapters.duplicates.map(\.name) == ["hci\(number)"])
        #expect(tree.add(device, self.device(["Connected": .boolean(true)])).isEmpty)
        #expect(tree.change(twin, "org.bluez.Adapter1", .properties(["Powered": .boolean(false)]), []).isEmpty)
        #expect(tree.adapterPath(id.adapter) == Self.adapterPath && tree.devicePath(id) == Self.devicePath)
        #expect(tree.announcements().count == 2)
        let change = AdapterStatus(address: id.adapter, name: "hci\(number)", isPowered: false, isDiscovering: false)
        #expect(
            tree.remove(Self.adapterPath, ["org.bluez.Adapter1"]) == [
                .event(.disconnected(id)), .event(.peripheralRemoved(id)), .event(.adapterRemoved(id.adapter)),
                .event(.adapterChanged(change)),
                status {
                    $0.isConnected = true
                    $0.link = 2
                },
            ]
        )
        #expect(
            tree.adapterPath(id.adapter) == twin && tree.devicePath(id) == device && tree.adapters.duplicates.isEmpty
        )
        #expect(tree.remove(twin, ["org.bluez.Adapter1"]).last == .event(.adapterRemoved(id.adapter)))
    }

    @Test func `removing a connected device ends its link first`() {
        var tree = connectedTree
        let changes = tree.remove(Self.devicePath, ["org.bluez.Device1"])
        #expect(changes == [.event(.disconnected(id)), .event(.peripheralRemoved(id))])
        #expect(tree.remove(Self.devicePath, ["org.bluez.Device1"]).isEmpty)
    }

    @Test func `a device whose address is resolved is another peripheral`() throws {
        var tree = connectedTree
        let properties = DBusValue.properties(["Address": .string("C0:FF:EE:00:00:02")])
        let changes = tree.change(Self.devicePath, "org.bluez.Device1", properties, [])
        #expect(changes.prefix(2) == [.event(.disconnected(id)), .event(.peripheralRemoved(id))])
        #expect(tree.devicePath(id) == nil)
        #expect(changes.count == 3)
    }

    // MARK: - Two objects of one address

    private static let secondPath = "/org/bluez/hci0/dev_7F_FF_EE_00_00_01"

    /// A tree with the object of the peripheral's address, and a connected object of a private address.
    private var treeOfTwo: ObjectTree {
        var tree = ObjectTree()
        _ = tree.add(Self.adapterPath, adapter)
        _ = tree.add(Self.devicePath, device())
        _ = tree.add(Self.secondPath, device(["Connected": .boolean(true)]))
        return tree
    }

    private func reveal(_ tree: inout ObjectTree) -> [ObjectTree.Change] {
        let properties = DBusValue.properties(["Address": .string("C0:FF:EE:00:00:01")])
        return tree.change(Self.secondPath, "org.bluez.Device1", properties, [])
    }

    @Test func `of two objects with one address the connected one is used`() {
        var tree = treeOfTwo
        let connected = status {
            $0.isConnected = true
            $0.link = 1
        }
        let changes = reveal(&tree)
        #expect(changes.last == connected)
        #expect(tree.devicePath(id) == Self.secondPath)
        let name = DBusValue.properties(["Name": .string("former")])
        #expect(tree.change(Self.devicePath, "org.bluez.Device1", name, []).isEmpty)
        #expect(tree.remove(Self.devicePath, ["org.bluez.Device1"]).isEmpty)
        let gone = tree.remove(Self.secondPath, ["org.bluez.Device1"])
        #expect(gone == [.event(.disconnected(id)), .event(.peripheralRemoved(id))])
    }

    @Test func `after the removal of the connected object the other one shows that the link has ended`() {
        var tree = treeOfTwo
        _ = reveal(&tree)
        let changes = tree.remove(Self.secondPath, ["org.bluez.Device1"])
        #expect(changes == [.event(.disconnected(id)), status { $0.link = 1 }])
        #expect(tree.devicePath(id) == Self.devicePath)
    }

    @Test func `of two objects without a link the one with received advertisements is used`() {
        var tree = treeOfTwo
        _ = reveal(&tree)
        _ = tree.change(Self.secondPath, "org.bluez.Device1", .properties(["Connected": .boolean(false)]), [])
        #expect(tree.devicePath(id) == Self.secondPath)
        let heard = tree.change(Self.devicePath, "org.bluez.Device1", .properties(["RSSI": .int16(-50)]), [])
        let expected = status {
            $0.rssi = -50
            $0.heard = 1
            $0.link = 1
        }
        #expect(heard == [expected])
    }

    @Test func `a peripheral is paired if one of its objects is, whichever is used`() {
        var tree = treeOfTwo
        _ = reveal(&tree)
        let ended = DBusValue.properties(["Paired": .boolean(true), "Connected": .boolean(false)])
        _ = tree.change(Self.secondPath, "org.bluez.Device1", ended, [])
        _ = tree.change(Self.devicePath, "org.bluez.Device1", .properties(["RSSI": .int16(-50)]), [])
        #expect(tree.devicePath(id) == Self.devicePath)
        #expect(tree.status(id)?.isPaired == true)
        #expect(tree.bond(id)?.isPaired == true)
    }

    @Test func `the reason of a link's end is that of the object which had the link`() {
        var tree = treeOfTwo
        _ = reveal(&tree)
        _ = tree.change(Self.devicePath, "org.bluez.Device1", .properties(["RSSI": .int16(-50)]), [])
        tree.recordEndReason(Self.secondPath, .timedOut)
        _ = tree.change(Self.secondPath, "org.bluez.Device1", .properties(["Connected": .boolean(false)]), [])
        #expect(tree.devicePath(id) == Self.devicePath)
        #expect(tree.endReason(id) == .timedOut)
    }

    // MARK: - Attributes

    private func frames(of changes: KeyValuePairs<String, DBusValue>..., isSignalled: Bool = true) -> [[String]] {
        var tree = ObjectTree()
        tree.reports.watch = AdvertisementWatch(addresses: [id.address], sources: [], sink: Sink())
        _ = tree.add(Self.adapterPath, adapter)
        _ = tree.add(Self.devicePath, device(), isSignalled: false)
        return changes.map { properties in
            let caused =
                isSignalled
                ? tree.change(Self.devicePath, "org.bluez.Device1", .properties(properties), [])
                : tree.refresh(Self.devicePath, "org.bluez.Device1", .properties(properties))
            return caused.flatMap { change in
                guard case .advertised(let heard) = change else { return [] as [String] }
                return ["\(heard.rssi ?? 0)"] + heard.frames.map { "\($0.source) \($0.octets)" }
            }
        }
    }

    private func data(_ entries: KeyValuePairs<UInt16, [UInt8]>) -> DBusValue {
        .dictionary(key: "q", value: "v", entries.map { DBusEntry(.uint16($0.key), .variant(.bytes($0.value))) })
    }

    @Test func `an advertisement has the data of its signal, also when it repeats`() {
        let heard = frames(
            of: ["RSSI": .int16(-60), "ManufacturerData": data([0x0499: [5]])],
            ["ManufacturerData": data([0x0499: [5]])],
            ["RSSI": .int16(-61)]
        )
        #expect(heard == [["-60", "manufacturer 0499 [5]"], ["-60", "manufacturer 0499 [5]"], ["-61"]])
    }

    @Test func `of several accumulated entries only the changed ones are in the advertisement`() {
        let heard = frames(
            of: ["ManufacturerData": data([1: [1]])],
            ["ManufacturerData": data([1: [1], 2: [2]])],
            ["ManufacturerData": data([1: [3], 2: [2]])]
        )
        #expect(
            heard.map { $0.dropFirst() } == [
                ["manufacturer 0001 [1]"], ["manufacturer 0002 [2]"], ["manufacturer 0001 [3]"],
            ]
        )
    }

    @Test func `answers to calls and links are not advertisements`() {
        #expect(frames(of: ["ManufacturerData": data([1: [1]])], isSignalled: false) == [[]])
        #expect(frames(of: ["Connected": .boolean(true)]) == [[]])
    }

    private func service(_ properties: KeyValuePairs<String, DBusValue> = [:]) -> DBusValue {
        .dictionary(
            key: "s",
            value: "a{sv}",
            [
                DBusEntry(
                    .string("org.bluez.GattService1"),
                    .dictionary(
                        key: "s",
                        value: "v",
                        [DBusEntry(.string("UUID"), .variant(.string("180d")))]
                            + properties.map { DBusEntry(.string($0.key), .variant($0.value)) }
                    )
                )
            ]
        )
    }

    private func characteristic(_ properties: KeyValuePairs<String, DBusValue>) -> DBusValue {
        interfaces("org.bluez.GattCharacteristic1", properties)
    }

    private let uuid = "00002A37-0000-1000-8000-00805F9B34FB"

    @Test func `the table follows the properties, not the paths`() {
        var tree = connectedTree
        _ = tree.add("/x/1", characteristic(["UUID": .string(uuid), "Service": .objectPath("/y/s")]))
        #expect(tree.table(of: id).isEmpty)
        #expect(tree.add("/y/s", service(["Device": .objectPath(Self.devicePath)])) == [.tableGrew(id)])
        #expect(tree.table(of: id).map(\.handle) == ["/x/1"])
        #expect(tree.table(of: id).map(\.uuid) == [BluetoothUUID(0x2A37)])
        #expect(tree.table(of: id).map(\.service) == [BluetoothUUID(0x180D)])
        #expect(tree.table(of: id).map(\.properties) == [[]])
    }

    @Test func `the table follows the paths if the properties are missing`() {
        var tree = connectedTree
        let path = Self.devicePath + "/service0001"
        _ = tree.add(path, service())
        let flags = DBusValue.strings([
            "read", "notify", "write", "indicate", "write-without-response", "reliable-write",
        ])
        _ = tree.add(path + "/char0002", characteristic(["UUID": .string(uuid), "Flags": flags]))
        #expect(
            tree.table(of: id).map(\.properties) == [[.read, .notify, .write, .indicate, .writeWithoutResponse]]
        )
    }

    @Test func `two characteristics with one UUID are distinct`() {
        var tree = connectedTree
        let path = Self.devicePath + "/service0001"
        _ = tree.add(path, service())
        for handle in ["/char0002", "/char0005"] {
            _ = tree.add(path + handle, characteristic(["UUID": .string(uuid)]))
        }
        #expect(tree.table(of: id).map(\.handle) == [path + "/char0002", path + "/char0005"])
    }

    @Test func `removing a service removes its characteristics`() {
        var tree = connectedTree
        let path = Self.devicePath + "/service0001"
        _ = tree.add(path, service())
        _ = tree.add(path + "/char0002", characteristic(["UUID": .string(uuid)]))
        let changes = tree.remove(path, ["org.bluez.GattService1"])
        #expect(changes.contains(.characteristicRemoved(path: path + "/char0002")))
        #expect(changes.contains(.tableShrank(id)))
        #expect(tree.table(of: id).isEmpty)
    }

    @Test func `a tree is replaced as a whole`() {
        var tree = connectedTree
        tree.load(.dictionary(key: "o", value: "a{sa{sv}}", [DBusEntry(.objectPath(Self.adapterPath), adapter)]))
        #expect(tree.announcements().count == 1)
        tree.load(.string("nonsense"))
        #expect(tree.announcements().isEmpty)
    }
}
