/// The packet identifiers of what waits for its PUBACK.
///
/// They are so far from those that libmosquitto gives to subscriptions that the two never meet: it counts up from 1, and
/// few of them are under way at once.
struct PacketIdentifiers {
    private static let distance: ClosedRange<UInt16> = 0x4000...0xBFFF
    private var last: UInt16 = 0
    private var underWay: Set<UInt16> = []

    var count: Int { underWay.count }

    /// Takes one that nothing under way has; `foreign` is the last that the library gave.
    mutating func take(awayFrom foreign: UInt16) -> UInt16 {
        repeat {
            last &+= 1
            if !Self.distance.contains(last &- foreign) { last = foreign &+ Self.distance.lowerBound }
        } while last == 0 || !underWay.insert(last).inserted
        return last
    }

    /// False when nothing under way has it.
    mutating func release(_ identifier: UInt16) -> Bool {
        underWay.remove(identifier) != nil
    }
}
