public import GattherdGATT

/// The way to download the stored records of a stream after each connect.
public struct DownloadDescriptor: Hashable, Sendable {
    /// The procedure by which the records are requested and sent.
    public enum Procedure: Hashable, Sendable {
        /// The Record Access Control Point of the Bluetooth SIG.
        ///
        /// `width` is the number of octets of a record number in a filter; 0 if the device cannot filter by it.
        case accessControlPoint(width: Int)
        /// A request that is answered by notifications: up to one that starts with these bytes, or up to a pause.
        case request(WriteTemplate, end: BytePattern?)
        /// Requests by index, each answered by a block of records, which is notified or read.
        case blocks(WriteTemplate, first: Int64, isRead: Bool)
    }

    /// The device's clock, read before the download.
    public struct Clock: Hashable, Sendable {
        public enum Format: Hashable, Sendable {
            /// Date Time or Current Time of the Bluetooth SIG, in the device's own zone.
            case date
            /// A little-endian count of this unit.
            case count(octets: Int, unit: Duration)
        }

        public var characteristic: BluetoothUUID
        public var format: Format
        /// True if the value is the start time of the requested records, not the current time.
        public var isStart: Bool

        public init(
            characteristic: BluetoothUUID,
            format: Format = .date,
            isStart: Bool = false
        ) {
            (self.characteristic, self.format, self.isStart) = (characteristic, format, isStart)
        }
    }

    /// The stream of the same profile whose values are the records.
    public var stream: String
    public var service: BluetoothUUID?
    /// The characteristic that is written.
    public var characteristic: BluetoothUUID
    public var procedure: Procedure
    /// True if the writes expect a response of the link layer.
    public var isAcknowledged = true
    /// The characteristic that ends a request, if it is another one than that of the stream.
    public var answers: BluetoothUUID?
    public var clock: Clock?
    /// The time without a record or an answer after which a request has failed.
    public var timeout = Duration.seconds(30)
    /// The time between two downloads on one link; `nil` for one download.
    public var period: Duration?

    public init(
        stream: String,
        service: BluetoothUUID? = nil,
        characteristic: BluetoothUUID,
        procedure: Procedure
    ) {
        (self.stream, self.service) = (stream, service)
        (self.characteristic, self.procedure) = (characteristic, procedure)
    }
}

/// The octets of a request with places for numbers, such as `3A3A11 {now:u32be} {since:u32be}`.
public struct WriteTemplate: Hashable, Sendable {
    /// A number that is known when the request is written.
    public enum Variable: String, Hashable, Sendable, CaseIterable {
        /// The number of the next record.
        case next
        /// The index of the wanted block.
        case index
        /// The time of the newest stored record, in seconds by the device's clock.
        case since
        /// The current time, in seconds since 1970.
        case now
    }

    /// A part of the request.
    public enum Part: Hashable, Sendable {
        case octets([UInt8])
        case number(Variable, octets: Int, isBigEndian: Bool)
    }

    public var parts: [Part]
    /// The checksum that is added to them.
    public var checksum: Checksum?

    /// Parses `82 04 {index:u16le}`; `nil` for an invalid text.
    public init?(_ text: String) {
        var parts: [Part] = []
        for piece in text.split(separator: "{", omittingEmptySubsequences: false).enumerated() {
            let halves = piece.element.split(separator: "}", omittingEmptySubsequences: false)
            guard halves.count == (piece.offset == 0 ? 1 : 2), let rest = halves.last else { return nil }
            if piece.offset > 0 {
                guard let number = Self.number(halves[0]) else { return nil }
                parts.append(number)
            }
            guard !rest.allSatisfy(\.isWhitespace) else { continue }
            guard let octets = Hexadecimal.octets(rest), octets.count <= 512 else { return nil }
            parts.append(.octets(octets))
        }
        guard !parts.isEmpty, parts.count <= 16 else { return nil }
        self.parts = parts
    }

    private static func number(_ text: some StringProtocol) -> Part? {
        let words = text.split(separator: ":")
        guard words.count == 2, let variable = Variable(rawValue: String(words[0])) else { return nil }
        let type = words[1]
        let isBigEndian = type.hasSuffix("be")
        let bits = type.dropFirst().prefix { $0.isNumber }
        guard type.first == "u", let width = Int(bits), (8...56).contains(width), width.isMultiple(of: 8),
            ["", "le", "be"].contains(type.dropFirst(1 + bits.count))
        else { return nil }
        return .number(variable, octets: width / 8, isBigEndian: isBigEndian)
    }

    /// True if the request contains the number.
    public func contains(_ variable: Variable) -> Bool {
        parts.contains { if case .number(variable, _, _) = $0 { true } else { false } }
    }

    /// The number of bytes, without those of the checksum.
    public var count: Int {
        parts.reduce(0) { count, part in
            switch part {
            case .octets(let fixed): count + fixed.count
            case .number(_, let width, _): count + width
            }
        }
    }

    /// Returns the request; `nil` if a number or the checksum does not fit.
    public func octets(_ value: (Variable) -> Int64) -> [UInt8]? {
        var octets: [UInt8] = []
        for part in parts {
            switch part {
            case .octets(let fixed): octets += fixed
            case .number(let variable, let width, let isBigEndian):
                let number = value(variable)
                guard (1...7).contains(width), (0..<1 << Int64(8 * width)).contains(number) else { return nil }
                let bytes = (0..<width).map { UInt8(truncatingIfNeeded: number >> Int64(8 * $0)) }
                octets += isBigEndian ? bytes.reversed() : bytes
            }
        }
        return checksum.map { $0.inserted(into: octets) } ?? octets
    }
}
