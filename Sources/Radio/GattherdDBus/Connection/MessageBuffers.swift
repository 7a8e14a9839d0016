/// The bytes that were read from the bus and not handled yet: messages, and the beginning of one.
@safe struct ReceiveBuffer: ~Copyable {
    /// Some two hundred notifications.
    private static let usualSize = 1 << 16

    private var storage = UnsafeMutableRawBufferPointer.allocate(byteCount: usualSize, alignment: 8)
    private var filled = 0..<0
    /// The file descriptors of the messages that are not handled yet, in order.
    private var descriptors: [DBusDescriptor] = []

    deinit {
        unsafe storage.deallocate()
    }

    /// Reads once; no message that was given before may be in use.
    ///
    /// - Returns: The result of the read; `isAll` if the kernel had no more.
    mutating func fill(from socket: BusSocket) throws(DBusError) -> (transfer: Transfer, isAll: Bool) {
        try makeRoom()
        let room = unsafe UnsafeMutableRawBufferPointer(rebasing: storage[filled.upperBound...])
        let transfer = unsafe socket.receive(into: room, &descriptors)
        guard case .some(let count) = transfer else { return (transfer, true) }
        filled = filled.lowerBound..<filled.upperBound + count
        return (transfer, count < room.count)
    }

    /// Removes and returns the next complete message.
    ///
    /// - Throws: ``DBusError`` if the bytes are not a message; no further message can be read then.
    mutating func next() throws(DBusError) -> MessageView? {
        guard let length = try nextLength(), length <= filled.count else { return nil }
        let bytes = unsafe UnsafeRawBufferPointer(rebasing: storage[filled.lowerBound..<filled.lowerBound + length])
        filled = filled.lowerBound + length..<filled.upperBound
        let header = unsafe try MessageHeader(bytes)
        return unsafe MessageView(bytes, header, try dequeueDescriptors(Int(header.descriptorCount)))
    }

    private func nextLength() throws(DBusError) -> Int? {
        guard filled.count >= MessageHeader.fixedSize else { return nil }
        return unsafe try MessageHeader.messageLength(UnsafeRawBufferPointer(rebasing: storage[filled]))
    }

    private mutating func dequeueDescriptors(_ count: Int) throws(DBusError) -> [DBusDescriptor] {
        guard count > 0 else { return [] }
        guard count <= descriptors.count else { throw .invalid("a message arrived without its file descriptors") }
        defer { descriptors.removeFirst(count) }
        return Array(descriptors.prefix(count))
    }

    /// Moves the unread bytes to the front of a buffer that is large enough for the next message.
    private mutating func makeRoom() throws(DBusError) {
        let size = max(Self.usualSize, try nextLength() ?? 0)
        if unsafe size == storage.count {
            guard filled.lowerBound > 0 else { return }
            unsafe storage.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[filled]))
        } else {
            let moved = UnsafeMutableRawBufferPointer.allocate(byteCount: size, alignment: 8)
            unsafe moved.copyMemory(from: UnsafeRawBufferPointer(rebasing: storage[filled]))
            unsafe storage.deallocate()
            unsafe storage = moved
        }
        filled = 0..<filled.count
    }
}

/// The messages that do not fit into the socket yet.
struct SendQueue {
    private struct Item {
        var bytes: ArraySlice<UInt8>
        var descriptors: [DBusDescriptor]
    }

    private var items: [Item] = []

    var isEmpty: Bool { items.isEmpty }

    mutating func append(_ bytes: [UInt8], _ descriptors: [DBusDescriptor]) {
        items.append(Item(bytes: bytes[...], descriptors: descriptors))
    }

    /// Writes as much as the socket has room for; on a connection that has ended all messages are dropped.
    mutating func flush(to socket: BusSocket) {
        var done = 0
        sending: while done < items.count {
            switch socket.send(items[done].bytes, items[done].descriptors) {
            case .some(let count):
                items[done].bytes.removeFirst(count)
                items[done].descriptors = []
                if items[done].bytes.isEmpty { done += 1 }
            case .blocked: break sending
            case .ended: done = items.count
            }
        }
        items.removeFirst(done)
    }
}
