import Foundation
import TestKit

/// A heart rate measurement, decoded apart from the product: what was sent, stored or received.
struct Measurement: Hashable, CustomStringConvertible {
    var rate: Double?
    var energy: Double?
    var intervals: [Double] = []

    init() {}

    /// Heart Rate Measurement of the GATT Specification Supplement, straight from the table.
    init(hex: String) {
        let digits = Array(hex)
        let octets = stride(from: 0, to: digits.count - 1, by: 2).map {
            Int(String(digits[$0...($0 + 1)]), radix: 16) ?? 0
        }
        var rest = octets.dropFirst()
        func word() -> Double { Double(rest.removeFirst() + 256 * rest.removeFirst()) }
        let flags = octets.first ?? 0
        rate = flags & 1 == 1 ? word() : Double(rest.removeFirst())
        if flags & 8 != 0 { energy = word() }
        if flags & 16 != 0 { while rest.count >= 2 { intervals.append(word() / 1024) } }
    }

    /// The object that subscribers get.
    init?(json: String) {
        guard let object = try? JSONSerialization.jsonObject(with: Data(json.utf8)) as? [String: Any] else {
            return nil
        }
        rate = object["heart_rate"] as? Double
        energy = object["energy_expended"] as? Double
        intervals = object["rr_interval"] as? [Double] ?? []
    }

    var description: String { "\(rate ?? -1) bpm, \(energy ?? -1) kJ, \(intervals)" }
}

/// A reading as it is stored.
struct StoredReading {
    let seq: Int
    let device: String
    var measurement = Measurement()
}

extension Gateway {
    /// All heart rate readings of the view `history`, in the order of `seq`.
    func stored() async throws -> [StoredReading] {
        let rows = try await database.rows(
            "SELECT seq, device, metric, value FROM history WHERE stream = 'heart_rate' ORDER BY seq"
        )
        var readings: [StoredReading] = []
        for row in rows {
            guard let seq = Int(row[0]), let value = Double(row[3]) else { continue }
            if readings.last?.seq != seq { readings.append(StoredReading(seq: seq, device: row[1])) }
            switch row[2] {
            case "heart_rate": readings[readings.count - 1].measurement.rate = value
            case "energy_expended": readings[readings.count - 1].measurement.energy = value
            case "rr_interval": readings[readings.count - 1].measurement.intervals.append(value)
            default: break
            }
        }
        return readings
    }
}

extension Subscriber {
    /// The heart rate readings by `seq`, and in which order each `seq` came first.
    func readings() -> (bySeq: [Int: Measurement], order: [Int]) {
        var bySeq: [Int: Measurement] = [:]
        var order: [Int] = []
        for message in messages where message.topic.hasSuffix("/heart_rate") && !message.isRetained {
            let object = try? JSONSerialization.jsonObject(with: Data(message.payload.utf8)) as? [String: Any]
            guard let seq = object?["seq"] as? Int, let measurement = Measurement(json: message.payload) else {
                continue
            }
            if bySeq.updateValue(measurement, forKey: seq) == nil { order.append(seq) }
        }
        return (bySeq, order)
    }
}
