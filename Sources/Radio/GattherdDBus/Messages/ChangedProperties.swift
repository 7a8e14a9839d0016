/// The properties of a `PropertiesChanged` signal, one after the other, in place: nothing is decoded.
///
/// D-Bus specification, "org.freedesktop.DBus.Properties".
struct ChangedProperties {
    /// The places of one property.
    struct Change {
        /// The name, the type and the value, with the padding between them.
        let entry: MessageReader.Place
        let name: MessageReader.Place
        let type: MessageReader.Place
        /// See ``MessageReader/skip(_:)``.
        let value: MessageReader.Place
    }

    private let view: MessageView
    private var body: MessageReader
    private let end: Int

    /// The result is `nil` for other messages, and for properties of other interfaces.
    init?(_ view: MessageView, of interface: String) {
        guard view.isSignal("org.freedesktop.DBus.Properties", "PropertiesChanged"),
            view.has("sa{sv}as", at: view.header.signature)
        else { return nil }
        var body = view.body
        guard let owner = try? body.text(), view.has(interface, at: owner),
            let properties = try? body.array(alignedTo: 8)
        else { return nil }
        end = Int(properties.start) + Int(properties.count)
        (self.view, self.body) = (view, body)
    }

    /// True if the last change was read.
    var isAtEnd: Bool { body.position >= end }

    /// Reads the next change; returns `nil` after the last one.
    mutating func next() throws(DBusError) -> Change? {
        guard !isAtEnd else { return nil }
        try body.align(to: 8)
        let start = body.position
        let name = try body.text()
        let type = try body.signature()
        let value = try body.skip(type)
        let entry = MessageReader.Place(start: Int32(start), count: Int32(body.position - start))
        return Change(entry: entry, name: name, type: type, value: value)
    }

    /// Returns true if the signal invalidates no property; to be called at the end.
    mutating func invalidatesNothing() -> Bool {
        isAtEnd && (try? body.array(alignedTo: 4).count) == 0
    }

    func has(_ name: String, at place: MessageReader.Place) -> Bool { view.has(name, at: place) }

    /// The bytes at one of a change's places.
    func bytes(at place: MessageReader.Place) -> UnsafeRawBufferPointer { unsafe body.bytes(at: place) }

    /// The value of a change of type `n`; `nil` for other types.
    func int16(of change: Change) -> Int16? {
        guard has("n", at: change.type) else { return nil }
        var reader = view.reader(at: change.value)
        return try? reader.number()
    }
}
