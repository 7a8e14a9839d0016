import GattherdBlueZ

func findStrap(_ central: Central) async throws -> Peripheral? {
    do {
        return try await central.scan(namePrefix: "Strap", minimumRSSI: -80, timeout: .seconds(10)).first().peripheral
    } catch let error as BluetoothError where error.kind == .timedOut {
        print("nobody is there")
        return nil
    }
}

func watchBeacons(_ central: Central) async throws {
    for try await advertisement in central.scan(allowDuplicates: true).prefix(5) {
        let beacon = advertisement.data.manufacturerData[0x004C] ?? []
        print(advertisement.address, advertisement.rssi, beacon, advertisement.time.duration(to: .now))
    }
}

func findAgain(_ central: Central, _ address: BluetoothAddress) async throws {
    if let known = central.retrievePeripherals([address]).first {
        print("\(known) was seen a moment ago")
    }
    for peripheral in central.connectedPeripherals(services: [0x180D]) {
        print("\(peripheral) is connected with this machine")
    }
    try await central.connect(address, timeout: .seconds(20))
}
