import FoundationEssentials
import GattherdBluetooth
import GattherdSync
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
            #expect(restored == [try bench.strap])
            #expect(restored.map(\.connectionState) == [.ready])
            bench.backend.notify("measurement", [7])
            for await value in updates {
                #expect(value.octets == [7])
                break
            }
        }
    }

    @Test func `restoring does not connect lost peripherals`() async throws {
        try await Bench.run { bench in
            let entry = CentralSnapshot.Entry(id: FakeBackend.strap, wasConnected: true, notifying: [])
            let restored = try await bench.central.restore(from: CentralSnapshot(peripherals: [entry]))
            #expect(restored.isEmpty)
            #expect(bench.backend.asked.state.isEmpty)
        }
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
