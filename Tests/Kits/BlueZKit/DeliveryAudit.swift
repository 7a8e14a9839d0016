import Foundation
import TestKit

/// A comparison of sent notifications, stored readings and received messages.
public struct DeliveryAudit: Sendable {
    /// A stored reading.
    public struct Stored: Sendable {
        public let seq: Int
        public let time: Int
        public let device: String
        public let stream: String
        public var values = DecodedValues()
    }

    /// A disagreement between peripherals, history and subscriber.
    public enum Problem: Hashable, Sendable, CustomStringConvertible {
        /// Stored, but not sent, or stored out of order.
        case notSent(String)
        /// Sent to a subscriber, but not stored.
        case lost(String)
        /// Malformed, but not stored as a reject.
        case notRejected(String)
        /// Stored, but not received.
        case unpublished(seq: Int)
        /// Received with other values, or without being stored.
        case mismatched(String)
        /// Received after a reading with a higher number.
        case disordered(seq: Int)
        /// Received again with another topic or payload.
        case reused(seq: Int)

        public var description: String {
            switch self {
            case .notSent(let text): "stored but not sent: \(text)"
            case .lost(let text): "lost: \(text)"
            case .notRejected(let text): "not rejected: \(text)"
            case .unpublished(let seq): "stored but not received: \(seq)"
            case .mismatched(let text): "received, but not what is stored: \(text)"
            case .disordered(let seq): "received too late: \(seq)"
            case .reused(let seq): "a number of two readings: \(seq)"
            }
        }
    }

    /// A reading that a subscriber received.
    struct Received: Sendable {
        let seq: Int
        let topic: String
        let payload: String
        let values: DecodedValues
        /// The reading's time as text.
        let time: String
        let isStored: Bool
    }

    /// A time range in which values may be lost, in microseconds since 1970.
    public typealias Gap = ClosedRange<Int>

    let sent: [Truth.Source: [Truth.Sent]]
    let stored: [Stored]
    let rejected: [Truth.Source: Int]
    let received: [Received]

    /// All problems.
    ///
    /// Values may be missing if they were sent in the `tail`, the last microseconds of a link, or were the last of it:
    /// bluetoothd was observed to lose these, and a subscription may end long before its link. They may also be missing
    /// in one of the `gaps`, or in one of the device's own gaps.
    public func problems(tail: Int = 1_000_000, gaps: [Gap] = [], of devices: [String: [Gap]] = [:]) -> [Problem] {
        problemsOfHistory(tail: tail, gaps: gaps, of: devices) + problemsOfDelivery
    }

    /// The number of stored notifications.
    public var storedCount: Int { stored.count }

    /// The number of stored readings, rejects and received messages.
    public var entryCount: Int { stored.count + rejected.values.reduce(0, +) + received.count }

    // MARK: - Peripherals against history

    private func problemsOfHistory(tail: Int, gaps: [Gap], of devices: [String: [Gap]]) -> [Problem] {
        var problems: [Problem] = []
        var left = Dictionary(grouping: stored) { Truth.Source($0.device, $0.stream) }
        for (source, sent) in sent.sorted(by: { "\($0.key)" < "\($1.key)" }) {
            guard let stream = DecodedValues.stream(of: source.characteristic) else { continue }
            let gaps = gaps + devices[source.device, default: []]
            let last = Dictionary(sent.map { ($0.linkEnd, $0.number) }, uniquingKeysWith: max)
            func isExcused(_ value: Truth.Sent) -> Bool {
                value.linkEnd.map { $0 - value.time <= tail || last[value.linkEnd] == value.number } ?? false
                    || gaps.contains { $0.contains(value.time) }
            }
            let readings = left.removeValue(forKey: Truth.Source(source.device, stream)) ?? []
            let comparison = Self.compare(sent, readings, of: source.characteristic)
            problems += comparison.notSent.map { .notSent("\(source): seq \($0.seq), \($0.values)") }
            problems += comparison.lost.filter { !isExcused($0) }.map {
                .lost("\(source): number \($0.number) at \($0.time)\($0.linkEnd.map { ", link until \($0)" } ?? "")")
            }
            let malformed = sent.filter { value in
                DecodedValues(source.characteristic, value.octets) == nil && !isExcused(value)
            }
            if rejected[source, default: 0] < malformed.count {
                problems.append(.notRejected("\(source): \(malformed.count), rejects \(rejected[source, default: 0])"))
            }
        }
        return problems + left.values.joined().map { .notSent("\($0.device)/\($0.stream): seq \($0.seq)") }
    }

    /// The sending times of the stored readings, by `seq`.
    var sendingTimes: [Int: Int] {
        var times: [Int: Int] = [:]
        let readings = Dictionary(grouping: stored) { Truth.Source($0.device, $0.stream) }
        for (source, sent) in sent {
            guard let stream = DecodedValues.stream(of: source.characteristic) else { continue }
            let own = readings[Truth.Source(source.device, stream)] ?? []
            times.merge(Self.compare(sent, own, of: source.characteristic).times) { first, _ in first }
        }
        return times
    }

    private struct Comparison {
        var lost: [Truth.Sent] = []
        var notSent: [Stored] = []
        var times: [Int: Int] = [:]
    }

    /// Matches each reading with the first notification of the same values after the last match.
    private static func compare(_ sent: [Truth.Sent], _ stored: [Stored], of characteristic: String) -> Comparison {
        let sent = sent.filter { DecodedValues(characteristic, $0.octets) != nil }
        var comparison = Comparison()
        var next = sent.startIndex
        for reading in stored {
            let match = sent[next...].firstIndex {
                abs(reading.time - $0.time) < 20_000_000
                    && DecodedValues(characteristic, $0.octets) == reading.values
            }
            guard let match else {
                comparison.notSent.append(reading)
                continue
            }
            comparison.lost += sent[next..<match]
            comparison.times[reading.seq] = sent[match].time
            next = match + 1
        }
        comparison.lost += sent[next...]
        return comparison
    }

    // MARK: - History against the subscriber

    private var problemsOfDelivery: [Problem] {
        var problems: [Problem] = []
        var seen: [Int: Received] = [:]
        var highest = 0
        for reading in received {
            if let first = seen[reading.seq] {
                if (first.topic, first.payload) != (reading.topic, reading.payload) {
                    problems.append(.reused(seq: reading.seq))
                }
                continue
            }
            seen[reading.seq] = reading
            if reading.seq < highest { problems.append(.disordered(seq: reading.seq)) }
            highest = max(highest, reading.seq)
        }
        for reading in stored {
            guard let values = seen.removeValue(forKey: reading.seq)?.values else {
                problems.append(.unpublished(seq: reading.seq))
                continue
            }
            if values != reading.values {
                problems.append(.mismatched("\(reading.seq): \(values) for \(reading.values)"))
            }
        }
        return problems + seen.keys.sorted().map { .mismatched("\($0) is not in history") }
    }
}

// Readings that were delivered while they could not be stored.
extension DeliveryAudit {
    /// The number of received readings that are marked as not stored.
    public var unstoredCount: Int { Set(unstored.map(\.seq)).count }

    /// The audit with the unstored readings added to the stored ones.
    public var includingUnstored: DeliveryAudit {
        var more: [Int: Stored] = [:]
        for reading in unstored {
            let levels = reading.topic.split(separator: "/").map(String.init)
            guard levels.count == 4, let time = Self.microseconds(reading.time) else { continue }
            more[reading.seq] = Stored(
                seq: reading.seq,
                time: time,
                device: levels[2],
                stream: levels[3],
                values: reading.values
            )
        }
        let all = (stored + more.values).sorted { $0.seq < $1.seq }
        return DeliveryAudit(sent: sent, stored: all, rejected: rejected, received: received)
    }

    private var unstored: [Received] { received.filter { !$0.isStored } }

    /// Parses a time to microseconds since 1970.
    private static func microseconds(_ text: String) -> Int? {
        let style = Date.ISO8601FormatStyle(includingFractionalSeconds: true)
        return (try? Date(text, strategy: style)).map { Int($0.timeIntervalSince1970 * 1_000_000) }
    }
}
