import GattherdDBus
import GattherdGATT

/// A `Device1`: what bluetoothd knows of a peripheral that one adapter has heard.
struct SimulatedDevice: Sendable {
    /// An attempt to connect that has not ended.
    struct Attempt: Hashable, Sendable {
        let id: UInt64
        /// The `Connect` that started it; a `Pair` may have, too.
        var call: CallToken?
        /// True while the peripheral does not advertise.
        var isWaiting = true
        /// True when bluetoothd tries again by itself, which it does once.
        var isSecond = false
    }

    /// What happens once the link that is being closed is down.
    struct Closing: Hashable, Sendable {
        var replies: [CallToken]
        var removesDevice: Bool
    }

    let key: DeviceKey
    let path: String
    /// When it was last heard.
    var lastHeard: Duration
    /// True while a timer looks after its removal.
    var isExpiryArmed = false
    /// Absent while nobody scans.
    var rssi: Int16?
    /// What it advertised when that was told last.
    var reported: [Property] = []
    /// How often it was heard.
    var reports = 0
    var alias: String?
    var isTrusted = false
    var isBlocked = false
    /// Encrypted once, now or with keys that are kept.
    var isPaired = false
    /// Both sides remember: the next link is encrypted from the start.
    var isBonded = false
    var attempt: Attempt?
    var isConnected = false
    var isResolved = false
    var isEncrypted = false
    var closing: Closing?
    var pairing: SimulatedPairing?
    /// Grows with each link, so that what was meant for an earlier one can be told.
    var linkEpoch: UInt64 = 0
    var gatt: GATTObjects?
    var battery: UInt8?

    init(_ key: DeviceKey, path: String, lastHeard: Duration) {
        self.key = key
        self.path = path
        self.lastHeard = lastHeard
    }

    /// bluetoothd removes it some time after it was last heard.
    var isTemporary: Bool { !isTrusted && !isPaired }
}
