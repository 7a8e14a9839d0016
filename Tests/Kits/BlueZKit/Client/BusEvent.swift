public import GattherdDBus

/// One event that a client observed.
public enum BusEvent: Hashable, Sendable {
    /// A `PropertiesChanged` signal. `values` is an `a{sv}`.
    case changed(String, interface: String, values: DBusValue, invalidated: [String])
    case added(String, interfaces: [String])
    case removed(String, interfaces: [String])
    /// bluetoothd took or released its bus name.
    case daemon(isRunning: Bool)
    /// The end of one of the client's calls. `error` is the name and text of its error.
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
            self = .daemon(isRunning: arguments[2].string != "")
        default: return nil
        }
    }

    /// The new value of a property of the object at `path`, if this event contains it.
    public func value(_ property: String, of path: String) -> DBusValue? {
        guard case .changed(path, _, let values, _) = self else { return nil }
        return values[property]
    }
}

extension [BusEvent] {
    /// The signalled values of a property, in order.
    public func values(_ property: String, of path: String) -> [DBusValue] {
        compactMap { $0.value(property, of: path) }
    }

    /// The signalled values of a characteristic, in order.
    public func octets(of path: String) -> [[UInt8]] {
        values("Value", of: path).compactMap(\.bytes)
    }

    /// The index of the first signal of a property with this value.
    public func firstIndex(of property: String, _ value: Bool, at path: String) -> Int? {
        firstIndex { $0.value(property, of: path)?.bool == value }
    }

    /// The index of the end of the first call of `member`.
    public func firstReply(_ member: String, at path: String) -> Int? {
        firstIndex { if case .reply(path, member, _) = $0 { true } else { false } }
    }

    /// True if a property was signalled with this value.
    public func signals(_ property: String, _ value: Bool, at path: String) -> Bool {
        firstIndex(of: property, value, at: path) != nil
    }

    /// The added objects, in order.
    public var added: [String] {
        compactMap { if case .added(let path, _) = $0 { path } else { nil } }
    }

    /// The removed objects, in order.
    public var removed: [String] {
        compactMap { if case .removed(let path, _) = $0 { path } else { nil } }
    }
}
