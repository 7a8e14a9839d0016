import Foundation

/// The events at the peripherals, from their truth log.
public struct Truth: Sendable {
    /// One line of the log.
    public struct Entry: Decodable, Sendable {
        /// The time in microseconds since 1970.
        public let t: Int
        public let event: String
        /// The peripheral's address.
        public let dev: String?
        public let char: String?
        public let n: Int?
        public let hex: String?
        public let delivered: Bool?
        public let reason: String?
        /// The ATT code of a refused write.
        public let error: Int?
    }

    /// A notification with a subscriber.
    public struct Sent: Sendable {
        public let time: Int
        public let number: Int
        public let octets: [UInt8]
        /// The end of its link, if it ended.
        public var linkEnd: Int?
    }

    /// One characteristic of one device.
    public struct Source: Hashable, Sendable, CustomStringConvertible {
        public let device: String
        public let characteristic: String

        public init(_ device: String, _ characteristic: String) {
            self.device = device
            self.characteristic = characteristic
        }

        public var description: String { "\(device)/\(characteristic)" }
    }

    public let entries: [Entry]

    /// Reads the log written so far.
    public init(path: String) throws {
        let text = try String(contentsOfFile: path, encoding: .utf8)
        let whole = text[..<(text.lastIndex(of: "\n") ?? text.startIndex)]
        entries = try whole.split(separator: "\n").map { try JSONDecoder().decode(Entry.self, from: Data($0.utf8)) }
    }

    /// The notifications by source, in order.
    ///
    /// `names` are the devices by address.
    func sent(by names: [String: String]) -> [Source: [Sent]] {
        var sent: [Source: [Sent]] = [:]
        for entry in entries {
            guard let name = entry.dev.flatMap({ names[$0] }) else { continue }
            switch entry.event {
            case "notification" where entry.delivered == true:
                guard let uuid = entry.char, let number = entry.n, let hex = entry.hex else { continue }
                let value = Sent(time: entry.t, number: number, octets: Self.octets(hex))
                sent[Source(name, uuid), default: []].append(value)
            case "disconnect":
                for source in sent.keys where source.device == name { sent[source]?.endLink(at: entry.t) }
            default:
                continue
            }
        }
        return sent
    }

    /// The number of a device's links.
    public func connections(of address: String) -> Int {
        entries.count { $0.event == "connect" && $0.dev == address }
    }

    /// The number of events of a kind at a device or at one of its characteristics.
    public func count(_ event: String, of address: String, _ characteristic: String? = nil) -> Int {
        entries.count {
            $0.event == event && $0.dev == address && (characteristic == nil || $0.char == characteristic)
        }
    }

    /// The payloads of all notifications of a characteristic with a subscriber.
    public func delivered(of address: String, _ characteristic: String) -> [[UInt8]] {
        entries.filter {
            $0.event == "notification" && $0.dev == address && $0.char == characteristic && $0.delivered == true
        }
        .map { Self.octets($0.hex ?? "") }
    }

    static func octets(_ hex: String) -> [UInt8] {
        let digits = Array(hex)
        return stride(from: 0, to: digits.count - 1, by: 2).compactMap {
            UInt8(String(digits[$0...($0 + 1)]), radix: 16)
        }
    }
}

extension [Truth.Sent] {
    fileprivate mutating func endLink(at time: Int) {
        for index in indices.reversed() {
            guard self[index].linkEnd == nil else { return }
            self[index].linkEnd = time
        }
    }
}
