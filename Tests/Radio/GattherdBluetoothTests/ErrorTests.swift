import FoundationEssentials
import Testing

@testable import GattherdBluetooth

@Suite(.timeLimit(.minutes(1))) struct ErrorTests {
    @Test(arguments: [
        (BluetoothError.Kind.timedOut, true), (.connectionFailed, true), (.busy, true), (.serviceUnavailable, true),
        (.adapterUnavailable, true), (.notConnected, true), (.att(0x0E), true), (.att(0x11), true),
        (.att(0x80), false), (.authentication, false), (.notSupported, false), (.notPermitted, false),
        (.invalidLength, false), (.invalidValue, false), (.accessDenied, false), (.notificationsStuck, false),
    ])
    func `errors that may disappear in a later call are transient`(kind: BluetoothError.Kind, isTransient: Bool) {
        #expect(BluetoothError(kind, "").isTransient == isTransient)
    }

    @Test func `an error keeps the innermost operation that failed`() {
        let error = BluetoothError(.timedOut, "too late").during(.read).during(.connectionTask)
        #expect(error.operation == .read)
        #expect("\(error)" == "read: too late")
        #expect("\(BluetoothError(.busy, "wait"))" == "wait")
        #expect(error.errorDescription == "\(error)")
    }

    @Test func `an error names its peripheral once`() {
        let lost = BluetoothError(.notConnected, "C0:FF:EE:00:00:01: the link was lost")
        let read = lost.during(.read, of: "2a19 of C0:FF:EE:00:00:01")
        #expect("\(read)" == "read 2a19 of C0:FF:EE:00:00:01: the link was lost")
        #expect("\(lost.during(.read, of: "2a19 of C0:FF:EE:00:00:02"))".contains("02: C0:FF:EE:00:00:01: the link"))
        #expect("\(lost.during(.connect))" == "connect: C0:FF:EE:00:00:01: the link was lost")
    }

    @Test func `an ATT error has its name, and its own kind if there is one`() {
        #expect(BluetoothError(.att(0x13), "").attErrorName == "Value Not Allowed")
        #expect(BluetoothError(.att(0x80), "").attErrorName == nil)
        #expect(BluetoothError(.timedOut, "").attErrorName == nil)
        #expect(BluetoothError.Kind(att: 0x0F) == .authentication)
        #expect(BluetoothError.Kind(att: 0x80) == .att(0x80))
        #expect("\(BluetoothError(.att(0x13), "refused").during(.write))" == "write: refused (Value Not Allowed)")
        #expect("\(BluetoothError.Kind.att(0x0E)), \(BluetoothError.Kind.timedOut)" == "ATT error 0x0E, timed out")
    }

    @Test func `every error of an operation names the operation, the characteristic and the peripheral`() async throws {
        struct Unspeakable: Writable {
            func octets() throws(PayloadError) -> [UInt8] { throw .invalid(reason: "no") }
        }
        try await Bench.run { bench in
            let strap = try await bench.connected()
            let beats = try await strap.notifications(of: UInt16.self, from: 0x2A37)
            bench.backend.notify("measurement", [1])
            bench.backend.fail("forget", BluetoothError(.notPermitted, "not now"))
            let errors = [
                await outcome { try await strap.write(Unspeakable(), to: 0x2A19) }.error,
                await outcome { _ = try await strap.read(UInt8.self, from: 0x2A00) }.error,
                await outcome { for try await _ in beats {} }.error,
                await outcome { try await bench.central.forget(strap) }.error,
            ]
            #expect(errors.map(\.?.operation) == [.write, .read, .notification, .forget])
            #expect(errors[0].map { "\($0)" }?.hasPrefix("write 2a19 of \(strap.address): ") == true)
            #expect(errors[1].map { "\($0)" }?.hasPrefix("read 2a00 of \(strap.address): ") == true)
        }
    }
}
