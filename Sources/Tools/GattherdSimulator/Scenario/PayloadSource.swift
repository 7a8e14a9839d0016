import GattherdGATT

/// The source of the values that a characteristic notifies.
///
/// Each value is a function of the notification's number, so that tests can identify it.
public enum PayloadSource: Hashable, Sendable {
    /// The stored value.
    case stored
    /// The stored byte plus 1.
    case counter
    /// A list of values, repeated.
    case list([[UInt8]])
    case heartRate(HeartRatePattern)
    /// The heart rate of a person, with measurements at this rate.
    case person(HeartRatePattern, rate: Double)
    /// A quantity of the weather over days of this length, with values at this rate.
    case weather(WeatherQuantity, day: Duration, rate: Double)
    /// A triangle wave: a little-endian integer of this number of bytes.
    case wave(octets: Int, from: Int, through: Int)
    /// Temperature Measurement with a FLOAT in tenths of a degree Celsius, 36.0 to 39.9.
    case thermometer
    /// The values and pauses of a capture, repeated.
    case recorded(Recording)

    /// The value of notification `number`, counted from 0.
    ///
    /// `stored` is the characteristic's value. The energy expended was set to 0 at the number `reset`. `seed`
    /// distinguishes persons and places.
    func payload(_ number: UInt64, stored: [UInt8], energyReset reset: UInt64 = 0, seed: UInt64 = 0) -> [UInt8] {
        switch self {
        case .stored: stored
        case .counter: [(stored.first ?? 0) &+ 1]
        case .list(let payloads): payloads.isEmpty ? [] : payloads[Int(number % UInt64(payloads.count))]
        case .heartRate(let pattern): pattern.payload(number, energyReset: reset)
        case .person(let pattern, let rate):
            pattern.payload(number, of: PersonSimulation(seed: seed), rate: rate, energyReset: reset)
        case .weather(let quantity, let day, let rate):
            quantity.payload(WeatherSimulation(seed: seed, day: day), at: Double(number) / max(rate, 0.001))
        case .wave(let octets, let low, let high): Self.wave(number, octets, low, high)
        case .recorded(let recording): recording.payloads[Int(number % UInt64(recording.payloads.count))]
        case .thermometer: [0] + littleEndian(360 + Int(number % 40), octets: 3) + [0xFF]
        }
    }

    /// The pause after notification `number`; `nil` if a rate determines it.
    func pause(after number: UInt64) -> Duration? {
        guard case .recorded(let recording) = self else { return nil }
        return recording.pauses[Int(number % UInt64(recording.pauses.count))]
    }

    private static func wave(_ number: UInt64, _ octets: Int, _ low: Int, _ high: Int) -> [UInt8] {
        let height = max(1, high - low)
        let step = Int(number % UInt64(2 * height))
        return littleEndian(low + (step <= height ? step : 2 * height - step), octets: octets)
    }
}

/// A quantity of Environmental Sensing 1.0.
public enum WeatherQuantity: Hashable, Sendable {
    case temperature
    case humidity
    case pressure

    func payload(_ weather: WeatherSimulation, at time: Double) -> [UInt8] {
        switch self {
        case .temperature: littleEndian(weather.temperature(at: time), octets: 2)
        case .humidity: littleEndian(weather.humidity(at: time), octets: 2)
        case .pressure: littleEndian(weather.pressure(at: time), octets: 4)
        }
    }
}

/// The recorded values of one characteristic, at least one.
public struct Recording: Hashable, Sendable {
    let payloads: [[UInt8]]
    /// The pause after each of ``payloads``.
    let pauses: [Duration]
}

/// The contents of generated Heart Rate Measurements (0x2A37).
///
/// Heart Rate Service 1.0, "Heart Rate Measurement".
public struct HeartRatePattern: Hashable, Sendable {
    public enum Contact: String, CaseIterable, Hashable, Sendable {
        /// Sensor contact is not supported.
        case none
        case yes
        case no
    }

    /// True for heart rates of two bytes, which are then at least 256.
    public var isWide = false
    public var hasEnergy = false
    /// The number of RR intervals in each measurement.
    public var intervals = 0
    public var contact = Contact.none

    public init() {}

    /// Returns measurement `number`.
    ///
    /// The energy is the number of notifications since its reset. Intervals count up from 600 in units of 1/1024 s.
    func payload(_ number: UInt64, energyReset: UInt64) -> [UInt8] {
        var payload = [flags]
        payload += isWide ? littleEndian(256 + Int(number % 500), octets: 2) : [60 + UInt8(number % 120)]
        if hasEnergy { payload += littleEndian(Int((number &- energyReset) % 65_536), octets: 2) }
        for index in 0..<intervals {
            payload += littleEndian(600 + (Int(number % 1_000_000) * intervals + index) % 1000, octets: 2)
        }
        return payload
    }

    /// Returns a measurement of a person, whose energy is about 0.15 kJ for each second.
    func payload(_ number: UInt64, of person: PersonSimulation, rate: Double, energyReset: UInt64) -> [UInt8] {
        let time = Double(number) / max(rate, 0.001)
        let heartRate = Int(person.heartRate(at: time).rounded())
        var payload = [flags]
        payload += littleEndian(heartRate, octets: isWide ? 2 : 1)
        let energy = Double(number &- energyReset) / max(rate, 0.001) * 0.15
        if hasEnergy { payload += littleEndian(Int(min(energy, 65_535)), octets: 2) }
        for index in 0..<intervals {
            let beat = Int(number % 1_000_000) * intervals + index
            payload += littleEndian(person.interval(at: time, beat: beat), octets: 2)
        }
        return payload
    }

    private var flags: UInt8 {
        let contact: UInt8 =
            switch contact {
            case .none: 0
            case .no: 0x04
            case .yes: 0x06
            }
        return (isWide ? 1 : 0) | contact | (hasEnergy ? 0x08 : 0) | (intervals > 0 ? 0x10 : 0)
    }
}

/// The little-endian two's complement of `value` in this number of bytes.
func littleEndian(_ value: Int, octets: Int) -> [UInt8] {
    var writer = PayloadWriter()
    writer.append(UInt64(bitPattern: Int64(value)), octets: octets)
    return writer.octets
}
