import Glibc
import Testing

@testable import GattherdDBus

/// The socket's side of a connection, with a test at the other end.
@Suite(.timeLimit(.minutes(3))) struct MessageBufferTests {
    private let socket: BusSocket
    private let other: BusSocket

    init() throws {
        var ends: [Int32] = [-1, -1]
        try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        socket = BusSocket(owning: ends[0], passesDescriptors: true)
        other = BusSocket(owning: ends[1], passesDescriptors: true)
    }

    private static func bytes(_ value: DBusValue, serial: UInt32 = 1) throws -> [UInt8] {
        try OutgoingMessage.signal("/", "a.b", "C", to: nil, [value]).bytes(serial: serial)
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
        let bytes = try Self.bytes(.string("one")) + Self.bytes(.string("two"))
        for cut in bytes.indices {
            #expect(try pass([bytes[..<cut], bytes[cut...]]) == [.string("one"), .string("two")])
        }
        #expect(try pass(bytes.indices.map { bytes[$0...$0] }) == [.string("one"), .string("two")])
    }

    @Test func `a message may be longer than one read`() throws {
        let long = DBusValue.bytes(Array(repeating: 7, count: 300_000))
        let all = try (0..<3).flatMap { _ in try Self.bytes(long) + Self.bytes(.byte(1)) }
        #expect(try pass([all[...]]) == [long, .byte(1), long, .byte(1), long, .byte(1)])
    }

    @Test(arguments: [[0x47, 0x45, 0x54, 0x20], [0x6C, 4, 0, 2], [0x6C, 4, 0, 1, 255, 255, 255, 255]] as [[UInt8]])
    func `an invalid message is an error`(beginning: [UInt8]) throws {
        let bytes = beginning + Array(repeating: 1, count: 16 - beginning.count)
        #expect(throws: DBusError.self) { try pass([bytes[...]]) }
    }

    @Test func `descriptors are assigned to their messages`() throws {
        var buffer = ReceiveBuffer()
        var sent: [[UInt]] = []
        for serial in 1...3 as ClosedRange<UInt32> {
            let descriptors = try (0..<serial).map { _ in try #require(DBusDescriptor(ofNewPipe: ())) }
            sent.append(descriptors.map(\.inode))
            let values = descriptors.map(DBusValue.fileDescriptor)
            let message = try OutgoingMessage.signal("/", "a.b", "C", to: nil, values)
            _ = other.send(try message.bytes(serial: serial)[...], message.descriptors)
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
        for placeholder in placeholders { close(placeholder.release()) }
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
        let bytes = try message.bytes(serial: 1)
        #expect(throws: DBusError.self) { try pass([bytes[...]]) }
    }

    @Test func `the end of the connection is reported`() throws {
        shutdown(other.descriptor, Int32(SHUT_RDWR))
        var buffer = ReceiveBuffer()
        guard case .ended = try buffer.fill(from: socket).transfer else {
            Issue.record("the end was not reported")
            return
        }
    }

    @Test func `messages that the kernel does not accept are sent later, in order`() throws {
        var queue = SendQueue()
        let values = (0..<400).map { DBusValue.bytes(Array(repeating: UInt8(truncatingIfNeeded: $0), count: 4000)) }
        for value in values { queue.append(try Self.bytes(value), []) }
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
