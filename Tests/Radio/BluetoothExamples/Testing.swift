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
            print("lost: \(String(describing: change.reason)), will reconnect: \(change.willReconnect)")
            break
        }
    }
}
