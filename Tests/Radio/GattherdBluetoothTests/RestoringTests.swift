import FoundationEssentials
import GattherdBluetooth
import GattherdSync
import TestKit
import Testing

@Suite(.timeLimit(.minutes(1))) struct RestoringTests {
    @Test func `the next run restores links and subscriptions`() async throws {
        let snapshot = try await { () async throws -> CentralSnapshot in
            let backend = FakeBackend()
            let central = Central(backend: backend)
            return try await central.run { central in
                try await central.waitUntilReady()
                let bench = Bench(backend: backend, central: central)
                let strap = try await bench.connected()
                try await strap.setNotifyValue(true, for: 0x2A37)
                backend.advertise(FakeBackend.dial)
                try await central.connect(FakeBackend.dial.address)
                try await central.disconnect(try #require(central.peripheral(FakeBackend.dial.address)))
                let kept = try JSONEncoder().encode(central.snapshot)
                return try JSONDecoder().decode(CentralSnapshot.self, from: kept)
            }
        }()
        #expect(snapshot.peripherals.map(\.id) == [FakeBackend.strap, FakeBackend.dial])
        #expect(snapshot.peripherals.map(\.wasConnected) == [true, false])
        #expect(snapshot.peripherals.map(\.notifying) == [[CharacteristicID(0x2A37, in: 0x180D)], []])

        try await Bench.run { bench in
            bench.backend.setServices(Bench.table)
            bench.backend.know(FakeBackend.strap)
            bench.backend.setConnected(FakeBackend.strap, true)
            let updates = try bench.strap.valueUpdates()
            let restored = try await bench.central.restore(from: snapshot)
            #expect(restored.adopted == [try bench.strap])
            #expect(restored.adopted.map(\.connectionState) == [.ready])
            #expect(restored.reconnecting.isEmpty && restored.lost.isEmpty && restored.scans.isEmpty)
            bench.backend.notify("measurement", [7])
            for await value in updates {
                #expect(value.octets == [7])
                break
            }
        }
    }

    @Test func `a lost link is made again with its subscriptions, if the policy demands it`() async throws {
        let entry = CentralSnapshot.Entry(id: FakeBackend.strap, wasConnected: true, notifying: [0x2A37])
        try await Bench.run { bench in
            bench.backend.setServices(Bench.table)
            let strap = try bench.strap
            let updates = strap.valueUpdates()
            let asked = LatestValue<[DisconnectReason]>([])
            let policy = Autoconnect.when { attempt in
                asked.update { $0.append(attempt.reason) }
                return true
            }
            let restored = try await bench.central.restore(from: .init(peripherals: [entry]), autoconnect: policy)
            #expect(restored.reconnecting == [strap] && restored.adopted.isEmpty)
            #expect(asked.state == [.unknown])
            bench.backend.advertise(FakeBackend.strap)
            let ready = await strap.connectionStateChanges().wait(for: .ready, orPresent: true)
            #expect(ready?.isAutomatic == true)
            let changes = strap.connectionStateChanges()
            bench.backend.drop(FakeBackend.strap)
            await changes.wait(for: .ready)
            bench.backend.notify("measurement", [7])
            for await value in updates {
                #expect(value.octets == [7])
                break
            }
            let notifying = bench.central.snapshot.peripherals.first?.notifying
            #expect(notifying?.map(\.description) == ["2a37 in 180d"])
            try await strap.setNotifyValue(false, for: 0x2A37)
            try await strap.disconnect()
            try await strap.connect()
            #expect(!strap.isNotifying(0x2A37))
        }
    }

    @Test func `the subscriptions of a peripheral that is ready already are restored`() async throws {
        let entry = CentralSnapshot.Entry(id: FakeBackend.strap, wasConnected: true, notifying: [0x2A37])
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let restored = try await bench.central.restore(from: CentralSnapshot(peripherals: [entry]))
            #expect(restored.adopted == [strap])
            await bench.backend.waitUntilAsked("subscribe measurement")
        }
    }

    /// A table with two characteristics of one UUID that notify.
    private static let twins: [RemoteService] = [("first", "s1"), ("second", "s2")].map { handle, service in
        var battery = RemoteService(peripheral: FakeBackend.strap, uuid: 0x180F, handle: service, isPrimary: true)
        let level = RemoteCharacteristic(
            peripheral: FakeBackend.strap,
            service: 0x180F,
            uuid: 0x2A19,
            handle: handle,
            properties: .notify
        )
        battery.characteristics = [level]
        return battery
    }

    @Test func `both of two characteristics of one UUID are restored`() async throws {
        let kept = LatestValue<CentralSnapshot?>(nil)
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.setServices(Self.twins)
            for level in try await strap.discoverServices().flatMap(\.characteristics) {
                try await strap.setNotifyValue(true, for: level)
            }
            let text = try JSONEncoder().encode(bench.central.snapshot)
            kept.set(try JSONDecoder().decode(CentralSnapshot.self, from: text))
        }
        let snapshot = try #require(kept.state)
        let notifying = snapshot.peripherals.flatMap(\.notifying)
        #expect(notifying.count == 2 && notifying.first == CharacteristicID(0x2A19, in: 0x180F))
        try await Bench.run { bench in
            bench.backend.setServices(Self.twins)
            bench.backend.know(FakeBackend.strap)
            bench.backend.setConnected(FakeBackend.strap, true)
            _ = try await bench.central.restore(from: snapshot)
            #expect(bench.backend.asked.state.contains("subscribe first"))
            #expect(bench.backend.asked.state.contains("subscribe second"))
            #expect(bench.central.snapshot.peripherals.map(\.notifying) == [notifying])
            let strap = try bench.strap
            let second = try #require(try await strap.discoverServices().last?.characteristics.first)
            try await strap.setNotifyValue(false, for: second)
            let changes = strap.connectionStateChanges()
            bench.backend.drop(FakeBackend.strap)
            await changes.wait(for: .disconnected(.remote))
            try await strap.connect()
            #expect(bench.backend.asked.state.filter { $0 == "subscribe first" }.count == 2)
            #expect(bench.backend.asked.state.filter { $0 == "subscribe second" }.count == 1)
        }
    }

    @Test func `a restoration fails if the central closes meanwhile`() async throws {
        let entry = CentralSnapshot.Entry(id: FakeBackend.strap, wasConnected: true, notifying: [])
        try await Bench.run { bench in
            bench.backend.know(FakeBackend.strap)
            bench.backend.setConnected(FakeBackend.strap, true)
            bench.backend.hang("connect")
            let central = bench.central
            async let restoration = outcome { try await central.restore(from: .init(peripherals: [entry])) }
            await bench.backend.waitUntilAsked("connect 1")
            await central.close()
            #expect(await restoration.error?.detail == "the central is closed")
        }
    }

    @Test func `a cancelled restoration restores no further peripherals`() async throws {
        let entry = CentralSnapshot.Entry(id: FakeBackend.strap, wasConnected: true, notifying: [0x2A37])
        try await Bench.run { bench in
            bench.backend.know(FakeBackend.strap)
            bench.backend.setConnected(FakeBackend.strap, true)
            bench.backend.hang("connect")
            let central = bench.central
            let restoring = Task {
                try await central.restore(from: CentralSnapshot(peripherals: [entry]), autoconnect: .whenUnexpected)
            }
            await bench.backend.waitUntilAsked("connect 1")
            restoring.cancel()
            let result = await restoring.result
            #expect(throws: BluetoothError.self) { _ = try result.get() }
            let strap = try bench.strap
            #expect(!strap.isReconnecting)
            let notifying = central.snapshot.peripherals.flatMap(\.notifying)
            #expect(notifying.isEmpty)
        }
    }

    @Test func `the policy is asked with the error of a link that could not be adopted`() async throws {
        let entry = CentralSnapshot.Entry(id: FakeBackend.strap, wasConnected: true)
        try await Bench.run { bench in
            bench.backend.know(FakeBackend.strap)
            bench.backend.setConnected(FakeBackend.strap, true)
            bench.central.addConnectionTask { _ in throw BluetoothError(.authentication, "wrong key") }
            let asked = LatestValue<[String]>([])
            let policy = Autoconnect.when { attempt in
                asked.update { $0.append("\(attempt.reason): \(attempt.error?.detail ?? "none")") }
                return false
            }
            let restored = try await bench.central.restore(from: .init(peripherals: [entry]), autoconnect: policy)
            #expect(restored.lost == [try bench.strap])
            #expect(asked.state == ["connectionTaskFailed: wrong key"])
        }
    }

    @Test func `a link that is gone is given up, if the policy says so`() async throws {
        try await Bench.run { bench in
            let entry = CentralSnapshot.Entry(id: FakeBackend.strap, wasConnected: true, notifying: [0x2A37])
            let restored = try await bench.central.restore(from: CentralSnapshot(peripherals: [entry]))
            #expect(restored.lost == [try bench.strap])
            #expect(bench.backend.asked.state.isEmpty)
        }
    }

    @Test func `scans and kept peripherals are restored`() async throws {
        var filter = ScanFilter()
        filter.services = [0x180D]
        filter.namePrefix = "Strap"
        filter.minimumRSSI = -80
        filter.addresses = [FakeBackend.strap.address]
        let kept = LatestValue<CentralSnapshot?>(nil)
        try await Bench.run { [filter] bench in
            let scan = bench.central.scan(filter, allowDuplicates: true).makeAsyncIterator()
            let beats = try bench.strap.lastingNotifications(of: UInt8.self, from: 0x2A37)
            try bench.strap.keepConnected()
            await bench.backend.waitUntilAsked("startDiscovery +")
            let text = try JSONEncoder().encode(bench.central.snapshot)
            kept.set(try JSONDecoder().decode(CentralSnapshot.self, from: text))
            withExtendedLifetime((scan, beats)) {}
        }
        let snapshot = try #require(kept.state)
        #expect(snapshot.scans == [.init(filter: filter, allowsDuplicates: true)])
        #expect(snapshot.peripherals.map(\.wasReconnecting) == [true])
        #expect(snapshot.peripherals.map(\.notifying) == [[0x2A37]])
        try await Bench.run { bench in
            let restored = try await bench.central.restore(from: snapshot, autoconnect: .whenUnexpected)
            #expect(restored.reconnecting == [try bench.strap])
            let scan = try #require(restored.scans.first)
            async let heard = scan.first()
            try await eventually { bench.backend.asked.state.contains { $0.hasPrefix("startDiscovery") } }
            bench.backend.advertise(FakeBackend.strap) { status in
                status.name = "Strap 1"
                status.services = [0x180D]
            }
            #expect(try await heard.name == "Strap 1")
        }
    }

    @Test func `a snapshot of an earlier version has no scans`() throws {
        let text = #"""
            {"peripherals":[{"adapter":"00:00:5E:00:53:00","address":"C0:FF:EE:00:00:01","wasConnected":true,\#
            "notifying":["2a37"]}]}
            """#
        let snapshot = try JSONDecoder().decode(CentralSnapshot.self, from: Data(text.utf8))
        #expect(snapshot.scans.isEmpty && snapshot.peripherals.map(\.wasReconnecting) == [false])
    }

    @Test(arguments: [
        #"{"peripherals":[{"adapter":"x","address":"C0:FF:EE:00:00:01","wasConnected":true,"notifying":[]}]}"#,
        #"""
        {"peripherals":[{"adapter":"00:00:5E:00:53:00","address":"C0:FF:EE:00:00:01","wasConnected":true,\#
        "notifying":["?"]}]}
        """#,
    ])
    func `an invalid snapshot is refused`(text: String) {
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode(CentralSnapshot.self, from: Data(text.utf8))
        }
    }
}
