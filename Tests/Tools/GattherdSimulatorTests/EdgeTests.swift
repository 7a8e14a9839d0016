import FoundationEssentials
import GattherdDBus
import GattherdGATT
import GattherdSync
import Glibc
import TestKit
import Testing

@testable import GattherdSimulator

@Suite(.timeLimit(.minutes(3))) struct EdgeTests {
    private static let fast = "connect_latency: 5ms, resolve_latency: 5ms, advertise: {interval: 20ms}"

    private static func yaml(_ kind: String, _ more: String = "") -> String {
        "peripherals: [{name: p, address: 'C0:FF:EE:00:00:01', kind: \(kind), \(fast)\(more)}]"
    }

    @Test func `a bus client connects and receives every notification in order`() async throws {
        try await BusBench.with(Self.yaml("heart-rate", ", rate: 200, rr: 1")) { bench in
            let path = try await bench.connect(uuid: "2a37")
            let signals = await bench.client.signals(matching: DBusSignalFilter(path: path))
            try await bench.call(path, InterfaceName.characteristic, "StartNotify")
            var values: [[UInt8]] = []
            for await signal in signals {
                guard let value = signal.arguments[1]["Value"]?.bytes else { continue }
                values.append(value)
                if values.count == 50 { break }
            }
            let rates = values.map { Int($0[1]) }
            #expect(zip(rates, rates.dropFirst()).allSatisfy { $1 - $0 == 1 || $1 - $0 == -119 })
        }
    }

    @Test func `GetManagedObjects returns the object tree, and properties can be read and set`() async throws {
        try await BusBench.with(Self.yaml("number-service")) { bench in
            let path = try await bench.connect(uuid: "7a4b0001")
            let objects = try await bench.call("/", InterfaceName.objectManager, "GetManagedObjects")
            let paths = objects.first?.entries?.compactMap(\.key.string) ?? []
            #expect(paths.prefix(3) == ["/org/bluez", Bench.adapter, Bench.device])
            #expect(paths.contains(path))
            let properties = InterfaceName.properties
            try await bench.call(
                Bench.device,
                properties,
                "Set",
                .string(InterfaceName.device),
                .string("Trusted"),
                .variant(.boolean(true))
            )
            let answer = try await bench.call(Bench.device, properties, "GetAll", .string(InterfaceName.device))
            #expect(answer.first?["Trusted"]?.bool == true)
            #expect(answer.first?["ServicesResolved"]?.bool == true)
        }
    }

    @Test func `an error has BlueZ's name and text on the wire`() async throws {
        try await BusBench.with(Self.yaml("number-service")) { bench in
            let path = try await bench.connect(uuid: "7a4b0001")
            let options = DBusValue.properties([Property("type", .string("request"))])
            let error = await #expect(throws: DBusError.self) {
                try await bench.call(path, InterfaceName.characteristic, "WriteValue", .bytes([1, 2]), options)
            }
            #expect(error == .invalidLength)
        }
    }

    @Test func `a read signals Value to every client, also without a subscription`() async throws {
        try await BusBench.with(Self.yaml("number-service", ", value: 42")) { bench in
            let path = try await bench.connect(uuid: "7a4b0001")
            let signals = await bench.client.signals(matching: DBusSignalFilter(path: path))
            let other = try await DBusConnection.open(.address(bench.bus.address), on: bench.client.loop)
            try await other.call(
                "org.bluez",
                path,
                InterfaceName.characteristic,
                "ReadValue",
                [.properties([Property]())],
                timeout: .seconds(20)
            )
            for await signal in signals {
                #expect(signal.arguments[1]["Value"]?.bytes == [42])
                break
            }
            await other.close()
        }
    }

    @Test func `a client that leaves the bus ends its discovery session`() async throws {
        try await BusBench.with(Self.yaml("heart-rate")) { bench in
            let path = try await bench.connect(uuid: "2a37")
            let signals = await bench.client.signals(matching: DBusSignalFilter(path: path))
            let other = try await DBusConnection.open(.address(bench.bus.address), on: bench.client.loop)
            try await other.call(
                "org.bluez",
                path,
                InterfaceName.characteristic,
                "StartNotify",
                timeout: .seconds(20)
            )
            await other.close()
            for await signal in signals where signal.arguments[1]["Notifying"]?.bool == false { return }
            Issue.record("the signals ended")
        }
    }

    @Test func `a restart releases the name, fails pending calls and restores the connected device`()
        async throws
    {
        try await BusBench.with(Self.yaml("number-service")) { bench in
            let path = try await bench.connect(uuid: "7a4b0001")
            try await bench.simulator.perform(.silence("p", .all))
            let signals = await bench.client.signals(matching: DBusSignalFilter(member: "NameOwnerChanged"))
            async let pending = bench.call(path, InterfaceName.characteristic, "ReadValue", .properties([Property]()))
            try await bench.call(Bench.adapter, InterfaceName.properties, "GetAll", .string(InterfaceName.adapter))
            try await bench.control("RestartDaemon", .boolean(false), .uint32(50))
            do {
                _ = try await pending
                Issue.record("the call was answered")
            } catch {
                #expect((error as? DBusError)?.name == "org.freedesktop.DBus.Error.NoReply")
            }
            for await signal in signals where signal.arguments[2].string != "" { break }
            let objects = try await bench.call("/", InterfaceName.objectManager, "GetManagedObjects")
            #expect(objects.first?.entries?.compactMap(\.key.string) == ["/org/bluez", Bench.adapter, Bench.device])
        }
    }

    @Test func `a graceful end removes the objects before the bus name`() async throws {
        try await BusBench.with(Self.yaml("number-service")) { bench in
            _ = try await bench.connect(uuid: "7a4b0001")
            let signals = await bench.client.signals(matching: DBusSignalFilter())
            try await bench.control("RestartDaemon", .boolean(true), .uint32(50))
            var removed: [String] = []
            for await signal in signals {
                if signal.member == "InterfacesRemoved" { removed.append(signal.arguments[0].string ?? "") }
                if signal.member == "NameOwnerChanged" { break }
            }
            #expect(removed.suffix(2) == [Bench.device, Bench.adapter])
            for await signal in signals where signal.member == "NameOwnerChanged" { break }
        }
    }

    @Test func `D-Bus orders are executed or refused with a reason`() async throws {
        try await BusBench.with(Self.yaml("heart-rate")) { bench in
            _ = try await bench.connect(uuid: "2a37")
            let status = try await bench.control("Status")
            #expect(status.first?.elements?.first?["name"]?.string == "p")
            #expect(status.first?.elements?.first?["connected"]?.bool == true)
            let signals = await bench.client.signals(matching: DBusSignalFilter(path: Bench.device))
            try await bench.control("Drop", .string("p"))
            for await signal in signals where signal.arguments[1]["Connected"]?.bool == false { break }
            let error = await #expect(throws: DBusError.self) { try await bench.control("Drop", .string("p")) }
            #expect(error?.message == "'p' is not connected")
            let name = DBusValue.string("p")
            for (member, arguments) in [
                ("Slow", [name, .uint32(5)]), ("Refuse", [name, .uint32(1)]), ("Advertise", [name, .boolean(true)]),
                ("Forget", [name]), ("Hang", [.string("hci0"), .boolean(false)]),
            ] as [(String, [DBusValue])] { try await bench.control(member, arguments) }
            await #expect(throws: DBusError.self) { try await bench.control("Burst", name, .uint32(1)) }
            await #expect(throws: DBusError.self) { try await bench.control("Drop", .string("nobody")) }
            await #expect(throws: DBusError.self) { try await bench.control("Silence", .string("p"), .string("loud")) }
            await #expect(throws: DBusError.self) { try await bench.control("Drop", .uint32(1)) }
        }
    }

    @Test func `the truth log has one JSON object per line`() async throws {
        let folder = try TemporaryFolder()
        try await BusBench.with(Self.yaml("number-service"), truthPath: folder.file("truth")) { bench in
            let path = try await bench.connect(uuid: "7a4b0001")
            let options = DBusValue.properties([Property("type", .string("request"))])
            try await bench.call(path, InterfaceName.characteristic, "StartNotify")
            try await bench.call(path, InterfaceName.characteristic, "WriteValue", .bytes([9]), options)
            try await bench.control("Drop", .string("p"))
        }
        let lines = try String(contentsOfFile: folder.file("truth"), encoding: .utf8).split(separator: "\n")
        let dev = "\"dev\":\"C0:FF:EE:00:00:01\""
        let char = "\"char\":\"7a4b0001-999f-4717-b63a-066e06971f59\""
        #expect(
            lines.map { $0.drop { $0 != "," } } == [
                ",\"event\":\"connect\",\(dev),\"adapter\":\"hci0\"}",
                ",\"event\":\"subscribe\",\(dev),\(char)}",
                ",\"event\":\"write\",\(dev),\(char),\"hex\":\"09\",\"error\":null}",
                ",\"event\":\"notification\",\(dev),\(char),\"n\":0,\"hex\":\"09\",\"delivered\":true}",
                ",\"event\":\"disconnect\",\(dev),\"reason\":\"remote\"}",
            ]
        )
        #expect(lines.allSatisfy { $0.hasPrefix("{\"t\":1") })
    }

    @Test func `a missing bus and a taken name are reported`() async throws {
        let nowhere = try Simulator(Scenario(), on: .address("unix:path=/nowhere"))
        await #expect(throws: SimulatorError.self) { try await nowhere.run() }
        try await BusBench.with("") { bench in
            let second = try Simulator(Scenario(), on: .address(bench.bus.address))
            let error = await #expect(throws: SimulatorError.self) { try await second.run() }
            #expect(error?.description == "the name org.gattherd.Simulator is taken")
        }
    }

    @Test func `cancelling a starting simulator ends it without an error`() async throws {
        let bus = try PrivateBus()
        bus.pause()
        let simulator = try Simulator(Scenario(), on: .address(bus.address))
        let running = Task { try await simulator.run() }
        running.cancel()
        try await running.value
        bus.resume()
    }

    @Test(.timeLimit(.minutes(1))) func `waiting for a simulator that cannot start returns false`() async throws {
        let simulator = try Simulator(Scenario(), on: .address("unix:path=/nowhere"))
        async let isReady = simulator.waitUntilReady()
        await #expect(throws: SimulatorError.self) { try await simulator.run() }
        #expect(await !isReady)
        #expect(await !simulator.waitUntilReady())
    }

    @Test func `the simulator ends with an error when its bus ends`() async throws {
        let bus = try PrivateBus()
        let simulator = try Simulator(Scenario(), on: .address(bus.address))
        async let end: Void = simulator.run()
        #expect(await simulator.waitUntilReady())
        await bus.kill()
        do {
            try await end
            Issue.record("it ended well")
        } catch {
            #expect(error is SimulatorError)
        }
    }
}
