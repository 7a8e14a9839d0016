/// One signal, borrowed for the time that its handler runs; nothing is decoded unless asked for.
@safe public struct DBusSignal: ~Copyable, ~Escapable {
    let view: MessageView

    /// The caller keeps the message alive while the signal is borrowed from it.
    @_lifetime(immortal)
    init(_ view: MessageView) {
        self.view = view
    }

    public var path: String { view.path }
    public var interface: String { view.interface }
    public var member: String { view.member }
    /// The sender's unique name, for example `:1.7`.
    public var sender: String { view.sender }
    public var signature: String { view.signature }
    /// The sender's number of the message, consecutive over all its messages to all receivers.
    public var serial: UInt32 { view.header.serial }

    /// Decodes everything.
    public func arguments() throws(DBusError) -> [DBusValue] { try view.arguments() }

    /// Compares without making a string.
    public func isSignal(_ interface: String, _ member: String) -> Bool {
        view.isSignal(interface, member)
    }

    /// True if the sender is `uniqueName`; compares without making a string.
    public func isFrom(_ uniqueName: String) -> Bool {
        view.has(uniqueName, at: view.header.sender)
    }

    /// True if the object is at `path`; compares without making a string.
    public func isAt(_ path: String) -> Bool {
        view.has(path, at: view.header.path)
    }

    /// A number that is equal for equal paths within this process.
    @usableFromInline var pathHash: Int {
        unsafe DBusPathTable<Void>.hash(view.body.bytes(at: view.header.path))
    }

    /// The change of one property in a `PropertiesChanged` signal.
    public struct ChangedBytes: ~Escapable {
        /// The new bytes, in place.
        public let bytes: Span<UInt8>
        /// No other property has a new value.
        public let isAlone: Bool

        @_lifetime(copy bytes)
        init(_ bytes: Span<UInt8>, isAlone: Bool) {
            self.bytes = bytes
            self.isAlone = isAlone
        }
    }

    /// The new bytes of `property` of `interface`, when this is a `PropertiesChanged` that has them.
    @_lifetime(borrow self)
    public func changedBytes(_ property: String, of interface: String) -> ChangedBytes? {
        guard var changes = ChangedProperties(view, of: interface) else { return nil }
        var isFirst = true
        while let change = try? changes.next() {
            guard changes.has(property, at: change.name) else {
                isFirst = false
                continue
            }
            guard changes.has("ay", at: change.type) else { return nil }
            let bytes = unsafe changes.bytes(at: change.value).assumingMemoryBound(to: UInt8.self)
            let changed = unsafe ChangedBytes(Span(_unsafeElements: bytes), isAlone: isFirst && changes.isAtEnd)
            return unsafe _overrideLifetime(changed, borrowing: self)
        }
        return nil
    }
}

/// A signal with everything decoded, to be kept or sent elsewhere.
public struct DBusSignalMessage: Hashable, Sendable {
    public let sender: String
    public let path: String
    public let interface: String
    public let member: String
    public let arguments: [DBusValue]
}

/// A filter of signals; criteria that are `nil` admit all.
public struct DBusSignalFilter: Hashable, Sendable {
    public var path: String?
    public var interface: String?
    public var member: String?

    public init(path: String? = nil, interface: String? = nil, member: String? = nil) {
        self.path = path
        self.interface = interface
        self.member = member
    }

    func admits(_ signal: borrowing DBusSignal) -> Bool {
        (path.map { signal.isAt($0) } ?? true) && (interface ?? signal.interface) == signal.interface
            && (member ?? signal.member) == signal.member
    }
}

/// Values by object path, found for a signal without making a string of its path.
///
/// The lookup can be inlined into other modules: without specialization it would be a large part of the CPU time of a
/// notification.
public struct DBusPathTable<Value> {
    @usableFromInline var buckets: [Int: [(path: String, value: Value)]] = [:]

    public init() {}

    /// True if the table is empty.
    public var isEmpty: Bool { buckets.isEmpty }

    public subscript(path: String) -> Value? {
        get { buckets[Self.hash(path)]?.first { $0.path == path }?.value }
        set {
            let hash = Self.hash(path)
            var bucket = buckets[hash, default: []].filter { $0.path != path }
            if let newValue { bucket.append((path, newValue)) }
            buckets[hash] = bucket.isEmpty ? nil : bucket
        }
    }

    /// The value of the path that `signal` comes from.
    @inlinable
    public func value(for signal: borrowing DBusSignal) -> Value? {
        guard !buckets.isEmpty, let bucket = buckets[signal.pathHash] else { return nil }
        for index in bucket.indices where signal.isAt(bucket[index].path) { return bucket[index].value }
        return nil
    }

    private static func hash(_ path: String) -> Int {
        var path = path
        return path.withUTF8 { unsafe hash(UnsafeRawBufferPointer($0)) }
    }

    static func hash(_ bytes: UnsafeRawBufferPointer) -> Int {
        var hasher = Hasher()
        unsafe hasher.combine(bytes: bytes)
        return hasher.finalize()
    }
}
