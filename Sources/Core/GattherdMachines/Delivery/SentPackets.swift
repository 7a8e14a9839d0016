/// The packets that the broker has not answered, in the order of sending.
///
/// An answer to a packet proves that the broker has processed all before it.
struct SentPackets: Sendable {
    struct Packet: Sendable {
        let topic: String
        let identifier: UInt16
        let origin: TopicRefusals.Origin
    }

    /// The maximum number of packets; the oldest ones are dropped.
    static let capacity = 512

    private var packets: [Packet] = []
    /// The index of the first packet that is not answered.
    private var first = 0

    var unanswered: ArraySlice<Packet> { packets[first...] }

    mutating func append(_ packet: Packet) {
        packets.append(packet)
        guard packets.count - first > Self.capacity else { return }
        first += 1
        compact()
    }

    /// The index of a packet in ``unanswered``.
    func position(of identifier: UInt16) -> Int? {
        packets[first...].firstIndex { $0.identifier == identifier }
    }

    /// Removes a packet that is answered, with all before it.
    mutating func remove(through position: Int) {
        first = min(position + 1, packets.count)
        compact()
    }

    mutating func removeAll() {
        packets.removeAll(keepingCapacity: true)
        first = 0
    }

    private mutating func compact() {
        if first == packets.count {
            removeAll()
        } else if first > Self.capacity {
            packets.removeFirst(first)
            first = 0
        }
    }
}
