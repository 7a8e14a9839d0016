public import GattherdGATT

/// An adapter's status in the supervisor, for display.
public struct AdapterReport: Hashable, Sendable {
    public let address: BluetoothAddress
    /// Links that are up, including those of other programs.
    public internal(set) var links = 0
    /// The adapter's link limit; `nil` while unknown.
    public internal(set) var slots: Int?
    /// Connection attempts under way.
    public internal(set) var attempts = 0
    /// Devices without a free slot on this or any other adapter.
    public internal(set) var waiting: [String] = []
    /// The last recovery step taken on the adapter.
    public internal(set) var lastRemedy: RecoveryLadder.Remedy?

    /// True while the adapter holds as many links as its limit.
    public var isFull: Bool { slots.map { links >= $0 } ?? false }

    init(_ address: BluetoothAddress) {
        self.address = address
    }
}
