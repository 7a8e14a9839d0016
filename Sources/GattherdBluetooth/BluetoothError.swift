/// What went wrong between us and a peripheral, whatever the platform called it.
public struct BluetoothError: Error, Hashable, Sendable {
    /// The kinds that code may act on.
    public enum Kind: Hashable, Sendable {
        /// No adapter, or it is off.
        case adapterUnavailable
        /// bluetoothd is not on the bus, or the bus is gone.
        case serviceUnavailable
        /// Nothing is known of that peripheral: it must be seen by a scan first.
        case unknownPeripheral
        /// The characteristic is not, or no longer, there.
        case unknownAttribute
        case notConnected
        /// The link could not be made; usually the radio.
        case connectionFailed
        /// An attempt or operation of the same kind is under way.
        case busy
        /// The deadline that was asked for passed.
        case timedOut
        case cancelled
        /// The peripheral wants pairing, encryption or authorisation.
        case authentication
        /// The characteristic does not have the property.
        case notSupported
        case notPermitted
        case invalidLength
        case invalidOffset
        /// An ATT error code: Core Specification, Vol 3, Part F, "Error Response".
        case att(UInt8)
        case accessDenied
        case other
    }

    public let kind: Kind
    /// The platform's own words, for people.
    public let detail: String

    public init(_ kind: Kind, _ detail: String) {
        self.kind = kind
        self.detail = detail
    }

    /// True when the same call may well succeed a little later.
    public var isTransient: Bool {
        switch kind {
        case .authentication, .notSupported, .notPermitted, .invalidLength, .invalidOffset, .accessDenied: false
        case .att(let code): code == 0x0E || code == 0x11
        default: true
        }
    }
}

extension BluetoothError: CustomStringConvertible {
    public var description: String { detail }
}
