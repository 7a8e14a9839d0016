import GattherdMachines
import Glibc
import TestKit
import Testing

@testable import GattherdDBus

/// Messages as they are on the wire, without a bus.
@Suite(.timeLimit(.minutes(3))) struct MessageTests {
    private static let interface = "org.bluez.GattCharacteristic1"
    private static let arguments: [DBusValue] = [
        .string(interface),
        .dictionary(
            key: "s",
            value: "v",
            [
                DBusEntry(.string("Flags"), .variant(.strings(["read", "notify"]))),
                DBusEntry(.string("Value"), .variant(.bytes([0x16, 0x48]))),
                DBusEntry(.string("Pair"), .variant(.structure([.double(0.5), .variant(.int16(-3))]))),
            ]
        ),
        .strings(["x"]),
    ]

    private static func bytes() throws -> [UInt8] {
        let message = try OutgoingMessage.signal(
            "/a/b",
            "org.freedesktop.DBus.Properties",
            "PropertiesChanged",
            to: ":1.7",
            arguments
        )
        return try message.bytes(serial: 7)
    }

    /// Parses a whole message and describes it.
    @discardableResult
    private static func read(_ bytes: [UInt8]) throws -> (path: String, value: [UInt8]?, arguments: [DBusValue]) {
        try unsafe bytes.withUnsafeBytes { bytes in
            let message = unsafe MessageView(bytes, try MessageHeader(bytes), [])
            let signal = DBusSignal(message)
            let arguments = try signal.arguments()
            if let changes = RecordedChanges(signal, of: interface, variable: "RSSI") {
                #expect(changes.repetition(in: signal) != nil)
            }
            guard let change = signal.changedBytes("Value", of: interface) else {
                return (signal.path, nil, arguments)
            }
            return (signal.path, change.bytes.indices.map { change.bytes[$0] }, arguments)
        }
    }

    @Test func `messages marshalled by libdbus are read`() throws {
        let bytes = try Self.bytes()
        let (path, value, arguments) = try Self.read(bytes)
        #expect(path == "/a/b")
        #expect(value == [0x16, 0x48])
        #expect(arguments == Self.arguments)
        #expect(try unsafe bytes.withUnsafeBytes { try unsafe MessageHeader.messageLength($0) } == bytes.count)
    }

    @Test func `a truncated message is an error`() throws {
        let bytes = try Self.bytes()
        for count in bytes.indices {
            #expect(throws: DBusError.self, "\(count) bytes") { try Self.read(Array(bytes.prefix(count))) }
        }
    }

    @Test(arguments: 0..<20) func `arbitrary bytes from the bus do no harm`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let bytes = try Self.bytes()
        for _ in 0..<500 {
            var changed = bytes
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                changed[.random(in: changed.indices, using: &random)] = .random(in: .min ... .max, using: &random)
            }
            _ = try? Self.read(changed)
            _ = try? Self.read(bytes.indices.map { _ in .random(in: .min ... .max, using: &random) })
        }
        #expect(try Self.read(bytes).arguments == Self.arguments)
    }

    /// A signal `/`, `a.b`, `C` from a big-endian machine: a field that no specification knows, an `u` and a `q`.
    private static let bigEndian: [UInt8] =
        Array("B".utf8) + [4, 0, 1] + [0, 0, 0, 6] + [0, 0, 0, 9] + [0, 0, 0, 72]
        + [1, 1] + Array("o".utf8) + [0, 0, 0, 0, 1] + Array("/".utf8) + [0, 0, 0, 0, 0, 0, 0]
        + [2, 1] + Array("s".utf8) + [0, 0, 0, 0, 3] + Array("a.b".utf8) + [0, 0, 0, 0, 0]
        + [3, 1] + Array("s".utf8) + [0, 0, 0, 0, 1] + Array("C".utf8) + [0, 0, 0, 0, 0, 0, 0]
        + [99, 1] + Array("t".utf8) + [0, 0, 0, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8]
        + [8, 1] + Array("g".utf8) + [0, 2] + Array("uq".utf8) + [0]
        + [1, 2, 3, 4] + [5, 6]

    @Test func `both byte orders are read, and unknown fields are skipped`() throws {
        try unsafe Self.bigEndian.withUnsafeBytes { bytes in
            let message = unsafe MessageView(bytes, try MessageHeader(bytes), [])
            #expect(try unsafe MessageHeader.messageLength(bytes) == Self.bigEndian.count)
            #expect(message.isSignal("a.b", "C"))
            #expect(message.header.serial == 9)
            #expect(try message.arguments() == [.uint32(0x0102_0304), .uint16(0x0506)])
        }
    }

    /// Signatures and bodies that no bus forwards.
    private static let malformed: [(String, [UInt8])] = [
        ("a", [0, 0, 0, 0]), ("(", [0]), ("()", []), ("a()", [1, 0, 0, 0, 0, 0, 0, 0, 0]), ("z", [0]), ("}", [0]),
        ("a{vs}", [8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), ("a{s}", [0, 0, 0, 0, 0, 0, 0, 0]),
        ("v", [2, 121, 121, 0, 1, 1]), ("v", [0, 0]), ("au", [3, 0, 0, 0, 1, 2, 3, 4]), ("h", [0, 0, 0, 0]),
        ("ay", [255, 255, 255, 255]), ("s", [255, 255, 255, 255]), ("g", [255]),
    ]

    @Test(arguments: malformed.indices) func `an invalid value is an error`(index: Int) {
        let (signature, body) = Self.malformed[index]
        unsafe body.withUnsafeBytes { bytes in
            var reader = unsafe MessageReader(bytes, 0..<bytes.count, isSwapped: false)
            #expect(throws: DBusError.self) { try reader.values(Array(signature.utf8)[...]) }
        }
    }
}
