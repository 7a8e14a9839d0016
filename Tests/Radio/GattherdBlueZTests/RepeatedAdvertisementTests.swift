import GattherdBluetooth
import GattherdGATT
import GattherdModel
import Testing

@testable import GattherdBlueZ
@testable import GattherdDBus

/// Signals that repeat the last advertisement of a device, in virtual time.
@Suite struct RepeatedAdvertisementTests {
    private final class Sink: AdvertisementSink {
        func receive(_ advertisement: HeardAdvertisement, at time: Timestamp) {}
    }

    /// The effects of a signal.
    private struct Effect: Hashable {
        /// The signal was recognized as a repetition.
        var isRepetition = false
        /// The strength and the frames that were passed to the watch, as text; `nil` without a watch.
        var heard: String?
        /// The strength in the event, if there was one.
        var reported: Int?
    }

    private static let adapterPath = "/org/bluez/hci0"
    private static let path = "/org/bluez/hci0/dev_C0_FF_EE_00_00_01"
    private let id = Stage.peripheral
    private let start = SuspendingClock.now

    private func interfaces(_ name: String, _ properties: KeyValuePairs<String, DBusValue>) -> DBusValue {
        .dictionary(key: "s", value: "a{sv}", [DBusEntry(.string(name), .properties(properties))])
    }

    /// A tree with a device that a scan hears.
    private func tree(prompt: Set<BluetoothAddress>? = [], watched: Set<BluetoothAddress>? = nil) -> ObjectTree {
        var tree = ObjectTree()
        let adapter: KeyValuePairs = ["Address": DBusValue.string("00:00:5E:00:53:01"), "Powered": .boolean(true)]
        _ = tree.add(Self.adapterPath, interfaces("org.bluez.Adapter1", adapter))
        _ = tree.add(Self.path, interfaces("org.bluez.Device1", ["RSSI": .int16(-40)]))
        tree.reports.watch = AdvertisementWatch(
            addresses: watched ?? [id.address],
            sources: [],
            promptAddresses: prompt,
            sink: Sink()
        )
        return tree
    }

    private func data(_ entries: KeyValuePairs<UInt16, [UInt8]>) -> DBusValue {
        .dictionary(key: "q", value: "v", entries.map { DBusEntry(.uint16($0.key), .variant(.bytes($0.value))) })
    }

    /// Passes a signal to the tree as the router does.
    private func receive(
        _ properties: KeyValuePairs<String, DBusValue>,
        invalidated: [String] = [],
        at seconds: Double = 0,
        _ tree: inout ObjectTree
    ) throws -> Effect {
        let now = start + .seconds(seconds)
        let arguments: [DBusValue] = [.string(BlueZ.device), .properties(properties), .strings(invalidated)]
        let bytes = try OutgoingMessage.signal(Self.path, BlueZ.properties, "PropertiesChanged", to: ":1.7", arguments)
            .bytes(serial: 7)
        return try unsafe bytes.withUnsafeBytes { bytes in
            let signal = DBusSignal(unsafe MessageView(bytes, try MessageHeader(bytes), []))
            if let changes = tree.repeatAdvertisement(signal, at: now) {
                return effect(of: changes, isRepetition: true)
            }
            let changes = PropertyChanges(changed: .properties(properties), invalidated: invalidated)
            let caused =
                changes.areOfAdvertisementOnly
                ? tree.hear(signal, changes, at: now)
                : tree.change(Self.path, BlueZ.device, changes.changed, invalidated)
            return effect(of: caused, isRepetition: false)
        }
    }

    private func effect(of changes: [ObjectTree.Change], isRepetition: Bool) -> Effect {
        var effect = Effect(isRepetition: isRepetition)
        for change in changes {
            switch change {
            case .advertised(let heard):
                let frames = heard.frames.map { "\($0.source) \($0.octets)" }
                effect.heard = "\(heard.rssi ?? 0) " + frames.joined(separator: ", ")
            case .event(.peripheralChanged(let status)): effect.reported = status.rssi
            default: Issue.record("\(change)")
            }
        }
        return effect
    }

    // MARK: - Recognition

    @Test func `a repetition has the frames of the first advertisement and its own strength`() throws {
        var tree = tree(prompt: nil)
        let company = data([0x0499: [5, 6]])
        let first = try receive(["RSSI": .int16(-60), "ManufacturerData": company], &tree)
        let second = try receive(["RSSI": .int16(-61), "ManufacturerData": company], &tree)
        let third = try receive(["ManufacturerData": company], &tree)
        #expect(first == Effect(heard: "-60 manufacturer 0499 [5, 6]", reported: -60))
        #expect(second == Effect(isRepetition: true, heard: "-61 manufacturer 0499 [5, 6]", reported: -61))
        #expect(third == Effect(isRepetition: true, heard: "-61 manufacturer 0499 [5, 6]", reported: -61))
        #expect(tree.status(id)?.rssi == -61)
        #expect(tree.status(id)?.heard == 4)
    }

    @Test func `a strength alone is an advertisement without frames`() throws {
        var tree = tree(prompt: nil)
        let company = data([0x0499: [5]])
        _ = try receive(["RSSI": .int16(-60), "ManufacturerData": company], &tree)
        #expect(try receive(["RSSI": .int16(-70)], &tree) == Effect(isRepetition: true, heard: "-70 ", reported: -70))
        let again = try receive(["ManufacturerData": company], &tree)
        #expect(again == Effect(isRepetition: true, heard: "-70 manufacturer 0499 [5]", reported: -70))
    }

    @Test func `each strength alone is one of its own`() throws {
        var tree = tree(prompt: nil)
        let company = data([0x0499: [5]])
        _ = try receive(["RSSI": .int16(-60), "ManufacturerData": company], &tree)
        let heard = try [-70, -71].map { try receive(["RSSI": .int16($0)], &tree).heard }
        #expect(heard == ["-70 ", "-71 "])
        #expect(try receive(["ManufacturerData": company], &tree).heard == "-71 manufacturer 0499 [5]")
    }

    @Test func `an advertisement with other frames keeps everything else`() {
        let frames = [HeardAdvertisement.Frame(.manufacturer(0x0499), [5])]
        let heard = HeardAdvertisement(peripheral: id, name: "Tag", rssi: -60, services: [0xFCD2], frames: frames)
        #expect(heard.with([]).frames == [])
        #expect(heard.with([]).with(frames) == heard)
        #expect(heard.with(frames) == heard)
    }

    @Test func `the content of an advertisement is its name, services and frames`() {
        let frames = [HeardAdvertisement.Frame(.manufacturer(0x0499), [5])]
        let heard = HeardAdvertisement(peripheral: id, name: "Tag", rssi: -60, services: [0xFCD2], frames: frames)
        var copy = heard
        copy.rssi = -70
        #expect(copy.hasContent(of: heard) && copy != heard)
        let equal = HeardAdvertisement(peripheral: id, name: "Tag", services: [0xFCD2], frames: frames)
        let others = [
            HeardAdvertisement(peripheral: id, name: "Other", services: [0xFCD2], frames: frames),
            HeardAdvertisement(peripheral: id, name: "Tag", frames: frames), heard.with([]),
        ]
        #expect(equal.hasContent(of: heard))
        #expect(others.allSatisfy { !$0.hasContent(of: heard) })
    }

    @Test func `of several accumulated entries none is certain in a repetition`() throws {
        var tree = tree(prompt: nil)
        let companies = data([0x0499: [5], 0x0969: [7]])
        let first = try receive(["RSSI": .int16(-60), "ManufacturerData": companies], &tree)
        let second = try receive(["RSSI": .int16(-60), "ManufacturerData": companies], &tree)
        #expect(first.heard == "-60 manufacturer 0499 [5], manufacturer 0969 [7]")
        #expect(second == Effect(isRepetition: true, heard: "-60 ", reported: -60))
    }

    @Test(arguments: [[5, 7], [5], [5, 6, 7], [], [4, 6]] as [[UInt8]])
    func `other bytes are no repetition`(octets: [UInt8]) throws {
        var tree = tree(prompt: nil)
        _ = try receive(["ManufacturerData": data([0x0499: [5, 6]]), "RSSI": .int16(-60)], &tree)
        let other = try receive(["ManufacturerData": data([0x0499: octets]), "RSSI": .int16(-60)], &tree)
        #expect(other == Effect(heard: "-60 manufacturer 0499 \(octets)", reported: -60))
    }

    @Test func `the same bytes of another company, or more properties, are no repetition`() throws {
        var tree = tree(prompt: nil)
        let company = data([0x0499: [5, 6]])
        _ = try receive(["ManufacturerData": company, "RSSI": .int16(-60)], &tree)
        #expect(try !receive(["ManufacturerData": company, "TxPower": .int16(4)], &tree).isRepetition)
        #expect(try !receive(["ManufacturerData": data([0x0498: [5, 6]]), "RSSI": .int16(-60)], &tree).isRepetition)
        #expect(try !receive(["ServiceData": .properties(["fcd2": .bytes([5, 6])])], &tree).isRepetition)
    }

    @Test func `another change of the device makes the next advertisement no repetition`() throws {
        var tree = tree(prompt: nil)
        let company = data([0x0499: [5]])
        for _ in 1...2 { _ = try receive(["RSSI": .int16(-60), "ManufacturerData": company], &tree) }
        _ = try receive(["Name": .string("tag"), "ManufacturerData": data([0x0499: [6]])], &tree)
        let next = try receive(["RSSI": .int16(-60), "ManufacturerData": company], &tree)
        #expect(next == Effect(heard: "-60 manufacturer 0499 [5]", reported: -60))
        #expect(try receive([:], invalidated: ["RSSI"], &tree) == Effect())
        #expect(try !receive(["RSSI": .int16(-60), "ManufacturerData": company], &tree).isRepetition)
    }

    @Test func `a device that was removed, and one of a removed adapter, repeat nothing`() throws {
        for path in [Self.path, Self.adapterPath] {
            var tree = tree(prompt: nil)
            for _ in 1...2 { _ = try receive(["RSSI": .int16(-60), "TxPower": .int16(4)], &tree) }
            _ = tree.remove(path, [BlueZ.adapter, BlueZ.device])
            #expect(try receive(["RSSI": .int16(-60), "TxPower": .int16(4)], &tree) == Effect())
        }
    }

    @Test func `a signal of no change is no advertisement`() throws {
        for first: KeyValuePairs in [["RSSI": DBusValue.int16(-60)], ["TxPower": .int16(4), "RSSI": .int16(-60)]] {
            var tree = tree(prompt: nil)
            _ = try receive(first, &tree)
            let heard = tree.status(id)?.heard
            #expect(try receive([:], &tree) == Effect())
            #expect(tree.status(id)?.heard == heard)
        }
    }

    // MARK: - Events

    @Test func `advertisements cause an event every two seconds, and reach the watch each time`() throws {
        var tree = tree()
        let effects = try [0, 1, 1.9, 2.1, 3.9, 4.2].map { seconds in
            try receive(["RSSI": .int16(-60), "ManufacturerData": data([0x0499: [5]])], at: seconds, &tree)
        }
        #expect(effects.map(\.reported) == [-60, nil, nil, -60, nil, -60])
        #expect(Set(effects.map(\.heard)) == ["-60 manufacturer 0499 [5]"])
    }

    @Test func `advertisements with changing data cause an event every two seconds, too`() throws {
        var tree = tree()
        let effects = try [0, 1, 1.9, 2.1].enumerated().map { number, seconds in
            try receive(["ManufacturerData": data([0x0499: [UInt8(number)]])], at: seconds, &tree)
        }
        #expect(effects.map(\.reported) == [-40, nil, nil, -40])
        #expect(effects.map(\.heard) == (0...3).map { "-40 manufacturer 0499 [\($0)]" })
    }

    @Test func `data of another company or service causes an event at once`() throws {
        var tree = tree()
        let (one, two) = (data([0x0499: [5]]), data([0x0499: [5], 0x0969: [7]]))
        let service = DBusValue.properties(["0000fcd2-0000-1000-8000-00805f9b34fb": .bytes([1])])
        let effects = try [
            receive(["RSSI": .int16(-60), "ManufacturerData": one], &tree),
            receive(["RSSI": .int16(-61), "ManufacturerData": two], at: 0.1, &tree),
            receive(["RSSI": .int16(-62), "ServiceData": service], at: 0.2, &tree),
            receive(["RSSI": .int16(-63), "ManufacturerData": two], at: 0.3, &tree),
        ]
        #expect(effects.map(\.reported) == [-60, -61, -62, nil])
    }

    @Test func `each advertisement of a peripheral that must be known at once causes an event`() throws {
        var tree = tree(prompt: [id.address])
        let effects = try [-60, -61, -62].map { try receive(["RSSI": .int16($0), "TxPower": .int16(4)], &tree) }
        #expect(effects.map(\.reported) == [-60, -61, -62])
    }

    @Test func `the first advertisement after another change causes an event at once`() throws {
        var tree = tree()
        for _ in 1...2 { _ = try receive(["RSSI": .int16(-60), "TxPower": .int16(4)], &tree) }
        #expect(try receive(["Name": .string("tag")], at: 0.1, &tree).reported == -60)
        #expect(try receive(["RSSI": .int16(-61), "TxPower": .int16(4)], at: 0.2, &tree).reported == -61)
        #expect(try receive(["RSSI": .int16(-62), "TxPower": .int16(4)], at: 0.3, &tree).reported == nil)
    }

    @Test func `a peripheral that is not watched causes events only`() throws {
        var tree = tree(watched: [])
        let effects = try [0, 1.5, 2.1].map { try receive(["RSSI": .int16(-60), "TxPower": .int16(4)], at: $0, &tree) }
        #expect(effects.map(\.heard) == [nil, nil, nil])
        #expect(effects.map(\.reported) == [-60, nil, -60])
    }
}
