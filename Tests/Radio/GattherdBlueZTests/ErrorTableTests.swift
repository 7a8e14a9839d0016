import GattherdBluetooth
import GattherdDBus
import Testing

@testable import GattherdBlueZ

@Suite struct ErrorTableTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let name: String
        let text: String
        let kind: BluetoothError.Kind

        init(_ name: String, _ text: String, _ kind: BluetoothError.Kind) {
            self.name = name
            self.text = text
            self.kind = kind
        }

        var testDescription: String { "\(name) \"\(text)\"" }
    }

    private static let bluez = "org.bluez.Error."
    private static let bus = "org.freedesktop.DBus.Error."

    static let rows = [
        Row(bluez + "NotReady", "Resource Not Ready", .adapterUnavailable),
        Row(bluez + "NotReady", "br-connection-adapter-not-powered", .adapterUnavailable),
        Row(bluez + "Blocked", "Blocked through rfkill", .adapterUnavailable),
        Row(bluez + "InProgress", "Operation already in progress", .busy),
        Row(bluez + "InProgress", "In Progress", .busy),
        Row(bluez + "AlreadyExists", "Already Exists", .busy),
        Row(bluez + "NotConnected", "Not Connected", .notConnected),
        Row(bluez + "NotSupported", "Operation is not supported", .notSupported),
        Row(bluez + "NotAuthorized", "Operation Not Authorized", .authentication),
        Row(bluez + "NotPermitted", "Not paired", .authentication),
        Row(bluez + "NotPermitted", "Notify acquired", .busy),
        Row(bluez + "NotPermitted", "Write acquired", .busy),
        Row(bluez + "NotPermitted", "Read not permitted", .notPermitted),
        Row(bluez + "NotPermitted", "Write not permitted", .notPermitted),
        Row(bluez + "InvalidArguments", "Invalid offset", .invalidOffset),
        Row(bluez + "InvalidArguments", "Invalid Length", .invalidLength),
        Row(bluez + "InvalidArguments", "Invalid arguments in method call", .other),
        Row(bluez + "InvalidOffset", "", .invalidOffset),
        Row(bluez + "InvalidValueLength", "", .invalidLength),
        Row(bluez + "DoesNotExist", "Does Not Exist", .unknownPeripheral),
        Row(bluez + "ConnectionAttemptFailed", "Page Timeout", .connectionFailed),
        Row(bluez + "NotAvailable", "br-connection-profile-unavailable", .connectionFailed),
        Row(bluez + "BREDR.ProfileUnavailable", "", .connectionFailed),
        Row(bluez + "AuthenticationFailed", "Authentication Failed", .authentication),
        Row(bluez + "AuthenticationTimeout", "", .timedOut),
        Row(bluez + "Failed", "Not connected", .notConnected),
        Row(bluez + "Failed", "Operation already in progress", .busy),
        Row(bluez + "Failed", "le-connection-abort-by-local", .connectionFailed),
        Row(bluez + "Failed", "le-connection-concurrent-connection-limit", .connectionFailed),
        Row(bluez + "Failed", "le-connection-busy", .busy),
        Row(bluez + "Failed", "br-connection-canceled", .cancelled),
        Row(bluez + "Failed", "br-connection-key-missing", .authentication),
        Row(bluez + "Failed", "br-connection-page-timeout", .connectionFailed),
        Row(bluez + "Failed", "Software caused connection abort", .connectionFailed),
        Row(bluez + "Failed", "Input/output error", .connectionFailed),
        Row(bluez + "Failed", "Operation failed with ATT error: 0x0e", .att(0x0E)),
        Row(bluez + "Failed", "Operation failed with ATT error: 0x80", .att(0x80)),
        Row(bluez + "Failed", "Operation failed with ATT error: 0x01", .unknownAttribute),
        Row(bluez + "Failed", "Operation failed with ATT error: 0x0a", .unknownAttribute),
        Row(bluez + "Failed", "Operation failed with ATT error: 0x0f", .authentication),
        Row(bluez + "Failed", "Operation failed with ATT error: 0x0d", .invalidLength),
        Row(bluez + "Failed", "Operation failed with ATT error: 0x03", .notPermitted),
        Row(bluez + "Failed", "Operation failed with ATT error: 0x06", .notSupported),
        Row(bluez + "Failed", "Operation failed with ATT error: 0x07", .invalidOffset),
        Row(bluez + "Failed", "Operation failed with ATT error: 0xzz", .other),
        Row(bluez + "Failed", "Operation failed", .other),
        Row(bluez + "Failed", "", .other),
        Row(bluez + "SomethingNew", "what it says", .other),
        Row(bus + "UnknownObject", "Method \"Connect\" doesn't exist\n", .unknownAttribute),
        Row(bus + "UnknownMethod", "Method \"Connect\" doesn't exist\n", .unknownAttribute),
        Row(bus + "NoReply", "Message recipient disconnected from message bus", .serviceUnavailable),
        Row(bus + "ServiceUnknown", "The name is not activatable", .serviceUnavailable),
        Row(bus + "NameHasNoOwner", "", .serviceUnavailable),
        Row(bus + "Spawn.ChildExited", "Launch helper exited", .serviceUnavailable),
        Row(bus + "Disconnected", "", .serviceUnavailable),
        Row(bus + "AccessDenied", "Rejected send message", .accessDenied),
        Row(bus + "LimitsExceeded", "", .busy),
        Row(bus + "InvalidArgs", "", .other),
        Row(DBusError.cancelledName, "", .cancelled),
        Row("com.example.Error", "", .other),
        Row("", "", .other),
    ]

    @Test(arguments: rows) func `errors of BlueZ are mapped to kinds`(row: Row) {
        let error = BluetoothError(DBusError(name: row.name, message: row.text), missing: .unknownAttribute)
        #expect(error.kind == row.kind)
        #expect(error.detail.contains(row.name))
        #expect(!error.detail.contains("\n"))
    }

    @Test func `a deadline of ours is reported without the D-Bus error`() {
        let late = DBusError(
            name: DBusError.timeoutName,
            message: "no answer to org.bluez.Device1.Connect within -6.41e-07 seconds"
        )
        let error = BluetoothError(late, missing: .other)
        #expect(error == BluetoothError(.timedOut, "bluetoothd did not answer in time"))
    }

    @Test func `a missing object has the kind that the caller chose`() {
        let error = DBusError(name: "org.freedesktop.DBus.Error.UnknownObject", message: "")
        #expect(BluetoothError(error, missing: .unknownPeripheral).kind == .unknownPeripheral)
        #expect(BluetoothError(error, missing: .adapterUnavailable).kind == .adapterUnavailable)
    }
}
