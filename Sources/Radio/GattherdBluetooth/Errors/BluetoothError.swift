public import FoundationEssentials
import GattherdGATT

/// An error of a Bluetooth operation, independent of the platform's wording.
public struct BluetoothError: Error, Hashable, Sendable {
    /// The kinds of errors that code may act on.
    public enum Kind: Hashable, Sendable {
        /// There is no adapter, or it is off.
        case adapterUnavailable
        /// bluetoothd is not on the bus, or the bus is gone.
        case serviceUnavailable
        /// The peripheral is unknown: a scan must see it first.
        case unknownPeripheral
        /// The service, characteristic or descriptor does not exist, or not any more.
        case unknownAttribute
        case notConnected
        /// The link could not be established, usually for a radio problem.
        case connectionFailed
        /// An attempt or operation of the same kind is in progress.
        case busy
        /// The requested deadline passed.
        case timedOut
        case cancelled
        /// The peripheral requires pairing, encryption or authorisation.
        case authentication
        /// The characteristic does not have the property.
        case notSupported
        case notPermitted
        case invalidLength
        case invalidOffset
        /// An ATT error code: Core Specification, Vol 3, Part F, "Error Response".
        case att(UInt8)
        case accessDenied
        /// The bytes are not a value of the requested type, or the value cannot be encoded.
        case invalidValue
        /// bluetoothd never answered an earlier request for the characteristic's notifications by a socket. It refuses
        /// others until the peripheral is forgotten, or until bluetoothd restarts.
        case notificationsStuck
        case other
    }

    /// The operation during which an error occurred.
    public enum Operation: String, Hashable, Sendable, CaseIterable {
        case waitUntilReady
        case scan
        case connect
        case connectionTask
        case disconnect
        case discover
        case read
        case write
        case subscribe
        case notification
        case writeAndListen
        case readRSSI
        case pair
        case forget
        case listBonds

        /// The operation's name in messages, before a colon.
        var words: String {
            switch self {
            case .waitUntilReady: "Bluetooth is not ready"
            case .connectionTask: "preparing the connection"
            case .writeAndListen: "write and listen"
            case .readRSSI: "read the signal strength"
            case .listBonds: "list the bonds"
            case .scan, .connect, .disconnect, .discover, .read, .write, .subscribe, .notification, .pair,
                .forget:
                rawValue
            }
        }
    }

    /// An error in the platform's words.
    public struct Original: Hashable, Sendable {
        /// The name of the error, for example `org.bluez.Error.Failed`.
        public let name: String
        public let message: String

        public init(name: String, message: String) {
            self.name = name
            self.message = message
        }
    }

    /// An error of this program; equal to all others, because an error need not be comparable.
    private struct Underlying: Hashable, Sendable {
        let error: any Error

        static func == (left: Self, right: Self) -> Bool { true }
        func hash(into hasher: inout Hasher) {}
    }

    public let kind: Kind
    /// The platform's message.
    public let detail: String
    /// The platform's error; `nil` for an error of this library, for example a deadline that passed.
    public let original: Original?
    /// The operation during which the error occurred; `nil` below ``Central``.
    public private(set) var operation: Operation?
    /// The attribute and the peripheral of the operation, for people.
    private var subject: String?
    private var underlying: Underlying?
    /// The error that a connection task threw, unless that was a ``BluetoothError``.
    public var underlyingError: (any Error)? { underlying?.error }

    public init(_ kind: Kind, _ detail: String, original: Original? = nil) {
        self.kind = kind
        self.detail = detail
        self.original = original
    }

    /// The error of a program's own code.
    init(_ error: any Error) {
        self.init(.other, "\(error)")
        underlying = Underlying(error: error)
    }

    /// Returns the error with the operation during which it occurred.
    public func during(_ operation: Operation) -> BluetoothError {
        during(operation, of: nil)
    }

    /// Returns the error with the operation during which it occurred, and the operation's subject for the message.
    ///
    /// The first operation is kept.
    func during(_ operation: Operation, of subject: String?) -> BluetoothError {
        guard self.operation == nil else { return self }
        var error = self
        (error.operation, error.subject) = (operation, subject)
        return error
    }

    /// Returns the error with another kind if the platform, not this program, has cancelled the operation.
    ///
    /// BlueZ cancels attempts and pairings of all clients when one of them disconnects the peripheral.
    func unlessCancelled(_ kind: Kind) -> BluetoothError {
        guard self.kind == .cancelled, let original else { return self }
        return BluetoothError(kind, detail, original: original)
    }

    /// True if the same call may succeed a little later; false if only another call can.
    ///
    /// Errors without a certain cause count as transient too:
    ///  - ``Kind/unknownAttribute``: the peripheral may be changing its GATT table, or never have the attribute.
    ///  - ``Kind/other``: an error that the library does not know, or one that a connection task threw.
    ///
    /// So a policy that retries needs a limit as well, for example of the number of attempts.
    public var isTransient: Bool {
        switch kind {
        case .authentication, .notSupported, .notPermitted, .invalidLength, .invalidOffset, .accessDenied,
            .invalidValue, .notificationsStuck:
            false
        case .att(let code): code == 0x0E || code == 0x11
        default: true
        }
    }
}

extension BluetoothError: CustomStringConvertible {
    /// The operation, its subject and the platform's message, for example `read 2a19 of C0:FF:EE:00:00:01: no answer`.
    public var description: String {
        guard let operation else { return detail }
        let subject = subject.map { " \($0)" } ?? ""
        return "\(operation.words)\(subject): \(briefDetail)\(attErrorName.map { " (\($0))" } ?? "")"
    }

    /// The detail, without the peripheral's address if the subject ends with it.
    private var briefDetail: String {
        guard let subject, let colon = detail.firstRange(of: ": "), subject.hasSuffix(detail[..<colon.lowerBound])
        else { return detail }
        return String(detail[colon.upperBound...])
    }
}

extension BluetoothError.Kind: CustomStringConvertible {
    /// The kind in words, and the code of an ATT error in hexadecimal.
    public var description: String {
        switch self {
        case .adapterUnavailable: "adapter unavailable"
        case .serviceUnavailable: "service unavailable"
        case .unknownPeripheral: "unknown peripheral"
        case .unknownAttribute: "unknown attribute"
        case .notConnected: "not connected"
        case .connectionFailed: "connection failed"
        case .busy: "busy"
        case .timedOut: "timed out"
        case .cancelled: "cancelled"
        case .authentication: "authentication"
        case .notSupported: "not supported"
        case .notPermitted: "not permitted"
        case .invalidLength: "invalid length"
        case .invalidOffset: "invalid offset"
        case .att(let code): "ATT error 0x\(Hexadecimal.text(code, isUppercase: true))"
        case .accessDenied: "access denied"
        case .invalidValue: "invalid value"
        case .notificationsStuck: "notifications stuck"
        case .other: "other"
        }
    }
}

extension BluetoothError: LocalizedError {
    /// The text of `description`.
    public var errorDescription: String? { description }
}
