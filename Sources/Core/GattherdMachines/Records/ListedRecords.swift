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
    /// The place of the first known record that the present request brought.
    private var first: Int?
    /// True if the answer to the present request may leave out the records before its first one.
    var isPartial = false

    init(_ digests: [UInt32] = []) {
        known = digests.suffix(Self.most)
        places = Array(known.indices)
    }

    /// The digests of the records that the device has, as far as known.
    var digests: [UInt32] {
        let before = isPartial ? known.prefix(first ?? known.count) : []
        let after = known.dropFirst(max(before.count, places.min() ?? 0))
        return Array((before + received + after).suffix(Self.most))
    }

    /// True if the list has all records that the device had; of more, it has only the newest.
    var isWhole: Bool { known.count < Self.most }

    /// Starts a request for all records, or for those from a time on.
    mutating func begin(isPartial: Bool) {
        self = Self(digests)
        self.isPartial = isPartial
    }

    /// Examines the next record of the request.
    ///
    /// - Parameters:
    ///   - digest: A digest of its contents.
    ///   - isUnique: True if no other record has the same contents; else it must follow the last known one.
    /// - Returns: True if it was received before.
    mutating func receive(_ digest: Int64, isUnique: Bool) -> Bool {
        let digest = Self.folded(digest)
        // A device may send records without end.
        if received.count >= 2 * Self.most { received.removeFirst(Self.most) }
        received.append(digest)
        let next = places.filter { known.indices.contains($0) && known[$0] == digest }.map { $0 + 1 }
        guard next.isEmpty else {
            (first, places) = (first ?? next.first.map { $0 - 1 }, next)
            return true
        }
        return isUnique && known.contains(digest)
    }

    /// Adds a record that the device sent without a request, as it was made.
    mutating func add(_ digest: Int64) {
        if known.count >= 2 * Self.most { self = Self(digests) }
        known.append(Self.folded(digest))
    }

    private static func folded(_ digest: Int64) -> UInt32 { UInt32(truncatingIfNeeded: digest ^ digest >> 32) }

    /// Ends a request after which the device has the received records, and those that the answer left out.
    mutating func complete() {
        self = Self(isPartial ? digests : received)
    }
}
