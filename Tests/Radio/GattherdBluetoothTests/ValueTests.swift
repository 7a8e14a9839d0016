import BluetoothExamples
import FoundationEssentials
import GattherdBluetooth
import Testing

@Suite struct ValueTests {
    private func check<Value: Readable & Writable & Equatable>(_ value: Value, _ octets: [UInt8]) throws {
        #expect(try value.octets() == octets)
        #expect(try Value(octets: octets) == value)
    }

    @Test func `values are encoded and decoded`() throws {
        try check(UInt8(200), [200])
        try check(Int8(-1), [0xFF])
        try check(UInt16(0x1234), [0x34, 0x12])
        try check(Int16(-2), [0xFE, 0xFF])
        try check(UInt32(0x1234_5678), [0x78, 0x56, 0x34, 0x12])
        try check(Int32.min, [0, 0, 0, 0x80])
        try check(UInt64.max, Array(repeating: 0xFF, count: 8))
        try check(Int64(-2), [0xFE] + Array(repeating: 0xFF, count: 7))
        try check(Float(1), [0, 0, 0x80, 0x3F])
        try check(-2.5, [0, 0, 0, 0, 0, 0, 0x04, 0xC0])
        try check(true, [1])
        try check("Grüße", Array("Grüße".utf8))
        try check([1, 2, 3] as [UInt8], [1, 2, 3])
        try check(Data([1, 2]), [1, 2])
        try check(MedFloat16(.finite(mantissa: -365, exponent: -1)), [0x93, 0xFE])
        try check(MedFloat32(.finite(mantissa: 365, exponent: -1)), [0x6D, 0x01, 0x00, 0xFF])
        try check(MedFloat16(.finite(mantissa: 2046, exponent: -2)), [0xFE, 0xE7])
        try check(MedFloat16(.finite(mantissa: -2048, exponent: 1)), [0x00, 0x18])
        for special in [.notANumber, .notAtThisResolution, .positiveInfinity, .negativeInfinity, .reserved]
            as [IEEE11073Number]
        {
            #expect(try MedFloat16(octets: MedFloat16(special).octets()).number == special)
            #expect(try MedFloat32(octets: MedFloat32(special).octets()).number == special)
        }
    }

    @Test func `invalid bytes are refused with the reason`() {
        #expect(throws: PayloadError.truncated(offset: 0, needed: 2, left: 1)) { try UInt16(octets: [1]) }
        #expect(throws: PayloadError.self) { try UInt16(octets: [1, 2, 3]) }
        #expect(throws: PayloadError.self) { try Float(octets: []) }
        #expect(throws: PayloadError.self) { try Bool(octets: [2]) }
        #expect(throws: PayloadError.invalid(reason: "not UTF-8")) { try String(octets: [0xFF]) }
        #expect(throws: PayloadError.self) { try MedFloat16(.finite(mantissa: 4000, exponent: 0)).octets() }
        #expect(throws: PayloadError.self) { try MedFloat16(.finite(mantissa: 1, exponent: 9)).octets() }
        #expect(throws: PayloadError.self) { try MedFloat16(.finite(mantissa: 2047, exponent: 0)).octets() }
    }

    @Test func `only the NULs at the end of a text are removed`() throws {
        #expect(try String(octets: [0x41, 0, 0x42, 0, 0]) == "A\0B")
        #expect(try String(octets: [0, 0]) == "")
    }

    @Test func `standard values are decoded`() throws {
        #expect(try BatteryLevel(octets: [97]).percent == 97)
        let beat = try HeartRateMeasurement(octets: [0x1F, 0x2C, 0x01, 0x05, 0x00, 0x00, 0x04, 0x00, 0x02])
        #expect(beat.beatsPerMinute == 300 && beat.hasSkinContact == true && beat.energyExpended == 5)
        #expect(beat.intervals == [.seconds(1), .milliseconds(500)])
        let plain = try HeartRateMeasurement(octets: [0, 61])
        #expect(plain.beatsPerMinute == 61 && plain.hasSkinContact == nil && plain.energyExpended == nil)
        #expect(plain.intervals.isEmpty)
        #expect(try BodySensorLocation(octets: [2]) == .wrist)
        #expect(try Temperature(octets: [0xC4, 0x09]).celsius == 25)
        #expect(try Temperature(octets: [0x00, 0x80]).celsius == nil)
        #expect(try Humidity(octets: [0x88, 0x13]).percent == 50)
        #expect(try Humidity(octets: [0xFF, 0xFF]).percent == nil)
        #expect(try Pressure(octets: [0x2A, 0x76, 0x0F, 0x00]).pascals == 101_329)
        let body = try TemperatureMeasurement(
            octets: [0x07, 0xDA, 0x03, 0, 0xFF, 0xEA, 0x07, 3, 14, 15, 9, 26, 6]
        )
        #expect(body.celsius.map { abs($0 - 37) < 0.001 } == true && body.type == 6)
        #expect(body.time?.year == 2026 && body.time?.month == 3 && body.time?.seconds == 26)
        #expect(try TemperatureMeasurement(octets: [0, 0xFF, 0xFF, 0x7F, 0]).celsius == nil)
        #expect(try DateTime(octets: [0, 0, 0, 0, 23, 59, 59]).year == nil)
    }

    private static let refusals: [(octets: [UInt8], type: any StandardValue.Type)] = [
        ([101], BatteryLevel.self), ([], BatteryLevel.self), ([0x01, 60], HeartRateMeasurement.self),
        ([0x08, 60, 1], HeartRateMeasurement.self), ([0x10, 60, 1], HeartRateMeasurement.self),
        ([7], BodySensorLocation.self), ([1], Temperature.self), ([1, 2, 3], Humidity.self), ([1], Pressure.self),
        ([0x02, 0, 0, 0, 0, 0xEA, 0x07], TemperatureMeasurement.self),
        ([0xEA, 0x07, 13, 1, 0, 0, 0], DateTime.self), ([0xEA, 0x07, 1, 1, 24, 0, 0], DateTime.self),
    ]

    @Test func `bytes that are not a standard value are refused`() {
        for (octets, type) in Self.refusals {
            #expect(throws: PayloadError.self, "\(type) \(octets)") { _ = try type.init(octets: octets) }
        }
    }

    @Test func `standard values know their characteristic`() async throws {
        try await Bench.run { bench in
            let strap = try await bench.connected()
            bench.backend.setValue("level", [42])
            #expect(try await strap.read(BatteryLevel.self).percent == 42)
            let lasting = strap.lastingNotifications(of: HeartRateMeasurement.self)
            for await event in lasting.prefix(1) {
                guard case .subscribed = event else { return #expect(Bool(false), "not subscribed") }
            }
            for try await beat in try await beats(of: strap, bench).prefix(1) { #expect(beat.beatsPerMinute == 61) }
            for await beat in lasting.values.prefix(1) { #expect(beat.beatsPerMinute == 61) }
        }
    }

    private func beats(of strap: Peripheral, _ bench: Bench) async throws -> Notifications<HeartRateMeasurement> {
        let beats = try await strap.notifications(of: HeartRateMeasurement.self)
        bench.backend.notify("measurement", [0, 61])
        return beats
    }
}
