import Glibc

/// A received message, in place: the creator keeps the bytes alive as long as the view is used.
@safe struct MessageView {
    let header: MessageHeader
    private let bytes: UnsafeRawBufferPointer
    private let descriptors: [DBusDescriptor]

    /// - Parameters:
    ///   - bytes: The message, whole.
    ///   - header: Its header.
    ///   - descriptors: The file descriptors of the message.
    init(_ bytes: UnsafeRawBufferPointer, _ header: MessageHeader, _ descriptors: [DBusDescriptor]) {
        unsafe self.bytes = bytes
        self.header = header
        self.descriptors = descriptors
    }

    var path: String { text(header.path) }
    var interface: String { text(header.interface) }
    var member: String { text(header.member) }
    var sender: String { text(header.sender) }
    var signature: String { text(header.signature) }

    /// A reader at the beginning of the body.
    var body: MessageReader {
        unsafe MessageReader(bytes, header.body, isSwapped: header.isSwapped, descriptors)
    }

    /// A reader of a part of the message.
    func reader(at place: MessageReader.Place) -> MessageReader {
        let start = Int(place.start)
        return unsafe MessageReader(bytes, start..<start + Int(place.count), isSwapped: header.isSwapped, descriptors)
    }

    func arguments() throws(DBusError) -> [DBusValue] {
        var body = body
        return try body.values(body[header.signature][...])
    }

    /// True if the message is this signal; compares without making a string.
    func isSignal(_ interface: String, _ member: String) -> Bool {
        header.kind == .signal && has(member, at: header.member) && has(interface, at: header.interface)
    }

    /// Compares without making a string.
    func has(_ expected: String, at place: MessageReader.Place) -> Bool {
        let found = unsafe body.bytes(at: place)
        var expected = expected
        return expected.withUTF8 { expected in
            guard expected.count == found.count else { return false }
            guard let left = expected.baseAddress, let right = found.baseAddress else { return true }
            return unsafe memcmp(left, right, expected.count) == 0
        }
    }

    /// The error of an error reply.
    var error: DBusError {
        let first = try? arguments().first
        let name = text(header.errorName)
        return DBusError(name: name.isEmpty ? DBusError.failedName : name, message: first?.string ?? "")
    }

    private func text(_ place: MessageReader.Place) -> String { body.string(place) }
}
