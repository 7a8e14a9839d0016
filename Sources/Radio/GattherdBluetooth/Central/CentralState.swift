/// The availability of Bluetooth.
public enum CentralState: String, Hashable, Sendable, CaseIterable {
    /// The state is not known yet.
    case unknown
    /// bluetoothd, or the bus, is missing; the central keeps trying.
    case resetting
    /// There is no adapter, or not the one that was chosen.
    case unsupported
    /// The bus denies this user access to bluetoothd.
    case unauthorized
    /// The adapter is off, or blocked by a switch.
    case poweredOff
    case poweredOn
}
