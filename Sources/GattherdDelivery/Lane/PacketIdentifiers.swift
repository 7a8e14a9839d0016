/// Packet identifiers so far from those that libmosquitto gives to subscriptions that the two never meet: it counts up
/// from 1, and few of them are under way at once.
struct PacketIdentifiers {
    private static let distance: ClosedRange<UInt16> = 0x4000...0xBFFF
    private var last: UInt16 = 0

    /// The next one.
    ///
    /// - Parameters:
    ///   - foreign: The last that the library gave.
    ///   - isTaken: Whether one is under way already.
    /// - Returns: One that nothing under way has.
    mutating func next(awayFrom foreign: UInt16, unless isTaken: (UInt16) -> Bool) -> UInt16 {
        repeat {
            last &+= 1
            if !Self.distance.contains(last &- foreign) { last = foreign &+ Self.distance.lowerBound }
        } while last == 0 || isTaken(last)
        return last
    }
}
