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
