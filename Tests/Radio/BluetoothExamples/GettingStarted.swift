import GattherdBlueZ

func printBatteryLevel() async throws {
    try await withCentral { central in
        try await central.waitUntilReady()
        try await printBatteryLevel(of: central)
    }
}

func printBatteryLevel(of central: Central) async throws {
    let peripheral = try await central.scan(services: [0x180F]).first().peripheral
    try await peripheral.connect()
    let level = try await peripheral.read(UInt8.self, from: 0x2A19)
    print("\(peripheral) has \(level) %")
}

func runForever() async {
    let central = Central.system()
    await withTaskGroup(of: Void.self) { group in
        group.addTask { await central.run() }
        group.addTask {
            for await state in central.states { print("Bluetooth is \(state)") }
        }
    }
}

func chooseAdapter() async throws {
    var configuration = Central.Configuration()
    configuration.adapter = .name("hci1")
    configuration.connectTimeout = .seconds(20)
    try await withCentral(configuration: configuration) { central in
        try await central.waitUntilReady()
        print(central.adapters.map(\.name))
    }
}

func runWithLog() async throws {
    let log = Log(threshold: .debug) { entry in
        print(entry.level, entry.message, entry.fields.map { "\($0.key)=\($0.value)" })
    }
    try await withCentral(log: log) { central in
        try await central.waitUntilReady()
    }
}
