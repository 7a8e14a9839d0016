/// The records that a device had at the last download for all records, in its order, by digests of their contents.
///
/// A device sends its records in the same order each time. It may have deleted the first ones, and have made others
/// since. The list tells which records are known if they have no number, and no time or one of a clock that was set.
struct ListedRecords: Hashable, Sendable {
    /// The maximum number of records in the list, the newest.
    private static let most = 512

    /// The digests of the records before the present request.
    private var known: [UInt32]
    /// The places in ``known`` that the next record can have; all before the first known record.
    private var places: [Int]
    /// The digests of the records of the present request.
    private var received: [UInt32] = []

    init(_ digests: [UInt32] = []) {
        known = digests.suffix(Self.most)
        places = Array(known.indices)
    }

    /// The digests of the records that the device has, as far as known.
    var digests: [UInt32] {
        Array((received + known[(places.min() ?? known.count)...]).suffix(Self.most))
    }

    /// Starts a request for all records.
    mutating func begin() {
        self = Self(digests)
    }

    /// Examines the next record of the request.
    ///
    /// - Parameters:
    ///   - digest: A digest of its contents.
    ///   - isUnique: True if no other record has the same contents; else it must follow the last known one.
    /// - Returns: True if it was received before.
    mutating func receive(_ digest: Int64, isUnique: Bool) -> Bool {
        let digest = UInt32(truncatingIfNeeded: digest ^ digest >> 32)
        // A device may send records without end.
        if received.count >= 2 * Self.most { received.removeFirst(Self.most) }
        received.append(digest)
        let next = places.filter { known.indices.contains($0) && known[$0] == digest }.map { $0 + 1 }
        guard next.isEmpty else {
            places = next
            return true
        }
        return isUnique && known.contains(digest)
    }

    /// Ends a request after which the device has the received records, and no others.
    mutating func complete() {
        self = Self(received)
    }
}
