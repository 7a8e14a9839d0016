import CDBus
import Glibc

/// One signal, borrowed for the time that its handler runs; nothing is decoded unless asked for.
@safe public struct DBusSignal: ~Copyable, ~Escapable {
    private let view: MessageView

    /// The caller keeps the message alive while the signal is borrowed from it.
    @_lifetime(immortal)
    init(_ view: MessageView) {
        self.view = view
    }

    public var path: String { view.path ?? "" }
    public var interface: String { view.interface ?? "" }
    public var member: String { view.member ?? "" }
    /// The unique name of who sent it, for example `:1.7`.
    public var sender: String { view.sender ?? "" }
    public var signature: String { view.signature }

    /// Decodes everything.
    public func arguments() throws(DBusError) -> [DBusValue] { try view.arguments() }

    /// Compares without making a string.
    public func isSignal(_ interface: String, _ member: String) -> Bool {
        view.isSignal(interface, member)
    }

    /// Compares without making a string.
    public func isFrom(_ uniqueName: String) -> Bool {
        unsafe MessageView.equals(dbus_message_get_sender(view.raw), uniqueName)
    }

    /// Compares without making a string.
    public func isAt(_ path: String) -> Bool {
        unsafe MessageView.equals(dbus_message_get_path(view.raw), path)
    }

    /// A number that is equal for equal paths within this process.
    @usableFromInline var pathHash: Int {
        guard let path = unsafe dbus_message_get_path(view.raw) else { return 0 }
        return unsafe DBusPathTable<Void>.hash(UnsafeRawBufferPointer(start: path, count: strlen(path)))
    }

    /// What a `PropertiesChanged` says of one property.
    public struct ChangedOctets: ~Escapable {
        /// The new octets, in place.
        public let octets: Span<UInt8>
        /// No other property has a new value.
        public let isAlone: Bool

        @_lifetime(copy octets)
        init(_ octets: Span<UInt8>, isAlone: Bool) {
            self.octets = octets
            self.isAlone = isAlone
        }
    }

    /// The new octets of `property` of `interface`, when this is a `PropertiesChanged` that has them.
    @_lifetime(borrow self)
    public func changedOctets(_ property: String, of interface: String) -> ChangedOctets? {
        guard isSignal("org.freedesktop.DBus.Properties", "PropertiesChanged"),
            view.hasSignature("sa{sv}as")
        else { return nil }
        var cursor = unsafe DBusMessageIter()
        guard unsafe dbus_message_iter_init(view.raw, &cursor) != 0, unsafe Self.text(&cursor, equals: interface),
            let (octets, isAlone) = unsafe Self.octets(of: property, after: &cursor)
        else { return nil }
        let changed = unsafe ChangedOctets(Span(_unsafeElements: octets), isAlone: isAlone)
        return unsafe _overrideLifetime(changed, borrowing: self)
    }

    /// `cursor` stands on the interface name that precedes the dictionary.
    private static func octets(
        of property: String,
        after cursor: inout DBusMessageIter
    ) -> (UnsafeBufferPointer<UInt8>, isAlone: Bool)? {
        var entry = unsafe DBusMessageIter()
        var field = unsafe DBusMessageIter()
        unsafe dbus_message_iter_next(&cursor)
        unsafe dbus_message_iter_recurse(&cursor, &entry)
        var isFirst = true
        while unsafe dbus_message_iter_get_arg_type(&entry) == TypeCode.dictEntry {
            unsafe dbus_message_iter_recurse(&entry, &field)
            if unsafe text(&field, equals: property) {
                unsafe dbus_message_iter_next(&field)
                guard let octets = unsafe octets(ofVariant: &field) else { return nil }
                return unsafe (octets, isFirst && dbus_message_iter_has_next(&entry) == 0)
            }
            isFirst = false
            unsafe dbus_message_iter_next(&entry)
        }
        return nil
    }

    private static func octets(ofVariant variant: inout DBusMessageIter) -> UnsafeBufferPointer<UInt8>? {
        var array = unsafe DBusMessageIter()
        var inner = unsafe DBusMessageIter()
        unsafe dbus_message_iter_recurse(&variant, &array)
        guard unsafe dbus_message_iter_get_arg_type(&array) == TypeCode.array,
            unsafe dbus_message_iter_get_element_type(&array) == TypeCode.byte
        else { return nil }
        unsafe dbus_message_iter_recurse(&array, &inner)
        return unsafe MessageReader.octets(&inner)
    }

    private static func text(_ iterator: inout DBusMessageIter, equals expected: String) -> Bool {
        var characters: UnsafePointer<CChar>?
        unsafe dbus_message_iter_get_basic(&iterator, &characters)
        return unsafe MessageView.equals(characters, expected)
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

/// Which signals are wanted; what is `nil` may be anything.
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
