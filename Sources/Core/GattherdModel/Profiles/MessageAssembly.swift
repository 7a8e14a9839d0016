public import GattherdGATT

/// The messages of one characteristic on one connection, put together from notifications.
///
/// The buffer holds less than one message of ``MessageRule/longest`` bytes and the newest notification. A message that
/// is not accepted, because notifications were lost, is searched for the beginning of another one, unless only the ends
/// of messages are known.
public struct MessageAssembly: Sendable {
    /// The maximum number of messages that one notification completes.
    static let mostMessages = 64

    private let rule: MessageRule
    private var buffer: [UInt8] = []
    /// The number of bytes at the start of ``buffer`` that were part of a message which was not accepted.
    private var reported = 0
    private var newest: Timestamp?
    /// The header of the last segment of an unfinished message.
    private var segment: SegmentHeader?

    public init(_ rule: MessageRule) {
        self.rule = rule
    }

    /// Adds a notification.
    ///
    /// - Parameters:
    ///   - octets: The notification's value, of any length and content.
    ///   - time: The time of its receipt.
    ///   - handle: Receives each complete message with `nil`, and discarded bytes with the reason. Returns true if it
    ///     accepts a message.
    public mutating func receive(
        _ octets: Span<UInt8>,
        at time: Timestamp,
        _ handle: (Span<UInt8>, PayloadError?) -> Bool
    ) {
        if let newest, newest.advanced(by: rule.timeout) < time { finish(handle) }
        newest = time
        if rule.extent == .segments { return receive(segment: octets, handle) }
        for index in octets.indices { buffer.append(octets[index]) }
        remove(takeMessages(handle))
    }

    /// Discards an unfinished message, but hands out whole messages that were taken for its contents.
    public mutating func finish(_ handle: (Span<UInt8>, PayloadError?) -> Bool) {
        while let start = nextWhole { discard(start, handle) }
        discard(buffer.count, handle)
        segment = nil
    }

    /// The start of a whole message after the first byte; `nil` if there is none, or if messages have no start pattern.
    private var nextWhole: Int? {
        guard !rule.beginnings.isEmpty else { return nil }
        return buffer.indices.dropFirst().first { index in
            if case .whole = rule.candidate(buffer[index...]) { true } else { false }
        }
    }

    /// Discards the beginning of an incomplete message, and hands out the messages after it.
    private mutating func discard(_ count: Int, _ handle: (Span<UInt8>, PayloadError?) -> Bool) {
        let length = buffer.isEmpty ? nil : rule.candidate(buffer[...]).length
        let text = length.map { "\(buffer.count) of \($0)" } ?? "\(buffer.count)"
        discard(0..<count, .invalid(reason: "incomplete message: \(text) bytes"), handle)
        remove(count)
        remove(takeMessages(handle))
    }

    private mutating func remove(_ count: Int) {
        buffer.removeFirst(count)
        reported = max(0, reported - count)
    }

    /// Adds a notification that begins with the header of a segment.
    private mutating func receive(segment octets: Span<UInt8>, _ handle: (Span<UInt8>, PayloadError?) -> Bool) {
        let header = octets.isEmpty ? nil : SegmentHeader(octets[0])
        if header?.isFirst ?? true { finish(handle) }
        guard let header, header.isFirst || segment.map({ header.follows($0) }) ?? false,
            buffer.count + octets.count - 1 <= MessageRule.longest
        else {
            finish(handle)
            _ = handle(octets, .invalid(reason: "no message is continued by this segment"))
            return
        }
        segment = header
        for index in octets.indices.dropFirst() { buffer.append(octets[index]) }
        guard header.isLast else { return }
        _ = handle(buffer.span, nil)
        buffer.removeAll(keepingCapacity: true)
        segment = nil
    }

    /// Passes on the complete messages; returns the number of bytes that are no longer needed.
    private mutating func takeMessages(_ handle: (Span<UInt8>, PayloadError?) -> Bool) -> Int {
        var position = 0
        for _ in 0..<Self.mostMessages {
            let (start, candidate) = nextCandidate(from: position)
            discard(position..<start, .invalid(reason: "no message begins with these bytes"), handle)
            position = start
            switch candidate {
            case .partial, .none: return position
            case .ignored(let length): position += length
            case .whole(let length):
                let isAccepted = handle(buffer.span.extracting(position..<position + length), nil)
                if !isAccepted { reported = max(reported, position + length) }
                position += isAccepted || rule.isBetweenEnds ? length : 1
            }
        }
        discard(position..<buffer.count, .invalid(reason: "too many messages in one notification"), handle)
        return buffer.count
    }

    /// Returns the first position at or after another one where a message may begin, or the end of the buffer.
    private func nextCandidate(from position: Int) -> (start: Int, MessageRule.Candidate) {
        var start = position
        while start < buffer.count {
            let candidate = rule.candidate(buffer[start...])
            guard case .none(let length) = candidate else { return (start, candidate) }
            start += max(1, length)
        }
        return (buffer.count, .none(0))
    }

    /// Reports discarded bytes once.
    private func discard(
        _ range: Range<Int>,
        _ reason: PayloadError,
        _ handle: (Span<UInt8>, PayloadError?) -> Bool
    ) {
        let first = max(range.lowerBound, reported)
        guard first < range.upperBound else { return }
        _ = handle(buffer.span.extracting(first..<range.upperBound), reason)
    }
}

/// The first byte of a segment.
private struct SegmentHeader {
    let isFirst: Bool
    let isLast: Bool
    private let counter: UInt8

    init(_ octet: UInt8) {
        (isFirst, isLast, counter) = (octet & 1 != 0, octet & 2 != 0, octet >> 2)
    }

    func follows(_ other: SegmentHeader) -> Bool { counter == (other.counter &+ 1) & 0x3F }
}

extension MessageRule.Candidate {
    fileprivate var length: Int? {
        switch self {
        case .whole(let length), .partial(.some(let length)): length
        case .partial(nil), .ignored, .none: nil
        }
    }
}
