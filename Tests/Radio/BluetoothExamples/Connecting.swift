import GattherdBlueZ
import Observation

func authenticateFirst(_ peripheral: Peripheral, _ key: [UInt8]) async throws -> UInt8 {
    peripheral.addConnectionTask { peripheral in
        try await peripheral.write(key, to: 0xFFF1)
    }
    try await peripheral.connect(autoconnect: .whenUnexpected)
    return try await peripheral.read(UInt8.self, from: 0x2A19)
}

func stayConnected(_ peripheral: Peripheral) async throws {
    peripheral.addConnectionTask { peripheral in
        try await peripheral.setNotifyValue(true, for: 0x2A37)
    }
    let updates = peripheral.valueUpdates()
    try await peripheral.connect(
        autoconnect: .when { attempt in
            attempt.error?.isTransient == true && attempt.number <= 10
        }
    )
    for await value in updates.prefix(3) {
        print(value.characteristic, value.octets)
    }
}

func keepStrap(_ central: Central, _ address: BluetoothAddress) async throws {
    try await central.waitUntilReady()
    guard let strap = central.peripheral(address) else { return }
    strap.keepConnected()
    for await change in strap.connectionStateChanges() where change.state == .ready {
        print("\(strap) is here")
        break
    }
}

func watchConnections(_ central: Central) async {
    for await change in central.connectionStateChanges() {
        switch change.state {
        case .disconnected(let reason?, let error) where change.isUnexpectedDisconnect:
            print("lost \(change.peripheral): \(reason)", error?.description ?? "")
            if change.willReconnect { print("connecting again") }
        case .ready:
            print(change.peripheral, change.isAutomatic ? "is back" : "is ready")
        default:
            print(change)
        }
    }
}

func printWaiting(_ peripheral: Peripheral) {
    guard let next = peripheral.reconnection else { return }
    print("attempt \(next.attempt) in \(ContinuousClock.now.duration(to: next.due))")
    if let error = next.error { print("the last one failed:", error) }
}

func explain(_ error: BluetoothError) {
    switch error.kind {
    case .timedOut: print("\(error.operation?.rawValue ?? "it") took too long")
    case .authentication: print("pair it first")
    case .att(let code): print("the peripheral says \(code)")
    default: print(error, error.isTransient ? "try again" : "give up")
    }
    if let original = error.original { print("BlueZ said \(original.name): \(original.message)") }
}

func continueRun(_ central: Central, from snapshot: CentralSnapshot) async throws -> CentralSnapshot {
    let restored = try await central.restore(from: snapshot, autoconnect: .whenUnexpected)
    print("adopted:", restored.adopted)
    print("connecting again:", restored.reconnecting)
    for scan in restored.scans {
        print("found again:", try await scan.first().peripheral)
    }
    return central.snapshot
}

func handOver(_ peripheral: Peripheral) async throws {
    try await peripheral.central.detach(peripheral)
}

@MainActor func follow(_ central: Central) async {
    let model = CentralModel(central)
    async let following: Void = model.follow()
    await model.scan(timeout: .seconds(5))
    for advertisement in model.discoveries {
        let peripheral = model.model(of: advertisement.peripheral)
        print(peripheral.name ?? "?", peripheral.connectionState)
    }
    await following
}
