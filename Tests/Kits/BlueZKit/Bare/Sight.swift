public import GattherdDBus

/// One thing that a client saw.
public enum Sight: Hashable, Sendable {
    /// `PropertiesChanged`; `values` is an `a{sv}`.
    case changed(String, interface: String, values: DBusValue, invalidated: [String])
    case added(String, interfaces: [String])
    case removed(String, interfaces: [String])
    /// bluetoothd came to the bus, or left it.
    case daemon(isThere: Bool)
    /// One of the client's own calls ended; `error` is its name and text.
    case reply(String, String, error: String?)

    init?(_ signal: borrowing DBusSignal) {
        guard let arguments = try? signal.arguments(), let subject = arguments.first?.string else { return nil }
        switch signal.member {
        case "PropertiesChanged" where arguments.count == 3:
            let invalidated = arguments[2].strings ?? []
            self = .changed(signal.path, interface: subject, values: arguments[1], invalidated: invalidated)
        case "InterfacesAdded" where arguments.count == 2:
            self = .added(subject, interfaces: arguments[1].entries?.compactMap(\.key.string) ?? [])
        case "InterfacesRemoved" where arguments.count == 2:
            self = .removed(subject, interfaces: arguments[1].strings ?? [])
        case "NameOwnerChanged" where arguments.count == 3:
            self = .daemon(isThere: arguments[2].string != "")
        default: return nil
        }
    }

    /// The new value of a property of the object at `path`, if this tells it.
    public func value(_ property: String, of path: String) -> DBusValue? {
        guard case .changed(path, _, let values, _) = self else { return nil }
        return values[property]
    }
}

extension [Sight] {
    /// All values of a property that were told, in order.
    public func values(_ property: String, of path: String) -> [DBusValue] {
        compactMap { $0.value(property, of: path) }
    }

    /// All values of a characteristic that were told, in order.
    public func octets(of path: String) -> [[UInt8]] {
        values("Value", of: path).compactMap(\.octets)
    }

    /// Where it was first told that a property has this value.
    public func firstIndex(of property: String, _ value: Bool, at path: String) -> Int? {
        firstIndex { $0.value(property, of: path)?.bool == value }
    }

    /// Where the first call of `member` ended.
    public func firstReply(_ member: String, at path: String) -> Int? {
        firstIndex { if case .reply(path, member, _) = $0 { true } else { false } }
    }

    /// Whether a property was told to have this value.
    public func tells(_ property: String, _ value: Bool, at path: String) -> Bool {
        firstIndex(of: property, value, at: path) != nil
    }

    /// The objects that came, in order.
    public var added: [String] {
        compactMap { if case .added(let path, _) = $0 { path } else { nil } }
    }

    /// The objects that went, in order.
    public var removed: [String] {
        compactMap { if case .removed(let path, _) = $0 { path } else { nil } }
    }
}
