import GattherdBluetooth
import GattherdDBus

extension BluetoothError {
    /// Maps the errors of D-Bus and BlueZ.
    ///
    /// BlueZ's texts are part of its protocol, because one error name has many meanings. Seen in 5.66, newer ones from
    /// its sources up to 5.86. `missing` is the kind when the object is not, or no longer, there.
    init(_ error: DBusError, missing: Kind) {
        guard error.name != DBusError.timeoutName else {
            // The deadline was ours: bluetoothd has sent nothing.
            self.init(.timedOut, "bluetoothd did not answer in time")
            return
        }
        self.init(
            Self.kind(error, missing),
            "\(error.message.isEmpty ? "failed" : error.trimmed) (\(error.name))",
            original: Original(name: error.name, message: error.message)
        )
    }

    private static func kind(_ error: DBusError, _ missing: Kind) -> Kind {
        if let name = error.name.removingPrefix("org.bluez.Error.") { return blueZ(name, error.trimmed) }
        if let name = error.name.removingPrefix("org.freedesktop.DBus.Error.") { return bus(name, missing) }
        return error.name == DBusError.cancelledName ? .cancelled : .other
    }

    private static func bus(_ name: String, _ missing: Kind) -> Kind {
        switch name {
        case "UnknownObject", "UnknownMethod", "UnknownInterface", "UnknownProperty": missing
        case "NoReply", "ServiceUnknown", "NameHasNoOwner", "Disconnected", "NoServer": .serviceUnavailable
        case "Timeout", "TimedOut": .timedOut
        case "AccessDenied", "AuthFailed": .accessDenied
        case "LimitsExceeded", "NoMemory": .busy
        case _ where name.hasPrefix("Spawn."): .serviceUnavailable
        default: .other
        }
    }

    private static func blueZ(_ name: String, _ text: String) -> Kind {
        switch name {
        case "NotReady", "Blocked": .adapterUnavailable
        case "InProgress", "Busy", "AlreadyExists", "AlreadyConnected": .busy
        case "NotConnected": .notConnected
        case "NotSupported": .notSupported
        case "NotAuthorized": .authentication
        case "NotPermitted": notPermitted(text)
        case "InvalidArguments": invalidArguments(text)
        case "InvalidOffset": .invalidOffset
        case "InvalidValueLength": .invalidLength
        case "DoesNotExist": .unknownPeripheral
        case "ConnectionAttemptFailed", "NotAvailable": .connectionFailed
        case "Failed": failed(text)
        case "AuthenticationTimeout": .timedOut
        case "AuthenticationCanceled": .cancelled
        case _ where name.hasPrefix("Authentication"): .authentication
        case _ where name.hasPrefix("BREDR."): .connectionFailed
        default: .other
        }
    }

    private static func notPermitted(_ text: String) -> Kind {
        switch text {
        case "Not paired": .authentication
        case "Notify acquired", "Write acquired": .busy
        default: .notPermitted
        }
    }

    private static func invalidArguments(_ text: String) -> Kind {
        switch text.lowercased() {
        case "invalid offset": .invalidOffset
        case "invalid length", "invalid value length": .invalidLength
        default: .other
        }
    }

    private static func failed(_ text: String) -> Kind {
        if let code = text.removingPrefix("Operation failed with ATT error: 0x") {
            return UInt8(code, radix: 16).map { Kind(att: $0) } ?? .other
        }
        if let reason = text.removingPrefix("le-connection-") ?? text.removingPrefix("br-connection-") {
            return connection(reason)
        }
        return switch text {
        case "Not connected": .notConnected
        case "Operation already in progress", "In Progress": .busy
        case "Resource Not Ready": .adapterUnavailable
        case _ where connectionTexts.contains(text): .connectionFailed
        default: .other
        }
    }

    private static func connection(_ reason: String) -> Kind {
        switch reason {
        case "canceled": .cancelled
        case "adapter-not-powered": .adapterUnavailable
        case "key-missing": .authentication
        case "busy": .busy
        default: .connectionFailed
        }
    }

    /// The system's error texts for a connecting socket.
    private static let connectionTexts: Set<String> = [
        "Software caused connection abort", "Input/output error", "Connection refused", "Connection timed out",
        "Connection reset by peer", "Host is down", "No route to host", "Transport endpoint is not connected",
        "Device or resource busy", "Too many links",
    ]
}

extension DBusError {
    /// The message without the newline that BlueZ ends some with.
    fileprivate var trimmed: String {
        var text = Substring(message)
        while text.last?.isNewline == true { text.removeLast() }
        return String(text)
    }
}

extension String {
    fileprivate func removingPrefix(_ prefix: String) -> String? {
        hasPrefix(prefix) ? String(dropFirst(prefix.count)) : nil
    }
}
