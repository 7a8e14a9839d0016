/// Why there is no link.
public enum DisconnectReason: String, Hashable, Sendable, CaseIterable, Codable {
    /// This program asked for it.
    case requested
    /// This program handed the link to somebody else.
    case detached
    /// Nothing was heard of the peripheral for the supervision timeout, or an attempt ran into its deadline.
    case timedOut
    /// The peripheral ended it, or was lost and the platform cannot tell the two apart, as BlueZ before 5.83.
    case remote
    /// Somebody else on this machine ended it.
    case local
    /// The machine went to sleep.
    case suspended
    /// Pairing or encryption failed.
    case authentication
    /// bluetoothd, or the bus, is gone.
    case daemonLost
    /// The adapter is gone.
    case adapterLost
    /// The adapter was switched off.
    case adapterPoweredOff
    /// BlueZ forgot the peripheral.
    case vanished
    /// It could not be made, for none of the other reasons.
    case connectionFailed
    /// It was made, but a connection task failed.
    case connectionTaskFailed
    /// The platform does not know.
    case unknown
}
