/// One entry of `gattherd bond list --json`; a stable format.
public struct BondStatus: Codable, Hashable, Sendable {
    public var address: String
    /// The device's name; `nil` for a peripheral that is not configured.
    public var device: String?
    /// The peripheral's own name.
    public var name: String?
    /// The adapter's address.
    public var adapter: String
    /// True if keys are stored.
    public var bonded: Bool
    /// True if it may use services of this host without authorisation.
    public var trusted: Bool
    public var connected: Bool

    public init(address: String, adapter: String) {
        self.address = address
        self.adapter = adapter
        bonded = false
        trusted = false
        connected = false
    }
}
