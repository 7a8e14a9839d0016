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

    private static func octets() throws -> [UInt8] {
        let message = try OutgoingMessage.signal(
            "/a/b",
            "org.freedesktop.DBus.Properties",
            "PropertiesChanged",
            to: ":1.7",
            arguments
        )
        return try message.octets(serial: 7)
    }

    /// Parses a whole message and describes it.
    @discardableResult
    private static func read(_ octets: [UInt8]) throws -> (path: String, value: [UInt8]?, arguments: [DBusValue]) {
        try unsafe octets.withUnsafeBytes { octets in
            let message = unsafe MessageView(octets, try MessageHeader(octets), [])
            let signal = DBusSignal(message)
            let arguments = try signal.arguments()
            guard let change = signal.changedOctets("Value", of: interface) else {
                return (signal.path, nil, arguments)
            }
            return (signal.path, change.octets.indices.map { change.octets[$0] }, arguments)
        }
    }

    @Test func `messages marshalled by libdbus are read`() throws {
        let octets = try Self.octets()
        let (path, value, arguments) = try Self.read(octets)
        #expect(path == "/a/b")
        #expect(value == [0x16, 0x48])
        #expect(arguments == Self.arguments)
        #expect(try unsafe octets.withUnsafeBytes { try unsafe MessageHeader.messageLength($0) } == octets.count)
    }

    @Test func `a truncated message is an error`() throws {
        let octets = try Self.octets()
        for count in octets.indices {
            #expect(throws: DBusError.self, "\(count) octets") { try Self.read(Array(octets.prefix(count))) }
        }
    }

    @Test(arguments: 0..<20) func `arbitrary bytes from the bus do no harm`(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let octets = try Self.octets()
        for _ in 0..<500 {
            var changed = octets
            for _ in 0..<Int.random(in: 1...8, using: &random) {
                changed[.random(in: changed.indices, using: &random)] = .random(in: .min ... .max, using: &random)
            }
            _ = try? Self.read(changed)
            _ = try? Self.read(octets.indices.map { _ in .random(in: .min ... .max, using: &random) })
        }
        #expect(try Self.read(octets).arguments == Self.arguments)
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
        try unsafe Self.bigEndian.withUnsafeBytes { octets in
            let message = unsafe MessageView(octets, try MessageHeader(octets), [])
            #expect(try unsafe MessageHeader.messageLength(octets) == Self.bigEndian.count)
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
        unsafe body.withUnsafeBytes { octets in
            var reader = unsafe MessageReader(octets, 0..<octets.count, isSwapped: false)
            #expect(throws: DBusError.self) { try reader.values(Array(signature.utf8)[...]) }
        }
    }
}

/// The socket's side of a connection, with a test at the other end.
@Suite(.timeLimit(.minutes(3))) struct ReceiveBufferTests {
    private let socket: BusSocket
    private let other: BusSocket

    init() throws {
        var ends: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        socket = BusSocket(owning: ends[0], passesDescriptors: true)
        other = BusSocket(owning: ends[1], passesDescriptors: true)
    }

    private static func octets(_ value: DBusValue, serial: UInt32 = 1) throws -> [UInt8] {
        try OutgoingMessage.signal("/", "a.b", "C", to: nil, [value]).octets(serial: serial)
    }

    /// Sends all of it, whatever the size of the socket's buffer, and gives the values that arrived.
    private func pass(_ pieces: [ArraySlice<UInt8>]) throws -> [DBusValue] {
        var buffer = ReceiveBuffer()
        var values: [DBusValue] = []
        for var piece in pieces {
            while !piece.isEmpty {
                if case .some(let count) = other.send(piece, []) { piece = piece.dropFirst(count) }
                while case .some = try buffer.fill(from: socket).transfer {
                    while let message = try buffer.next() { values += try message.arguments() }
                }
            }
        }
        return values
    }

    @Test func `messages that arrive in pieces are joined`() throws {
        let octets = try Self.octets(.string("one")) + Self.octets(.string("two"))
        for cut in octets.indices {
            #expect(try pass([octets[..<cut], octets[cut...]]) == [.string("one"), .string("two")])
        }
        #expect(try pass(octets.indices.map { octets[$0...$0] }) == [.string("one"), .string("two")])
    }

    @Test func `a message may be longer than one read`() throws {
        let long = DBusValue.bytes(Array(repeating: 7, count: 300_000))
        let all = try (0..<3).flatMap { _ in try Self.octets(long) + Self.octets(.byte(1)) }
        #expect(try pass([all[...]]) == [long, .byte(1), long, .byte(1), long, .byte(1)])
    }

    @Test(arguments: [[0x47, 0x45, 0x54, 0x20], [0x6C, 4, 0, 2], [0x6C, 4, 0, 1, 255, 255, 255, 255]] as [[UInt8]])
    func `an invalid message is an error`(beginning: [UInt8]) throws {
        let octets = beginning + Array(repeating: 1, count: 16 - beginning.count)
        #expect(throws: DBusError.self) { try pass([octets[...]]) }
    }

    @Test func `descriptors are assigned to their messages`() throws {
        var buffer = ReceiveBuffer()
        var sent: [[UInt]] = []
        for serial in 1...3 as ClosedRange<UInt32> {
            let descriptors = try (0..<serial).map { _ in try #require(DBusDescriptor(ofNewPipe: ())) }
            sent.append(descriptors.map(\.inode))
            let values = descriptors.map(DBusValue.fileDescriptor)
            let message = try OutgoingMessage.signal("/", "a.b", "C", to: nil, values)
            _ = other.send(try message.octets(serial: serial)[...], message.descriptors)
        }
        var received: [[UInt]] = []
        for _ in 1...3 {
            _ = try buffer.fill(from: socket)
            while let message = try buffer.next() {
                received.append(
                    try message.arguments().compactMap { value in
                        if case .fileDescriptor(let descriptor) = value { descriptor.inode } else { nil }
                    }
                )
            }
        }
        #expect(received == sent)
        #expect(Set(sent.joined()).count == 6)
    }

    @Test func `received descriptors have higher numbers than the connection, so a killed process closes them first`()
        throws
    {
        let placeholders = (0..<8).map { _ in DBusDescriptor(owning: dup(0)) }
        var ends: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        let socket = BusSocket(owning: ends[0], passesDescriptors: true)
        let other = BusSocket(owning: ends[1], passesDescriptors: true)
        let pipes = try (0..<6).map { _ in try #require(DBusDescriptor(ofNewPipe: ())) }
        for placeholder in placeholders { close(placeholder.take()) }
        _ = other.send([1], pipes)
        var received: [DBusDescriptor] = []
        _ = unsafe withUnsafeTemporaryAllocation(byteCount: 1, alignment: 1) {
            unsafe socket.receive(into: $0, &received)
        }
        #expect(received.map(\.inode) == pipes.map(\.inode))
        #expect(received.allSatisfy { $0.rawValue > socket.descriptor })
    }

    @Test func `a message without its descriptors is an error`() throws {
        let message = try OutgoingMessage.signal(
            "/",
            "a.b",
            "C",
            to: nil,
            [.fileDescriptor(try #require(DBusDescriptor(ofNewPipe: ())))]
        )
        let octets = try message.octets(serial: 1)
        #expect(throws: DBusError.self) { try pass([octets[...]]) }
    }

    @Test func `the end of the connection is reported`() throws {
        shutdown(other.descriptor, Int32(SHUT_RDWR))
        var buffer = ReceiveBuffer()
        guard case .ended = try buffer.fill(from: socket).transfer else {
            Issue.record("the end was not told")
            return
        }
    }

    @Test func `messages that the kernel does not accept are sent later, in order`() throws {
        var queue = SendQueue()
        let values = (0..<400).map { DBusValue.bytes(Array(repeating: UInt8(truncatingIfNeeded: $0), count: 4000)) }
        for value in values { queue.append(try Self.octets(value), []) }
        queue.flush(to: other)
        #expect(!queue.isEmpty)
        var buffer = ReceiveBuffer()
        var received: [DBusValue] = []
        while received.count < values.count {
            _ = try buffer.fill(from: socket)
            while let message = try buffer.next() { received += try message.arguments() }
            queue.flush(to: other)
        }
        #expect(received == values)
        #expect(queue.isEmpty)
    }
}

extension DBusDescriptor {
    /// The read end; the write end is closed.
    fileprivate convenience init?(ofNewPipe: Void) {
        var ends: [Int32] = [-1, -1]
        guard unsafe pipe(&ends) == 0 else { return nil }
        close(ends[1])
        self.init(owning: ends[0])
    }

    /// The identity of the open file.
    fileprivate var inode: UInt {
        var status = stat()
        unsafe fstat(rawValue, &status)
        return status.st_ino
    }
}
