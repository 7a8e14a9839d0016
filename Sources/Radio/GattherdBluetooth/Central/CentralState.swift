/// Whether Bluetooth can be used.
public enum CentralState: String, Hashable, Sendable, CaseIterable {
    /// Not looked yet.
    case unknown
    /// bluetoothd, or the bus, is not there; it is tried again and again.
    case resetting
    /// There is no adapter, or not the one that was chosen.
    case unsupported
    /// This user may not talk to bluetoothd.
    case unauthorized
    /// The adapter is off, or blocked by a switch.
    case poweredOff
    case poweredOn
}
