/// The beginning and the end of messages that a device splits over several notifications.
public struct MessageRule: Hashable, Sendable {
    /// The length of a message.
    public enum Extent: Hashable, Sendable {
        /// A fixed number of bytes.
        case fixed(Int)
        /// An integer at an offset in the message, plus a number of bytes.
        case field(at: Int, width: Int, isBigEndian: Bool, add: Int)
        /// The last bytes.
        case end([UInt8])
        /// A header of one byte in each notification, as in services of the Bluetooth SIG: bit 0 is set in the first
        /// segment, bit 1 in the last one, and the other bits count the segments.
        case segments
    }

    /// The longest message, in bytes.
    public static let longest = 1024

    /// The patterns at the start of a message; empty if a message may start with any byte.
    public var beginnings: [BytePattern]
    public var extent: Extent
    /// The bytes between two messages that are no part of one and are skipped.
    public var ignored: [BytePattern]
    /// The longest pause between two notifications of a message.
    public var timeout: Duration

    public init(
        beginnings: [BytePattern] = [],
        extent: Extent,
        ignored: [BytePattern] = [],
        timeout: Duration = .seconds(2)
    ) {
        self.beginnings = beginnings
        self.extent = extent
        self.ignored = ignored
        self.timeout = timeout
    }

    /// True if only the ends of messages are known, so that no message can begin inside another.
    var isBetweenEnds: Bool {
        guard case .end = extent else { return false }
        return beginnings.isEmpty
    }

    /// The beginning of some bytes.
    enum Candidate: Hashable {
        /// Ignored bytes of this length.
        case ignored(Int)
        /// A whole message of this length.
        case whole(Int)
        /// The beginning of a message; its length if it is known.
        case partial(Int?)
        /// No message begins in at least this many of the first bytes.
        case none(Int)
    }

    /// Returns the message or the ignored bytes at the start of `octets`, which are not empty.
    func candidate(_ octets: ArraySlice<UInt8>) -> Candidate {
        if let noise = ignored.first(where: { $0.fits(octets) }) { return .ignored(noise.count) }
        guard beginnings.isEmpty || beginnings.contains(where: { $0.fits(octets) }) else {
            return (beginnings + ignored).contains { $0.canBegin(octets) } ? .partial(nil) : .none(1)
        }
        switch extent {
        case .fixed(let length): return candidate(length, octets)
        case .field(let offset, let width, let isBigEndian, let add):
            guard octets.count >= offset + width else { return .partial(nil) }
            let first = octets.startIndex + offset
            let field = octets[first..<first + width]
            let stated = (isBigEndian ? field : ArraySlice(field.reversed())).reduce(0) { $0 << 8 | Int($1) }
            guard (offset + width...Self.longest).contains(stated + add) else { return .none(1) }
            return candidate(stated + add, octets)
        case .end(let end):
            // The bytes of the beginning can be those of the end.
            let begun = beginnings.filter { $0.fits(octets) }.map(\.count).max() ?? 0
            return candidate(end, octets.prefix(Self.longest), after: begun)
        case .segments: return .partial(nil)
        }
    }

    private func candidate(_ length: Int, _ octets: ArraySlice<UInt8>) -> Candidate {
        octets.count < length ? .partial(length) : .whole(length)
    }

    private func candidate(_ end: [UInt8], _ octets: ArraySlice<UInt8>, after begun: Int) -> Candidate {
        guard let first = end.first else { return .none(1) }
        var start = octets.startIndex + begun
        while start + end.count <= octets.endIndex {
            if octets[start] == first, octets[start..<start + end.count].elementsEqual(end) {
                return .whole(start + end.count - octets.startIndex)
            }
            start += 1
        }
        return octets.count < Self.longest ? .partial(nil) : .none(octets.count)
    }
}
