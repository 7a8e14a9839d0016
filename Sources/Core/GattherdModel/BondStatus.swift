/// What `gattherd bond list` says of one peripheral; stable for programs.
public struct BondStatus: Codable, Hashable, Sendable {
    public var address: String
    /// The device's name; `nil` for a peripheral that is none of ours.
    public var device: String?
    /// What the peripheral calls itself.
    public var name: String?
    /// The adapter's address.
    public var adapter: String
    /// Keys are stored.
    public var bonded: Bool
    /// It may use services of this host without being asked.
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
