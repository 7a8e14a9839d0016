public import GattherdGATT

/// A value of a standard characteristic, which knows the characteristic's UUID.
///
///     let level = try await peripheral.read(BatteryLevel.self)
public protocol StandardValue: Readable {
    /// The characteristic, of any service.
    static var characteristic: CharacteristicID { get }
}

/// Battery Level, 0x2A19.
public struct BatteryLevel: StandardValue, Hashable {
    public static let characteristic: CharacteristicID = 0x2A19

    /// The level, 0 to 100.
    public let percent: Int

    /// Reads the whole value.
    ///
    /// - Throws: `PayloadError` for other lengths than 1, and above 100.
    public init(octets: [UInt8]) throws(PayloadError) {
        percent = Int(try UInt8(octets: octets))
        guard percent <= 100 else { throw .invalid(reason: "\(percent) % is not a battery level") }
    }
}

/// Heart Rate Measurement, 0x2A37.
public struct HeartRateMeasurement: StandardValue, Hashable {
    public static let characteristic: CharacteristicID = 0x2A37

    public let beatsPerMinute: Int
    /// True if the sensor touches the skin; `nil` if the sensor does not know.
    public let hasSkinContact: Bool?
    /// The energy in kilojoules since the last reset, 0 to 65535; `nil` if this value has none.
    public let energyExpended: Int?
    /// The times between beats since the last value, oldest first; 1/1024 s each unit.
    public let intervals: [Duration]

    /// Reads the whole value: GATT Specification Supplement, "Heart Rate Measurement".
    ///
    /// - Throws: `PayloadError` if a field is truncated.
    public init(octets: [UInt8]) throws(PayloadError) {
        var cursor = PayloadCursor(octets.span)
        let flags = try cursor.u8()
        beatsPerMinute = flags & 0x01 == 0 ? Int(try cursor.u8()) : Int(try cursor.u16())
        hasSkinContact = flags & 0x04 == 0 ? nil : flags & 0x02 != 0
        energyExpended = flags & 0x08 == 0 ? nil : Int(try cursor.u16())
        var intervals: [Duration] = []
        while flags & 0x10 != 0, cursor.left > 0 {
            intervals.append(.nanoseconds(Int64(try cursor.u16()) * 1_000_000_000 / 1024))
        }
        self.intervals = intervals
    }
}

/// Body Sensor Location, 0x2A38.
public enum BodySensorLocation: UInt8, StandardValue, Hashable, CaseIterable {
    case other
    case chest
    case wrist
    case finger
    case hand
    case earLobe
    case foot

    public static var characteristic: CharacteristicID { 0x2A38 }

    /// Reads the whole value.
    ///
    /// - Throws: `PayloadError` for other lengths than 1 and for reserved locations.
    public init(octets: [UInt8]) throws(PayloadError) {
        let number = try UInt8(octets: octets)
        guard let location = Self(rawValue: number) else { throw .invalid(reason: "\(number) is not a body location") }
        self = location
    }
}

/// Temperature Measurement of a thermometer, 0x2A1C, which indicates it.
public struct TemperatureMeasurement: StandardValue, Hashable {
    public static let characteristic: CharacteristicID = 0x2A1C

    /// The temperature in degrees Celsius; `nil` if the thermometer sends a special value such as "not a number".
    public let celsius: Double?
    /// The thermometer's own time of the measurement.
    public let time: DateTime?
    /// The place of the measurement, 1 to 9: GATT Specification Supplement, "Temperature Type".
    public let type: UInt8?

    /// Reads the whole value; Fahrenheit is converted.
    ///
    /// - Throws: `PayloadError` if a field is truncated or the time is impossible.
    public init(octets: [UInt8]) throws(PayloadError) {
        var cursor = PayloadCursor(octets.span)
        let flags = try cursor.u8()
        let number = try cursor.float().value
        celsius = flags & 0x01 == 0 ? number : number.map { ($0 - 32) * 5 / 9 }
        time = flags & 0x02 == 0 ? nil : try DateTime(octets: try cursor.octets(7))
        type = flags & 0x04 == 0 ? nil : try cursor.u8()
    }
}

/// Temperature of an environment, 0x2A6E.
public struct Temperature: StandardValue, Hashable {
    public static let characteristic: CharacteristicID = 0x2A6E

    /// -273.15 to 327.67, in steps of 0.01; `nil` if the sensor does not know.
    public let celsius: Double?

    /// Reads the whole value.
    ///
    /// - Throws: `PayloadError` for other lengths than 2.
    public init(octets: [UInt8]) throws(PayloadError) {
        let number = try Int16(octets: octets)
        celsius = number == .min ? nil : Double(number) / 100
    }
}

/// Humidity of an environment, 0x2A6F.
public struct Humidity: StandardValue, Hashable {
    public static let characteristic: CharacteristicID = 0x2A6F

    /// The humidity, 0 to 100 in steps of 0.01; `nil` if the sensor does not know it.
    public let percent: Double?

    /// Reads the whole value.
    ///
    /// - Throws: `PayloadError` for other lengths than 2.
    public init(octets: [UInt8]) throws(PayloadError) {
        let number = try UInt16(octets: octets)
        percent = number == .max ? nil : Double(number) / 100
    }
}

/// Pressure of an environment, 0x2A6D.
public struct Pressure: StandardValue, Hashable {
    public static let characteristic: CharacteristicID = 0x2A6D

    /// The pressure in steps of 0.1.
    public let pascals: Double

    /// Reads the whole value.
    ///
    /// - Throws: `PayloadError` for other lengths than 4.
    public init(octets: [UInt8]) throws(PayloadError) {
        pascals = Double(try UInt32(octets: octets)) / 10
    }
}

/// Date Time, 0x2A08: a calendar time without a zone.
public struct DateTime: StandardValue, Hashable {
    public static let characteristic: CharacteristicID = 0x2A08

    /// The year, 1582 to 9999; `nil` if unknown.
    public let year: Int?
    /// The month, 1 to 12; `nil` if unknown.
    public let month: Int?
    /// The day of the month, 1 to 31; `nil` if unknown.
    public let day: Int?
    /// The hour, 0 to 23.
    public let hours: Int
    /// The minute, 0 to 59.
    public let minutes: Int
    /// The second, 0 to 59.
    public let seconds: Int

    /// Reads the whole value.
    ///
    /// - Throws: `PayloadError` for other lengths than 7 and for impossible fields.
    public init(octets: [UInt8]) throws(PayloadError) {
        var cursor = PayloadCursor(octets.span)
        let fields = [Int(try cursor.u16())] + (try cursor.octets(5)).map(Int.init)
        try cursor.end()
        let limits = [1582...9999, 1...12, 1...31, 0...23, 0...59, 0...59]
        for (index, (field, limit)) in zip(fields, limits).enumerated() where !limit.contains(field) {
            guard index < 3, field == 0 else {
                throw .invalid(reason: "'\(Hexadecimal.text(octets.span))' is not a date and time")
            }
        }
        (year, month, day) = (Self.known(fields[0]), Self.known(fields[1]), Self.known(fields[2]))
        (hours, minutes, seconds) = (fields[3], fields[4], fields[5])
    }

    private static func known(_ field: Int) -> Int? { field == 0 ? nil : field }
}

// Texts of the Device Information Service, for `String`.
extension CharacteristicID {
    public static let deviceName: CharacteristicID = 0x2A00
    public static let modelNumber: CharacteristicID = 0x2A24
    public static let serialNumber: CharacteristicID = 0x2A25
    public static let firmwareRevision: CharacteristicID = 0x2A26
    public static let hardwareRevision: CharacteristicID = 0x2A27
    public static let softwareRevision: CharacteristicID = 0x2A28
    public static let manufacturerName: CharacteristicID = 0x2A29
}

// Operations on values that know their characteristic.
extension Peripheral {
    /// Reads a standard value.
    ///
    /// - Throws: As ``read(_:from:timeout:)-(_,CharacteristicID,_)``.
    public func read<Value: StandardValue>(
        _ type: Value.Type = Value.self,
        timeout: Duration? = nil
    ) async throws -> Value {
        try await read(type, from: Value.characteristic, timeout: timeout)
    }

    /// Subscribes to a standard value; see ``notifications(of:from:buffering:timeout:)-(_,CharacteristicID,_,_)``.
    public func notifications<Value: StandardValue>(
        of type: Value.Type = Value.self,
        buffering: BufferingPolicy? = nil,
        timeout: Duration? = nil
    ) async throws -> Notifications<Value> {
        try await notifications(of: type, from: Value.characteristic, buffering: buffering, timeout: timeout)
    }

    /// Returns a standard value over all links; see ``lastingNotifications(of:from:buffering:)``.
    public func lastingNotifications<Value: StandardValue>(
        of type: Value.Type = Value.self,
        buffering: BufferingPolicy? = nil
    ) -> LastingNotifications<Value> {
        lastingNotifications(of: type, from: Value.characteristic, buffering: buffering)
    }
}
