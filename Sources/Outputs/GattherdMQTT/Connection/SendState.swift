/// The packet identifiers of one connection and the packets that own them.
struct PacketIdentifiers {
    /// The packet that waits for its acknowledgement.
    enum Owner: UInt8 {
        case nobody
        case publish
        case subscribe
        case unsubscribe
    }

    private var owners: [Owner] = []
    private var last: UInt16 = 0
    private var hasWrapped = false
    private(set) var count = 0
    /// The number of identifiers that belong to messages.
    private(set) var publishCount = 0

    /// Reserves a free identifier; `nil` if there is none.
    mutating func reserve(_ owner: Owner) -> UInt16? {
        guard count < 65_535 else { return nil }
        repeat {
            last &+= 1
            if last == 0 { (last, hasWrapped) = (1, true) }
            while owners.count <= Int(last) { owners.append(.nobody) }
        } while owners[Int(last)] != .nobody
        owners[Int(last)] = owner
        count += 1
        if owner == .publish { publishCount += 1 }
        return last
    }

    /// Frees an identifier after its acknowledgement, or if its packet was not written.
    ///
    /// - Returns: False if its packet was acknowledged before.
    /// - Throws: ``MQTTViolation`` if it was never used on this connection, or for another kind of packet.
    mutating func release(_ identifier: UInt16, of owner: Owner) throws(MQTTViolation) -> Bool {
        let current = Int(identifier) < owners.count ? owners[Int(identifier)] : .nobody
        if current == owner {
            owners[Int(identifier)] = .nobody
            count -= 1
            if owner == .publish { publishCount -= 1 }
            return true
        }
        guard current == .nobody, identifier != 0, hasWrapped || identifier <= last else {
            throw .protocolError("an acknowledgement of packet \(identifier), which was not sent")
        }
        return false
    }
}

/// The bytes that wait to be sent.
public struct OutboundBytes: Sendable {
    /// The maximum capacity that is kept when all is sent.
    private static let keptCapacity = 1 << 18

    var bytes: [UInt8] = []
    /// The number of sent bytes in the buffer.
    private var head = 0
    /// The number of bytes ever appended.
    public private(set) var appended = 0
    public private(set) var sent = 0

    public var isEmpty: Bool { head == bytes.count }
    /// The number of bytes to be sent.
    var count: Int { bytes.count - head }
    /// The bytes to be sent.
    var unsent: ArraySlice<UInt8> { bytes[head...] }

    mutating func append(_ more: some Collection<UInt8>) {
        bytes.append(contentsOf: more)
        count(more.count)
    }

    /// Counts bytes that were appended to `bytes` directly.
    mutating func count(_ count: Int) {
        appended += count
    }

    mutating func remove(_ count: Int) {
        head += count
        sent += count
        if head == bytes.count {
            bytes.removeAll(keepingCapacity: bytes.capacity <= Self.keptCapacity)
            head = 0
        } else if head >= Self.keptCapacity {
            bytes.removeFirst(head)
            head = 0
        }
    }

    mutating func removeAll() {
        bytes.removeAll()
        head = 0
    }
}
