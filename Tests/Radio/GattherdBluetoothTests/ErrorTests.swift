import FoundationEssentials
import GattherdBluetooth
import Testing

@Suite struct ErrorTests {
    @Test(arguments: [
        (BluetoothError.Kind.timedOut, true), (.connectionFailed, true), (.busy, true), (.serviceUnavailable, true),
        (.adapterUnavailable, true), (.notConnected, true), (.att(0x0E), true), (.att(0x11), true),
        (.att(0x80), false), (.authentication, false), (.notSupported, false), (.notPermitted, false),
        (.invalidLength, false), (.invalidValue, false), (.accessDenied, false),
    ])
    func `errors that a later call may not have are transient`(kind: BluetoothError.Kind, isTransient: Bool) {
        #expect(BluetoothError(kind, "").isTransient == isTransient)
    }

    @Test func `the innermost operation of an error is kept`() {
        let error = BluetoothError(.timedOut, "too late").during(.read).during(.connectionTask)
        #expect(error.operation == .read)
        #expect("\(error)" == "read: too late")
        #expect("\(BluetoothError(.busy, "wait"))" == "wait")
        #expect(error.errorDescription == "\(error)")
    }

    @Test func `an ATT error has its name, and a kind of its own if there is one`() {
        #expect(BluetoothError(.att(0x13), "").attErrorName == "Value Not Allowed")
        #expect(BluetoothError(.att(0x80), "").attErrorName == nil)
        #expect(BluetoothError(.timedOut, "").attErrorName == nil)
        #expect(BluetoothError.Kind(att: 0x0F) == .authentication)
        #expect(BluetoothError.Kind(att: 0x80) == .att(0x80))
    }
}
