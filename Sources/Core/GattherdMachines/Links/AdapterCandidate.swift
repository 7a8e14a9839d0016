public import GattherdGATT

/// One adapter that a device could be connected on.
public struct AdapterCandidate: Hashable, Sendable {
    public var address: BluetoothAddress
    /// BlueZ holds a link of the device there already.
    public var isConnected: Bool
    public var hasRoom: Bool
    /// In dBm, as the adapter hears the device; `nil` when it does not hear it now.
    public var rssi: Int?
    /// Attempts with this device that failed there in a row.
    public var failures: Int
    /// Links and attempts there.
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

    /// The adapter to use: where the link is, else one with room that hears the device well, failed little and has
    /// little to do; `nil` when all are full.
    public static func best(of candidates: some Sequence<Self>) -> Self? {
        candidates.filter { $0.isConnected || $0.hasRoom }.max { $1.isPreferred(to: $0) }
    }

    private func isPreferred(to other: Self) -> Bool {
        if isConnected != other.isConnected { return isConnected }
        if score != other.score { return score > other.score }
        return load == other.load ? address < other.address : load < other.load
    }

    /// What the adapter hears in dBm, less what failures and load weigh against it in dB.
    private var score: Int {
        (rssi ?? -90) - 10 * min(failures, 5) - 2 * min(load, 10)
    }
}
