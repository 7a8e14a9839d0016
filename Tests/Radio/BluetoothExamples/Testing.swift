import GattherdBluetoothTesting

func surviveADrop() async throws {
    let scenario = """
        peripherals:
          - {name: strap, address: "C0:FF:EE:00:00:01", kind: heart-rate}
        """
    try await withSimulatedCentral(scenario) { central, simulator in
        let strap = try await central.scan(services: [0x180D]).first().peripheral
        let changes = strap.connectionStateChanges()
        try await strap.connect(autoconnect: .whenUnexpected)
        try await simulator.perform(.drop("strap"))
        for await change in changes where change.isUnexpectedDisconnect {
            print("lost: \(change.error?.description ?? "?"), will reconnect: \(change.willReconnect)")
            break
        }
    }
}

func surviveARestart() async throws {
    let scenario = """
        peripherals:
          - {name: strap, address: "C0:FF:EE:00:00:01", kind: heart-rate, rate: 20}
        """
    try await withSimulatedBus(scenario) { bus, simulator in
        var configuration = Central.Configuration()
        configuration.keepsLinks = true
        let snapshot = try await withCentral(on: bus, configuration: configuration) { central in
            try await central.waitUntilReady()
            let strap = try await central.scan(services: [0x180D]).first().peripheral
            try await strap.connect()
            try await strap.setNotifyValue(true, for: HeartRateMeasurement.characteristic)
            return central.snapshot
        }
        // The program is gone, and so is the link.
        try await simulator.perform(.drop("strap"))
        try await withCentral(on: bus) { central in
            try await central.waitUntilReady()
            let strap = central.peripheral(snapshot.peripherals[0].id)
            let beats = strap.lastingNotifications(of: HeartRateMeasurement.self)
            let restored = try await central.restore(from: snapshot, autoconnect: .whenUnexpected)
            print("adopted \(restored.adopted.count), reconnecting \(restored.reconnecting.count)")
            for await beat in beats.values.prefix(2) { print(beat.beatsPerMinute) }
        }
    }
}
