/// How a device may pair, and what happens when it has lost its bond.
public struct DevicePairing: Hashable, Sendable {
    /// How it pairs, and when.
    public enum Way: Hashable, Sendable {
        /// Not at all.
        case never
        /// By Just Works, as soon as something that is asked of it needs encryption.
        case onDemand
        /// By Just Works, before anything is asked of it.
        case justWorks
        /// Before anything is asked of it, comparing numbers that nobody looks at.
        case compare
        /// Before anything is asked of it, with the passkey in this file.
        case passkey(file: String)
    }

    public var way: Way
    /// Forget a bond that the device has lost, and pair again; otherwise the link fails until a person does so.
    ///
    /// Whoever uses the device's address can then take its place.
    public var repairsBond: Bool

    public init(_ way: Way = .onDemand, repairsBond: Bool = false) {
        self.way = way
        self.repairsBond = repairsBond
    }
}
