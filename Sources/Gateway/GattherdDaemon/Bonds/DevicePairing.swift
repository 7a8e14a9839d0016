/// The pairing rules of a device, and the handling of a lost bond.
public struct DevicePairing: Hashable, Sendable {
    /// The pairing method and its time.
    public enum Way: Hashable, Sendable {
        /// Never pair.
        case never
        /// Pair by Just Works as soon as a request needs encryption.
        case onDemand
        /// Pair by Just Works before the first request.
        case justWorks
        /// Pair by numeric comparison before the first request; the numbers are confirmed without a check.
        case compare
        /// Pair with the passkey in this file before the first request.
        case passkey(file: String)
    }

    public var way: Way
    /// True to remove a bond that the device has lost and to pair again; false to fail the link until a person removes
    /// it.
    ///
    /// With true, another device that uses the same address can take the device's place.
    public var repairsBond: Bool

    public init(_ way: Way = .onDemand, repairsBond: Bool = false) {
        self.way = way
        self.repairsBond = repairsBond
    }
}
