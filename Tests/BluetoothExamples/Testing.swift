import GattherdBluetoothTesting

func surviveADrop() async throws {
    let scenario = """
        peripherals:
          - {name: strap, address: "C0:FF:EE:00:00:01", kind: heart-rate}
        """
    try await withSimulatedCentral(scenario) { central, simulator in
        for try await advertisement in central.scan(services: [0x180D]).prefix(1) {
            let changes = advertisement.peripheral.connectionStateChanges()
            try await advertisement.peripheral.connect(autoconnect: .whenUnexpected)
            try await simulator.perform(.drop("strap"))
            for await change in changes where change.isUnexpectedDisconnect {
                print("lost: \(String(describing: change.reason)), will reconnect: \(change.willReconnect)")
                break
            }
        }
    }
}
