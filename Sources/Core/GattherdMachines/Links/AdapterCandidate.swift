public import GattherdGATT

/// An adapter on which a device could connect.
public struct AdapterCandidate: Hashable, Sendable {
    public var address: BluetoothAddress
    /// True if BlueZ already holds a link of the device on this adapter.
    public var isConnected: Bool
    public var hasRoom: Bool
    /// The device's signal strength at the adapter in dBm; `nil` if it is not heard now.
    public var rssi: Int?
    /// Consecutive failed attempts with this device on this adapter.
    public var failures: Int
    /// Links and attempts on this adapter.
    public var load: Int

    public init(
        address: BluetoothAddress,
        isConnected: Bool = false,
        hasRoom: Bool = true,
        rssi: Int? = nil,
        failures: Int = 0,
        load: Int = 0
    ) {
        self.address = address
        self.isConnected = isConnected
        self.hasRoom = hasRoom
        self.rssi = rssi
        self.failures = failures
        self.load = load
    }

    /// Returns the adapter to use, or `nil` if all are full.
    ///
    /// The adapter that holds the link wins. Otherwise signal strength, few failures and low load decide among those
    /// with a free slot.
    public static func best(of candidates: some Sequence<Self>) -> Self? {
        candidates.filter { $0.isConnected || $0.hasRoom }.max { $1.isPreferred(to: $0) }
    }

    private func isPreferred(to other: Self) -> Bool {
        if isConnected != other.isConnected { return isConnected }
        if score != other.score { return score > other.score }
        return load == other.load ? address < other.address : load < other.load
    }

    /// The signal strength in dBm, minus penalties for failures and load in dB.
    private var score: Int {
        (rssi ?? -90) - 10 * min(failures, 5) - 2 * min(load, 10)
    }
}
