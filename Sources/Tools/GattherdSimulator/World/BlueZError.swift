import GattherdDBus
import GattherdGATT

/// The errors of bluetoothd 5.66, with name and text.
extension DBusError {
    static func bluez(_ name: String, _ text: String) -> DBusError {
        DBusError(name: "org.bluez.Error." + name, message: text)
    }

    static let notReady = bluez("NotReady", "Resource Not Ready")
    static let inProgress = bluez("InProgress", "Operation already in progress")
    static let acquireInProgress = bluez("InProgress", "In Progress")
    static let noDiscovery = bluez("Failed", "No discovery started")
    static let doesNotExist = bluez("DoesNotExist", "Does Not Exist")
    static let invalidArguments = bluez("InvalidArguments", "Invalid arguments in method call")
    static let inputOutput = bluez("Failed", "Input/output error")
    static let connectInProgress = bluez("Failed", "Operation already in progress")
    static let connectAborted = bluez("Failed", "le-connection-abort-by-local")
    static let connectCanceled = bluez("Failed", "br-connection-canceled")
    static let alreadyPaired = bluez("AlreadyExists", "Already Paired")
    static let alreadyExists = bluez("AlreadyExists", "Already Exists")
    static let authenticationFailed = bluez("AuthenticationFailed", "Authentication Failed")
    static let authenticationCanceled = bluez("AuthenticationCanceled", "Authentication Canceled")
    static let connectionAborted = bluez("Failed", "Software caused connection abort")
    static let notConnected = bluez("Failed", "Not connected")
    static let notSupported = bluez("NotSupported", "Operation is not supported")
    static let invalidLength = bluez("InvalidArguments", "Invalid Length")
    static let writeNotPermitted = bluez("NotPermitted", "Write not permitted")
    static let notifyAcquired = bluez("NotPermitted", "Notify acquired")
    static let writeAcquired = bluez("NotPermitted", "Write acquired")
    static let noNotifySession = bluez("Failed", "No notify session started")

    /// BlueZ's error for the code of an ATT Error Response.
    static func att(_ code: UInt8) -> DBusError {
        switch code {
        case 0x02: .bluez("NotPermitted", "Read not permitted")
        case 0x03: .writeNotPermitted
        case 0x05, 0x0C, 0x0F: .bluez("NotPermitted", "Not paired")
        case 0x06: .notSupported
        case 0x07: .bluez("InvalidArguments", "Invalid offset")
        case 0x08: .bluez("NotAuthorized", "Operation Not Authorized")
        case 0x0D: .invalidLength
        default: .bluez("Failed", "Operation failed with ATT error: 0x" + Hexadecimal.text(code))
        }
    }
}

extension DBusError {
    /// GDBus's error for a missing object or method.
    static func unknown(_ call: MethodCall, object: Bool) -> DBusError {
        let signature = call.arguments.map(\.signature).joined()
        return DBusError(
            name: "org.freedesktop.DBus.Error.Unknown" + (object ? "Object" : "Method"),
            message: "Method \"\(call.member)\" with signature \"\(signature)\" on interface "
                + "\"\(call.interface)\" doesn't exist\n"
        )
    }

    static func noSuchInterface(_ name: String) -> DBusError {
        DBusError(name: invalidArgumentsName, message: "No such interface '\(name)'")
    }

    static func noSuchProperty(_ name: String) -> DBusError {
        DBusError(name: invalidArgumentsName, message: "No such property '\(name)'")
    }

    static func unknownProperty(_ name: String) -> DBusError {
        DBusError(name: "org.freedesktop.DBus.Error.UnknownProperty", message: "No such property '\(name)'")
    }

    static func invalidSignature(_ name: String) -> DBusError {
        DBusError(name: "org.freedesktop.DBus.Error.InvalidSignature", message: "Invalid signature for '\(name)'")
    }

    static func readOnly(_ name: String) -> DBusError {
        DBusError(
            name: "org.freedesktop.DBus.Error.PropertyReadOnly",
            message: "Property '\(name)' is not writable"
        )
    }
}
