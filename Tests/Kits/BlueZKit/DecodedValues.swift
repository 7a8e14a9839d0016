import Foundation

/// The values of a sent, stored or received reading by metric; nil is "unknown".
public struct DecodedValues: Hashable, Sendable, CustomStringConvertible {
    public private(set) var metrics: [String: [Double?]] = [:]

    init() {}

    public init(_ metrics: [String: [Double?]]) {
        self.metrics = metrics
    }

    mutating func add(_ value: Double?, to metric: String) {
        metrics[metric, default: []].append(value.map { ($0 * 1e6).rounded() / 1e6 })
    }

    public var description: String {
        metrics.sorted { $0.key < $1.key }.map { "\($0.key) \($0.value.map { $0.map { "\($0)" } ?? "unknown" })" }
            .joined(separator: ", ")
    }
}

// Decoded independently of the product, by the tables of the GATT Specification Supplement.
extension DecodedValues {
    /// The stream of a characteristic; nil for characteristics that tests ignore.
    static func stream(of characteristic: String) -> String? {
        switch characteristic {
        case "2a37": "heart_rate"
        case "2a19": "battery"
        case "2a6e", "2a1c": "temperature"
        case "2a6f": "humidity"
        case "2a6d": "pressure"
        case "7a4b0001-999f-4717-b63a-066e06971f59": "number"
        default: nil
        }
    }

    /// Decodes a payload; nil if it is malformed.
    init?(_ characteristic: String, _ octets: [UInt8]) {
        switch characteristic {
        case "2a37": self.init(heartRate: octets)
        case "2a19": self.init("battery_level", octets, 1, unless: 0xFF)
        case "2a6e": self.init("temperature", octets, 2, scale: 0.01, isSigned: true, unless: -32_768)
        case "2a6f": self.init("humidity", octets, 2, scale: 0.01, unless: 0xFFFF)
        case "2a6d": self.init("pressure", octets, 4, scale: 0.1)
        case "2a1c": self.init("temperature", Array(octets.dropFirst().prefix(3)), 3, scale: 0.1)
        case "7a4b0001-999f-4717-b63a-066e06971f59":
            self.init("number", octets, 1)
            add(Double(octets[0]) / 255, to: "ratio")
        default: return nil
        }
    }

    /// Decodes one little-endian integer.
    private init?(
        _ metric: String,
        _ octets: [UInt8],
        _ count: Int,
        scale: Double = 1,
        isSigned: Bool = false,
        unless unknown: Int? = nil
    ) {
        guard octets.count == count else { return nil }
        var raw = octets.reversed().reduce(0) { $0 << 8 | Int($1) }
        if isSigned, raw >= 1 << (8 * count - 1) { raw -= 1 << (8 * count) }
        add(raw == unknown ? nil : Double(raw) * scale, to: metric)
    }

    private init?(heartRate octets: [UInt8]) {
        var rest = octets[...]
        func word() -> Double? {
            guard rest.count >= 2 else { return nil }
            return Double(rest.removeFirst()) + 256 * Double(rest.removeFirst())
        }
        guard let flags = rest.popFirst() else { return nil }
        guard let rate = flags & 1 == 1 ? word() : rest.popFirst().map(Double.init) else { return nil }
        add(rate, to: "heart_rate")
        if flags & 4 != 0 { add(flags & 2 == 0 ? 0 : 1, to: "sensor_contact") }
        if flags & 8 != 0 {
            guard let energy = word() else { return nil }
            add(energy, to: "energy_expended")
        }
        guard flags & 16 != 0 else { return }
        guard rest.count >= 2, rest.count.isMultiple(of: 2) else { return nil }
        while let interval = word() {
            add((interval * 1_000_000 / 1024).rounded() / 1_000_000, to: "rr_interval")
        }
    }
}

// Published by the product.
extension DecodedValues {
    /// The values of an MQTT message.
    init(message: [String: Any]) {
        for (metric, value) in message where !["seq", "ts", "source", "stored"].contains(metric) {
            for element in value as? [Any] ?? [value] { add((element as? NSNumber)?.doubleValue, to: metric) }
        }
    }
}
