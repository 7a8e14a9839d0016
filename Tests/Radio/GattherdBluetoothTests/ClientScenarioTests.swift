import BlueZKit
import GattherdBlueZ
import TestKit
import Testing

/// Typical programs with the library, on the simulator and on a real bluetoothd in a virtual machine.
@Suite(.timeLimit(.minutes(3)), .serialized) struct ClientScenarioTests {
    private static let scenario = """
        timing: {disconnect: 10ms, supervision_timeout: 50ms}
        peripherals:
          - name: strap
            address: "C0:FF:EE:00:00:01"
            kind: heart-rate
            rate: 0
            battery: 97
            connect_latency: 5ms
            advertise: {name: Strap, interval: 20ms, manufacturer_data: {0x004c: "02 15"}, service_data: {180f: "64"}, rssi: -50}
          - {name: dial, address: "C0:FF:EE:00:00:02", kind: number-service, value: 42}
          - name: pump
            address: "C0:FF:EE:00:00:03"
            kind: custom
            services:
              - uuid: fff0
                characteristics:
                  - {uuid: fff1, properties: [write, write-without-response, notify], write: {notify_change: true}}
                  - {uuid: fff2, properties: [read], value: "0102", descriptors: [{uuid: 2901, value: "41"}]}
          - {name: shy, address: "C0:FF:EE:00:00:05", kind: battery, connect_failures: 1}
          - {name: odd, address: "C0:FF:EE:00:00:04", kind: malformed-heart-rate, rate: 50}
        """

    private static let measurement: CharacteristicID = 0x2A37
    private static let number = CharacteristicID(
        BluetoothUUID(high: 0x7a4b_0001_999f_4717, low: 0xb63a_066e_0697_1f59)
    )

    private static let quick: Autoconnect = {
        var autoconnect = Autoconnect.whenUnexpected
        autoconnect.minimumDelay = .milliseconds(5)
        autoconnect.maximumDelay = .milliseconds(20)
        return autoconnect
    }()

    private static func address(_ octet: UInt64) -> BluetoothAddress {
        BluetoothAddress(value: 0xC0FFEE_000000 + octet)
    }

    private func run(
        _ configure: (inout Central.Configuration) -> Void = { _ in },
        _ body: (Central, any BluetoothStack) async throws -> Void
    ) async throws {
        var configuration = Central.Configuration()
        configure(&configuration)
        let stack = try await StackKind.current.start(Self.scenario)
        try await withCentral(on: .address(stack.bus), configuration: configuration) { central in
            try await central.waitUntilReady(timeout: .seconds(60))
            try await body(central, stack)
        }
        try await stack.stop()
    }

    private func notify(_ stack: any BluetoothStack, _ octets: String) async throws {
        try await stack.order(["notify", "strap", "2a37", octets])
    }

    // MARK: - Scanning

    @Test func `all advertised data is reported`() async throws {
        try await run { central, _ in
            for try await advertisement in central.scan(name: "Strap", minimumRSSI: -60, timeout: .seconds(60)).prefix(
                1
            ) {
                #expect(advertisement.address == Self.address(1))
                #expect(advertisement.services.contains(0x180D))
                #expect(advertisement.data.manufacturerData == [0x004C: [0x02, 0x15]])
                #expect(advertisement.data.serviceData == [0x180F: [0x64]])
                #expect(advertisement.rssi == -50)
                #expect(try await advertisement.peripheral.readRSSI() == -50)
            }
            try await eventually { !central.isScanning }
        }
    }

    @Test func `a scan for a service finds a peripheral that only has its service data`() async throws {
        try await run { central, _ in
            for try await advertisement in central.scan(services: [0x180F], timeout: .seconds(30))
            where advertisement.address == Self.address(1) {
                #expect(!advertisement.services.contains(0x180F))
                break
            }
        }
    }

    @Test func `a scan continues after a power cycle and a restart of bluetoothd`() async throws {
        try await run { central, stack in
            var scan = central.scan(allowDuplicates: true).makeAsyncIterator()
            _ = try await scan.next()
            async let off: Void = wait(central, for: .poweredOff)
            try await stack.order(["power", "hci0", "off"])
            await off
            try await stack.order(["power", "hci0", "on"])
            try await eventually { central.isScanning }
            async let away: Void = wait(central, for: .resetting)
            // A state that soon changes again may be missed.
            try await stack.order(["restart-daemon", "1000ms"])
            await away
            try await eventually { central.isScanning }
            _ = try await scan.next()
        }
    }

    private func wait(_ central: Central, for state: CentralState) async {
        for await now in central.states where now == state { return }
    }

    // MARK: - Values

    @Test func `values are read, written and notified`() async throws {
        try await run { central, _ in
            let dial = try await central.connect(Self.address(2))
            let values = try await dial.notifications(of: UInt8.self, from: Self.number)
            #expect(try await dial.read(UInt8.self, from: Self.number) == 42)
            for value in 1...50 as ClosedRange<UInt8> { try await dial.write(value, to: Self.number) }
            var seen: [UInt8] = []
            for try await value in values.prefix(50) { seen.append(value) }
            #expect(seen == Array(1...50))
            let refused = await outcome { try await dial.write([1, 2], to: Self.number) }
            #expect(refused.error?.kind == .invalidLength)
            #expect(refused.error?.original?.name == "org.bluez.Error.InvalidArguments")
        }
    }

    @Test func `write commands come in order, none is lost`() async throws {
        try await run { central, _ in
            let pump = try await central.connect(Self.address(3))
            let size = try await pump.maximumWriteValueLength(for: .withoutResponse)
            #expect(size == 512)
            let echoes = try await pump.notifications(of: UInt32.self, from: 0xFFF1)
            for number in 0..<500 as Range<UInt32> { try await pump.write(number, to: 0xFFF1, type: .withoutResponse) }
            var seen: [UInt32] = []
            for try await echo in echoes.prefix(500) { seen.append(echo) }
            #expect(seen == Array(0..<500))
            #expect(try await pump.writeAndListen(UInt16(7), to: 0xFFF1, as: UInt16.self) == 7)
        }
    }

    @Test func `the whole table is discovered, with its descriptors`() async throws {
        try await run { central, _ in
            let pump = try await central.connect(Self.address(3))
            let service = try #require(try await pump.discoverServices([0xFFF0]).first)
            #expect(service.characteristics.map(\.uuid) == [0xFFF1, 0xFFF2])
            let readable = try #require(service[0xFFF2])
            #expect(try await pump.readValue(for: readable) == [1, 2])
            let descriptor = try #require(readable.descriptors.first { $0.uuid == 0x2901 })
            #expect(try await pump.read(String.self, from: descriptor) == "A")
        }
    }

    @Test(arguments: [NotificationPath.signals, .socket])
    func `several listeners each get every notification`(path: NotificationPath) async throws {
        try await run({ $0.notificationPath = path }) { central, stack in
            let strap = try await central.connect(Self.address(1))
            let first = try await strap.notifications(of: [UInt8].self, from: Self.measurement)
            let second = try await strap.notifications(of: [UInt8].self, from: Self.measurement)
            try await stack.order(["rate", "strap", "100"])
            var all: [[UInt8]] = []
            for values in [first, second] {
                var beats: [UInt8] = []
                for try await value in values.prefix(100) { beats.append(value[1]) }
                all.append(beats)
            }
            // Notification n has 60 + n mod 120.
            #expect(zip(all[0], all[0].dropFirst()).allSatisfy { $1 == ($0 == 179 ? 60 : $0 + 1) })
            #expect(all[0] == all[1])
        }
    }

    @Test func `malformed values are errors that end nothing`() async throws {
        try await run { central, _ in
            let odd = try await central.connect(Self.address(4))
            let values = try await odd.notifications(of: UInt32.self, from: Self.measurement)
            var iterator = values.makeAsyncIterator()
            for _ in 0..<9 {
                let result = await outcome { try await iterator.next() }
                #expect(result.error?.kind == .invalidValue)
            }
        }
    }

    // MARK: - Faults

    @Test func `a dropped peripheral comes back with its subscriptions`() async throws {
        try await run { central, stack in
            let strap = try #require(central.peripheral(Self.address(1)))
            strap.addConnectionTask { try await $0.setNotifyValue(true, for: Self.measurement) }
            var updates = strap.valueUpdates().makeAsyncIterator()
            let changes = strap.connectionStateChanges()
            try await strap.connect(autoconnect: Self.quick)
            for beat in 1...3 as ClosedRange<UInt8> {
                try await notify(stack, "000\(beat)")
                #expect(await updates.next()?.octets == [0, beat])
                try await stack.order(["drop", "strap"])
                let lost = await changes.wait(for: .disconnected(.remote))
                #expect(lost?.willReconnect == true && lost?.isUnexpectedDisconnect == true)
                await changes.wait(for: .ready)
            }
        }
    }

    @Test func `lasting notifications report the gaps between the links of a dropped peripheral`() async throws {
        try await run { central, stack in
            let strap = try #require(central.peripheral(Self.address(1)))
            var events = strap.lastingNotifications(of: [UInt8].self, from: Self.measurement).makeAsyncIterator()
            try await strap.connect(autoconnect: Self.quick)
            for beat in 1...3 as ClosedRange<UInt8> {
                guard case .subscribed = await events.next() else { return #expect(Bool(false), "not subscribed") }
                try await notify(stack, "000\(beat)")
                guard case .value([0, beat]) = await events.next() else { return #expect(Bool(false), "no value") }
                try await stack.order(["drop", "strap"])
                guard case .interrupted(.some) = await events.next() else { return #expect(Bool(false), "no gap") }
            }
        }
    }

    @Test func `switching the adapter off is the reason of the end`() async throws {
        try await run { central, stack in
            let strap = try await central.connect(Self.address(1), autoconnect: Self.quick)
            let changes = strap.connectionStateChanges()
            try await stack.order(["power", "hci0", "off"])
            await changes.wait(for: .disconnected(.adapterPoweredOff))
            try await stack.order(["power", "hci0", "on"])
            await changes.wait(for: .ready)
            try await stack.order(["unplug", "hci0"])
            await changes.wait(for: .disconnected(.adapterLost))
            await wait(central, for: .unsupported)
            try await stack.order(["plug", "hci0"])
            await changes.wait(for: .ready)
        }
    }

    @Test func `links end with daemonLost and reconnect when bluetoothd returns`() async throws {
        try await run { central, stack in
            let strap = try await central.connect(Self.address(1), autoconnect: Self.quick)
            let changes = strap.connectionStateChanges()
            try await stack.order(["restart-daemon", "20ms"])
            await changes.wait(for: .disconnected(.daemonLost))
            await changes.wait(for: .ready)
        }
    }

    @Test func `changed services are published and discovered`() async throws {
        try await run { central, stack in
            let strap = try await central.connect(Self.address(1))
            #expect(try await strap.discoverServices([0x180F]).count == 1)
            let changes = strap.serviceChanges()
            try await stack.order(["change-services", "strap", "180f"])
            for await _ in changes { break }
            while try await !strap.discoverServices([0x180F]).isEmpty { for await _ in changes { break } }
            #expect(try await strap.discoverServices([0x180D]).count == 1)
        }
    }

    @Test func `a failed attempt has BlueZ's error`() async throws {
        try await run { central, _ in
            let result = await outcome { try await central.connect(Self.address(5)) }
            // The link ends at once. bluetoothd may have reported success by then, or make another attempt.
            guard let error = result.error else { return #expect(StackKind.current == .real) }
            if error.kind != .notConnected {
                #expect(error.kind == .connectionFailed)
                #expect(error.original?.message == "le-connection-abort-by-local")
            }
            #expect(error.isTransient)
            try await central.connect(Self.address(5))
        }
    }

    // MARK: - Links and their holders

    @Test func `a link left by one central is adopted by the next`() async throws {
        let stack = try await StackKind.current.start(Self.scenario)
        let bus = BluetoothBus.address(stack.bus)
        var configuration = Central.Configuration()
        configuration.keepsLinks = true
        let snapshot = try await withCentral(on: bus, configuration: configuration) { central in
            try await central.waitUntilReady(timeout: .seconds(60))
            let strap = try await central.connect(Self.address(1))
            try await strap.setNotifyValue(true, for: Self.measurement)
            return central.snapshot
        }
        try await withCentral(on: bus) { central in
            let strap = try await held(by: central)
            #expect(central.connectedPeripherals(services: [0x180D]) == [strap])
            var updates = strap.valueUpdates().makeAsyncIterator()
            #expect(try await central.restore(from: snapshot).adopted == [strap])
            try await notify(stack, "0009")
            #expect(await updates.next()?.octets == [0, 9])
            try await central.detach(strap)
        }
        try await withCentral(on: bus) { central in
            let strap = try await held(by: central)
            try await strap.connect()
            try await strap.disconnect()
            try await eventually { central.connectedPeripherals().isEmpty }
        }
        try await stack.stop()
    }

    @Test func `a cancelled task leaves no link behind`() async throws {
        let stack = try await StackKind.current.start(Self.scenario)
        let bus = BluetoothBus.address(stack.bus)
        let (connected, tell) = AsyncStream.makeStream(of: Void.self)
        let client = Task {
            try await withCentral(on: bus) { central in
                try await central.waitUntilReady(timeout: .seconds(60))
                try await central.connect(Self.address(1)).setNotifyValue(true, for: Self.measurement)
                tell.finish()
                try await Task.sleep(for: .seconds(600))
            }
        }
        for await _ in connected {}
        client.cancel()
        await #expect(throws: CancellationError.self) { try await client.value }
        try await withCentral(on: bus) { central in
            try await central.waitUntilReady(timeout: .seconds(60))
            #expect(central.connectedPeripherals().isEmpty)
        }
        try await stack.stop()
    }

    /// The strap, as soon as the link of another client is known.
    private func held(by central: Central) async throws -> Peripheral {
        try await central.waitUntilReady(timeout: .seconds(60))
        try await eventually { !central.connectedPeripherals().isEmpty }
        return try #require(central.peripheral(Self.address(1)))
    }

    @Test func `many cycles leave nothing behind`() async throws {
        try await run { central, stack in
            let changes = central.connectionStateChanges()
            for _ in 0..<30 {
                let strap = try await central.connect(Self.address(1))
                let values = try await strap.notifications(of: [UInt8].self, from: Self.measurement)
                try await stack.order(["drop", "strap"])
                await #expect(throws: BluetoothError.self) { for try await _ in values {} }
                await changes.wait(for: .disconnected(.remote))
            }
            #expect(central.connectionStates.count == 1)
        }
    }
}
