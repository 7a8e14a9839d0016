public import GattherdGATT

/// What the herd makes of an adapter, for people.
public struct AdapterReport: Hashable, Sendable {
    public let address: BluetoothAddress
    /// Links that are up, other programs' included.
    public internal(set) var links = 0
    /// The most links that it holds; `nil` while no limit is known.
    public internal(set) var slots: Int?
    /// Attempts to connect under way.
    public internal(set) var attempts = 0
    /// The devices for which there is no place, here or elsewhere.
    public internal(set) var waiting: [String] = []
    /// The step that was last taken to make it work again.
    public internal(set) var lastRemedy: RecoveryLadder.Remedy?

    /// True while it holds as many links as it is known to hold at most.
    public var isFull: Bool { slots.map { links >= $0 } ?? false }

    init(_ address: BluetoothAddress) {
        self.address = address
    }
}
