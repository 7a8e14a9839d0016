import FoundationEssentials
import GattherdBlueZ

struct StepCount: Readable {
    let steps: UInt32
    let isWalking: Bool

    init(octets: [UInt8]) throws(PayloadError) {
        var cursor = PayloadCursor(octets.span)
        isWalking = try cursor.u8() & 1 == 1
        steps = try cursor.u32()
        try cursor.end()
    }
}

struct Alarm: Writable {
    let minutes: UInt16
    let isLoud: Bool

    func octets() throws(PayloadError) -> [UInt8] {
        guard minutes < 24 * 60 else { throw .invalid(reason: "a day has 1440 minutes") }
        return minutes.octets() + isLoud.octets()
    }
}

func printStandardValues(_ peripheral: Peripheral) async throws {
    let level = try await peripheral.read(BatteryLevel.self)
    let maker = try await peripheral.read(String.self, from: .manufacturerName)
    print("\(maker): \(level.percent) %")
}

func printHeartRate(_ peripheral: Peripheral) async throws {
    let beats = try await peripheral.notifications(of: HeartRateMeasurement.self)
    for try await beat in beats.prefix(3) {
        print(beat.beatsPerMinute, beat.intervals)
    }
    print("missed", beats.droppedCount)
}

func followHeartRate(_ strap: Peripheral) async {
    let beats = strap.lastingNotifications(of: HeartRateMeasurement.self)
    strap.keepConnected()
    for await event in beats {
        switch event {
        case .subscribed: print("values follow")
        case .value(let beat): print(beat.beatsPerMinute)
        case .invalid(let error): print("a strange value:", error)
        case .interrupted(let error): print("a gap:", error?.description ?? "disconnected")
        case .refused(let error): print("no heart rate on this link:", error)
        }
    }
}

func setNumber(_ peripheral: Peripheral) async throws {
    let number: CharacteristicID = 0x7a4b0001_999f_4717_b63a_066e06971f59
    try await peripheral.write(UInt8(128), to: number)
    let value = try await peripheral.read(UInt8.self, from: number)
    print(value)
}

func resetEnergy(_ peripheral: Peripheral) async throws {
    try await peripheral.write(UInt8(1), to: 0x2A39)
}

func send(_ firmware: [UInt8], to peripheral: Peripheral, _ characteristic: CharacteristicID) async throws {
    let size = try await peripheral.maximumWriteValueLength(for: .withoutResponse)
    for start in stride(from: 0, to: firmware.count, by: size) {
        let chunk = firmware[start..<min(start + size, firmware.count)]
        try await peripheral.write(chunk, to: characteristic, type: .withoutResponse)
    }
}

func ask(_ peripheral: Peripheral, _ controlPoint: CharacteristicID) async throws -> [UInt8] {
    try await peripheral.writeAndListen([0x07] as [UInt8], to: controlPoint, as: [UInt8].self) { answer in
        answer.count > 1 && answer[1] == 0x07
    }
}

func printTable(_ peripheral: Peripheral) async throws {
    for service in try await peripheral.discoverServices() {
        print(service.uuid.assignedName ?? "\(service.uuid)")
        for characteristic in service.characteristics where characteristic.properties.contains(.read) {
            print(characteristic.uuid, try await peripheral.readValue(for: characteristic))
            for descriptor in characteristic.descriptors {
                print(descriptor.uuid, try await peripheral.readValue(for: descriptor))
            }
        }
    }
}

func copyLevel(from peripheral: Peripheral, to other: Peripheral) async throws {
    let level: Data = try await peripheral.read(from: 0x2A19)
    try await other.write(level, to: 0x2A19)
}
