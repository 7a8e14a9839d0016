import Foundation
import TestKit

/// What peripherals sent, what history has and what a subscriber got, laid side by side.
public struct Account: Sendable {
    /// A reading as it is stored.
    public struct Stored: Sendable {
        public let seq: Int
        public let time: Int
        public let device: String
        public let stream: String
        public var values = DecodedValues()
    }

    /// Each problem is one of these words and what it is about.
    public enum Problem: Hashable, Sendable, CustomStringConvertible {
        /// Stored, but not sent, or not after the one before it.
        case invented(String)
        /// Sent to a subscriber, but not stored.
        case lost(String)
        /// Sent, but no reading and not kept as a reject.
        case notRejected(String)
        /// Stored, but not received.
        case unpublished(seq: Int)
        /// Received with other values, or without being stored.
        case published(String)
        /// Received before one of a lower number.
        case disordered(seq: Int)
        /// Received again, as something else.
        case reused(seq: Int)

        public var description: String {
            switch self {
            case .invented(let text): "invented: \(text)"
            case .lost(let text): "lost: \(text)"
            case .notRejected(let text): "not rejected: \(text)"
            case .unpublished(let seq): "stored but not received: \(seq)"
            case .published(let text): "received, but not what is stored: \(text)"
            case .disordered(let seq): "received too late: \(seq)"
            case .reused(let seq): "a number of two readings: \(seq)"
            }
        }
    }

    /// A reading as a subscriber got it.
    struct Received: Sendable {
        let seq: Int
        let topic: String
        let payload: String
        let values: DecodedValues
        /// When it was taken, as it is written.
        let time: String
        let isStored: Bool
    }

    /// When the host could not take, or keep, what was sent, in microseconds since 1970.
    public typealias Gap = ClosedRange<Int>

    let sent: [Truth.Source: [Truth.Sent]]
    let stored: [Stored]
    let rejected: [Truth.Source: Int]
    let received: [Received]

    /// Everything that is wrong.
    ///
    /// The host may have dropped what was sent in the `tail`, so many microseconds before a link's end: bluetoothd was
    /// seen to lose the last ones, and only these. It also may lack what was sent in one of the `gaps`, or in one of those
    /// of the device alone.
    public func problems(tail: Int = 1_000_000, gaps: [Gap] = [], of devices: [String: [Gap]] = [:]) -> [Problem] {
        problemsOfHistory(tail: tail, gaps: gaps, of: devices) + problemsOfDelivery
    }

    /// How many notified readings are stored.
    public var storedCount: Int { stored.count }

    /// How many readings and rejects history and the subscriber have taken.
    public var takenCount: Int { stored.count + rejected.values.reduce(0, +) + received.count }

    // MARK: - Peripherals against history

    private func problemsOfHistory(tail: Int, gaps: [Gap], of devices: [String: [Gap]]) -> [Problem] {
        var problems: [Problem] = []
        var left = Dictionary(grouping: stored) { Truth.Source($0.device, $0.stream) }
        for (source, sent) in sent.sorted(by: { "\($0.key)" < "\($1.key)" }) {
            guard let stream = DecodedValues.stream(of: source.characteristic) else { continue }
            let gaps = gaps + devices[source.device, default: []]
            let readings = left.removeValue(forKey: Truth.Source(source.device, stream)) ?? []
            let comparison = Self.compare(sent, readings, of: source.characteristic)
            problems += comparison.invented.map { .invented("\(source): seq \($0.seq), \($0.values)") }
            problems += comparison.lost.filter { !Self.isExcused($0, tail, gaps) }.map {
                .lost("\(source): number \($0.number) at \($0.time)\($0.linkEnd.map { ", link until \($0)" } ?? "")")
            }
            let unsound = sent.filter { value in
                DecodedValues(source.characteristic, value.octets) == nil && !Self.isExcused(value, tail, gaps)
            }
            if rejected[source, default: 0] < unsound.count {
                problems.append(.notRejected("\(source): \(unsound.count), rejects \(rejected[source, default: 0])"))
            }
        }
        return problems + left.values.joined().map { .invented("\($0.device)/\($0.stream): seq \($0.seq)") }
    }

    private static func isExcused(_ value: Truth.Sent, _ tail: Int, _ gaps: [Gap]) -> Bool {
        value.linkEnd.map { $0 - value.time <= tail } ?? false || gaps.contains { $0.contains(value.time) }
    }

    /// When each stored reading was sent, by its number.
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
        var invented: [Stored] = []
        var times: [Int: Int] = [:]
    }

    /// Gives each reading the first notification of the same values that could be it.
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
                comparison.invented.append(reading)
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
                problems.append(.published("\(reading.seq): \(values) for \(reading.values)"))
            }
        }
        return problems + seen.keys.sorted().map { .published("\($0) is not in history") }
    }
}
