/// Where the values come from that a peripheral notifies.
///
/// Each is a function of the running number of the notification, so that a checker can tell which one it has.
public enum PayloadSource: Hashable, Sendable {
    /// The value that is stored, whatever it is.
    case stored
    /// The value that is stored, one octet, plus 1.
    case counter
    /// These, one after the other, over and over.
    case list([[UInt8]])
    case heartRate(HeartRatePattern)
    /// A triangle wave: a little-endian integer of so many octets.
    case wave(octets: Int, from: Int, through: Int)
    /// Temperature Measurement with a FLOAT in tenths of a degree Celsius, 36.0 to 39.9.
    case thermometer
    /// What a capture heard, with the pauses that it heard, over and over.
    case recorded(Recording)

    /// The value of notification `number`, the first one being 0, of a characteristic that has `stored` in it.
    ///
    /// The energy was set to 0 at the number `reset`.
    func payload(_ number: UInt64, stored: [UInt8], energyReset reset: UInt64 = 0) -> [UInt8] {
        switch self {
        case .stored: stored
        case .counter: [(stored.first ?? 0) &+ 1]
        case .list(let payloads): payloads.isEmpty ? [] : payloads[Int(number % UInt64(payloads.count))]
        case .heartRate(let pattern): pattern.payload(number, energyReset: reset)
        case .wave(let octets, let low, let high): Self.wave(number, octets, low, high)
        case .recorded(let recording): recording.payloads[Int(number % UInt64(recording.payloads.count))]
        case .thermometer: [0] + littleEndian(360 + Int(number % 40), octets: 3) + [0xFF]
        }
    }

    /// The pause after notification `number`; `nil` where a rate says how long it is.
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

/// Values of one characteristic as they came; there is one at least.
public struct Recording: Hashable, Sendable {
    let payloads: [[UInt8]]
    /// What came after each of ``payloads`` before the next.
    let pauses: [Duration]
}

/// What a Heart Rate Measurement (0x2A37) contains.
///
/// Heart Rate Service 1.0, "Heart Rate Measurement".
public struct HeartRatePattern: Hashable, Sendable {
    public enum Contact: String, CaseIterable, Hashable, Sendable {
        /// The sensor cannot tell.
        case none
        case yes
        case no
    }

    /// Two octets for the rate, which is then 256 and more.
    public var isWide = false
    public var hasEnergy = false
    /// How many RR intervals each has.
    public var intervals = 0
    public var contact = Contact.none

    public init() {}

    /// Energy counts the notifications since its reset; intervals count on by 1/1024 s from 600.
    func payload(_ number: UInt64, energyReset: UInt64) -> [UInt8] {
        var payload = [flags]
        payload += isWide ? littleEndian(256 + Int(number % 500), octets: 2) : [60 + UInt8(number % 120)]
        if hasEnergy { payload += littleEndian(Int((number &- energyReset) % 65_536), octets: 2) }
        for index in 0..<intervals {
            payload += littleEndian(600 + (Int(number % 1_000_000) * intervals + index) % 1000, octets: 2)
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

/// The two's complement of `value` in so many octets, the lowest first.
func littleEndian(_ value: Int, octets: Int) -> [UInt8] {
    (0..<octets).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
}
