import GattherdGATT

/// What happened at a peripheral: what a checker compares with what a client understood.
enum TruthEvent: Hashable, Sendable {
    enum DisconnectReason: String, Hashable, Sendable {
        /// By the peripheral.
        case remote
        /// By a client.
        case local
        /// Radio contact was lost.
        case timeout
        /// It did not answer a request.
        case unanswered
        /// A client set `Blocked`.
        case blocked
        /// The keys of the two sides do not match, or a pairing failed.
        case authentication
        case powerOff = "power-off"
        case unplugged
        /// bluetoothd ended.
        case daemon
    }

    case notification(NotificationRecord)
    case write(BluetoothAddress, BluetoothUUID, [UInt8], error: UInt8?)
    case subscribed(BluetoothAddress, BluetoothUUID, Bool)
    case connected(BluetoothAddress, adapter: String)
    case disconnected(BluetoothAddress, DisconnectReason)
    /// A client made bluetoothd crash.
    case crashed
}

/// One notification that a peripheral sent.
struct NotificationRecord: Hashable, Sendable {
    let address: BluetoothAddress
    let characteristic: BluetoothUUID
    /// Counts the characteristic's notifications since the start, from 0.
    let number: UInt64
    let payload: [UInt8]
    /// Whether a subscriber was there to get it.
    var isDelivered: Bool
}
